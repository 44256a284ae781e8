//! Prefetches in a program that runs: switched on and off in turns, and kept on where the program
//! does more for the CPU time that it takes.
//!
//! ```text
//! work       what the program has done so far, and for how much CPU time
//! switched   the bytes in its code that switch each prefetch
//! phases     one way of running it for a tenth of a second: a run, for the search
//! ```
//!
//! The program was started with all forms of all prefetches in its code. Whatever is searched by
//! whole runs in `search` is searched by phases here, with the same rules. A prefetch changes
//! nothing that the program computes, so nothing need be compared.

mod phases;
mod switched;
mod work;

pub use work::Counted;

use crate::change::{Candidate, Change};
use crate::program::{Program, TrialError};
use crate::search::{Asked, Contender, Found, found};
use crate::settings::form::Form;
use crate::settings::prepared::{Prepared, Start};
use lab::rng::Rng;
use lab::stop::Stop;
use phases::Phases;
use records::recipe::{Setting, Verdict};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use switched::Switched;
use work::Work;

/// A program has mapped its code within this time.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A program that can be started so that its prefetches can be switched.
pub struct Switchable {
    contenders: Vec<(String, Vec<Form>)>,
    prepared: Prepared,
}

impl Switchable {
    /// With all forms of the candidates that are prefetches; why not, if none is possible.
    pub fn of(program: &Program, candidates: &[Candidate]) -> Result<Self, String> {
        // What is in its code and cannot be switched off would stay on.
        switched::can_be_written().map_err(|why| {
            format!("this kernel does not let a program's code be written to: {}", records::plain(&why))
        })?;
        let mut contenders = Vec::new();
        let mut refused = None;
        for Candidate { change, .. } in candidates {
            if !matches!(change, Change::Prefetch(_)) {
                continue;
            }
            match change.forms() {
                Ok(forms) => contenders.push((change.says(), forms)),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        if contenders.is_empty() {
            let none = || "its profile shows no load whose next addresses are known ahead".to_owned();
            return Err(refused.unwrap_or_else(none));
        }
        let all: Vec<Setting> = settings(&contenders);
        let prepared = crate::settings::prepare(&all, program)?;
        Ok(Self { contenders, prepared })
    }

    pub fn start(&self) -> &Start {
        &self.prepared.start
    }

    /// The process that was started so, with all of its prefetches switched off.
    pub fn begun(self, process: u32, counted: Counted, stop: Stop) -> Result<Running, String> {
        let directory = self.prepared.directory().ok_or("its files are gone")?;
        let switched = Switched::of(process, &settings(&self.contenders), directory)?;
        let phases = Phases::new(switched, Work::of(process, counted), stop);
        // It becomes the program first, and maps its libraries.
        let began = Instant::now();
        while let Err(why) = phases.switch(&[]) {
            if began.elapsed() > STARTS_WITHIN {
                return Err(why);
            }
            sleep(BETWEEN_LOOKS);
        }
        Ok(Running { contenders: self.contenders, phases, files: Some(self.prepared) })
    }
}

fn settings(contenders: &[(String, Vec<Form>)]) -> Vec<Setting> {
    contenders.iter().flat_map(|(_, forms)| forms).flat_map(|form| form.settings.clone()).collect()
}

/// A process whose prefetches are switched.
pub struct Running {
    contenders: Vec<(String, Vec<Form>)>,
    phases: Phases,
    /// They are there for as long as the process may execute them anew.
    #[expect(dead_code, reason = "it is dropped with this")]
    files: Option<Prepared>,
}

impl Running {
    /// A process that `gleaner run` has started with these settings, from this directory.
    pub fn attach(
        process: u32,
        settings: &[Setting],
        directory: &Path,
        counted: Counted,
        stop: Stop,
    ) -> Result<Self, String> {
        let own: Vec<Setting> =
            settings.iter().filter(|one| matches!(one, Setting::Prefetch(_))).cloned().collect();
        if own.is_empty() {
            return Err(
                "its recipe has no prefetch, and nothing else can be switched while it runs".to_owned()
            );
        }
        let switched = Switched::of(process, &own, directory)?;
        let says =
            if own.len() == 1 { crate::says(&own[0]) } else { format!("its {} prefetches", own.len()) };
        let contenders = vec![(says, vec![Form::new("", own)])];
        Ok(Self { contenders, phases: Phases::new(switched, Work::of(process, counted), stop), files: None })
    }

    /// Searches within the budget; what is found is switched on from then on, and nothing else.
    pub fn search(&mut self, budget: Duration, told: &mut dyn FnMut(&str)) -> Result<Found, TrialError> {
        let asked =
            Asked { budget, is_budget_named: true, others: Vec::new(), any_output: true, memory: None };
        let contender =
            |(says, forms): &(String, Vec<Form>)| Contender { says: says.clone(), forms: Ok(forms.clone()) };
        let contenders = self.contenders.iter().map(contender).collect();
        told("until its work costs what it did before");
        self.phases.settle()?;
        let found = found(&mut self.phases, contenders, &asked, &mut Rng::new(1), told);
        // Whatever went wrong, the program goes on.
        let kept = found.as_ref().map_or(&[][..], |found| &found.settings);
        let is_on = self.phases.switch(kept);
        let mut found = found?;
        if let Err(why) = is_on {
            let why =
                if self.phases.is_running() { why } else { "it ended before that was known".to_owned() };
            (found.verdict, found.settings) = (Verdict::NotResolved { why }, Vec::new());
        }
        Ok(found)
    }

    /// Looks again at what is switched on; it is switched off if the program is slower with it by
    /// more than chance. Whether it stays on.
    pub fn still_pays(&mut self, settings: &[Setting]) -> Result<bool, TrialError> {
        let pays = phases::still_pays(&mut self.phases, settings)?;
        let _ = self.phases.switch(if pays { settings } else { &[] });
        Ok(pays)
    }

    pub fn counted(&self) -> String {
        self.phases.work.says()
    }
}

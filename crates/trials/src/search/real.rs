//! Real runs of the program.

use super::{Asked, Outcome, Runner, Way};
use crate::left::Plain;
use crate::program::{Program, TrialError};
use crate::settings::prepared::{Prepared, Start};
use lab::stop::Stop;
use records::recipe::Setting;
use std::time::{Duration, Instant};

pub(crate) struct Real {
    /// With its own arguments, and with each of the others.
    programs: Vec<Program>,
    plain: Vec<Plain>,
    /// What was made ready once, or why it cannot be.
    ready: Vec<(Vec<Setting>, Result<Prepared, String>)>,
    /// The longest run as it is.
    longest: Option<Duration>,
    began: Instant,
    runs: usize,
    any_output: bool,
    stop: Stop,
}

/// A run that takes this much longer than any as it is does not end any more.
const PATIENCE: u32 = 5;
const AT_LEAST: Duration = Duration::from_secs(10);

impl Real {
    pub(crate) fn new(program: &Program, asked: &Asked, stop: Stop) -> Self {
        let with = |arguments: &Vec<std::ffi::OsString>| {
            let own = program.command.first().cloned();
            Program {
                command: own.into_iter().chain(arguments.iter().cloned()).collect(),
                load: program.load.clone(),
            }
        };
        let programs: Vec<Program> =
            std::iter::once(program.clone()).chain(asked.others.iter().map(with)).collect();
        Self {
            plain: programs.iter().map(|_| Plain::default()).collect(),
            programs,
            ready: Vec::new(),
            longest: None,
            began: Instant::now(),
            runs: 0,
            any_output: asked.any_output,
            stop,
        }
    }

    fn ready(&mut self, settings: &[Setting], program: usize) -> &Result<Prepared, String> {
        let known = self.ready.iter().position(|(of, _)| of == settings);
        let at = known.unwrap_or_else(|| {
            let prepared = crate::settings::prepare(settings, &self.programs[program]);
            self.ready.push((settings.to_vec(), prepared));
            self.ready.len() - 1
        });
        &self.ready[at].1
    }
}

impl Runner for Real {
    fn run(&mut self, way: &Way) -> Result<Outcome, TrialError> {
        let at = way.other.map_or(0, |other| other + 1);
        let start = if way.settings.is_empty() {
            Ok(Start::default())
        } else {
            self.ready(&way.settings, at).as_ref().map(|ready| ready.start.clone()).map_err(Clone::clone)
        };
        let start = match start {
            Ok(start) => start,
            Err(why) => return Ok(Outcome { wrong: Some(why), ..Outcome::default() }),
        };
        let limit = self.longest.filter(|_| !way.settings.is_empty());
        let run = self.programs[at].run_within(&start, limit.map(|limit| PATIENCE * limit + AT_LEAST))?;
        self.runs += 1;
        let mut wrong = run.failed;
        if way.settings.is_empty() {
            let took = Duration::from_secs_f64(run.seconds);
            self.longest = Some(self.longest.unwrap_or_default().max(took));
            self.plain[at].add(run.left);
        } else {
            let differs = || self.plain[at].differs(&run.left).map(str::to_owned);
            wrong = wrong.or_else(differs);
            let page = self.ready(&way.settings, at).as_ref().ok().and_then(|ready| ready.page.as_ref());
            wrong = wrong.or_else(|| page.and_then(crate::settings::page::Page::did_nothing));
        }
        Ok(Outcome {
            seconds: run.seconds,
            cpu_seconds: run.cpu_seconds,
            took: run.took,
            peak: run.peak,
            wrong,
        })
    }

    fn cannot_be_repeated(&self) -> Option<String> {
        let plain = &self.plain[0];
        if plain.ends_otherwise() {
            return Some("it ends otherwise when it is run again".to_owned());
        }
        let why = "its output differs from run to run, so that a change that breaks it is not seen \
                   (--any-output tries all the same)";
        (plain.prints_otherwise() && !self.any_output).then(|| why.to_owned())
    }

    fn compared(&self) -> Vec<String> {
        self.plain[0].says()
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn runs(&self) -> usize {
        self.runs
    }

    fn is_stopped(&self) -> bool {
        self.stop.asked()
    }
}

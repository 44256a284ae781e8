//! A harvest that is ready to run, and its run.

use super::error::SessionError;
use super::files::RewrittenFiles;
use super::modules::{has_yields, is_of, module_of, needs_copy};
use super::participants::{LeftAlone, Participants};
use super::rewritten_file::entry;
use crate::decide::Against;
use crate::find::program::{Program, ProgramError};
use crate::launch::beside::Beside;
use crate::launch::{self, Homes, LaunchError, Outcome, Running, ScavengerOutcome, Snapshot, signals};
use crate::rewrite::{self, Entry};
use lab::inherited::Inherited;
use model::prices::Pricing;
use records::plan::{Plan, PlannedModule, Role};
use records::run::Refused;
use std::io;
use std::path::Path;
use std::time::Duration;
use store::cache::Cache;

/// A plan with rewritten files for all programs, which are kept in place as long as this lives.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    participants: Participants,
    files: RewrittenFiles,
    /// Libraries that were to be rewritten, and are not.
    pub left_alone: Vec<LeftAlone>,
    /// Why all programs run as they are; none where the primary is harvested.
    pub beside: Option<Against>,
    /// Libraries that later launches will rewrite.
    pub(crate) left_for_later: Option<Refused>,
    /// A temporary one goes with this.
    _cache: Cache,
}

/// An absence longer than any program runs.
const LONGEST_ABSENCE_SECONDS: f64 = 1e6;
/// A load that is over within this share of a miss's time hit a cache.
const HIT_SHARE_OF_MISS: f64 = 0.75;

/// What the plan was asked to hold. A figure that no clock can count to is held at the longest time
/// there is.
fn contract(plan: &Plan) -> Option<launch::Contract> {
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_ABSENCE_SECONDS));
    let clock_hz = plan.prices.clock.value().filter(|hertz| *hertz > 0.0)?;
    Some(launch::Contract {
        max_slowdown: plan.bounds.max_slowdown.value()?,
        max_absence: seconds(plan.bounds.max_absence.value()? / 1e6),
        hit_below: seconds(HIT_SHARE_OF_MISS * plan.prices.miss().1.value / clock_hz),
    })
}

impl Prepared {
    /// The plan is left with what could be done.
    pub(super) fn of(
        mut plan: Plan,
        participants: Participants,
        mut files: RewrittenFiles,
        cache: Cache,
    ) -> Self {
        let left_alone = std::mem::take(&mut files.left_alone);
        let own = |module: &PlannedModule| {
            let is_its = |original: &Path| is_of(module, original, module.role);
            files.each.iter().find(|it| it.role == module.role && is_its(&it.original)).map(|it| &it.entry)
        };
        // A module without yields was not tried.
        plan.modules.retain(|module| own(module).is_some() || !needs_copy(module));
        for module in &mut plan.modules {
            if let Some(entry) = own(module) {
                rewrite::settle(module, &entry.note);
            }
        }
        let (beside, left_for_later) = (None, None);
        Self { plan, participants, files, left_alone, beside, left_for_later, _cache: cache }
    }

    /// All programs as they are.
    pub(super) fn to_run_beside(plan: Plan, participants: Participants, why: Against, cache: Cache) -> Self {
        let files = RewrittenFiles::default();
        Self { beside: Some(why), ..Self::of(plan, participants, files, cache) }
    }

    /// The rewritten file of a program in its role; none where it runs as it is.
    pub(crate) fn entry(&self, file: &Path, role: Role) -> Option<&Entry> {
        entry(&self.files.each, file, role)
    }

    /// The planned modules of the primary that are rewritten, its own file first, in the order in
    /// which they are launched.
    pub(crate) fn primarys(&self) -> impl Iterator<Item = (&PlannedModule, &Entry)> {
        let (primary, role) = (&self.participants.primary, Role::Primary);
        let libraries = primary.linked.rewritten.iter().map(|library| &library.file);
        std::iter::once(&primary.file).chain(libraries).filter_map(move |file| {
            Some((module_of(&self.plan, file, role).ok()?, entry(&self.files.each, file, role)?))
        })
    }

    /// All rewritten files that run, and whose.
    pub(crate) fn rewritten(&self) -> impl Iterator<Item = (&Path, Role)> {
        self.files.each.iter().map(|it| (it.entry.file.as_path(), it.role))
    }

    /// Whether guests may run in the primary's stalls.
    pub(crate) fn primary_has_yields(&self) -> bool {
        self.primarys().any(|(module, _)| has_yields(module))
    }

    pub(crate) fn participants(&self) -> &Participants {
        &self.participants
    }

    /// Starts all programs and waits for the primary's end. `inherited` is what this process began
    /// with; `watch` is called from time to time.
    pub fn run(
        &self,
        homes: Homes,
        inherited: Inherited,
        mut watch: impl FnMut(&Snapshot),
    ) -> Result<Outcome, SessionError> {
        if self.beside.is_some() {
            return Ok(launch::beside::run(&self.participants, homes.cpus.as_deref(), inherited)?);
        }
        let cpus = homes.cpus.clone();
        let mut harvest = self.harvest(homes)?;
        let forwarding = signals::Forwarding::begin();
        harvest.inherited = Inherited { ignored: inherited.ignored | forwarding.ignored(), ..inherited };
        let running: Running = launch::launch(&harvest)?;
        forwarding.to(running.primary());
        let mut beside: Vec<Option<Beside>> = self
            .participants
            .scavengers
            .iter()
            .map(|it| (!it.is_guest()).then(|| Beside::start(it, cpus.as_deref())))
            .collect();
        let outcome = running.wait(|snapshot| {
            // What cannot be seen now is seen at its end.
            beside.iter_mut().flatten().for_each(|it| drop(it.look()));
            watch(snapshot);
        })?;
        Ok(with_those_beside(outcome, beside)?)
    }

    /// What the launcher is to start.
    fn harvest(&self, homes: Homes) -> Result<launch::Harvest, SessionError> {
        let program = |program: &Program, role| {
            let entry = self.entry(&program.file, role).expect("every program was prepared");
            let rewritten = entry.file.clone();
            let original = Some(program.file.clone());
            let beside = program.libraries()?;
            let (libraries, modules) = self.files.links.libraries(program, role, beside, &self.files.each);
            let new = launch::Program::new(rewritten, program.arguments.clone());
            Ok::<_, ProgramError>(launch::Program { original, libraries, modules, ..new })
        };
        let primary = program(&self.participants.primary, Role::Primary)?;
        let mut harvest = launch::Harvest::new(primary);
        // Without a yield no guest would ever run aboard, nor come home again.
        harvest.ring = if self.primary_has_yields() { self.plan.bounds.ring } else { 0 };
        harvest.contract = contract(&self.plan);
        harvest.homes = homes;
        for wanted in self.participants.guests() {
            let mut scavenger = launch::Scavenger::new(program(&wanted.program, Role::Scavenger)?);
            scavenger.stdout = wanted.stdout.clone();
            scavenger.stderr = wanted.stderr.clone();
            harvest.scavengers.push(scavenger);
        }
        Ok(harvest)
    }
}

/// The outcome of all scavengers, in the order in which they were asked for: of guests, and of
/// those that ran beside the primary.
fn with_those_beside(mut outcome: Outcome, beside: Vec<Option<Beside>>) -> Result<Outcome, LaunchError> {
    let mut guests = std::mem::take(&mut outcome.scavengers).into_iter();
    let of = |beside: Option<Beside>| match beside {
        Some(beside) => beside.end().map(Some),
        None => Ok(guests.next()),
    };
    let all: Vec<Option<ScavengerOutcome>> =
        beside.into_iter().map(of).collect::<io::Result<_>>().map_err(LaunchError::Wait)?;
    outcome.scavengers = all.into_iter().flatten().collect();
    outcome.last.scavengers = outcome.scavengers.iter().map(|it| it.figures.clone()).collect();
    Ok(outcome)
}

//! A harvest, step by step.
//!
//! 1. [`Participants::find`] finds the programs of a command line;
//! 2. [`prepare`] reads and analyses their files, makes a plan or takes a given one, and fetches or
//!    makes the rewritten files;
//! 3. [`Prepared::run`] starts all programs and waits for the primary's end;
//! 4. [`crate::report::record`] makes the run record of it.

mod error;
mod files;
mod input;
mod known;
mod library_links;
mod library_time;
mod modules;
mod participants;
mod planned_cache;
mod planning;
mod prepared;
mod rewritten_file;
mod terms;

pub use crate::launch::Homes;
pub use error::{FailureKind, SessionError};
pub use participants::{Commands, Copies, LeftAlone, NO_OUTPUT, Participants, WantedScavenger};
pub use prepared::Prepared;

use crate::find::linked::Wanted;
use crate::machine_prices::{self, Costs, MachinePrices};
use crate::plan::{self, ProfiledRates, Wishes};
use crate::progress::notice;
use modules::module_of;
use planning::Planning;
use records::plan::Plan;
use records::profile::Profile;
use std::path::PathBuf;
use std::time::Duration;
use store::cache::{Cache, checksum};
use terms::Terms;
use units::Progress;

/// Where a plan comes from.
#[derive(Clone, Debug)]
pub enum PlanSource {
    /// Made earlier, and kept in this file.
    Given(PathBuf),
    /// Made now, with prices from there.
    /// P(miss) is that of these profile records, and of priors where they say nothing.
    Made { wishes: Wishes, costs: Costs, profiles: Vec<PathBuf> },
}

/// What is wanted of a preparation.
#[derive(Clone, Debug)]
pub struct Request {
    pub plan: PlanSource,
    pub libraries: Wanted,
    /// How long scavengers' libraries may take to rewrite, where none is asked for by its name and
    /// something will run. Those that are left are rewritten in later sessions.
    pub library_time: Duration,
    /// How long rewriting one program may delay the start.
    pub program_time: Duration,
    /// Rewritten files and analyses are kept in the user's cache, and taken from there.
    pub use_cache: bool,
    /// Nothing will run: the plan is to be explained.
    pub dry_run: bool,
    /// Where the primary's stalls are not worth harvesting, all programs run as they are.
    pub decide: bool,
}

/// Makes all that is needed to run. Where there is no cache of rewritten files, or it is full, they
/// are made for this run. `measure_costs` is called right before a plan takes the costs of this
/// machine from its records: the time to measure what they lack.
pub fn prepare(
    request: &Request,
    mut participants: Participants,
    progress: &mut dyn Progress,
    measure_costs: &mut dyn FnMut(),
) -> Result<Prepared, SessionError> {
    let left_alone = participants.with_libraries(&request.libraries)?;
    let mut cache = if request.use_cache {
        Cache::of_user().or_else(|why| for_this_run(&why, progress))?
    } else {
        temporary_cache()?
    };
    let (plan, mut planning) = match &request.plan {
        PlanSource::Given(path) => {
            let mut plan = records::read::<Plan>(path)?.body;
            // Of older plans, and parked: no record that is made here has them.
            plan.modules.iter_mut().for_each(|module| module.spins.clear());
            let impossible = |why| SessionError::ImpossiblePlan { path: path.display().to_string(), why };
            plan::check_figures(&plan).map_err(impossible)?;
            check_plan(&plan, &participants)?;
            (plan, Planning::default())
        }
        PlanSource::Made { wishes, costs, profiles } => {
            let inputs = input::read(&participants)?;
            if *costs == Costs::Usual {
                measure_costs();
            }
            let MachinePrices { prices, damaged } = machine_prices::read_prices(costs)?;
            // A dry run's explanation says it.
            if let Some(damaged) = damaged.filter(|_| !request.dry_run) {
                notice(
                    progress,
                    &format!("{damaged}; costs are assumed, as if there were no machine record"),
                );
            }
            let mut profiles = profiles
                .iter()
                .map(|path| Ok(records::read::<Profile>(path)?.body))
                .collect::<Result<Vec<Profile>, SessionError>>()?;
            let known = request.decide.then(|| known::of(&participants, &mut profiles));
            let rates = ProfiledRates::of(&profiles, &prices);
            // What is made for this run only, no later one goes on with.
            let may_leave =
                request.libraries == Wanted::OfScavengers && !request.dry_run && !cache.is_temporary();
            let library_time = may_leave.then_some(request.library_time);
            let may_wait = request.decide && !request.dry_run && !cache.is_temporary();
            let program_time = may_wait.then_some(request.program_time);
            let terms =
                Terms { prices: &prices, rates: &rates, wishes, cache: &cache, library_time, program_time };
            planning::plan(&inputs, &terms, known.as_ref(), progress)?
        }
    };
    for (file, why) in &planning.as_they_are {
        notice(progress, &format!("{}: {why}", file.display()));
        participants.run_as_it_is(file, why);
    }
    if let Some(why) = planning.against {
        return Ok(Prepared::to_run_beside(plan, participants, why, cache));
    }
    let mut made = files::make(&plan, &participants, &cache, &mut planning, progress);
    // A file that cannot be kept can still be run.
    if let Err(error) = &made {
        if let Some(why) = error.of_cache_directory().filter(|_| !cache.is_temporary()) {
            cache = for_this_run(why, progress)?;
            planning.forget_rewritten();
            made = files::make(&plan, &participants, &cache, &mut planning, progress);
        }
    }
    let mut prepared = Prepared::of(plan, participants, made?, cache);
    prepared.left_for_later = planning.left_for_later;
    prepared.left_alone.splice(..0, left_alone);
    // A user who wants as many libraries as can be had need not hear each time which cannot.
    if matches!(request.libraries, Wanted::All | Wanted::OfScavengers) && !request.dry_run {
        prepared.left_alone.retain(|left| left.is_news);
    }
    Ok(prepared)
}

/// In place of the user's cache.
fn for_this_run(why: &std::io::Error, progress: &mut dyn Progress) -> Result<Cache, SessionError> {
    let temporary = temporary_cache()?;
    let why = records::plain(why);
    notice(
        progress,
        &format!("no cache of rewritten files: {why}; programs are rewritten for this run only"),
    );
    Ok(temporary)
}

fn temporary_cache() -> Result<Cache, SessionError> {
    Cache::temporary().map_err(SessionError::NoCache)
}

/// Checks that a plan made earlier is for these programs as they are now.
fn check_plan(plan: &Plan, participants: &Participants) -> Result<(), SessionError> {
    for (file, role) in participants.files() {
        let module = module_of(plan, file, role)?;
        let data = std::fs::read(file).map_err(|e| SessionError::Unreadable {
            path: file.display().to_string(),
            why: records::plain(&e),
        })?;
        if checksum(&data) != module.content {
            return Err(SessionError::PlanIsForAnother { path: file.display().to_string() });
        }
    }
    Ok(())
}

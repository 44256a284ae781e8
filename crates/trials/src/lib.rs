//! Runs a program with a change and without it, in pairs whose order alternates, and says whether
//! it is faster with the change: by the times of whole runs, and by whether what it printed is the
//! same. Nothing of the program's source is needed.
//!
//! ```text
//! change       what can be tried
//! prepared     what a run needs for a change
//! huge         huge pages
//! aligned      cache lines of their own for what a site allocates
//! placed       threads on other CPUs, memory on other nodes
//! preloaded    the library that does these three
//! page         what it says that it did
//! prefetched   the file whose loads are prefetched, rewritten and proven
//! command      one run: its time and what it printed
//! pairs        the ratio of the times, and how likely it is by chance
//! ```
//!
//! To add a change: a variant in [`Change`], what it needs in `change.rs`, and where the profile
//! proposes it, in [`proposed`].
#![forbid(unsafe_code)]

mod aligned;
mod change;
mod command;
mod huge;
mod page;
mod pairs;
mod placed;
mod prefetched;
mod preloaded;
mod prepared;

pub use aligned::Aligned;
pub use change::{Change, proposed};
pub use command::{Program, TrialError, input};
pub use huge::HugePages;
pub use placed::Cpus;
pub use prefetched::{Prefetched, Walk};

use command::{Printed, Run};
use lab::stop::Stop;
use pairs::Pairs;
use prepared::Prepared;
use records::profile::{Trial, TrialOutcome};
use units::{Estimate, Quantity, Unit};

/// Of all trials of changes that change nothing, this share has an interval without 1 in it: by all
/// changes of a trial together, since each has its own chance.
const MISSED: f64 = 0.05;

/// Tries changes, one after the other. `told` is called before each round of each, with what it is
/// and the round's number.
pub fn run(
    program: &Program,
    changes: &[Change],
    rounds: usize,
    stop: Stop,
    told: &mut dyn FnMut(&str, usize),
) -> Result<Vec<Trial>, TrialError> {
    let mut trials = Vec::new();
    let missed = MISSED / changes.len().max(1) as f64;
    for change in changes {
        if stop.asked() {
            break;
        }
        let prepared = change.prepare(program);
        if prepared.is_err() && change.is_guess() {
            continue;
        }
        let says = change.says();
        trials.push(match prepared {
            Ok(prepared) => {
                let told = &mut |round| told(&says, round);
                tried(program, change, &prepared, (rounds, missed), stop, told)?
            }
            Err(why) => trial(change, TrialOutcome::NotTried { why }),
        });
    }
    Ok(trials)
}

/// One change: both ways in each round. A change with several forms is first tried in each, and the
/// best one of these then counts by runs of its own.
fn tried(
    program: &Program,
    change: &Change,
    prepared: &[Prepared],
    (rounds, missed): (usize, f64),
    stop: Stop,
    told: &mut dyn FnMut(usize),
) -> Result<Trial, TrialError> {
    let plain = Prepared::default();
    told(0);
    let chosen = match chosen(program, prepared, stop)? {
        Ok(chosen) => chosen,
        Err(why) => return Ok(trial(change, TrialOutcome::NotTried { why })),
    };
    let mut pairs = Pairs::default();
    let (mut printed, mut with): (Vec<Printed>, Vec<Printed>) = (Vec::new(), Vec::new());
    let mut failed = None;
    for round in 0..rounds {
        if stop.asked() {
            break;
        }
        told(round);
        let mut both = [None, None];
        for turn in [round % 2, 1 - round % 2] {
            let run: Run = program.run(if turn == 0 { &plain } else { chosen })?;
            failed = failed.or(run.failed.clone().filter(|_| turn == 1));
            if turn == 0 { &mut printed } else { &mut with }.push(run.printed);
            both[turn] = Some(run.seconds);
        }
        if let [Some(without), Some(with)] = both {
            pairs.push(without, with);
        }
    }
    let same_output = if printed.iter().any(|one| *one != printed[0]) {
        None
    } else {
        Some(with.iter().all(|one| *one == printed[0]))
    };
    let Some(faster) = pairs.faster(missed) else {
        return Ok(trial(change, TrialOutcome::NotTried { why: "it was stopped".to_owned() }));
    };
    let outcome = match (failed, same_output) {
        (Some(why), _) => TrialOutcome::Failed { why },
        (None, Some(false)) => TrialOutcome::Failed { why: "it printed something else".to_owned() },
        (None, _) if faster.lo > 1.0 => TrialOutcome::Faster,
        (None, _) if faster.hi < 1.0 => TrialOutcome::Slower,
        (None, _) => TrialOutcome::NoDifference,
    };
    let seconds = |estimate: Estimate| Quantity::measured(estimate, Unit::Seconds);
    let [without, with] = pairs.seconds();
    Ok(Trial {
        form: chosen.says.clone(),
        rounds: pairs.len(),
        without: seconds(without),
        with: seconds(with),
        faster: Quantity::measured(faster, Unit::Ratio),
        by_chance: pairs.by_chance(),
        same_output,
        ..trial(change, outcome)
    })
}

/// The form that is fastest, among those that change anything; or why there is none.
fn chosen<'p>(
    program: &Program,
    prepared: &'p [Prepared],
    stop: Stop,
) -> Result<Result<&'p Prepared, String>, TrialError> {
    let mut best: Option<(f64, &Prepared)> = None;
    let mut why = "it was stopped".to_owned();
    for form in prepared {
        if stop.asked() {
            break;
        }
        if prepared.len() == 1 && form.page.is_none() {
            return Ok(Ok(form));
        }
        let mut took = program.run(form)?.seconds;
        if let Some(nothing) = form.page.as_ref().and_then(page::Page::did_nothing) {
            why = nothing;
            continue;
        }
        if prepared.len() > 1 {
            took = took.min(program.run(form)?.seconds);
        }
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, form));
        }
    }
    Ok(best.map(|(_, form)| form).ok_or(why))
}

fn trial(change: &Change, outcome: TrialOutcome) -> Trial {
    let not_run = || Quantity::unresolved("it was not run");
    Trial {
        kind: change.kind(),
        says: change.says(),
        form: String::new(),
        outcome,
        rounds: 0,
        without: not_run(),
        with: not_run(),
        faster: not_run(),
        by_chance: 1.0,
        same_output: None,
    }
}

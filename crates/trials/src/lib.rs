//! Runs a program with a change and without it, in pairs whose order alternates, and says whether
//! it is faster with the change: by the times of whole runs, and by whether what it printed is the
//! same. Nothing of the program's source is needed.
//!
//! ```text
//! change       what can be tried
//! prepared     what a run needs for a change
//! prefetched   the file whose loads are prefetched, rewritten and proven
//! command      one run: its time and what it printed
//! pairs        the ratio of the times, and how likely it is by chance
//! ```
//!
//! To add a change: a variant in [`Change`], what it needs in `change.rs`, and where the profile
//! proposes it, in [`proposed`].
#![forbid(unsafe_code)]

mod change;
mod command;
mod pairs;
mod prefetched;
mod prepared;

pub use change::{Change, proposed};
pub use command::{Program, TrialError, input};
pub use prefetched::Prefetched;

use command::{Printed, Run};
use lab::stop::Stop;
use pairs::Pairs;
use prepared::Prepared;
use records::profile::{Trial, TrialOutcome};
use units::{Estimate, Quantity, Unit};

/// From here on a difference does not count as chance.
const SIGNIFICANT: f64 = 0.01;

/// Tries changes, one after the other. `told` is called before each.
pub fn run(
    program: &Program,
    changes: &[Change],
    rounds: usize,
    stop: Stop,
    told: &dyn Fn(&str),
) -> Result<Vec<Trial>, TrialError> {
    let mut trials = Vec::new();
    for change in changes {
        if stop.asked() {
            break;
        }
        told(&change.says());
        trials.push(match change.prepare(program) {
            Ok(prepared) => tried(program, change, &prepared, rounds, stop)?,
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
    rounds: usize,
    stop: Stop,
) -> Result<Trial, TrialError> {
    let plain = Prepared::default();
    let chosen = match prepared {
        [one] => one,
        several => {
            let mut best = (f64::INFINITY, &several[0]);
            for form in several {
                let took = program.run(form)?.seconds.min(program.run(form)?.seconds);
                best = if took < best.0 { (took, form) } else { best };
                if stop.asked() {
                    break;
                }
            }
            best.1
        }
    };
    let mut pairs = Pairs::default();
    let (mut printed, mut with): (Vec<Printed>, Vec<Printed>) = (Vec::new(), Vec::new());
    let mut failed = None;
    for round in 0..rounds {
        if stop.asked() {
            break;
        }
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
    let Some(faster) = pairs.faster() else {
        return Ok(trial(change, TrialOutcome::NotTried { why: "it was stopped".to_owned() }));
    };
    let p = pairs.by_chance();
    let outcome = match (failed, same_output) {
        (Some(why), _) => TrialOutcome::Failed { why },
        (None, Some(false)) => TrialOutcome::Failed { why: "it printed something else".to_owned() },
        (None, _) if p >= SIGNIFICANT => TrialOutcome::NoDifference,
        (None, _) if faster.value > 1.0 => TrialOutcome::Faster,
        (None, _) => TrialOutcome::Slower,
    };
    let seconds = |estimate: Estimate| Quantity::measured(estimate, Unit::Seconds);
    let [without, with] = pairs.seconds();
    Ok(Trial {
        form: chosen.says.clone(),
        rounds: pairs.len(),
        without: seconds(without),
        with: seconds(with),
        faster: Quantity::measured(faster, Unit::Ratio),
        by_chance: p,
        same_output,
        ..trial(change, outcome)
    })
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

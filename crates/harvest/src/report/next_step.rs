//! What a user can do after a harvest, by what became of it: the first that applies.

use crate::session::NO_OUTPUT;
use records::plan::{Prices, Source};
use records::run::{Ended, Run, Scavenger};
use std::path::Path;

/// A shorter wait for a processor is nothing to worry about.
const STARVED_FROM_SECONDS: f64 = 0.5;
/// A primary that never sleeps and comes to yields is slower by most of what is allowed, where
/// scavengers starve: they are aboard, or have its processor. By less than this part of it: it
/// hardly comes to yields.
const YIELDS_FROM_PART: f64 = 0.2;
/// In a shorter run nothing is said of that.
const YIELDS_FROM_SECONDS: f64 = 1.0;

/// Whether a scavenger off the primary waited for a processor for longer than it ran anywhere.
pub fn is_starved(scavenger: &Scavenger) -> bool {
    let times = &scavenger.times;
    let got = times.aboard.value().unwrap_or(0.0) + times.running.value().unwrap_or(0.0);
    times.waiting.value().is_some_and(|waited| waited > got.max(STARVED_FROM_SECONDS))
}

/// Whether scavengers could have had more of the primary's time, had it come to yields, where
/// processors are lent.
fn seldom_yields(run: &Run) -> bool {
    // Without a figure: it came to too few to compare its pace.
    let had = run.slowdown.share.value().unwrap_or(0.0);
    let asked = run.bounds.max_slowdown.value().unwrap_or(0.0);
    let ran_long = run.wall.value().is_some_and(|seconds| seconds >= YIELDS_FROM_SECONDS);
    ran_long && had < YIELDS_FROM_PART * asked
}

/// Whether it failed by itself, and not with the primary.
pub fn has_failed(scavenger: &Scavenger) -> bool {
    match scavenger.process.ended {
        Ended::Exited { code } => code != 0,
        Ended::Killed { .. } => true,
        _ => false,
    }
}

/// One line, without the program's name. `record` is where the run record goes.
pub fn next_step(run: &Run, prices: &Prices, record: Option<&Path>) -> String {
    let helped = run.refusals.iter().find_map(|refused| refused.would_help.clone());
    // Who ends all programs from the terminal knows why they ended.
    let was_ended = matches!(run.primary.ended, Ended::Killed { .. });
    let failed = |scavenger: &Scavenger| has_failed(scavenger) && scavenger.output == NO_OUTPUT && !was_ended;
    let above = |asked: f64| run.slowdown.share.estimate().is_some_and(|share| share.lo > asked);
    let starve = run.scavengers.iter().any(is_starved);
    if run.scavengers.is_empty() {
        "give it something to run in its stalls: --scavenger CMD".to_owned()
    } else if let Some(help) = helped {
        help
    } else if run.scavengers.iter().any(failed) {
        "read the output of the failed scavengers: --scavenger-out DIR/".to_owned()
    } else if starve && run.beside.is_none() && seldom_yields(run) {
        "give the program more places to lend its CPU: --libraries all, if its time is in libraries; or \
         --profile FILE, by 'gleaner profile -o FILE' of it"
            .to_owned()
    } else if starve {
        "give scavengers a CPU for the time off the primary: --home-cpus CPUS".to_owned()
    } else if run.beside.is_some() {
        "'gleaner profile' of the primary shows where its time goes".to_owned()
    } else if run.bounds.max_slowdown.value().is_some_and(above) {
        "reduce what guests cost: a smaller --ring, or --exclude sites that do not pay".to_owned()
    } else if run.work.estimate().is_some_and(|work| work.hi < 1.0) {
        "leave out the scavengers that advance least: they cost more than they do".to_owned()
    } else if matches!(prices.source, Source::Defaults { .. }) {
        "measure this machine once with 'gleaner measure': plans then use its own costs".to_owned()
    } else if let Some(record) = record {
        format!("gleaner show {}", record.display())
    } else {
        "--record FILE keeps all figures; --dry-run explains the plan".to_owned()
    }
}

//! What samples of signals do not show, in words.

use super::calibration::Found;
use super::reader::Reader;
use crate::allocations::region::Region;
use insight::samples::Tally;
use records::run::Refused;
use std::sync::atomic::Ordering::Relaxed;

/// A smaller part of the CPU time may be due to chance, or to the beginnings of processes.
const WORTH_SAYING: f64 = 0.15;
/// By chance not more than this number of standard deviations is missing.
const CHANCE: f64 = 4.0;

pub(crate) fn of(
    found: &Found,
    reader: &Reader,
    region: Option<&Region>,
    tally: &Tally,
    cpu_seconds: f64,
) -> Vec<Refused> {
    let refused = |what: &str, why: String| Refused { what: what.to_owned(), why, would_help: None };
    let mut refusals = Vec::new();
    let rate = found.frequency.value().unwrap_or(0.0);
    refusals.push(Refused {
        what: "perf events".to_owned(),
        why: format!(
            "{}: signals of CPU-time timers took {rate:.0} samples a second; time in page faults counts as the program's own",
            found.events_refused.as_deref().unwrap_or("not used"),
        ),
        would_help: Some("more samples by --backend clock, where perf_event_open is allowed".to_owned()),
    });
    let expected = cpu_seconds * 1e9 / found.period_ns as f64;
    let missing = expected - tally.samples as f64;
    if missing > WORTH_SAYING * expected && missing > CHANCE * expected.sqrt() {
        let share = 100.0 * missing / expected;
        refusals.push(refused(
            "samples",
            format!("{share:.0}% of the CPU time has none: of programs that the library does not come into (static, set-user-ID, with an environment of their own), of programs before and after they run their own code, or of threads made without pthread_create"),
        ));
    }
    if tally.samples > 0 && reader.unplaced as f64 > WORTH_SAYING * tally.samples as f64 {
        let share = 100.0 * reader.unplaced as f64 / tally.samples as f64;
        refusals.push(refused(
            "samples",
            format!("{share:.0}% of the CPU time was sampled too late to say where it went: signals were blocked, or threads ran for less than a tick at a time"),
        ));
    }
    let count = |what: fn(&heap::clock::layout::Clock) -> u32| region.and_then(Region::clock).map_or(0, what);
    let threads = count(|clock| clock.without_timer.load(Relaxed));
    if threads > 0 {
        refusals.push(refused(
            "samples",
            format!("{threads} threads have no timer: too many at once, or the program has forbidden itself system calls"),
        ));
    }
    let processes = count(|clock| clock.without_signal.load(Relaxed));
    if processes > 0 {
        refusals.push(refused(
            "samples",
            format!("{processes} processes use the signals that the profiler would take, and are left alone"),
        ));
    }
    refusals
}

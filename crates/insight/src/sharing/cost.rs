//! What the sharing of lines costs: the stall on them, less what it would be if they were private.
//!
//! The run itself often shows both. On a busy machine, and while threads start and end, a thread
//! has its lines to itself for a while; the code around runs as often as the accesses do, together
//! and alone:
//!
//! ```text
//!                 on the lines   beside, in the same functions
//!   together          900            300
//!   alone             100            100        alone, 300 beside come with 300 on the lines:
//!                                               600 samples are what the sharing costs
//! ```
//!
//! Where a thread is hardly ever alone, a private line is taken to cost what an L1 hit does.
//!
//! That holds for instructions that lock their line, which wait by themselves. Plain stores to a
//! line that another thread takes away empty the pipeline, and what is beside them waits as well:
//! the comparison shows less than sharing costs. Of these the stall on the lines while another
//! thread uses them is what padding may save, and the time of the whole functions meanwhile is the
//! upper end.
//!
//! Where a register of the loop tells its progress (see `progress.rs`), none of this is needed.

use super::access::{Access, Moment};
use super::progress::{saved_together, usual_distance_ns};
use super::together::is_near;
use std::collections::{BTreeMap, BTreeSet};
use units::Estimate;

/// A thread is alone if no other one was sampled in the functions in question so near, or within
/// twice the distance of samples.
const NEAR_NS: u64 = 1_000_000;
/// Samples alone and beside the lines that tell how it is alone.
const LEAST_ALONE: f64 = 16.0;
/// Threads that share a core slow one another down at everything, so what is alone tells how it is
/// together to within this part only.
const UNSURE: f64 = 0.1;
/// Of places with more samples than are kept, those that are left lie too far apart to tell.
const MOST_THINNED: f64 = 1.5;
/// Cycles that a load waits that hits L1: usual, least, most. The queue hides most of its latency.
const HIT: [f64; 3] = [1.0, 0.2, 5.0];
/// The same for an instruction that locks its line.
const LOCKED_HIT: [f64; 3] = [15.0, 5.0, 25.0];

/// Samples together with another thread, and alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// On the lines.
    on: [f64; 2],
    /// In the functions in question.
    whole: [f64; 2],
    /// The part of the time together that threads would need less alone, where that shows.
    saved: Option<Estimate>,
}

/// Splits the run's samples. `accesses` are those in conflict, `moments` all samples of the
/// functions that these are in, with them. `None` if too few samples are kept to tell.
pub(super) fn split(accesses: &[&Access], moments: &[Moment]) -> Option<Split> {
    let threads: BTreeSet<(u32, u32)> = accesses.iter().map(|a| (a.process, a.thread)).collect();
    let all: f64 = moments.iter().map(|moment| moment.weight).sum();
    if moments.is_empty() || all / moments.len() as f64 > MOST_THINNED {
        return None;
    }
    let mut times: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| threads.contains(&(moment.process, moment.thread))) {
        times.entry((moment.process, moment.thread)).or_default().push(moment.time_ns);
    }
    for times in times.values_mut() {
        times.sort_unstable();
    }
    let own: Vec<Moment> =
        moments.iter().filter(|moment| threads.contains(&(moment.process, moment.thread))).copied().collect();
    let near_ns = NEAR_NS.max(2 * usual_distance_ns(&own).unwrap_or(0));
    let is_together = |process: u32, thread: u32, at: u64| {
        // All of these use the same lines, be they of one process or of several.
        let mut others = times.iter().filter(|(other, _)| **other != (process, thread));
        others.any(|(_, times)| is_near(times, at, near_ns))
    };
    // Together, then alone.
    let (mut on, mut whole) = ([0.0; 2], [0.0; 2]);
    for access in accesses {
        on[usize::from(!is_together(access.process, access.thread, access.time_ns))] += access.weight;
    }
    for moment in &own {
        whole[usize::from(!is_together(moment.process, moment.thread, moment.time_ns))] += moment.weight;
    }
    let saved = saved_together(&own, |m| is_together(m.process, m.thread, m.time_ns));
    Some(Split { on, whole, saved })
}

/// What sharing costs, by how much threads get done together and alone.
pub(super) fn by_progress(split: &Split) -> Option<Estimate> {
    split.saved.map(|saved| saved.scaled(split.whole[0]))
}

/// What the run shows: samples that sharing costs. `None` if no thread is alone for long.
pub(super) fn observed(Split { on, whole, .. }: Split) -> Option<Estimate> {
    let beside = [(whole[0] - on[0]).max(0.0), (whole[1] - on[1]).max(0.0)];
    if beside[1] < LEAST_ALONE || on[1] < 1.0 {
        return None;
    }
    let usual = on[1] / beside[1];
    let value = on[0] - usual * beside[0];
    let of_usual = (usual * beside[0]).powi(2) * (1.0 / on[1] + 1.0 / beside[1]);
    let unsure = UNSURE * usual * beside[0];
    let spread = 1.96 * (on[0] + usual * usual * beside[0] + of_usual).sqrt() + unsure;
    let within = |samples: f64| samples.clamp(0.0, on[0]);
    Some(Estimate::new(within(value), within(value - spread), within(value + spread)))
}

/// What sharing costs where it is by plain stores.
pub(super) fn of_plain_stores(split: Split) -> Estimate {
    let least = observed(split).map_or(0.0, |observed| observed.lo);
    Estimate::new(split.on[0], least, split.whole[0].max(split.on[0]))
}

/// The part of a load's stall that a private line would save, if it waits so long each time.
pub(super) fn saved(each: Option<Estimate>, locks: bool) -> Estimate {
    let [usual, least, most] = if locks { LOCKED_HIT } else { HIT };
    let left = |hit: f64, each: f64| (1.0 - hit / each.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    match each {
        Some(each) => {
            let value = left(usual, each.value);
            Estimate::new(value, left(most, each.lo).min(value), left(least, each.hi).max(value))
        }
        None => Estimate::new(0.5, 0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of a thread that is sampled each 250 µs, `on` of four times on the line.
    fn second(thread: u32, from_ms: u64, on: u64) -> (Vec<Access>, Vec<Moment>) {
        let at = |n: u64| from_ms * 1_000_000 + n * 250_000;
        let moment = |n| Moment { process: 1, thread, time_ns: at(n), weight: 1.0, registers: None };
        let access = |n| Access {
            process: 1,
            thread,
            time_ns: at(n),
            address: 64,
            shared: None,
            bytes: 8,
            writes: true,
            weight: 1.0,
            by: 0,
            object: None,
        };
        ((0..4000).filter(|n| n % 4 < on).map(access).collect(), (0..4000).map(moment).collect())
    }

    fn of(parts: &[(Vec<Access>, Vec<Moment>)]) -> Option<Estimate> {
        let accesses: Vec<Access> = parts.iter().flat_map(|part| part.0.clone()).collect();
        let moments: Vec<Moment> = parts.iter().flat_map(|part| part.1.clone()).collect();
        observed(split(&accesses.iter().collect::<Vec<_>>(), &moments)?)
    }

    #[test]
    fn what_sharing_costs_shows_against_the_time_alone() {
        let together = [second(1, 0, 3), second(2, 0, 3)];
        assert_eq!(of(&together), None, "never alone");
        let [a, b] = together;
        let cost = of(&[a.clone(), b.clone(), second(1, 2000, 2)]).unwrap();
        // Beside 2000 samples there would be as many on the line; there are 6000.
        assert!((cost.value - 4000.0).abs() < 20.0, "{cost:?}");
        assert!(cost.lo > 3500.0 && cost.hi < 4500.0, "{cost:?}");
        let nothing = of(&[a, b, second(1, 2000, 3)]).unwrap();
        assert!(nothing.value < 20.0 && nothing.lo == 0.0 && nothing.hi < 1600.0, "{nothing:?}");
    }

    #[test]
    fn plain_stores_cost_the_stall_while_threads_are_together() {
        let cost = of_plain_stores(Split { on: [400.0, 300.0], whole: [900.0, 700.0], saved: None });
        assert_eq!((cost.value, cost.hi), (400.0, 900.0));
        assert!(cost.lo < 400.0);
    }

    #[test]
    fn a_private_line_costs_a_hit() {
        let much = saved(Some(Estimate::new(80.0, 30.0, 300.0)), false);
        assert!(much.value > 0.98 && much.lo > 0.8 && much.hi > 0.99, "{much:?}");
        let little = saved(Some(Estimate::new(1.0, 0.3, 4.0)), false);
        let locked = saved(Some(Estimate::new(60.0, 30.0, 300.0)), true);
        assert!((locked.value - 0.75).abs() < 1e-9 && locked.lo < 0.2, "{locked:?}");
        assert!(little.value == 0.0 && little.lo == 0.0 && little.hi > 0.9, "{little:?}");
    }
}

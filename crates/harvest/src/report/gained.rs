//! What a harvest gained: how far each scavenger came, as a share of how far it comes alone.
//!
//! ```text
//!          turns aboard, each as long as one takes at home + CPU time at home
//!  pace = --------------------------------------------------------------------
//!                        from its start to its end
//! ```
//!
//! Alone means: its twins on a processor of their own. How long a turn takes there, gauges say that
//! were taken while it ran (`crates/runtime/src/switching/gauge.rs`).

use crate::launch::{Life, ScavengerOutcome, Work};
use runtime_abi::control::gauge::DEAR;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// By a tick of the kernel's clock at each end CPU times may be wrong.
const CPU_TIME_ERROR: f64 = 0.01;

/// What gauges say may be this many times too much: a gauge switches at each yield, so misses that
/// overlap when the program runs alone are waited for one by one. Against their own outputs gzip's
/// and a map's turns were 1.3 times too dear, a chase's not at all.
const TOO_DEAR: f64 = 1.5;

const NOT_TIMED: &str = "it was not timed alone often enough";

/// A scavenger's pace.
pub(super) fn pace(outcome: &ScavengerOutcome) -> Quantity {
    let Some(life) = outcome.life else { return Quantity::unresolved("it was not started") };
    match estimate(&outcome.figures.work, &life, outcome.figures.aboard_time) {
        Ok(pace) => Quantity::measured(pace, Unit::Ratio),
        Err(why) => Quantity::unresolved(why),
    }
}

fn estimate(work: &Work, life: &Life, was_aboard: Duration) -> Result<Estimate, &'static str> {
    let cpu = life.cpu.ok_or("the kernel did not report its CPU time")?.as_secs_f64();
    let (least, most) = (life.least.as_secs_f64(), life.most.as_secs_f64());
    if least < 0.05 {
        return Err("it ran too briefly");
    }
    let (seconds, unknown) = match aboard(work) {
        Ok(seconds) => (seconds, "how long its turns take alone differs too much from gauge to gauge"),
        // They are worth no more than the time that they took.
        Err(why @ NOT_TIMED) => {
            let most = was_aboard.as_secs_f64();
            (Estimate::new(most / 2.0, 0.0, most), why)
        }
        Err(why) => return Err(why),
    };
    // Turns aboard that are worth something, nobody knows how much.
    if seconds.hi - seconds.lo > seconds.value.max(0.1 * cpu) {
        return Err(unknown);
    }
    let seconds = Estimate::new(seconds.value / TOO_DEAR.sqrt(), seconds.lo / TOO_DEAR, seconds.hi);
    let at = |aboard: f64, cpu: f64, life: f64| (aboard + cpu).max(0.0) / life;
    Ok(Estimate::new(
        at(seconds.value, cpu, f64::midpoint(least, most)),
        at(seconds.lo, cpu - CPU_TIME_ERROR, most),
        at(seconds.hi, cpu + CPU_TIME_ERROR, least),
    ))
}

/// How long one of its turns takes alone.
pub(super) fn turn_alone(work: &Work) -> Quantity {
    if work.gauges < 2 || work.rate <= 0.0 {
        return Quantity::unresolved(NOT_TIMED);
    }
    let (mean, relative) = gauged(work);
    let estimate = less(mean / work.rate, switch_beyond(work) / work.rate, relative, 0.0);
    Quantity::measured(estimate, Unit::Nanos)
}

/// `all`, known up to a share of it, without something between nothing and `most`, and with
/// `doubt`.
fn less(all: f64, most: f64, relative: f64, doubt: f64) -> Estimate {
    // Each may be less than nothing; two of them must not make something.
    let lo = ((all - most).max(0.0) * (1.0 - relative).max(0.0) - doubt).max(0.0);
    let hi = all * (1.0 + relative) + doubt;
    Estimate::new((all - most / 2.0).clamp(lo, hi), lo, hi)
}

/// Ticks by which a switch may be dearer than what was taken off.
fn switch_beyond(work: &Work) -> f64 {
    (DEAR - 1.0) * work.switch
}

/// The mean of all gauges, in ticks, and the half of its interval as a share of it.
fn gauged(work: &Work) -> (f64, f64) {
    let n = work.gauges as f64;
    let mean = work.sum / n;
    let variance = ((work.squares / n - mean * mean) * n / (n - 1.0)).max(0.0);
    (mean, 1.96 * (variance / n).sqrt() / mean)
}

/// The seconds that turns aboard take at home.
fn aboard(work: &Work) -> Result<Estimate, &'static str> {
    if work.turns == 0 {
        return Ok(Estimate::exact(0.0));
    }
    if work.gauges < 2 || work.rate <= 0.0 {
        return Err(NOT_TIMED);
    }
    let of = |ticks: f64| ticks / work.rate / 1e9;
    let (mean, relative) = gauged(work);
    // Turns of guests that were never timed aboard are as those at home, for better or worse.
    let unpriced = of(work.unpriced as f64 * mean);
    let dear = of(work.turns as f64 * switch_beyond(work));
    Ok(less(of(work.ticks) + unpriced, dear, relative, unpriced))
}

/// The work of one core: what the primary did of what it does alone, and its scavengers' while each
/// lived, which is a part of the time. Where scavengers had other processors at home, what they did
/// there is in it.
pub(super) fn together<'a>(
    slowdown: &Quantity,
    paces: impl IntoIterator<Item = (&'a Quantity, f64)>,
) -> Quantity {
    let kept = |slower: Estimate| {
        Estimate::new(1.0 / (1.0 + slower.value), 1.0 / (1.0 + slower.hi), 1.0 / (1.0 + slower.lo))
    };
    let Some(mut all) = slowdown.estimate().map(kept) else {
        return Quantity::unresolved("the primary's slowdown is not known");
    };
    // What gauges get wrong they get wrong of all alike.
    for (pace, lived) in paces {
        let Some(pace) = pace.estimate() else {
            return Quantity::unresolved("a scavenger's pace is not known");
        };
        let pace = pace.scaled(lived);
        all = Estimate::new(all.value + pace.value, all.lo + pace.lo, all.hi + pace.hi);
    }
    Quantity::measured(all, Unit::Ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(cpu: f64, least: f64, most: f64) -> Life {
        let [cpu, least, most] = [cpu, least, most].map(Duration::from_secs_f64);
        Life { least, most, processor: None, cpu: Some(cpu) }
    }

    /// A million turns, of which one takes 2000 ticks of half a nanosecond.
    const WORK: Work = Work {
        turns: 1_000_000,
        unpriced: 0,
        ticks: 2e9,
        rate: 2.0,
        gauges: 4,
        sum: 8000.0,
        squares: 16.2e6,
        switch: 0.0,
    };

    #[test]
    fn what_is_less_than_its_doubts_may_be_nothing() {
        let known = less(2.0, 30.0, 1.7, 0.0);
        assert!(known.lo <= 0.0 && known.value <= known.hi, "{known:?}");
    }

    #[test]
    fn turns_aboard_count_as_long_as_they_take_at_home() {
        let pace = estimate(&WORK, &life(0.5, 3.0, 3.0), Duration::ZERO).expect("known");
        assert!((pace.value - (0.5 + 1.0 / TOO_DEAR.sqrt()) / 3.0).abs() < 1e-9, "{pace:?}");
        assert!(pace.lo < 0.49 / TOO_DEAR.sqrt() && pace.hi > 0.51 && pace.hi < 0.6, "{pace:?}");
    }

    #[test]
    fn short_turns_may_be_worth_less_than_gauges_say() {
        let short = Work { ticks: 60e6, sum: 240.0, squares: 14400.0, switch: 20.0, ..WORK };
        assert!(estimate(&short, &life(0.0, 3.0, 3.0), Duration::ZERO).is_err());
        let turn = turn_alone(&short).estimate().expect("known");
        assert!(turn.lo <= 0.0 && turn.hi < 31.0, "{turn:?}");
    }

    #[test]
    fn a_scavenger_never_aboard_has_its_time_at_home() {
        let pace = estimate(&Work::default(), &life(0.5, 1.9, 2.1), Duration::ZERO).expect("known");
        assert!((pace.value - 0.25).abs() < 1e-9 && pace.lo < 0.24 && pace.hi > 0.26, "{pace:?}");
    }

    #[test]
    fn what_was_not_timed_is_not_told_but_where_it_was_hardly_aboard() {
        let untimed = Work { gauges: 1, ..WORK };
        let pace = estimate(&untimed, &life(2.0, 3.0, 3.0), Duration::from_millis(150)).expect("known");
        assert!(pace.lo < 2.0 / 3.0 && pace.hi > 2.15 / 3.0 && pace.hi < 0.73, "{pace:?}");
        assert!(estimate(&untimed, &life(0.5, 3.0, 3.0), Duration::from_secs(2)).is_err());
        assert!(estimate(&WORK, &life(0.0, 0.01, 0.02), Duration::ZERO).is_err());
        assert!(estimate(&WORK, &Life { cpu: None, ..life(0.0, 3.0, 3.0) }, Duration::ZERO).is_err());
    }

    #[test]
    fn one_core_did_the_work_of_all() {
        let ratio = |value: f64, half: f64| {
            Quantity::measured(Estimate::new(value, value - half, value + half), Unit::Ratio)
        };
        let (half, quarter) = (ratio(0.5, 0.03), ratio(0.25, 0.04));
        let all = together(&ratio(0.25, 0.0), [(&half, 1.0), (&quarter, 1.0)]);
        let all = all.estimate().expect("known");
        let part = together(&ratio(0.0, 0.0), [(&half, 1.0), (&half, 0.5)]);
        assert!((part.value().expect("known") - 1.75).abs() < 1e-9, "{part:?}");
        assert!((all.value - 1.55).abs() < 1e-9 && (all.hi - 1.62).abs() < 1e-9, "{all:?}");
        assert!(together(&ratio(0.25, 0.0), [(&Quantity::unresolved("no"), 1.0)]).estimate().is_none());
    }
}

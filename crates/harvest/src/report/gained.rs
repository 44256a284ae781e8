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
use units::{Estimate, Quantity, Unit};

/// By a tick of the kernel's clock at each end CPU times may be wrong.
const CPU_TIME_ERROR: f64 = 0.01;

/// A scavenger's pace.
pub(super) fn pace(outcome: &ScavengerOutcome) -> Quantity {
    let life = match outcome.life {
        None => return Quantity::unresolved("it was not started"),
        Some(life) => life,
    };
    match estimate(&outcome.figures.work, &life) {
        Ok(pace) => Quantity::measured(pace, Unit::Ratio),
        Err(why) => Quantity::unresolved(why),
    }
}

fn estimate(work: &Work, life: &Life) -> Result<Estimate, &'static str> {
    let cpu = life.cpu.ok_or("the kernel did not report its CPU time")?.as_secs_f64();
    let (least, most) = (life.least.as_secs_f64(), life.most.as_secs_f64());
    if least < 0.05 {
        return Err("it ran too briefly");
    }
    let seconds = aboard(work)?;
    let at = |aboard: f64, cpu: f64, life: f64| (aboard + cpu).max(0.0) / life;
    Ok(Estimate::new(
        at(seconds.value, cpu, f64::midpoint(least, most)),
        at(seconds.lo, cpu - CPU_TIME_ERROR, most),
        at(seconds.hi, cpu + CPU_TIME_ERROR, least),
    ))
}

/// The seconds that turns aboard take at home.
fn aboard(work: &Work) -> Result<Estimate, &'static str> {
    if work.uncounted {
        return Err("turns of guests in the primary's busy-waits are not counted");
    }
    if work.turns == 0 {
        return Ok(Estimate::exact(0.0));
    }
    if work.gauges < 2 || work.rate <= 0.0 {
        return Err("it was not timed alone often enough");
    }
    let seconds = work.ticks / work.rate / 1e9;
    let n = work.gauges as f64;
    let mean = work.sum / n;
    let variance = ((work.squares / n - mean * mean) * n / (n - 1.0)).max(0.0);
    let error = seconds * 1.96 * (variance / n).sqrt() / mean;
    Ok(Estimate::new(seconds, (seconds - error).max(0.0), seconds + error))
}

/// The work of one core: what the primary did of what it does alone, and its scavengers'. Where
/// scavengers had other processors at home, what they did there is in it.
pub(super) fn together<'a>(slowdown: &Quantity, paces: impl IntoIterator<Item = &'a Quantity>) -> Quantity {
    let Some(slower) = slowdown.estimate() else {
        return Quantity::unresolved("the primary's slowdown is not known");
    };
    let mut all = Estimate::new(1.0 / (1.0 + slower.value), 1.0 / (1.0 + slower.hi), 1.0 / (1.0 + slower.lo));
    let (mut below, mut above) = ((all.value - all.lo).powi(2), (all.hi - all.value).powi(2));
    for pace in paces {
        let Some(pace) = pace.estimate() else {
            return Quantity::unresolved("a scavenger's pace is not known");
        };
        all.value += pace.value;
        below += (pace.value - pace.lo).powi(2);
        above += (pace.hi - pace.value).powi(2);
    }
    let all = Estimate::new(all.value, all.value - below.sqrt(), all.value + above.sqrt());
    Quantity::measured(all, Unit::Ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn life(cpu: f64, least: f64, most: f64) -> Life {
        let [cpu, least, most] = [cpu, least, most].map(Duration::from_secs_f64);
        Life { least, most, processor: None, cpu: Some(cpu) }
    }

    /// A million turns, of which one takes 2000 ticks of half a nanosecond.
    const WORK: Work = Work {
        turns: 1_000_000,
        uncounted: false,
        ticks: 2e9,
        rate: 2.0,
        gauges: 4,
        sum: 8000.0,
        squares: 16.2e6,
    };

    #[test]
    fn turns_aboard_count_as_long_as_they_take_at_home() {
        let pace = estimate(&WORK, &life(0.5, 3.0, 3.0)).expect("known");
        assert!((pace.value - 0.5).abs() < 1e-9, "{pace:?}");
        assert!(pace.lo < 0.49 && pace.hi > 0.51 && pace.hi < 0.6, "{pace:?}");
    }

    #[test]
    fn who_never_came_aboard_has_its_time_at_home() {
        let pace = estimate(&Work::default(), &life(0.5, 1.9, 2.1)).expect("known");
        assert!((pace.value - 0.25).abs() < 1e-9 && pace.lo < 0.24 && pace.hi > 0.26, "{pace:?}");
    }

    #[test]
    fn what_was_not_timed_is_not_told() {
        assert!(estimate(&Work { uncounted: true, ..WORK }, &life(0.5, 3.0, 3.0)).is_err());
        assert!(estimate(&Work { gauges: 1, ..WORK }, &life(0.5, 3.0, 3.0)).is_err());
        assert!(estimate(&WORK, &life(0.0, 0.01, 0.02)).is_err());
        assert!(estimate(&WORK, &Life { cpu: None, ..life(0.0, 3.0, 3.0) }).is_err());
    }

    #[test]
    fn one_core_did_the_work_of_all() {
        let ratio = |value: f64, half: f64| {
            Quantity::measured(Estimate::new(value, value - half, value + half), Unit::Ratio)
        };
        let all = together(&ratio(0.25, 0.0), [&ratio(0.5, 0.03), &ratio(0.25, 0.04)]);
        let all = all.estimate().expect("known");
        assert!((all.value - 1.55).abs() < 1e-9 && (all.hi - 1.6).abs() < 1e-9, "{all:?}");
        assert!(together(&ratio(0.25, 0.0), [&Quantity::unresolved("no")]).estimate().is_none());
    }
}

//! What a harvest gained: how far each scavenger came, as a share of how far it comes alone.
//!
//! ```text
//!          what its turns aboard are worth + CPU time at home
//!  pace = ----------------------------------------------------
//!                   from its start to its end
//! ```
//!
//! Alone means: its twins on a processor of their own. How long its turns aboard take there, nobody
//! knows: they are worth something between nothing and the time that they took. So a pace is told
//! only of a scavenger that was hardly aboard.

use crate::launch::{Life, ScavengerOutcome};
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// By a tick of the kernel's clock at each end CPU times may be wrong.
const CPU_TIME_ERROR: f64 = 0.01;
/// Time aboard that is more than this share of the CPU time at home leaves a pace open.
const HARDLY_ABOARD: f64 = 0.1;

/// A scavenger's pace.
pub(super) fn pace(outcome: &ScavengerOutcome) -> Quantity {
    let Some(life) = outcome.life else { return Quantity::unresolved("it was not started") };
    // Time aboard without a turn is worth nothing.
    let aboard = if outcome.figures.turns == 0 { Duration::ZERO } else { outcome.figures.aboard_time };
    match estimate(aboard, &life) {
        Ok(pace) => Quantity::measured(pace, Unit::Ratio),
        Err(why) => Quantity::unresolved(why),
    }
}

fn estimate(aboard: Duration, life: &Life) -> Result<Estimate, &'static str> {
    let cpu = life.cpu.ok_or("the kernel did not report its CPU time")?.as_secs_f64();
    let (least, most) = (life.least.as_secs_f64(), life.most.as_secs_f64());
    if least < 0.05 {
        return Err("it ran too briefly");
    }
    let aboard = aboard.as_secs_f64();
    if aboard > HARDLY_ABOARD * cpu {
        return Err(
            "what turns aboard were worth alone is not known: compare what the program itself counts",
        );
    }
    let at = |cpu: f64, life: f64| cpu.max(0.0) / life;
    Ok(Estimate::new(
        at(cpu + aboard / 2.0, f64::midpoint(least, most)),
        at(cpu - CPU_TIME_ERROR, most),
        at(cpu + aboard + CPU_TIME_ERROR, least),
    ))
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

    #[test]
    fn a_scavenger_never_aboard_has_its_time_at_home() {
        let pace = estimate(Duration::ZERO, &life(0.5, 1.9, 2.1)).expect("known");
        assert!((pace.value - 0.25).abs() < 1e-9 && pace.lo < 0.24 && pace.hi > 0.26, "{pace:?}");
    }

    #[test]
    fn what_turns_were_worth_is_told_only_where_it_was_hardly_aboard() {
        let pace = estimate(Duration::from_millis(150), &life(2.0, 3.0, 3.0)).expect("known");
        assert!(pace.lo < 2.0 / 3.0 && pace.hi > 2.15 / 3.0 && pace.hi < 0.73, "{pace:?}");
        let aboard = estimate(Duration::from_secs(2), &life(0.5, 3.0, 3.0));
        assert!(aboard.is_err_and(|why| why.contains("what the program itself counts")));
        assert!(estimate(Duration::ZERO, &life(0.0, 0.01, 0.02)).is_err());
        assert!(estimate(Duration::ZERO, &Life { cpu: None, ..life(0.0, 3.0, 3.0) }).is_err());
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

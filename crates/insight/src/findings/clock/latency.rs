//! The latencies of loads that were probed, and their mean.

use crate::probes::latency::Told;
use units::{Basis, Estimate, Quantity, Unit};

/// The latency of a load that was probed.
pub(super) struct LoadLatency {
    pub samples: u64,
    pub told: Told,
    /// What they saw.
    pub seen: Estimate,
    /// The load's number among those that are listed.
    pub listed: Option<usize>,
}

impl LoadLatency {
    pub(super) fn quantity(&self) -> Quantity {
        self.told.quantity()
    }

    /// What counts for a mean: of a bound, the middle of what it allows.
    fn ns(&self) -> Estimate {
        match self.told {
            Told::AtMost(most) => Estimate::new(most / 2.0, 0.0, most),
            told => told.ns(),
        }
    }
}

/// The mean over the loads whose latency is known, each by its stall.
pub(super) fn average_latency(latencies: &[LoadLatency]) -> Quantity {
    let all: f64 = latencies.iter().map(|told| told.samples as f64).sum();
    if all == 0.0 {
        return Quantity::unresolved("no load was probed often enough");
    }
    let mean = |of: fn(&LoadLatency) -> f64| -> f64 {
        latencies.iter().map(|told| told.samples as f64 / all * of(told)).sum()
    };
    let off = |of: fn(&LoadLatency) -> f64| -> f64 {
        latencies.iter().map(|told| (told.samples as f64 / all * of(told)).powi(2)).sum::<f64>().sqrt()
    };
    if latencies.iter().all(|told| matches!(told.told, Told::AtMost(_))) {
        return Quantity::at_most(mean(|told| told.told.ns().hi), Unit::Nanos, Basis::Measured);
    }
    let value = mean(|told| told.ns().value);
    let below = off(|told| told.ns().value - told.ns().lo);
    let above = off(|told| told.ns().hi - told.ns().value);
    let mean = Estimate::new(value, (value - below).max(0.0), value + above);
    let is_measured = latencies.iter().all(|told| matches!(told.told, Told::Measured(_)));
    if is_measured { Quantity::measured(mean, Unit::Nanos) } else { Quantity::modelled(mean, Unit::Nanos) }
}

//! The latencies of loads that were probed, and their mean.

use units::{Estimate, Quantity, Unit};

/// The latency of a load that was probed.
pub(super) struct LoadLatency {
    pub samples: u64,
    pub latency: Estimate,
    /// Probes tell it.
    pub is_measured: bool,
    /// What they saw.
    pub seen: Estimate,
    /// The load's number among those that are listed.
    pub listed: Option<usize>,
}

impl LoadLatency {
    pub(super) fn quantity(&self) -> Quantity {
        quantity(self.latency, self.is_measured)
    }
}

fn quantity(latency: Estimate, is_measured: bool) -> Quantity {
    if is_measured {
        Quantity::measured(latency, Unit::Nanos)
    } else {
        Quantity::modelled(latency, Unit::Nanos)
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
    let value = mean(|told| told.latency.value);
    let below = off(|told| told.latency.value - told.latency.lo);
    let above = off(|told| told.latency.hi - told.latency.value);
    let mean = Estimate::new(value, (value - below).max(0.0), value + above);
    quantity(mean, latencies.iter().all(|told| told.is_measured))
}

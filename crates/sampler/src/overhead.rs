//! What profiling took from the program.

use records::profile::Calibration;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// The share of the program's time that profiling took in all, and beside the program.
pub(crate) fn overheads(cpu_time: &Quantity, used: Duration, taken_s: Option<Estimate>) -> [Quantity; 2] {
    /// What is begun and ended once is no share of what took less.
    const LEAST_S: f64 = 0.05;
    let Some(cpu_time) = cpu_time.value().filter(|&cpu| cpu >= LEAST_S) else {
        return [0; 2].map(|_| Quantity::unresolved("the program used hardly any CPU time"));
    };
    let beside = used.as_secs_f64() / cpu_time;
    let in_all = match taken_s {
        Some(taken) => {
            let within = |taken_s: f64| beside + taken_s.max(0.0) / cpu_time;
            let estimate = Estimate::new(within(taken.value), within(taken.lo), within(taken.hi));
            Quantity::modelled(estimate, Unit::Ratio)
        }
        None => Quantity::unresolved("what a sample costs is not known"),
    };
    [in_all, Quantity::measured(Estimate::exact(beside), Unit::Ratio)]
}

/// What samples and probes took from the program.
pub(crate) fn taken_s(calibration: &Calibration, samples: u64, probes_s: f64) -> Option<Estimate> {
    let of_samples = calibration.sample_cost.estimate()?.scaled(samples as f64);
    let plus = |samples_s: f64| samples_s + probes_s;
    Some(Estimate::new(plus(of_samples.value), plus(of_samples.lo), plus(of_samples.hi)))
}

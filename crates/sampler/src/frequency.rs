//! How many samples a second: as many as the time allows that profiling may take.

use crate::perf::open::highest_frequency_hz;
use records::profile::Calibration;
use records::run::Refused;

/// Of what profiling may take, the part that the clock's samples take. The rest is for stacks,
/// allocations, and the profiler itself.
const CLOCKS_PART: f64 = 1.0 / 3.0;
/// More than this tells nothing new of a run of seconds.
pub(crate) const HIGHEST_HZ: u64 = 4000;
/// With fewer, a run of seconds says nothing.
pub(crate) const LOWEST_HZ: u64 = 100;
/// Where it is not known what a sample costs.
const USUAL_HZ: u64 = 500;

/// Samples a second whose cost stays within that part of the budget, a share of the program's time,
/// even if each costs as much as the calibration's interval says at most.
pub(crate) fn within(budget: f64, calibration: &Calibration) -> u64 {
    let wanted = match calibration.sample_cost.estimate() {
        Some(cost) if cost.hi > 0.0 => (budget * CLOCKS_PART / cost.hi) as u64,
        _ => USUAL_HZ,
    };
    round(wanted.clamp(LOWEST_HZ, HIGHEST_HZ)).min(highest_frequency_hz())
}

/// Of all processes of a machine: enough for shares of percents within seconds.
const HIGHEST_FOR_ALL_HZ: u64 = 199;
const LOWEST_FOR_ALL_HZ: u64 = 19;

/// The same for all processes of a machine: a low rate, whose cost stays within that part of the
/// budget, a share of what all CPUs have to give, even if none of them is ever idle.
pub(crate) fn for_all(budget: f64, calibration: &Calibration) -> u64 {
    let wanted = match calibration.sample_cost.estimate() {
        Some(cost) if cost.hi > 0.0 => (budget * CLOCKS_PART / cost.hi) as u64,
        _ => LOWEST_HZ,
    };
    round(wanted.clamp(LOWEST_FOR_ALL_HZ, HIGHEST_FOR_ALL_HZ + 1)).min(highest_frequency_hz())
}

/// Two digits: the third would change from run to run. Down, to stay within.
fn round(frequency_hz: u64) -> u64 {
    let step = 10_u64.pow(frequency_hz.ilog10().saturating_sub(1));
    // A frequency that divides those of programs and kernels would sample them in step.
    (frequency_hz / step * step).saturating_sub(1).max(1)
}

/// Fewer samples than this may be missing by chance.
const ENOUGH_EXPECTED: f64 = 20.0;
/// Of the samples that the CPU time should have given, the part from which on all is well.
const MOST: f64 = 0.5;

/// Says so where most of the CPU time gave no samples: each thread's first one comes a period after
/// it began, and threads may end before.
pub(crate) fn too_few(frequency_hz: u64, cpu_time_s: f64, samples: u64) -> Option<Refused> {
    let expected = cpu_time_s * frequency_hz as f64;
    if expected < ENOUGH_EXPECTED || samples as f64 >= MOST * expected {
        return None;
    }
    Some(Refused {
        what: "samples".to_owned(),
        why: format!(
            "{samples} came, where the CPU time is worth {expected:.0}: threads that run for less than {:.0} ms end before their first one",
            1e3 / frequency_hz as f64
        ),
        would_help: Some("more samples a second: --frequency 10000".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Quantity, Unit};

    fn calibration(sample_cost: Quantity) -> Calibration {
        Calibration { sample_cost, ..Calibration::unresolved("not asked") }
    }

    #[test]
    fn missing_samples_are_told_of() {
        assert_eq!(too_few(239, 0.05, 0), None, "by chance");
        assert_eq!(too_few(239, 1.0, 200), None);
        let told = too_few(250, 1.0, 20).expect("most are missing").why;
        assert!(
            told.starts_with("20 came, where the CPU time is worth 250:") && told.contains(" 4 ms"),
            "{told}"
        );
    }

    #[test]
    fn dear_samples_are_few() {
        let costs = |lo: f64, hi: f64| {
            let estimate = Estimate::new(f64::midpoint(lo, hi), lo, hi);
            calibration(Quantity::measured(estimate, Unit::Seconds))
        };
        assert_eq!(within(0.03, &costs(22e-6, 24e-6)), 409, "a timer that is emulated");
        assert_eq!(within(0.12, &costs(22e-6, 24e-6)), 1599);
        assert_eq!(within(0.03, &costs(1e-6, 2e-6)), 3999, "bare metal");
        assert_eq!(within(0.03, &costs(-2e-6, -1e-6)), 499, "noise");
        assert_eq!(within(0.03, &costs(1e-3, 2e-3)), 99);
        assert_eq!(within(0.03, &calibration(Quantity::unresolved("not asked"))), 499);
    }
}

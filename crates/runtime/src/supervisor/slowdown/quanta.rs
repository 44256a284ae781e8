//! How long guests run at once.
//!
//! The bounds in their twins count cycles by static estimate, and what these take differs by
//! program: a third of it, or thrice as much. So after each sample with guests their quanta are
//! set to what makes the primary's absence as long as its miss. What is longer makes it late; of
//! what is shorter, switches take the most. Where the primary then loses less than it may, absences
//! are stretched beyond that: guests gain at least what it loses.

use crate::counting::area_words::row;
use crate::layout::region::Region;
use crate::supervisor::slowdown::controller::Costs;
use crate::supervisor::slowdown::sampler::SampleStep;
use core::sync::atomic::Ordering::Relaxed;

/// The part of a miss that an absence is to take.
const PART_OF_MISS: f64 = 0.8;
/// But each guest is to run for this many switches.
const BUSY_SWITCHES: f64 = 16.0;
/// Absences that are as long as wanted but for this part are left so.
const NEAR: f64 = 0.1;
/// By how much absences are stretched, or less so, after a sample;
const STRETCH_STEP: f64 = 1.1;
/// and the most, since then switches hardly count any more.
const MOST_STRETCH: f64 = 8.0;
/// Where more may be lost, in millionths, absences are not stretched.
pub(crate) const NOT_STRETCHED_FROM: u32 = 1_000_000;
/// By how much a quantum is changed at most at once.
const STEP: f64 = 1.5;
/// No quantum is shorter, in cycles.
const LEAST: f64 = 32.0;

/// By what the quanta of these guests are to be multiplied; times in nanoseconds.
fn factor(absence: f64, guests: f64, miss: f64, switch: f64) -> f64 {
    let wanted = (PART_OF_MISS * miss).max(guests * BUSY_SWITCHES * switch);
    let factor = wanted / absence.max(1.0);
    if (factor - 1.0).abs() <= NEAR { 1.0 } else { factor.clamp(1.0 / STEP, STEP) }
}

/// A quantum times this, as far as it may go.
fn scaled(quantum: u32, factor: f64, most: u32) -> u32 {
    let least = LEAST.min(f64::from(most));
    (f64::from(quantum) * factor + 0.5).clamp(least, f64::from(most)) as u32
}

/// How many times a miss absences are to take from now on, by what guests cost the primary.
pub(crate) fn stretched(before: f64, costs: Costs) -> f64 {
    let after = match costs {
        Costs::Little => before * STRETCH_STEP,
        Costs::Enough => before,
        Costs::TooMuch => before / STRETCH_STEP,
    };
    after.clamp(1.0, MOST_STRETCH)
}

impl SampleStep {
    /// Sets the quanta of the guests aboard, by the sample that was taken of the primary's
    /// absences: these are to be `stretch` times as long as without.
    pub(crate) fn tune(&self, region: &'static Region, stretch: f64) {
        let guests = f64::from(self.area.supervisor.guests.load(Relaxed).max(1));
        let Some(absence) = self.mean(row::ABSENCE, 1) else { return };
        let [miss, switch] = [self.page.miss_ps, self.page.switch_ps].map(|ps| ps as f64 / 1000.0);
        if miss <= 0.0 || self.rate <= 0.0 {
            return;
        }
        // Beyond a miss, guests gain what the primary loses, which is what it may: but two misses
        // are long enough for their switches.
        let late = 1.0 + (f64::from(self.page.max_slowdown) / 1e6).min(1.0);
        let factor = factor(absence.ticks[0] / self.rate, guests, stretch * late * miss, switch);
        for home in self.guests(region) {
            let own = home.own();
            let before = own.quantum().load(Relaxed);
            let now = scaled(before, factor, self.page.most_quantum);
            own.quantum().store(now, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absences_are_longer_only_where_they_cost_little() {
        let after = |costs: Costs, times: u32| (0..times).fold(1.0, |before, _| stretched(before, costs));
        assert!((after(Costs::TooMuch, 9) - 1.0).abs() < 1e-9, "never shorter than a miss");
        assert!((after(Costs::Little, 1) - 1.1).abs() < 1e-9);
        assert!((after(Costs::Little, 100) - 8.0).abs() < 1e-9);
        assert!((stretched(3.0, Costs::Enough) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn absences_become_as_long_as_a_miss() {
        let near = |is: f64, should: f64| (is - should).abs() < 1e-9;
        assert!(near(factor(80.0, 1.0, 100.0, 4.0), 1.0));
        assert!(near(factor(86.0, 1.0, 100.0, 4.0), 1.0), "near enough");
        assert!(near(factor(100.0, 1.0, 100.0, 4.0), 0.8));
        assert!(near(factor(900.0, 1.0, 100.0, 4.0), 1.0 / 1.5), "by steps");
        assert!(near(factor(64.0, 1.0, 100.0, 4.0), 1.25));
        assert!(near(factor(192.0, 3.0, 100.0, 4.0), 1.0), "each guest's turn is worth its switch");
        assert_eq!(scaled(385, 0.8, 5000), 308);
        assert_eq!((scaled(40, 0.5, 5000), scaled(4000, 1.5, 5000), scaled(20, 1.0, 20)), (32, 5000, 20));
    }
}

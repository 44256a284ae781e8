//! How long guests run at once.
//!
//! The bounds in their twins count cycles by static estimate, and what these take differs by
//! program: a third of it, or thrice as much. So after each sample with guests their quanta are
//! set to what makes the primary's absence as long as is wanted ([`super::absence_length`]).

use crate::counting::area_words::row;
use crate::layout::region::Region;
use crate::supervisor::slowdown::absence_length::AbsenceLength;
use crate::supervisor::slowdown::controller::Costs;
use crate::supervisor::slowdown::sampler::SampleStep;
use core::sync::atomic::Ordering::Relaxed;

/// The part of a miss that an absence is to take until more is known.
const PART_OF_MISS: f64 = 0.8;
/// But each guest is to run for this many switches.
const BUSY_SWITCHES: f64 = 16.0;
/// An absence takes this many misses at most, since then switches hardly count any more.
const MOST_MISSES: f64 = 8.0;
/// Where more may be lost, in millionths, no knee is searched for: absences take twice as long.
const LOSES_WHAT_IT_LIKES: u32 = 1_000_000;
/// No quantum is shorter, in cycles.
const LEAST: f64 = 32.0;

/// A quantum times this, as far as it may go.
fn scaled(quantum: u32, factor: f64, most: u32) -> u32 {
    let least = LEAST.min(f64::from(most));
    (f64::from(quantum) * factor + 0.5).clamp(least, f64::from(most)) as u32
}

impl SampleStep {
    /// Sets the quanta of the guests aboard, by the sample that was taken with them.
    pub(crate) fn tune(&self, region: &'static Region, length: &mut AbsenceLength, costs: Costs) {
        let guests = f64::from(self.area.supervisor.guests.load(Relaxed).max(1));
        let Some(absence) = self.mean(row::ABSENCE, 1) else { return };
        let [miss, switch] = [self.page.miss_ps, self.page.switch_ps].map(|ps| ps as f64 / 1000.0);
        if miss <= 0.0 || self.rate <= 0.0 {
            return;
        }
        let absence = absence.ticks[0] / self.rate;
        length.begin(PART_OF_MISS * miss);
        let least = guests * BUSY_SWITCHES * switch;
        let factor = if self.page.max_slowdown >= LOSES_WHAT_IT_LIKES {
            length.wanted_ns = (2.0 * PART_OF_MISS * miss).max(least);
            length.next_trial(absence, Costs::Enough)
        } else {
            // A thread that sleeps often is not timed at its yields.
            if let Some(each) = self.mean(row::ABOARD, self.area.counting.lap(true)) {
                length.told(absence, each.ticks[0] / self.rate, costs);
            }
            length.keep_within(least, MOST_MISSES * miss);
            length.next_trial(absence, costs)
        };
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
    fn quanta_stay_within_their_limits() {
        assert_eq!(scaled(385, 0.8, 5000), 308);
        assert_eq!((scaled(40, 0.5, 5000), scaled(4000, 1.5, 5000), scaled(20, 1.0, 20)), (32, 5000, 20));
    }
}

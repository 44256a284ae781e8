//! What the supervisor knows of a home's gauges: the price of a turn.

use crate::supervisor::figures::{GAUGES_FEW, GAUGES_RECENT};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use runtime_abi::control::ScavengerRow;

/// What the supervisor knows of a home's gauges; in the home's area.
#[repr(C)]
pub(crate) struct GaugeNotes {
    /// When one was ordered last, and how many of those taken are noted.
    pub(super) ordered_at: AtomicU64,
    pub(super) noted: AtomicU32,
    /// The last one that was ordered is of a guest that was aboard; and those that are here are.
    pub(super) from_aboard: AtomicU32,
    pub(super) of_aboard: AtomicU32,
    /// How many of the last ones are here: ticks of a turn, as floating-point numbers by their
    /// bits.
    count: AtomicU32,
    recent: [AtomicU32; GAUGES_RECENT],
}

impl GaugeNotes {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.ordered_at.store(0, Relaxed);
        for word in [&self.noted, &self.from_aboard, &self.of_aboard, &self.count] {
            word.store(0, Relaxed);
        }
    }

    /// Ticks of one turn.
    pub(super) fn price(&self) -> Option<f64> {
        let count = (self.count.load(Relaxed) as usize).min(GAUGES_RECENT);
        let mut all = [0.0_f32; GAUGES_RECENT];
        for (to, from) in all.iter_mut().zip(&self.recent) {
            *to = f32::from_bits(from.load(Relaxed));
        }
        let known = &mut all[..count];
        known.sort_unstable_by(f32::total_cmp);
        (count >= GAUGES_FEW).then(|| f64::from(known[count / 2]))
    }

    /// Whether it counts.
    pub(super) fn learn(&self, ticks: f64) -> bool {
        match (self.from_aboard.load(Relaxed), self.of_aboard.load(Relaxed)) {
            (0, 1) => return false,
            (1, 0) => {
                self.of_aboard.store(1, Relaxed);
                self.count.store(0, Relaxed);
            }
            _ => {}
        }
        let count = self.count.load(Relaxed);
        self.recent[count as usize % GAUGES_RECENT].store((ticks as f32).to_bits(), Relaxed);
        // Beyond the table's size only the place of the next one counts.
        let next = count + 1;
        self.count.store(if next < 2 * GAUGES_RECENT as u32 { next } else { GAUGES_RECENT as u32 }, Relaxed);
        true
    }

    /// Ticks of one turn, as far as guests were timed that were aboard.
    pub(super) fn price_aboard(&self) -> Option<f64> {
        self.price().filter(|_| self.of_aboard.load(Relaxed) != 0)
    }

    /// Too few to tell anything.
    pub(super) fn are_few(&self) -> bool {
        (self.count.load(Relaxed) as usize) < GAUGES_FEW
    }
}

/// What the launcher is told of gauges counts no more.
pub(super) fn forget(row: &ScavengerRow) {
    for word in [&row.gauges, &row.gauge_sum, &row.gauge_squares] {
        word.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring_tests::world;

    #[test]
    fn a_price_is_the_median_of_the_last_gauges() {
        let (_, guests) = world(1);
        let notes = guests[0].home().gauge_notes();
        let all = |ticks: &[f64]| ticks.iter().for_each(|ticks| assert!(notes.learn(*ticks)));
        all(&[100.0, 90_000.0]);
        assert_eq!((notes.price(), notes.are_few()), (None, true));
        all(&[102.0]);
        assert_eq!((notes.price(), notes.are_few()), (Some(102.0), false));
        all(&[101.0; 3 * GAUGES_RECENT]);
        assert_eq!(notes.price(), Some(101.0));
        // Another phase.
        all(&[300.0; GAUGES_RECENT / 2]);
        assert_eq!(notes.price(), Some(101.0));
        all(&[300.0]);
        assert_eq!((notes.price(), notes.price_aboard()), (Some(300.0), None));
        // Of guests that were aboard: from then on only those count.
        notes.from_aboard.store(1, Relaxed);
        all(&[50.0; GAUGES_FEW]);
        notes.from_aboard.store(0, Relaxed);
        assert!(!notes.learn(300.0));
        assert_eq!(notes.price_aboard(), Some(50.0));
    }
}

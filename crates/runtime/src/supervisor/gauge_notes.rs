//! What the supervisor knows of a home's gauges: the price of a turn.

use crate::layout::page;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use runtime_abi::control::ScavengerRow;

/// The last gauges make a price: their median, since some come upon a system call, a fault, or
/// another thread on their processor.
const RECENT: usize = 5;
/// Fewer say nothing.
const FEW: usize = 3;

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
    recent: [AtomicU32; RECENT],
    /// The last one that was ordered times turns from one site or bound to the next, whether or not
    /// its sites are on; when such a one was ordered last, and what the last two say.
    pub(super) of_sites: AtomicU32,
    site_turns: [AtomicU32; 2],
    /// The quantum that each of these had.
    site_quanta: [AtomicU32; 2],
    /// When one was ordered last that times the other kind of turns than it has; and what the last
    /// one says of turns to bounds, for each cycle of the quantum.
    pub(super) other_at: AtomicU64,
    /// Until when its sites stay as they are, and how often they were switched.
    pub(super) sites_stay_until: AtomicU64,
    pub(super) sites_switched: AtomicU32,
    bound_turn: AtomicU32,
    /// What turns aboard were worth since that was asked last: ticks, a floating-point number by
    /// its bits; and turns that had no price yet. The supervisor's.
    worth: AtomicU64,
    unpriced: AtomicU64,
}

impl GaugeNotes {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.ordered_at.store(0, Relaxed);
        self.other_at.store(0, Relaxed);
        self.sites_stay_until.store(0, Relaxed);
        self.sites_switched.store(0, Relaxed);
        self.worth.store(0, Relaxed);
        self.unpriced.store(0, Relaxed);
        for word in [&self.noted, &self.from_aboard, &self.of_aboard, &self.of_sites, &self.bound_turn]
            .into_iter()
            .chain(&self.site_turns)
            .chain(&self.site_quanta)
        {
            word.store(0, Relaxed);
        }
        self.forget();
    }

    /// Turns are others from now on.
    pub(super) fn forget(&self) {
        self.count.store(0, Relaxed);
    }

    /// Ticks of a turn with sites, by another gauge.
    pub(super) fn learn_sites(&self, ticks: f64, quantum: f64) {
        for ([last, before], new) in [(&self.site_turns, ticks), (&self.site_quanta, quantum)] {
            before.store(last.load(Relaxed), Relaxed);
            last.store((new as f32).to_bits(), Relaxed);
        }
    }

    /// Ticks of a turn to the next bound, for each cycle of the quantum.
    pub(super) fn learn_bounds(&self, ticks: f64) {
        self.bound_turn.store((ticks as f32).to_bits(), Relaxed);
    }

    pub(super) fn bound_turn(&self) -> Option<f64> {
        Some(f64::from(f32::from_bits(self.bound_turn.load(Relaxed)))).filter(|ticks| *ticks > 0.0)
    }

    /// Whether turns of both kinds were timed.
    pub(super) fn knows_both(&self) -> bool {
        self.bound_turn().is_some() && self.site_turns_exceed(|_| 0.0).is_some()
    }

    /// Whether turns with sites take more ticks than a limit that depends on the quantum that they
    /// had, as far as two gauges agree.
    pub(super) fn site_turns_exceed(&self, limit: impl Fn(f64) -> f64) -> Option<bool> {
        let known = |words: &[AtomicU32; 2], at: usize| f64::from(f32::from_bits(words[at].load(Relaxed)));
        let [last, before] = [0, 1].map(|at| {
            let ticks = known(&self.site_turns, at);
            (ticks > 0.0).then(|| ticks > limit(known(&self.site_quanta, at)))
        });
        last.filter(|exceed| before == Some(*exceed))
    }

    /// Turns aboard, and what one is worth.
    pub(super) fn add_turns(&self, turns: u64, price: Option<f64>) {
        match price {
            Some(price) => page::add_number(&self.worth, turns as f64 * price),
            None => page::add(&self.unpriced, turns),
        }
    }

    /// What turns aboard were worth since this was asked last, in ticks: those without a price each
    /// this much.
    pub(super) fn take_worth(&self, each: f64) -> f64 {
        let worth = f64::from_bits(self.worth.swap(0, Relaxed));
        worth + self.unpriced.swap(0, Relaxed) as f64 * each
    }

    /// Ticks of one turn.
    pub(super) fn price(&self) -> Option<f64> {
        let count = (self.count.load(Relaxed) as usize).min(RECENT);
        let mut all = [0.0_f32; RECENT];
        for (to, from) in all.iter_mut().zip(&self.recent) {
            *to = f32::from_bits(from.load(Relaxed));
        }
        let known = &mut all[..count];
        known.sort_unstable_by(f32::total_cmp);
        (count >= FEW).then(|| f64::from(known[count / 2]))
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
        self.recent[count as usize % RECENT].store((ticks as f32).to_bits(), Relaxed);
        // Beyond the table's size only the place of the next one counts.
        let next = count + 1;
        self.count.store(if next < 2 * RECENT as u32 { next } else { RECENT as u32 }, Relaxed);
        true
    }

    /// Ticks of one turn, as far as guests were timed that were aboard.
    pub(super) fn price_aboard(&self) -> Option<f64> {
        self.price().filter(|_| self.of_aboard.load(Relaxed) != 0)
    }

    /// Too few to tell anything.
    pub(super) fn are_few(&self) -> bool {
        (self.count.load(Relaxed) as usize) < FEW
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
    fn two_gauges_say_how_long_turns_with_sites_are() {
        let (_, guests) = world(1);
        let notes = guests[0].home().gauge_notes();
        notes.learn_sites(90.0, 30.0);
        assert_eq!(notes.site_turns_exceed(|_| 50.0), None);
        notes.learn_sites(60.0, 20.0);
        assert_eq!(
            [50.0, 70.0, 100.0].map(|limit| notes.site_turns_exceed(|_| limit)),
            [Some(true), None, Some(false)]
        );
        assert_eq!(notes.site_turns_exceed(|quantum| 2.9 * quantum), Some(true), "each by its own");
        notes.reset();
        assert_eq!(notes.site_turns_exceed(|_| 50.0), None);
    }

    #[test]
    fn a_price_is_the_median_of_the_last_gauges() {
        let (_, guests) = world(1);
        let notes = guests[0].home().gauge_notes();
        let all = |ticks: &[f64]| ticks.iter().for_each(|ticks| assert!(notes.learn(*ticks)));
        all(&[100.0, 90_000.0]);
        assert_eq!((notes.price(), notes.are_few()), (None, true));
        all(&[102.0]);
        assert_eq!((notes.price(), notes.are_few()), (Some(102.0), false));
        all(&[101.0; 3 * RECENT]);
        assert_eq!(notes.price(), Some(101.0));
        // Another phase.
        all(&[300.0; RECENT / 2]);
        assert_eq!(notes.price(), Some(101.0));
        all(&[300.0]);
        assert_eq!((notes.price(), notes.price_aboard()), (Some(300.0), None));
        // Of guests that were aboard: from then on only those count.
        notes.from_aboard.store(1, Relaxed);
        all(&[50.0; FEW]);
        notes.from_aboard.store(0, Relaxed);
        assert!(!notes.learn(300.0));
        assert_eq!(notes.price_aboard(), Some(50.0));
    }
}

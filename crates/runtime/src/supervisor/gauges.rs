//! What scavengers' time aboard was worth: orders gauges ([`crate::switching::gauge`]), and prices
//! the turns that guests had aboard by them.
//!
//! A gauge is taken where a home's thread is about to park, or, of a guest that stays aboard for
//! long, on a trip home that is made for it: by a visit where the primary's thread lends its
//! processor, else where there is one for homes.

use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::switching::loan_words::SLICE_NS;
use crate::switching::ring;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use runtime_abi::control::{ScavengerRow, trip};

/// Between two gauges of a home that parks anyhow: it comes from a system call, and what a program
/// does behind one, or when it begins, is not what it does all the time. So these count only as long
/// as there are no others;
const AT_HOME_NS: u64 = 50_000_000;
/// of a guest that stays aboard, where a visit is enough,
const VISIT_NS: u64 = 100_000_000;
/// and where it takes a trip home.
const TRIP_NS: u64 = 300_000_000;
/// The first few come sooner.
const FIRST_NS: u64 = 5_000_000;
/// For so long a gauge lets a program warm up.
const WARM_NS: f64 = 40_000.0;
/// So many of the last gauges make a price: their median, since some come upon a system call, a
/// fault, or another thread on their processor.
const RECENT: usize = 5;
/// Fewer say nothing.
const FEW: usize = 3;
/// A gauge that is this many times the price, or this part of it, is of that kind.
const FAR: f64 = 2.5;

/// What the supervisor knows of a home's gauges; in the home's area.
#[repr(C)]
pub(crate) struct GaugeNotes {
    /// When one was ordered last, and how many of those taken are noted.
    ordered_at: AtomicU64,
    noted: AtomicU32,
    /// The last one that was ordered is of a guest that was aboard; and those that are here are.
    from_aboard: AtomicU32,
    of_aboard: AtomicU32,
    /// How many of the last ones are here: ticks of a turn, as floating-point numbers by their
    /// bits.
    count: AtomicU32,
    recent: [AtomicU32; RECENT],
}

impl GaugeNotes {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.ordered_at.store(0, Relaxed);
        for word in [&self.noted, &self.count, &self.from_aboard, &self.of_aboard] {
            word.store(0, Relaxed);
        }
    }

    /// Ticks of one turn.
    fn price(&self) -> Option<f64> {
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
    fn learn(&self, ticks: f64) -> bool {
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
    fn price_aboard(&self) -> Option<f64> {
        self.price().filter(|_| self.of_aboard.load(Relaxed) != 0)
    }

    /// Between two gauges: the first ones are soon wanted.
    fn pause(&self, usual: u64) -> u64 {
        if (self.count.load(Relaxed) as usize) < FEW { FIRST_NS } else { usual }
    }
}

/// Adds to a sum that only the supervisor writes.
fn add(sum: &AtomicU64, value: f64) {
    sum.store((f64::from_bits(sum.load(Relaxed)) + value).to_bits(), Relaxed);
}

/// What a guest's turns aboard this host were worth since this was asked last. Returns what they
/// were worth at least, in ticks, if a turn has a price yet; `switch`: the ticks of a switch.
pub(crate) fn price(guest: &Context, host: &Area, switch: f64) -> Option<f64> {
    let home = guest.home();
    let (row, notes) = (home.scavenger(), home.gauge_notes());
    let turns = home.gauge().take_turns(host);
    page::add(&row.turns, turns);
    let Some(price) = notes.price_aboard() else {
        page::add(&row.unpriced_turns, turns);
        return None;
    };
    add(&row.work_ticks, turns as f64 * price);
    Some(turns as f64 * (price - (DEAR - 1.0) * switch).max(0.0))
}

/// Ticks of a turn, by a gauge of which each yield took a switch, too: of a turn that is hardly
/// longer than that nothing is known but that it is short.
fn without_switch(ticks: f64, switch: f64) -> f64 {
    const LEAST: f64 = 0.1;
    (ticks - switch).max(LEAST * ticks)
}

/// A switch may take so many times what it usually does: where many places share one jump, the
/// processor does not foresee where it leads.
const DEAR: f64 = 8.0;

/// Takes note of a gauge that a home's thread took; `switch`: the ticks of a switch.
pub(crate) fn note(home: &Area, row: &ScavengerRow, switch: f64) {
    let (words, notes) = (home.gauge(), home.gauge_notes());
    let taken = words.taken.load(Acquire);
    if notes.noted.swap(taken, Relaxed) == taken {
        return;
    }
    let ticks = f64::from_bits(words.ticks.load(Relaxed));
    if ticks <= 0.0 {
        return;
    }
    let ticks = without_switch(ticks, switch);
    let before = notes.of_aboard.load(Relaxed);
    if !notes.learn(ticks) {
        return;
    }
    if notes.of_aboard.load(Relaxed) != before {
        // What those at home say does not count any more.
        for word in [&row.gauges, &row.gauge_sum, &row.gauge_squares] {
            word.store(0, Relaxed);
        }
    }
    let Some(price) = notes.price() else { return };
    if notes.of_aboard.load(Relaxed) != 0 {
        add(&row.work_ticks, row.unpriced_turns.swap(0, Relaxed) as f64 * price);
    }
    if ticks < FAR * price && ticks > price / FAR {
        page::add(&row.gauges, 1);
        add(&row.gauge_sum, ticks);
        add(&row.gauge_squares, ticks * ticks);
    }
}

impl Supervisor {
    /// The ticks of a switch at a yield.
    pub(crate) fn switch_ticks(&self) -> f64 {
        self.page.switch_ps as f64 / 1000.0 * self.clock.rate
    }

    /// Ticks for which a gauge lets a program warm up; 0, so that none is taken, where the counter's
    /// rate is not known.
    fn warm_ticks(&self) -> u32 {
        (WARM_NS * self.clock.rate) as u32
    }

    /// A home is about to be asked to park.
    pub(crate) fn gauge_at_home(&self, home: &Area) {
        let notes = home.gauge_notes();
        let since = self.now.saturating_sub(notes.ordered_at.load(Relaxed));
        if since >= notes.pause(AT_HOME_NS) && notes.of_aboard.load(Relaxed) == 0 && self.page.siblings == 0 {
            notes.ordered_at.store(self.now, Relaxed);
            notes.from_aboard.store(0, Relaxed);
            home.gauge().due.store(self.warm_ticks(), Release);
        }
    }

    /// A guest is aboard this host.
    pub(crate) fn gauge_aboard(&self, home: &Area, host: &'static Area) {
        let (own, notes) = (home.own(), home.gauge_notes());
        let aboard_for = self.now.saturating_sub(own.since.load(Relaxed));
        let since = self.now.saturating_sub(notes.ordered_at.load(Relaxed));
        let waited = since.min(aboard_for);
        if waited < notes.pause(VISIT_NS) || own.recall.load(Relaxed) != 0 {
            return;
        }
        if host.loans().allowance.load(Relaxed) >= SLICE_NS as i64 {
            host.gauge().guest.store(own.pointer(), Release);
        } else if waited >= TRIP_NS && self.processes.has_cpus_to_spare() && self.starving.is_empty() {
            own.recall.store(trip::GAUGED as u32, Relaxed);
        } else {
            return;
        }
        notes.ordered_at.store(self.now, Relaxed);
        notes.from_aboard.store(1, Relaxed);
        home.gauge().due.store(self.warm_ticks(), Release);
        ring::hook(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::gauge;
    use crate::switching::ring_tests::world;

    #[test]
    fn a_price_is_the_median_of_the_last_gauges() {
        let (_, guests) = world(1);
        let notes = guests[0].home().gauge_notes();
        let all = |ticks: &[f64]| ticks.iter().for_each(|ticks| assert!(notes.learn(*ticks)));
        all(&[100.0, 90_000.0]);
        assert_eq!((notes.price(), notes.pause(AT_HOME_NS)), (None, FIRST_NS));
        all(&[102.0]);
        assert_eq!((notes.price(), notes.pause(AT_HOME_NS)), (Some(102.0), AT_HOME_NS));
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

    #[test]
    fn a_switch_is_no_part_of_a_turn() {
        assert_eq!([without_switch(300.0, 20.0), without_switch(21.0, 20.0)], [280.0, 2.1]);
    }

    #[test]
    fn turns_before_the_first_gauge_are_worth_what_it_says() {
        let (host, guests) = world(2);
        let (guest, home) = (guests[0], guests[0].home());
        let turns = |many: i64| {
            host.twin.passes.store(host.twin.passes.load(Relaxed) - many, Relaxed);
        };
        ring::append(host, guest);
        turns(10);
        price(guest, host, 0.0);
        let row = home.scavenger();
        assert_eq!((row.turns.load(Relaxed), f64::from_bits(row.work_ticks.load(Relaxed))), (10, 0.0));
        home.gauge_notes().from_aboard.store(1, Relaxed);
        home.gauge().ticks.store(50_f64.to_bits(), Relaxed);
        for taken in [1, 1, 2, 3] {
            home.gauge().taken.store(taken, Relaxed);
            note(home, row, 0.0);
        }
        assert_eq!(f64::from_bits(row.work_ticks.load(Relaxed)), 500.0);
        // Turns while it is aside are none, nor are those when it is in no ring.
        turns(3);
        gauge::joins(host, guest);
        turns(4);
        gauge::aside(host, true);
        turns(100);
        gauge::aside(host, false);
        turns(5);
        gauge::parts(host, guest);
        turns(7);
        price(guest, host, 0.0);
        assert_eq!((row.turns.load(Relaxed), row.gauges.load(Relaxed)), (19, 1));
        assert_eq!(f64::from_bits(row.work_ticks.load(Relaxed)), 500.0 + 9.0 * 50.0);
    }
}

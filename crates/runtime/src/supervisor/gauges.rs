//! What scavengers' time aboard was worth: orders gauges ([`crate::switching::gauge`]), and prices
//! the turns that guests had aboard by them.
//!
//! A gauge is taken where a home's thread is about to park, or, of a guest that stays aboard for
//! long, on a trip home that is made for it: by a visit where the primary's thread lends its
//! processor, else where there is one for homes.

use crate::counting::turns;
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::figures::{
    GAUGE_AT_HOME_NS, GAUGE_FAR, GAUGE_FIRST_NS, GAUGE_LEAST, GAUGE_TRIP_NS, GAUGE_VISIT_NS, GAUGE_WARM_NS,
};
use crate::supervisor::gauge_notes::{self, GaugeNotes};
use crate::switching::loan_words::SLICE_NS;
use crate::switching::ring;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::{ScavengerRow, trip};

/// Between two gauges: the first ones are soon wanted.
fn pause(notes: &GaugeNotes, usual: u64) -> u64 {
    if notes.are_few() { GAUGE_FIRST_NS } else { usual }
}

/// The same of trips that are made for them.
fn trip_pause(notes: &GaugeNotes) -> u64 {
    if notes.are_few() { GAUGE_VISIT_NS } else { GAUGE_TRIP_NS }
}

/// Adds what a guest's turns aboard this host were worth since they were counted last.
pub(crate) fn price(guest: &Context, host: &Area) {
    let home = guest.home();
    let (row, turns) = (home.scavenger(), turns::take(guest, host));
    page::add(&row.turns, turns);
    match home.gauge_notes().price_aboard() {
        Some(price) => page::add_number(&row.work_ticks, turns as f64 * price),
        None => page::add(&row.unpriced_turns, turns),
    }
}

/// Ticks of a turn, by a gauge of which each yield took a switch, too: of a turn that is hardly
/// longer than that nothing is known but that it is short.
fn without_switch(ticks: f64, switch: f64) -> f64 {
    (ticks - switch).max(GAUGE_LEAST * ticks)
}

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
        gauge_notes::forget(row);
    }
    let Some(price) = notes.price() else { return };
    if notes.of_aboard.load(Relaxed) != 0 {
        page::add_number(&row.work_ticks, row.unpriced_turns.swap(0, Relaxed) as f64 * price);
    }
    if ticks < GAUGE_FAR * price && ticks > price / GAUGE_FAR {
        page::add(&row.gauges, 1);
        page::add_number(&row.gauge_sum, ticks);
        page::add_number(&row.gauge_squares, ticks * ticks);
    }
}

impl Supervisor {
    /// The ticks of a switch at a yield.
    pub(crate) fn switch_ticks(&self) -> f64 {
        self.page.switch_ps as f64 / 1000.0 * self.clock.rate
    }

    /// Ticks for which a gauge lets a program warm up; 0, so that none is taken, where the
    /// counter's rate is not known.
    fn warm_ticks(&self) -> u32 {
        (GAUGE_WARM_NS * self.clock.rate) as u32
    }

    /// A home is about to be asked to park.
    pub(crate) fn gauge_at_home(&self, home: &Area) {
        let notes = home.gauge_notes();
        let since = self.now.saturating_sub(notes.ordered_at.load(Relaxed));
        if since >= pause(notes, GAUGE_AT_HOME_NS) && notes.of_aboard.load(Relaxed) == 0 {
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
        if waited < pause(notes, GAUGE_VISIT_NS) || own.recall.load(Relaxed) != 0 {
            return;
        }
        if host.loans().allowance.load(Relaxed) >= SLICE_NS as i64 {
            host.gauge().guest.store(own.pointer(), Release);
        } else if waited >= trip_pause(notes)
            && self.processes.has_cpus_to_spare()
            && self.starving.is_empty()
        {
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
    use crate::switching::ring_tests::world;

    #[test]
    fn a_switch_is_no_part_of_a_turn() {
        let near = |is: f64, should: f64| (is - should).abs() < 1e-9;
        assert!(near(without_switch(300.0, 20.0), 280.0) && near(without_switch(21.0, 20.0), 2.1));
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
        price(guest, host);
        let row = home.scavenger();
        assert_eq!((row.turns.load(Relaxed), row.work_ticks.load(Relaxed)), (10, 0));
        home.gauge_notes().from_aboard.store(1, Relaxed);
        home.gauge().ticks.store(50_f64.to_bits(), Relaxed);
        for taken in [1, 1, 2, 3] {
            home.gauge().taken.store(taken, Relaxed);
            note(home, row, 0.0);
        }
        let worth = || f64::from_bits(row.work_ticks.load(Relaxed));
        assert!((worth() - 500.0).abs() < 1e-9);
        // Turns while it is aside are none, nor are those when it is in no ring.
        turns(3);
        turns::joins(host, guest);
        turns(4);
        turns::aside(host, true);
        turns(100);
        turns::aside(host, false);
        turns(5);
        turns::parts(host, guest);
        turns(7);
        price(guest, host);
        assert_eq!((row.turns.load(Relaxed), row.gauges.load(Relaxed)), (19, 1));
        assert!((worth() - 500.0 - 9.0 * 50.0).abs() < 1e-9);
    }
}

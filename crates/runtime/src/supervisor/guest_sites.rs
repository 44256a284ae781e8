//! Whether a guest's site yields are on.
//!
//! Where its loads miss, a guest that gives way at them is back when its line is there. Where they
//! hit, it gives the rest of its host's wait away, and comes hardly forward. So gauges time turns
//! of both kinds, to the next site or bound and to the next bound. Sites are on where turns of all
//! guests to them use up some of the host's miss, and are shorter than those to bounds. Until that
//! is known they are on: nobody is away for long then.

use crate::layout::area::Area;
use crate::supervisor::Supervisor;
use crate::supervisor::gauge_notes::{self, GaugeNotes};
use core::sync::atomic::Ordering::Relaxed;

/// Between two gauges of turns of the kind that a guest does not have.
const OTHER_KIND_NS: u64 = 500_000_000;
/// Where this slowdown is allowed, in millionths, sites follow each gauge: guests of a primary that
/// hardly runs are seldom timed, and those that are wrongly off are too dear for it meanwhile.
const NOT_HELD_FROM: u32 = 3_330_000;
/// Sites that were switched stay so for this time, in which gauges make a price (some five of
/// them). The time doubles with each switch.
const STAY_NS: u64 = 2_000_000_000;
/// It doubles this often at most. For the last part of it, gauges time the other kind, too.
const DOUBLINGS: u32 = 6;
const RESUMED_NS: u64 = 600_000_000;
/// The part of a miss that guests' turns from site to site must use up. Turns to bounds are some 17
/// times as long: with less of a miss they use up more of it, with more they make the host late.
const PART_OF_MISS: f64 = 0.2;
/// Sites that are on stay so down to this part of it.
const STAYS: f64 = 0.75;
/// A turn is to be longer than this number of switches.
const SWITCHES: f64 = 2.0;
/// Turns of the two kinds that are as long, but for this part, are the same: the guest hardly comes
/// to sites.
const SAME: f64 = 0.3;

/// A gauge of this home is about to be ordered: what it is to time.
pub(crate) fn choose_gauge(home: &Area, now: u64) {
    let (notes, own) = (home.gauge_notes(), home.own());
    let on = own.sites.load(Relaxed) != 0;
    let is_due = now.saturating_sub(notes.other_at.load(Relaxed)) >= OTHER_KIND_NS || lacks_other(notes, on);
    // As long as nothing may be switched, those of its own kind make its price.
    let other = is_due && now + RESUMED_NS >= notes.sites_stay_until.load(Relaxed);
    if other {
        notes.other_at.store(now, Relaxed);
    }
    let of_sites = u32::from(on != other);
    notes.of_sites.store(of_sites, Relaxed);
    home.gauge().at_sites.store(of_sites, Relaxed);
}

/// Whether turns of its own kind were timed, and none of the other one.
fn lacks_other(notes: &GaugeNotes, on: bool) -> bool {
    let (sites, bounds) = (notes.site_turns_exceed(|_| 0.0).is_some(), notes.bound_turn().is_some());
    if on { sites && !bounds } else { bounds && !sites }
}

/// Whether the sites of one of these guests are to be on; `miss` and `switch` in ticks.
fn pay(home: &Area, guests: u32, miss: f64, switch: f64) -> bool {
    let (own, notes) = (home.own(), home.gauge_notes());
    let on = own.sites.load(Relaxed) != 0;
    let part = if on { STAYS } else { 1.0 } * PART_OF_MISS;
    let shortest = (part * miss / f64::from(guests.max(1))).max(SWITCHES * switch);
    let Some(bound_turn) = notes.bound_turn().filter(|_| notes.knows_both()) else {
        return notes.site_turns_exceed(|_| shortest) != Some(false);
    };
    // Quanta change: a turn is as long as one to a bound if it was so at its own.
    let same = |quantum: f64| (1.0 - SAME) * bound_turn * quantum;
    match [notes.site_turns_exceed(|_| shortest), notes.site_turns_exceed(same)] {
        [Some(false), _] | [_, Some(true)] => false,
        [Some(true), Some(false)] => true,
        _ => on,
    }
}

impl Supervisor {
    /// Switches a guest's sites where that pays; `guests` are in its ring, or will be. True:
    /// the ring's thread is to follow.
    pub(crate) fn switch_sites(&self, home: &Area, guests: u32) -> bool {
        let miss = self.page.miss_ps as f64 / 1000.0 * self.clock.rate;
        let sites = &home.own().sites;
        let notes = home.gauge_notes();
        if self.now < notes.sites_stay_until.load(Relaxed) {
            return false;
        }
        let on = u32::from(pay(home, guests, miss, self.switch_ticks()));
        if sites.swap(on, Relaxed) == on {
            return false;
        }
        // Where turns of both kinds are about as long, either would do, and a price must be known.
        if self.page.max_slowdown < NOT_HELD_FROM {
            let times = notes.sites_switched.load(Relaxed);
            notes.sites_switched.store(times + 1, Relaxed);
            notes.sites_stay_until.store(self.now + (STAY_NS << times.min(DOUBLINGS)), Relaxed);
        }
        notes.forget();
        gauge_notes::forget(home.scavenger());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::links;
    use crate::switching::ring_tests::world;

    #[test]
    fn turns_that_use_up_a_miss_pay() {
        let (_, guests) = world(1);
        let home = guests[0].home();
        let pays = |many| pay(home, many, 100.0, 5.0);
        assert!(pays(1), "nothing is known");
        let learn = |ticks| (0..2).for_each(|_| home.gauge_notes().learn_sites(ticks, 100.0));
        learn(15.0);
        assert_eq!([1, 2].map(pays), [false, true]);
        home.own().quantum().store(100, Relaxed);
        home.gauge_notes().learn_bounds(2.0);
        assert_eq!([1, 2].map(pays), [false, true]);
        learn(180.0);
        assert!(!pays(1), "turns to bounds are as long");
        learn(25.0);
        assert!(pays(1));
        home.own().sites.store(1, Relaxed);
        learn(16.0);
        assert!(pays(1), "it stays so");
        learn(9.0);
        assert_eq!([1, 12].map(pays), [false, false], "hardly longer than a switch");
    }

    #[test]
    fn a_ring_follows() {
        let (host, guests) = world(2);
        guests.iter().take(2).for_each(|guest| links::append(host, guest));
        let spins = || [0, 1].map(|at| guests[at].spin.load(Relaxed) == guests[at].next.load(Relaxed));
        assert_eq!(spins(), [false, false]);
        guests[0].sites.store(1, Relaxed);
        links::hook(host);
        crate::switching::ring::control(host);
        assert_eq!(spins(), [true, false]);
        links::take_out(host, guests[1]);
        assert_eq!(guests[0].spin.load(Relaxed), host.own().pointer());
        links::take_out(host, guests[0]);
        assert_eq!(guests[0].spin.load(Relaxed), guests[0].pointer());
    }
}

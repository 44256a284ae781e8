//! Turns: how often a ring went round with a guest in it, each time to the guest's next yield.

use crate::counting::turn_words::NO_RING;
use crate::layout::area::Area;
use crate::layout::context::Context;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// How many of the thread's yields met another context in its ring, a guest or a counter.
pub(crate) fn yields(area: &Area) -> u64 {
    let since = area.counting.passes_were.load(Relaxed).wrapping_sub(area.twin.passes.load(Acquire));
    area.counting.met.load(Relaxed).wrapping_add(since as u64)
}

/// How often the thread's ring went round with all its guests.
fn turns_of(area: &Area) -> u64 {
    let words = area.turn_words();
    let (all, since) = (yields(area), words.aside_since.load(Relaxed));
    let now = if since == NO_RING { 0 } else { all.saturating_sub(since) };
    all.saturating_sub(words.aside.load(Relaxed) + now)
}

/// A guest joins the ring. The thread's.
pub(crate) fn joins(area: &Area, guest: &Context) {
    guest.home().turn_words().joined.store(turns_of(area), Relaxed);
}

/// A guest was taken out of the ring. The thread's.
pub(crate) fn parts(area: &Area, guest: &Context) {
    let words = guest.home().turn_words();
    let joined = words.joined.swap(NO_RING, AcqRel);
    if joined != NO_RING {
        words.turns.fetch_add(turns_of(area).saturating_sub(joined), Relaxed);
    }
}

/// All guests go aside, or come back. The thread's, hooked.
pub(crate) fn aside(area: &Area, are: bool) {
    let words = area.turn_words();
    let (now, since) = (yields(area), words.aside_since.load(Relaxed));
    if are && since == NO_RING {
        words.aside_since.store(now, Relaxed);
    } else if !are && since != NO_RING {
        words.aside.store(words.aside.load(Relaxed) + now.saturating_sub(since), Relaxed);
        words.aside_since.store(NO_RING, Relaxed);
    }
}

/// Supervisor: all turns that a guest took part in since this was asked last, also in the ring of
/// the host that it is in, or was in when that ended.
pub(crate) fn take(guest: &Context, host: &Area) -> u64 {
    let words = guest.home().turn_words();
    let (joined, now) = (words.joined.load(Acquire), turns_of(host));
    // Where the host takes it out meanwhile, the host adds them.
    let mine = joined != NO_RING && words.joined.compare_exchange(joined, now, AcqRel, Relaxed).is_ok();
    let there = if mine { now.saturating_sub(joined) } else { 0 };
    words.turns.swap(0, Relaxed) + there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring;
    use crate::switching::ring_tests::world;

    #[test]
    fn turns_count_while_a_guest_takes_part_in_a_ring() {
        let (host, guests) = world(2);
        let guest = guests[0];
        let go_round = |many: i64| {
            host.twin.passes.store(host.twin.passes.load(Relaxed) - many, Relaxed);
        };
        ring::append(host, guest);
        go_round(10);
        assert_eq!((take(guest, host), take(guest, host)), (10, 0));
        // None while it is aside, nor when it is in no ring.
        joins(host, guest);
        go_round(4);
        aside(host, true);
        go_round(100);
        aside(host, false);
        go_round(5);
        parts(host, guest);
        go_round(7);
        assert_eq!(take(guest, host), 9);
    }
}

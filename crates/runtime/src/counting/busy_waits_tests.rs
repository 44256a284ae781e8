//! Work between busy-waits, without threads: what is a piece of work, what a stage leaves behind,
//! which contexts are met where.

use crate::counting::count::{self, ALONE, COUNTING, GUESTS, SAMPLES, SPINS, WAITS, row};
use crate::counting::count_tests::{met_at_turns, ordered, sorted, taken};
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::switching::ring;
use crate::switching::ring_tests::{board, order, pointers, world};
use core::sync::atomic::Ordering::Relaxed;

fn waiting(what: u32) -> (&'static Area, Vec<&'static Context>) {
    let (area, guests) = world(3);
    for guest in guests.iter().rev() {
        board(area, guest, ring::modes());
    }
    area.orders.for_test().stage_ticks.store(u64::MAX / 256, Relaxed);
    area.orders.for_test().absence_ticks.store(1000, Relaxed);
    ordered(area, what | COUNTING | WAITS);
    (area, guests)
}

/// It goes round its busy-wait at `now`, and guests run for `guests` ticks.
fn turn(area: &'static Area, now: u64, guests: u64) -> *mut Context {
    let next = count::turned(area, now);
    area.counting.away.store(now + guests, Relaxed);
    next
}

#[test]
fn counters_stand_around_those_it_meets() {
    let (area, guests) = waiting(SPINS);
    let (turns, back) = (area.turns().pointer(), area.back().pointer());
    let whole: Vec<_> = [turns].into_iter().chain(pointers(&guests)).chain([back]).collect();
    assert_eq!((order(area), met_at_turns(area)), (vec![], whole));
    ordered(area, ALONE | COUNTING | WAITS);
    assert_eq!((order(area), met_at_turns(area)), (vec![], vec![turns, back]));
    ordered(area, GUESTS);
    assert_eq!((order(area), met_at_turns(area)), (pointers(&guests), vec![]));
    ordered(area, SPINS);
    assert_eq!((order(area), met_at_turns(area)), (vec![], pointers(&guests)));
}

#[test]
fn works_are_told_from_turns() {
    let (area, _) = waiting(SPINS);
    let mut now = 1_000_000;
    // Rounds of 50, in each of which guests take 30; every fifth time there is work for 2000.
    for round in 0..50 {
        turn(area, now, 30);
        now += 30 + if round % 5 == 4 { 2000 } else { 50 };
    }
    turn(area, now, 30);
    let works: Vec<u32> =
        area.samples(row::PLAIN).iter().map(|at| at.load(Relaxed)).take_while(|at| *at != 0).collect();
    assert_eq!(works, [2015; 10]);
    assert_eq!(area.counting.idle.load(Relaxed), 50 * 30 + 40 * 50);
    assert_eq!(area.counting.long_turns.load(Relaxed), 0);
    // Guests that stay are told of, and are no work.
    turn(area, now + 80, 5000);
    turn(area, now + 80 + 5000 + 50, 30);
    assert_eq!((area.counting.long_turns.load(Relaxed), area.counting.taken.load(Relaxed)), (1, 10));
}

#[test]
fn one_that_is_behind_works_all_the_time() {
    let (area, _) = waiting(ALONE);
    turn(area, 1_000_000, 10);
    turn(area, 1_000_060, 10);
    let known = area.counting.shortest_turn.load(Relaxed);
    assert_eq!(known, 50);
    // In the next sample it goes round only once between two pieces of work.
    ordered(area, ALONE | COUNTING | WAITS);
    for round in 0..20 {
        turn(area, 2_000_000 + round * 2010, 10);
    }
    assert_eq!((area.counting.taken.load(Relaxed), area.counting.idle.load(Relaxed)), (19, 19 * 10));
}

#[test]
fn there_is_space_for_any_number_of_works() {
    let (area, _) = waiting(ALONE);
    let mut now = 1_000_000;
    for _ in 0..1000 {
        turn(area, now, 10);
        turn(area, now + 60, 10);
        now += 60 + 10 + 2000;
    }
    let lap = area.counting.laps[0].load(Relaxed);
    assert_eq!(lap, 16);
    let taken = area.counting.taken.load(Relaxed) as usize;
    assert_eq!(taken, 999 / 16);
    let samples = area.samples(row::PLAIN);
    assert!(samples[..taken].iter().all(|sample| sample.load(Relaxed) == 16 * 2005));
    assert!(samples[taken..SAMPLES].iter().all(|sample| sample.load(Relaxed) == 0));
}

#[test]
fn a_stage_that_ends_leaves_all_as_it_was() {
    for what in [SPINS, ALONE] {
        let (area, guests) = waiting(what);
        area.orders.for_test().stage_ticks.store(1, Relaxed);
        turn(area, 1_000_000, 10);
        let mut next = turn(area, u64::MAX / 4, 10);
        assert_eq!(area.counting.done.load(Relaxed), area.orders.order());
        // A thread that was about to go on there comes back to the primary.
        for _ in 0..10 {
            if next == area.own().pointer() {
                break;
            }
            // SAFETY: contexts of the region.
            next = unsafe { &*next }.next.load(Relaxed);
        }
        assert_eq!(next, area.own().pointer());
        assert_eq!(met_at_turns(area), if what == SPINS { pointers(&guests) } else { vec![] });
        ordered(area, GUESTS);
        assert_eq!(order(area), pointers(&guests));
    }
}

#[test]
fn guests_leave_in_any_order() {
    for leaves in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1]] {
        let (area, guests) = waiting(SPINS);
        let (turns, back) = (area.turns().pointer(), area.back().pointer());
        let mut left = pointers(&guests);
        for leave in leaves {
            let next = guests[leave].next.load(Relaxed);
            assert_eq!(ring::take_out(area, guests[leave]), next);
            left.retain(|guest| *guest != guests[leave].pointer());
            let expected: Vec<_> = [turns].into_iter().chain(left.iter().copied()).chain([back]).collect();
            assert_eq!(met_at_turns(area), expected, "{leaves:?}");
        }
        board(area, guests[0], ring::modes());
        ordered(area, SPINS | COUNTING | WAITS);
        assert_eq!(met_at_turns(area), [turns, guests[0].pointer(), back]);
        ordered(area, GUESTS);
        assert_eq!((order(area), met_at_turns(area)), (pointers(&[guests[0]]), vec![]));
    }
}

#[test]
fn all_are_taken_and_it_goes_on_alone() {
    for hooked in [false, true] {
        let (area, guests) = waiting(SPINS);
        if hooked {
            ring::hook(area);
        }
        assert_eq!(taken(area), sorted(&guests));
        assert_eq!(met_at_turns(area).len(), usize::from(hooked));
        // Still counted, and then no more.
        ring::hook(area);
        ring::control(area);
        assert_eq!(met_at_turns(area), [area.turns().pointer(), area.back().pointer()]);
        ordered(area, ALONE);
        assert_eq!((order(area), met_at_turns(area)), (vec![], vec![]));
    }
}

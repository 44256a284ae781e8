//! Phases and counting, without threads: which contexts are in the ring in which order, whatever is
//! ordered when.

use crate::counting::count::{self, ALONE, COUNTING, GUESTS};
use crate::counting::order::NUMBER;
use crate::layout::area::{Area, closed};
use crate::layout::context::Context;
use crate::switching::ring;
use crate::switching::ring_tests::{board, order, pointers, world};
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::trip;

fn ordered(area: &'static Area, what: u32) {
    let number = area.orders.order() & !(NUMBER - 1);
    area.orders.for_test().order.store((number + NUMBER) | what, Relaxed);
    ring::hook(area);
    ring::control(area);
}

fn three() -> (&'static Area, Vec<&'static Context>) {
    let (area, guests) = world(3);
    for guest in guests.iter().rev() {
        board(area, guest, ring::modes());
    }
    ring::control(area);
    assert_eq!(order(area), pointers(&guests));
    (area, guests)
}

/// Takes all guests away, and returns them.
fn taken(area: &'static Area) -> Vec<*mut Context> {
    let mut taken = Vec::new();
    ring::take_all(area, |guest| taken.push(guest.pointer()));
    taken.sort_unstable();
    taken
}

fn sorted(guests: &[&'static Context]) -> Vec<*mut Context> {
    let mut all = pointers(guests);
    all.sort_unstable();
    all
}

#[test]
fn guests_are_aside_while_the_primary_is_to_be_alone() {
    let (area, guests) = three();
    ordered(area, ALONE);
    assert_eq!(order(area), []);
    // A guest boarded meanwhile is aside too, and a recalled one goes home.
    guests[1].recall.store(trip::SLOWED as u32, Relaxed);
    ordered(area, ALONE);
    assert_eq!(guests[1].why.load(Relaxed), trip::SLOWED as u32);
    ordered(area, GUESTS);
    assert_eq!(order(area), pointers(&[guests[0], guests[2]]));
}

#[test]
fn all_are_taken_also_from_aside() {
    for what in [ALONE, ALONE | COUNTING, GUESTS | COUNTING] {
        let (area, guests) = three();
        ordered(area, what);
        ring::hook(area);
        assert_eq!(taken(area), sorted(&guests), "{what}");
        assert_eq!(order(area), []);
        // What was counted goes on without them.
        ring::control(area);
        assert!(order(area).iter().all(|at| area.is_counter(*at)));
    }
}

/// Lets the counters have their say so often, and returns the orders that were seen, each once.
fn run(area: &'static Area, times: u64) -> Vec<Vec<*mut Context>> {
    let mut seen: Vec<Vec<*mut Context>> = vec![order(area)];
    area.orders.for_test().stage_ticks.store(u64::MAX / 16, Relaxed);
    for tick in 1..=times {
        if area.counting.done.load(Relaxed) == area.orders.order() {
            break;
        }
        area.counting.away.store(tick * 1000, Relaxed);
        count::counted(area, tick * 1000 + 100);
        let now = order(area);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    seen
}

#[test]
fn stages_follow_each_other_and_leave_the_ring_as_it_was() {
    let (area, guests) = three();
    let (front, back) = (area.front().pointer(), area.back().pointer());
    let [a, b, c] = [0, 1, 2].map(|i| guests[i].pointer());
    ordered(area, ALONE | COUNTING);
    assert_eq!(run(area, 300), [vec![back], vec![]]);
    assert_eq!(area.counting.done.load(Relaxed), area.orders.order());
    assert!(area.samples(count::row::PLAIN).iter().all(|sample| sample.load(Relaxed) != 0));

    area.orders.for_test().suspect.store(b, Relaxed);
    ordered(area, GUESTS | COUNTING);
    assert_eq!(
        run(area, 300),
        [vec![a, b, c, back], vec![front, a, b, c, back], vec![a, front, b, back, c], vec![a, b, c]]
    );
    assert_eq!(area.counting.done.load(Relaxed), area.orders.order());
    assert!(area.samples(count::row::STAY).iter().all(|sample| sample.load(Relaxed) == 100));
    let page = area.region().page();
    assert_eq!(page.absences[runtime_abi::control::bucket(100)].load(Relaxed), count::SAMPLES as u64);
}

#[test]
fn a_hook_in_the_midst_of_counting_loses_nobody() {
    let (area, guests) = three();
    ordered(area, GUESTS | COUNTING);
    run(area, 3);
    ring::hook(area);
    // Hooked, and a stage ends.
    run(area, 100);
    ring::control(area);
    assert!(order(area).len() > guests.len(), "still counting");
    ordered(area, GUESTS);
    assert_eq!(order(area), pointers(&guests));
}

#[test]
fn a_guest_that_leaves_while_it_is_timed_is_no_trouble() {
    let (area, guests) = three();
    area.orders.for_test().suspect.store(guests[1].pointer(), Relaxed);
    ordered(area, GUESTS | COUNTING);
    run(area, 140);
    assert_eq!(order(area)[1], area.front().pointer());
    ring::take_out(area, guests[1]);
    ordered(area, GUESTS);
    assert_eq!(order(area), pointers(&[guests[0], guests[2]]));
}

#[test]
fn guests_leave_from_aside_in_any_order() {
    for leaves in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        for what in [ALONE, ALONE | COUNTING] {
            let (area, guests) = three();
            ordered(area, what);
            let met = order(area);
            let mut left = pointers(&guests);
            for leave in leaves {
                let next = guests[leave].next.load(Relaxed);
                assert_eq!(ring::take_out(area, guests[leave]), next);
                left.retain(|guest| *guest != guests[leave].pointer());
                assert_eq!((aside(area), order(area)), (left.clone(), met.clone()), "{leaves:?} {what}");
            }
            board(area, guests[0], ring::modes());
            ordered(area, GUESTS);
            assert_eq!(order(area), pointers(&[guests[0]]));
        }
    }
}

/// The guests that are aside, in their order.
fn aside(area: &Area) -> Vec<*mut Context> {
    let (mut at, mut found) = (area.thread.aside.load(Relaxed), Vec::new());
    while !at.is_null() && at != area.own().pointer() {
        found.push(at);
        // SAFETY: contexts of the region.
        at = unsafe { &*at }.next.load(Relaxed);
    }
    found
}

#[test]
fn nobody_is_met_any_more_by_a_thread_that_is_being_cancelled() {
    let (area, guests) = three();
    ordered(area, GUESTS | COUNTING);
    assert!(order(area).len() > guests.len());
    area.closed.store(closed::CANCELLED, Relaxed);
    ring::hook(area);
    ring::control(area);
    assert_eq!((order(area), ring::is_hooked(area)), (vec![], false));
    assert!(guests.iter().all(|guest| guest.why.load(Relaxed) == trip::ENDED as u32));
}

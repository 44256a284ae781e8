//! A primary's thread lends its processor to scavengers at home, and pays by the credit of lost
//! time that `--max-slowdown` gives (`supervisor::slowdown`).
//!
//! Homes run under `SCHED_IDLE`: beside a primary that never sleeps they get three thousandths of a
//! processor. So the thread sleeps for them, for a moment, which needs no privilege and ends by
//! itself:
//!
//! - for a *visit*: a guest comes to a leave (a system call, code without a twin) or faults, and
//!   its home thread does what it left for, goes on to its first yield there, parks, and wakes the
//!   lender, which takes the guest into its ring again. No supervisor takes part, so this is a
//!   matter of microseconds. A guest that is not back in time stays at home, as after any leave.
//! - for a *slice*, as the supervisor orders it, where homes have work and get no processor.
//!
//! ```text
//!   lender (primary's thread)              home thread
//!   out of the ring, hook home
//!   state = VISITING, wake home   ───────► what it left for; first yield: saved
//!   sleeps                        ◄─────── VISITING → RETURNED, wake lender; sleeps
//!   RETURNED: into the ring, ABOARD
//!   too late: VISITING → LEAVING           finds that at its yield, and goes on at home
//! ```

use crate::layout::area::Area;
use crate::layout::context::{Context, state};
use crate::switching::links;
use crate::switching::loan_words::{BESIDES_NS, LONG_SLICE_NS, SLICE_NS};
use crate::sys;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use runtime_abi::control::trip;

/// What a visit costs at least, by the switches of threads alone: with less credit none is begun.
const VISIT_LEAST_NS: i64 = 20_000;
/// A guest that was late `n` times in a row is not lent to for the next 2^n leaves, up to this `n`.
const MOST_LATE: u32 = 8;

/// A guest was taken out of the ring, since it has something to do at home (`why`): lends it the
/// processor, if that may be done. Only where there was no visit is it still the thread's, to be
/// dismissed.
pub(crate) fn visit(area: &'static Area, guest: &'static Context, why: usize) -> VisitEnd {
    let home = guest.home();
    if !may_visit(area, guest) || is_often_late(home) {
        return VisitEnd::None;
    }
    links::hook(home); // it parks at its first yield
    guest.why.store(why as u32, Relaxed);
    let begin = sys::now_ns();
    area.loans().lending.store(1, Release);
    guest.state.store(state::VISITING, SeqCst);
    sys::futex_wake(&guest.state);
    loop {
        let spent = sys::now_ns().saturating_sub(begin);
        let over = spent >= SLICE_NS || area.switching.deferred.load(Acquire) != 0;
        if over || guest.state.load(Acquire) != state::VISITING {
            break;
        }
        sleep(area, &guest.state, state::VISITING, SLICE_NS - spent);
    }
    let late = guest.state.compare_exchange(state::VISITING, state::LEAVING, AcqRel, Acquire).is_ok();
    let spent = pay(area, begin);
    let its = home.loans();
    if late {
        let times = (its.late.load(Relaxed) + 1).min(MOST_LATE);
        its.late.store(times, Relaxed);
        its.without.store(1 << times, Relaxed);
        return VisitEnd::Late;
    }
    its.late.store(0, Relaxed);
    its.visited.store(its.visited.load(Relaxed) + spent, Relaxed);
    its.visits.store(its.visits.load(Relaxed) + 1, Release);
    if guest.modes.load(Relaxed) != links::modes() {
        links::dismiss(guest, trip::MODES);
        return VisitEnd::Late;
    }
    links::append(area, guest);
    guest.state.store(state::ABOARD, Release);
    VisitEnd::Back
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitEnd {
    /// There was none.
    None,
    /// The guest is in the ring again.
    Back,
    /// It is the supervisor's.
    Late,
}

/// The thread may sleep for others now: nothing is counted, which its sleep would spoil, there is
/// credit, and it may make system calls.
fn may_lend(area: &Area) -> bool {
    area.closed.load(Relaxed) == 0
        && area.switching.deferred.load(Relaxed) == 0
        && !area.counting.is_under_way()
        && area.region().sandboxed.load(Acquire) == 0
        && area.loans().allowance.load(Relaxed) >= VISIT_LEAST_NS
}

/// A guest may be lent to now, unless it was late too often.
fn may_visit(area: &Area, guest: &Context) -> bool {
    may_lend(area) && guest.recall.load(Relaxed) == 0
}

fn is_often_late(home: &Area) -> bool {
    let without = home.loans().without.load(Relaxed);
    home.loans().without.store(without.saturating_sub(1), Relaxed);
    without > 0
}

/// Sleeps as long as the word has that value, for so long at most.
fn sleep(area: &Area, word: &AtomicU32, value: u32, nanoseconds: u64) {
    if sys::futex_wait_for(word, value, nanoseconds) {
        let slept = &area.loans().slept;
        slept.store(slept.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The loan is over: what it took is counted, and charged by the supervisor.
fn pay(area: &Area, begin: u64) -> u64 {
    let spent = sys::now_ns().saturating_sub(begin);
    let loans = area.loans();
    loans.allowance.fetch_sub((spent + BESIDES_NS) as i64, Relaxed);
    loans.lent.store(loans.lent.load(Relaxed) + spent, Relaxed);
    loans.times.store(loans.times.load(Relaxed).wrapping_add(1), Relaxed);
    loans.lending.store(0, Release);
    spent
}

/// The thread is in the control context, and its ring in order: sleeps as long as was ordered, or
/// until a home parks.
pub(crate) fn slice(area: &Area) {
    let ordered = area.loans().slice.swap(0, Relaxed).min(LONG_SLICE_NS);
    if ordered == 0 || !may_lend(area) {
        return;
    }
    let region = area.region();
    let (begin, parked) = (sys::now_ns(), region.parked.load(Acquire));
    region.lenders.fetch_add(1, SeqCst);
    area.loans().lending.store(1, Release);
    sleep(area, &region.parked, parked, ordered);
    region.lenders.fetch_sub(1, SeqCst);
    pay(area, begin);
}

/// A home's thread has parked: nobody sleeps for it any more.
pub(crate) fn has_parked(area: &Area) {
    let region = area.region();
    region.ring_bell(); // it is to be boarded at once
    region.parked.fetch_add(1, SeqCst);
    if region.lenders.load(SeqCst) != 0 {
        sys::futex_wake(&region.parked);
    }
}

/// What a home's thread finds where it comes to park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// It is on no visit.
    None,
    /// Its lender has it again, and is awake.
    Returned,
    /// Its lender did not wait any longer: it stays at home.
    Late,
}

/// A home's thread came to its first yield, the own context saved.
pub(crate) fn end_visit(area: &Area) -> Visitor {
    let own = area.own();
    match own.state.load(Acquire) {
        state::VISITING | state::LEAVING => {}
        _ => return Visitor::None,
    }
    links::unhook(area);
    own.modes.store(links::modes(), Relaxed);
    if own.state.compare_exchange(state::VISITING, state::RETURNED, AcqRel, Acquire).is_err() {
        return Visitor::Late;
    }
    sys::futex_wake(&own.state);
    Visitor::Returned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring_tests::world;
    use core::sync::atomic::AtomicBool;

    /// A guest aboard an area whose thread has credit.
    fn aboard() -> (&'static Area, &'static Context) {
        let (area, guests) = world(1);
        let guest = guests[0];
        area.loans().allowance.store(1_000_000_000, Relaxed);
        area.orders.for_test().order.store(0, Relaxed);
        guest.state.store(state::ABOARD, Relaxed);
        guest.modes.store(links::modes(), Relaxed);
        (area, guest)
    }

    #[test]
    fn a_guest_back_in_time_is_in_the_ring_again() {
        let (area, guest) = aboard();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Acquire) {
                    if guest.state.load(Acquire) == state::VISITING {
                        assert_eq!(end_visit(guest.home()), Visitor::Returned);
                    }
                    std::thread::yield_now();
                }
            });
            // On a busy machine the other thread may be late for long.
            let mut back = 0;
            for round in 0..1_000_000 {
                if links::holds(area, guest.pointer()) {
                    links::take_out(area, guest);
                }
                let end = visit(area, guest, trip::LEAVE);
                if end == VisitEnd::Late {
                    guest.state.store(state::ABOARD, Release);
                }
                assert_eq!(links::holds(area, guest.pointer()), end == VisitEnd::Back);
                back += u32::from(end == VisitEnd::Back);
                if round >= 200 && back > 0 {
                    break;
                }
            }
            over.store(true, Release);
            assert!(back > 0);
        });
        assert!(area.loans().lent.load(Relaxed) > 0 && area.loans().lending.load(Relaxed) == 0);
    }

    #[test]
    fn a_late_guest_is_the_supervisors_and_the_next_leaves_do_not_wait() {
        let (area, guest) = aboard();
        assert_eq!(visit(area, guest, trip::LEAVE), VisitEnd::Late);
        assert_eq!(guest.state.load(Relaxed), state::LEAVING);
        assert!(area.loans().lent.load(Relaxed) >= SLICE_NS);
        assert_eq!(end_visit(guest.home()), Visitor::Late);
        guest.state.store(state::ABOARD, Relaxed);
        assert_eq!([visit(area, guest, trip::LEAVE), visit(area, guest, trip::LEAVE)], [VisitEnd::None; 2]);
        assert_eq!(visit(area, guest, trip::LEAVE), VisitEnd::Late);
    }

    #[test]
    fn nothing_is_lent_without_credit_or_while_something_is_counted() {
        let (area, guest) = aboard();
        area.loans().allowance.store(VISIT_LEAST_NS - 1, Relaxed);
        assert_eq!(visit(area, guest, trip::LEAVE), VisitEnd::None);
        area.loans().slice.store(SLICE_NS, Relaxed);
        slice(area);
        assert_eq!((area.loans().slice.load(Relaxed), area.loans().lent.load(Relaxed)), (0, 0));
    }

    #[test]
    fn a_slice_is_as_long_as_there_is_credit_for() {
        let (area, _) = aboard();
        let loans = area.loans();
        let ordered = |credit: u64, shortest: u64| {
            loans.allowance.store(credit as i64, Relaxed);
            (loans.order_slice(shortest, LONG_SLICE_NS), loans.slice.swap(0, Relaxed))
        };
        assert_eq!(ordered(SLICE_NS - 1, SLICE_NS), (None, 0));
        assert_eq!(ordered(3 * SLICE_NS, LONG_SLICE_NS), (None, 0));
        assert_eq!(ordered(3 * SLICE_NS, SLICE_NS), (Some(3 * SLICE_NS), 3 * SLICE_NS));
        assert_eq!(ordered(3 * LONG_SLICE_NS, SLICE_NS), (Some(LONG_SLICE_NS), LONG_SLICE_NS));
        loans.lending.store(1, Relaxed);
        assert_eq!(ordered(LONG_SLICE_NS, SLICE_NS), (None, 0), "it lends already");
    }
}

//! What siblings do when the supervisor was killed: nothing seats or fetches them any more, so each
//! that is away fetches itself home, and then all go on at home.
//!
//! The launcher says so in the control page; a program may have forbidden itself the system call
//! that would tell. Home threads wake now and then to look. A host that comes to yields lets its
//! guest go when it is hooked. From one that stays outside of its twins, or in a handler, guests
//! are taken as the supervisor would take them, under its lock, also where the supervisor died with
//! the lock in its hands.

use crate::layout::area::{Area, kind, lock};
use crate::layout::context::{Context, state};
use crate::switching::links;
use crate::sys;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// Between two polls of whether there is a supervisor.
const POLL_SUPERVISOR_NS: u64 = 100_000_000;
/// Without a supervisor: between two attempts to fetch the own context.
const POLL_FETCH_NS: u64 = 1_000_000;

/// Sleeps until the calling thread's context is home, and fetches it where the supervisor is lost.
pub(crate) fn wait(area: &'static Area) {
    let own = area.own();
    let gone = || area.region().page().supervisor_lost.load(Acquire) != 0;
    loop {
        let now = own.state.load(Acquire);
        if now == state::HOME || gone() && fetch(area, now) {
            return;
        }
        let poll = if gone() { POLL_FETCH_NS } else { POLL_SUPERVISOR_NS };
        sys::futex_wait_for(&own.state, now, poll);
    }
}

/// Whether the context is at home now.
fn fetch(area: &'static Area, now: u32) -> bool {
    let own = area.own();
    match now {
        // No other thread changes these.
        state::PARKED | state::LEAVING => {
            own.recall.store(0, Relaxed);
            own.state.store(state::HOME, Release);
            return true;
        }
        _ => {}
    }
    // SAFETY: areas are never unmapped.
    if let Some(host) = unsafe { own.host.load(Relaxed).as_ref() } {
        own.recall.store(trip::FREE as u32, Relaxed);
        links::hook(host);
        take_guests(host);
    }
    false
}

/// Takes the guests of a host that does not run them: while its lock is held it comes to the
/// control context before it runs one, and finds none there. Contexts that were offered and never
/// joined its ring are taken whatever it does: it may have gone to sleep when they were offered,
/// without saying that it is outside.
fn take_guests(host: &'static Area) {
    let locked = |from| host.lock.compare_exchange(from, lock::SIBLING, AcqRel, Relaxed).is_ok();
    let supervisors = locked(lock::SUPERVISOR);
    if !supervisors && !locked(lock::FREE) {
        return;
    }
    let cur = host.twin.cur.load(Acquire);
    let outside = host.thread.outside.load(Acquire) != 0;
    let in_handler = cur == host.quiet().pointer() && host.signals.has_free_hands();
    let alone = links::is_hooked(host) && (outside || in_handler && host.twin.cur.load(Acquire) == cur);
    host.inbox.store(null_mut(), Relaxed);
    if alone {
        host.own().prev.store(host.own().pointer(), Relaxed);
        links::abandon(host);
    }
    let region = host.region();
    for slot in (0..region.slots()).filter(|slot| region.tid(*slot) != 0) {
        let guest = region.area(slot);
        if guest.kind.load(Acquire) == kind::PRIMARY && is_with(guest.own(), host) {
            let in_ring = guest.own().link.load(Relaxed) == guest.own().pointer();
            if alone || !in_ring {
                links::alone(guest.own());
                guest.own().state.store(state::PARKED, Release);
                sys::futex_wake(&guest.own().state);
            }
        }
    }
    // A ring that the supervisor had begun to take apart may not be walked: the thread goes on
    // alone, and says so.
    let taken_apart = supervisors && !alone;
    host.lock.store(if taken_apart { lock::SUPERVISOR } else { lock::FREE }, Release);
}

fn is_with(guest: &Context, host: &Area) -> bool {
    guest.state.load(Acquire) == state::ABOARD && core::ptr::eq(guest.host.load(Relaxed), host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::region::AreaPurpose;
    use crate::switching::ring;
    use crate::switching::ring_tests::{board, world};

    /// Threads of one program, whose supervisor was killed.
    fn siblings(count: usize) -> Vec<&'static Area> {
        let (area, _) = world(0);
        area.region().siblings.store(1, Relaxed);
        area.region().page().supervisor_lost.store(1, Relaxed);
        let purpose = AreaPurpose { kind: kind::PRIMARY, primary: true, row: 0, pid: 1, tid: 1, fs: 0 };
        (0..count).map(|_| area.region().claim(&purpose).expect("an area")).collect()
    }

    /// As the supervisor begins to.
    fn begin_to_board(host: &'static Area, guest: &'static Area) {
        let own = guest.own();
        own.host.store(core::ptr::from_ref(host).cast_mut(), Relaxed);
        own.link.store(null_mut(), Relaxed);
        own.state.store(state::ABOARD, Relaxed);
    }

    /// As a guest's thread does every now and then.
    fn is_home_after(looks: usize, guest: &'static Area) -> bool {
        (0..looks).any(|_| fetch(guest, guest.own().state.load(Relaxed)))
    }

    #[test]
    fn a_guest_offered_to_a_thread_that_went_to_sleep_fetches_itself() {
        let threads = siblings(2);
        begin_to_board(threads[0], threads[1]);
        board(threads[0], threads[1].own(), ring::modes());
        assert!(is_home_after(2, threads[1]));
        assert!(threads[0].inbox.load(Relaxed).is_null());
        assert_eq!(ring::control(threads[0]), threads[0].own().pointer());
    }

    #[test]
    fn a_guest_that_was_not_offered_yet_fetches_itself_too() {
        let threads = siblings(3);
        begin_to_board(threads[0], threads[1]);
        board(threads[0], threads[1].own(), ring::modes());
        assert_eq!(ring::control(threads[0]), threads[1].own().pointer());
        begin_to_board(threads[0], threads[2]);
        assert!(is_home_after(2, threads[2]));
        assert!(ring::holds(threads[0], threads[1].own().pointer()), "the other one may be running");
    }

    #[test]
    fn a_thread_that_runs_its_guest_lets_it_go_at_its_next_yield() {
        let threads = siblings(2);
        begin_to_board(threads[0], threads[1]);
        board(threads[0], threads[1].own(), ring::modes());
        ring::control(threads[0]);
        assert!(!is_home_after(3, threads[1]));
        assert_eq!(ring::control(threads[0]), threads[0].own().pointer());
        assert!(is_home_after(1, threads[1]));
    }

    #[test]
    fn nobody_walks_a_ring_that_the_supervisor_had_begun_to_take_apart() {
        let threads = siblings(3);
        for guest in &threads[1..] {
            begin_to_board(threads[0], guest);
            board(threads[0], guest.own(), ring::modes());
        }
        ring::control(threads[0]);
        ring::hook(threads[0]);
        threads[0].lock.store(lock::SUPERVISOR, Relaxed);
        for guest in &threads[1..] {
            guest.own().next.store(guest.own().pointer(), Relaxed);
        }
        assert!(!is_home_after(3, threads[1]), "the thread may be about to run it");
        assert_eq!(ring::control(threads[0]), threads[0].own().pointer());
        assert!(threads[1..].iter().all(|guest| is_home_after(2, guest)));
        assert_eq!(ring::control(threads[0]), threads[0].own().pointer());
        assert_eq!(threads[0].lock.load(Relaxed), lock::FREE);
    }
}

//! Threads that may be cancelled at any moment, and not only where they wait. Libc's signal for
//! that is handled on whatever stack the thread has, and unwinds it. So such threads are no guests
//! as long as that lasts.
//!
//! A primary's thread has guests until it is cancelled: servers say for their threads that they may
//! be cancelled anywhere, so that what is left of a crash can be told in peace. `pthread_cancel`
//! waits until they are gone, however long one of them runs there, unless there is no supervisor
//! any more. Nothing else of cancellation needs us: it happens inside system calls, where a thread
//! is its own.

use crate::interpose::mine::mine;
use crate::interpose::next::Next;
use crate::layout::area::{Area, closed, kind, lock, settled};
use crate::layout::region::Region;
use crate::switching::ring;
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use core::sync::atomic::fence;

const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;
const DEFERRED: i32 = 0;
const ASYNCHRONOUS: i32 = 1;
/// How long a thread is waited for that keeps its guests, but runs none: it is not at a yield, and
/// does not come to one.
const WAIT_MOST_NS: u64 = 2_000_000_000;
const POLL_NS: u64 = 50_000;

/// Goes on to libc's by a jump: libc may unwind its caller at once, and knows no frame of ours.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn pthread_setcanceltype(wanted: i32, before: *mut i32) -> i32 {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {prepare}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: mov eax, {EINVAL}",
        "ret",
        prepare = sym prepare, EINVAL = const EINVAL,
    )
}

/// Likewise: a thread that cancels itself is unwound at once.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn pthread_cancel(thread: usize) -> i32 {
    core::arch::naked_asm!(
        "push rdi",
        "call {prepare}",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: mov eax, {ENOSYS}",
        "ret",
        prepare = sym cancels, ENOSYS = const ENOSYS,
    )
}

/// A thread is about to be cancelled. Returns libc's function.
#[cfg(freestanding)]
extern "C" fn cancels(thread: u64) -> usize {
    static NEXT: Next = Next::new(c"pthread_cancel");
    // A thread that cancels itself is at home. A thread that has its creator's area may cancel the
    // creator.
    if let Some(area) = mine().filter(|_| thread != crate::switching::gs::thread_pointer()) {
        // A scavenger's thread is cancelled at home only.
        let region = area.region();
        if area.is_primarys() && sys::getpid() == region.primary.load(Relaxed) {
            leave_alone(region, thread, &mut CancelDeadline::default());
        }
    }
    NEXT.address()
}

/// The time limit of a wait, from its beginning on.
#[derive(Default)]
struct CancelDeadline {
    until: u64,
}

impl CancelDeadline {
    /// A moment later; whether there is time left.
    fn nap(&mut self, region: &Region) -> bool {
        let now = sys::now_ns();
        if self.until == 0 {
            self.until = now + WAIT_MOST_NS;
            region.ring_bell();
        }
        // Not by sleeping, which a scavenger may have forbidden itself: this it needs anyway.
        sys::futex_wait_for(&region.round, region.round.load(Relaxed), POLL_NS);
        now < self.until
    }
}

/// A round of the supervisor's that began before something was said: in the next one it knows.
struct SupervisorRound<'r>(&'r Region, u32);

impl<'r> SupervisorRound<'r> {
    /// The one it is in, if it is.
    fn of(region: &'r Region) -> Self {
        fence(SeqCst);
        Self(region, region.round.load(SeqCst))
    }

    fn is_over(&self) -> bool {
        let Self(region, round) = *self;
        round % 2 == 0
            || region.round.load(SeqCst) != round
            || region.page().supervisor_lost.load(Acquire) != 0
    }

    fn wait(&self, patience: &mut CancelDeadline) {
        while !self.is_over() && patience.nap(self.0) {}
    }
}

/// Guests of a thread that is to be cancelled go home, if that may happen at any moment.
fn leave_alone(region: &'static Region, thread: u64, patience: &mut CancelDeadline) {
    let areas = || (0..region.slots()).filter(|slot| region.tid(*slot) != 0).map(|slot| region.area(slot));
    // It may be about to begin: then it is not known yet whose area is its.
    let begins = |area: &Area| {
        area.kind.load(Acquire) == kind::CLAIMED
            && area.is_primarys()
            && area.thread.start[0].load(Relaxed) != 0
    };
    while areas().any(begins) && region.has_supervisor() && patience.nap(region) {}
    // Every libc calls a thread by where its storage is. Threads that ended a moment ago may have
    // had the same.
    let wanted =
        |area: &&Area| area.kind.load(Acquire) == kind::PRIMARY && area.own().fs.load(Relaxed) == thread;
    for area in areas().filter(wanted) {
        area.closed.fetch_or(closed::CANCELLED, SeqCst);
        fence(SeqCst);
        // Either this is seen here, or the other there.
        if area.settled.load(SeqCst) & settled::CANCELLABLE != 0 {
            wait_for_guests(area, patience);
        }
    }
}

/// Returns libc's function. No code with sites runs until that has done what is asked for, so the
/// order does not matter.
extern "C" fn prepare(wanted: i32) -> usize {
    static NEXT: Next = Next::new(c"pthread_setcanceltype");
    if let Some(area) = mine() {
        let primary = area.kind.load(Relaxed) == kind::PRIMARY;
        match wanted {
            ASYNCHRONOUS => {
                area.settled.fetch_or(settled::CANCELLABLE, SeqCst);
                fence(SeqCst);
                let cancelled = area.closed.load(SeqCst) & closed::CANCELLED != 0;
                if !primary {
                    stays(area);
                } else if cancelled {
                    alone(area);
                }
            }
            DEFERRED => {
                area.settled.fetch_and(!settled::CANCELLABLE, AcqRel);
                if primary {
                    area.closed.fetch_and(!closed::CANCELLABLE, AcqRel);
                }
            }
            _ => {}
        }
    }
    NEXT.address()
}

/// A scavenger's thread is asked no more to be parked.
fn stays(area: &'static Area) {
    SupervisorRound::of(area.region()).wait(&mut CancelDeadline::default());
    ring::unhook(area);
}

/// The calling thread's guests go home, and then it comes to the runtime no more, where it would be
/// unwound just as badly.
fn alone(area: &'static Area) {
    if area.closed.fetch_or(closed::CANCELLABLE, SeqCst) & closed::CANCELLABLE != 0 {
        return;
    }
    let region = area.region();
    // A forked child has no supervisor.
    let mut patience = (sys::getpid() == region.primary.load(Relaxed)).then(CancelDeadline::default);
    // It may be giving it one more.
    if let Some(patience) = &mut patience {
        SupervisorRound::of(region).wait(patience);
    }
    super::forks::close(area, closed::CANCELLABLE);
    if let Some(patience) = &mut patience {
        wait_for_guests(area, patience);
    }
}

/// Until a thread that takes no more guests has none, and comes to the runtime no more.
fn wait_for_guests(area: &'static Area, patience: &mut CancelDeadline) {
    let region = area.region();
    let (slot, tid) = (region.slot_of(area), area.tid.load(Relaxed));
    let is_gone = || region.tid(slot) != tid || sys::tgkill(area.pid.load(Relaxed), tid, 0) == sys::ESRCH;
    let mut until = |done: &dyn Fn() -> bool| {
        loop {
            if done() {
                return true;
            }
            let in_time = patience.nap(region);
            let there = region.has_supervisor();
            // Hooked, it meets no guest before it has come to the runtime. One that sleeps does not
            // come, and without a supervisor they are not taken from it.
            let keeps = is_at_home(area) && (!in_time || !there);
            if keeps || !in_time && !there || is_gone() {
                return false;
            }
        }
    };
    let round = SupervisorRound::of(region);
    let is_free = || {
        if !ring::is_empty(area) {
            ring::hook(area);
        }
        round.is_over() && is_alone(area)
    };
    if !until(&is_free) {
        return;
    }
    // The supervisor may be hooking it, for it had guests a moment ago; and it may be on its way
    // there.
    let round = SupervisorRound::of(region);
    until(&|| round.is_over());
    while ring::unhook(area) {
        let (asked, came) = (sys::now_ns(), area.thread.control_entries.load(Acquire));
        until(&|| {
            (sys::now_ns() > asked + POLL_NS || area.thread.control_entries.load(Acquire) != came)
                && is_alone(area)
        });
    }
}

/// Whether a thread runs its own code.
fn is_at_home(area: &Area) -> bool {
    let cur = area.twin.cur.load(Acquire);
    cur == area.own().pointer() || cur == area.quiet().pointer()
}

/// The same, and it meets no context, as long as no guest is given to it.
fn is_alone(area: &Area) -> bool {
    let entries = area.thread.control_entries.load(Acquire);
    let free = || area.lock.load(Acquire) == lock::FREE;
    // In this order: a guest that takes itself out of the ring runs until it is out.
    free()
        && ring::is_empty(area)
        && is_at_home(area)
        && free()
        && area.thread.control_entries.load(Acquire) == entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::context::{Context, state};
    use crate::switching::ring_tests::{board, world};
    use runtime_abi::control::stage;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// A thread that may be cancelled anywhere, with `guests` in its ring. Its supervisor lives,
    /// and naps.
    fn thread(guests: usize) -> (&'static Area, Vec<&'static Context>) {
        let (area, guests) = world(guests);
        for guest in &guests {
            board(area, guest, ring::modes());
        }
        ring::control(area);
        area.settled.store(settled::CANCELLABLE, Relaxed);
        area.own().fs.store(77, Relaxed);
        // A process that lives, be it another one.
        area.pid.store(1, Relaxed);
        area.region().supervisor.store(sys::getpid(), Relaxed);
        area.region().round.store(2, Relaxed);
        (area, guests)
    }

    /// A thread that is about to cancel it; ends when that may be. `out_of_time`: has waited for
    /// long.
    fn canceller(area: &'static Area, out_of_time: bool) -> std::thread::JoinHandle<CancelDeadline> {
        let mut patience = CancelDeadline { until: u64::from(out_of_time) };
        std::thread::spawn(move || {
            leave_alone(area.region(), 77, &mut patience);
            patience
        })
    }

    /// Whether it still waits some naps later. It could be slow to begin: what is found is then
    /// found in vain, not wrongly.
    fn waits(canceller: &std::thread::JoinHandle<CancelDeadline>) -> bool {
        std::thread::sleep(Duration::from_millis(20));
        !canceller.is_finished()
    }

    #[test]
    fn where_nobody_is_about_nobody_is_waited_for() {
        let (area, _) = thread(0);
        let patience = canceller(area, false).join().expect("an end");
        assert_eq!(patience.until, 0, "it never napped");
        assert_ne!(area.closed.load(Relaxed) & closed::CANCELLED, 0);
    }

    #[test]
    fn a_guest_that_runs_is_waited_for_however_long_that_takes() {
        let (area, guests) = thread(1);
        area.twin.cur.store(guests[0].pointer(), Relaxed);
        let canceller = canceller(area, true);
        assert!(waits(&canceller));
        // It comes to its yield, and its host to the next.
        assert!(ring::is_hooked(area), "no supervisor is needed for that");
        area.twin.cur.store(area.control().pointer(), Relaxed);
        let next = ring::control(area);
        area.twin.cur.store(next, Relaxed);
        canceller.join().expect("an end");
        assert_eq!(guests[0].state.load(Relaxed), state::LEAVING);
        assert!(!ring::is_hooked(area) && next == area.own().pointer());
    }

    #[test]
    fn a_thread_without_yields_is_waited_for_for_a_time_only() {
        let (area, _) = thread(1);
        canceller(area, true).join().expect("an end");
        assert!(ring::is_hooked(area), "if it comes to one it meets no guest");
    }

    #[test]
    fn a_guest_that_is_being_given_to_it_is_waited_for() {
        let (area, guests) = thread(0);
        area.region().round.store(3, Relaxed);
        let canceller = canceller(area, false);
        assert!(waits(&canceller));
        // The supervisor's round had begun before.
        let home = area.region().claim(&crate::layout::region::AreaPurpose {
            kind: kind::HOME,
            primary: false,
            row: 0,
            pid: 1,
            tid: 1,
            fs: 0,
        });
        let guest = home.expect("an area").own();
        board(area, guest, ring::modes());
        area.region().round.store(4, Relaxed);
        assert!(waits(&canceller) && guests.is_empty());
        ring::control(area);
        canceller.join().expect("an end");
        assert_eq!(guest.state.load(Relaxed), state::LEAVING);
    }

    #[test]
    fn a_thread_hooked_meanwhile_is_unhooked() {
        let (area, _) = thread(0);
        ring::hook(area);
        canceller(area, false).join().expect("an end");
        assert!(!ring::is_hooked(area));
    }

    #[test]
    fn without_a_supervisor_a_sleeping_thread_is_not_waited_for() {
        for lost in [true, false] {
            let (area, guests) = thread(2);
            area.region().round.store(5, Relaxed); // it was killed in the midst of one
            if lost {
                area.region().page().supervisor_lost.store(1, Relaxed);
            } else {
                area.region().page().stage.store(stage::ALL_HOME, Relaxed);
            }
            let (done, ended) = channel();
            std::thread::spawn(move || {
                leave_alone(area.region(), 77, &mut CancelDeadline { until: u64::MAX });
                let _ = done.send(());
            });
            ended.recv_timeout(Duration::from_secs(60)).expect("an end");
            assert!(ring::is_hooked(area));
            assert_eq!(guests[0].state.load(Relaxed), state::ABOARD);
        }
    }

    #[test]
    fn a_thread_that_begins_is_waited_for_and_one_that_only_has_a_handler_is_not() {
        let (area, _) = thread(0);
        let purpose = crate::layout::region::AreaPurpose {
            kind: kind::CLAIMED,
            primary: true,
            row: 0,
            pid: 1,
            tid: crate::layout::region::TO_COME,
            fs: 0,
        };
        let other = area.region().claim(&purpose).expect("an area");
        assert_eq!(canceller(area, false).join().expect("an end").until, 0);
        other.thread.start[0].store(1, Relaxed);
        let canceller = canceller(area, false);
        assert!(waits(&canceller));
        area.region().adopt(other, 1, kind::PRIMARY);
        canceller.join().expect("an end");
    }
}

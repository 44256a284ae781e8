//! A scavenger's thread at home gives its context away and sleeps until it is back.

use crate::layout::area::{Area, settled};
use crate::layout::context::state;
use crate::signals::deliver::stack_at_home;
use crate::signals::entry::send_put_off;
use crate::switching::links;
use crate::switching::loans::{self, Visitor};
use crate::sys;
use core::arch::global_asm;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Entered from a yield at home by way of the supervisor's hook, on the slow stack; the own context
/// is saved, and signals are blocked: handlers would run beside the program, which is aboard, so
/// signals wait until it is fetched home for them. Returns the program's stack pointer: it goes on
/// there, and lets in what [`Area::parked_mask`] does.
pub(crate) extern "C" fn park(area: &'static Area) -> u64 {
    // A child that this process forked has a copy of the area, or (vfork) the area itself, and is
    // not the one to park.
    let mine = sys::getpid() == area.pid.load(Relaxed) && sys::gettid() == area.tid.load(Relaxed);
    let lent = area.thread.lent.load(Relaxed) != 0; // until its thread has it again
    if !mine && !lent {
        area.settled.fetch_or(settled::FOR_GOOD, Relaxed);
    }
    if lent || area.settled.load(Relaxed) != 0 {
        links::abandon(area);
    } else {
        let visitor = loans::end_visit(area);
        if visitor == Visitor::None && begins(area) {
            is_parked(area);
            loans::has_parked(area);
        } else if visitor != Visitor::Returned {
            return stack_at_home(area);
        }
        wait(area, area.thread.parked_mask.load(Relaxed));
        send_put_off(area);
    }
    stack_at_home(area)
}

/// Whether it is still wanted, and the supervisor knows that it parks: else the supervisor may end
/// before this thread sleeps.
fn begins(area: &Area) -> bool {
    let own = area.own();
    own.state.store(state::PARKING, Relaxed); // seen by a reader that sees the hook gone
    let wanted = links::unhook(area);
    if !wanted {
        own.state.store(state::HOME, Release);
    }
    wanted
}

/// From here on the context is the supervisor's.
fn is_parked(area: &Area) {
    let own = area.own();
    own.modes.store(links::modes(), Relaxed);
    own.state.store(state::PARKED, Release);
}

/// Sleeps until the context is home. Signals of the program's are let in, and say so to the
/// supervisor: it is fetched for the first one.
fn wait(area: &'static Area, mask: u64) {
    let own = area.own();
    loop {
        match own.state.load(Acquire) {
            state::HOME | state::VISITING => break,
            now if area.switching.deferred.load(Acquire) != 0 => sys::futex_wait(&own.state, now),
            now => {
                let (from, to) = sleep_ends();
                area.thread.sleeps[1].store(to, Relaxed);
                area.thread.sleeps[0].store(from, Release);
                sys::set_signal_mask(!(open_to(area) & !mask));
                // SAFETY: words of the area and its context, which are never unmapped.
                unsafe {
                    gleaner_sleep(
                        own.state.as_ptr(),
                        sys::FUTEX_WAIT,
                        now,
                        0,
                        area.switching.deferred.as_ptr(),
                    );
                };
                sys::set_signal_mask(u64::MAX);
                area.thread.sleeps[0].store(0, Release);
                if area.switching.deferred.load(Acquire) != 0 {
                    area.region().ring_bell();
                }
            }
        }
    }
}

/// Signals for which the kernel has our handler, of those that keep no order among themselves.
fn open_to(area: &Area) -> u64 {
    const ORDINARY: u64 = (1 << 31) - 1;
    // SAFETY: a static of the runtime's instance in its process, which stays; or none.
    let wrapped = unsafe { area.thread.wrapped.load(Acquire).as_ref() };
    wrapped.map_or(0, |wrapped| wrapped.load(Relaxed)) & ORDINARY
}

// Sleeps while a word is what it was, unless another one (in r8) is not zero. A handler that
// interrupts this and sets the other one puts RIP to its end.
global_asm!(
    ".globl gleaner_sleep",
    ".hidden gleaner_sleep",
    "gleaner_sleep:",
    "cmp dword ptr [r8], 0",
    "jne gleaner_sleep_end",
    "mov r10, rcx",
    "mov eax, {FUTEX}",
    "syscall",
    ".globl gleaner_sleep_end",
    ".hidden gleaner_sleep_end",
    "gleaner_sleep_end:",
    "ret",
    FUTEX = const sys::nr::FUTEX,
);

// SAFETY: the assembly above; the second is a label in it.
unsafe extern "C" {
    fn gleaner_sleep(word: *mut u32, operation: usize, value: u32, no_time: usize, awake: *mut u32);
    fn gleaner_sleep_end();
}

fn sleep_ends() -> (u64, u64) {
    (gleaner_sleep as *const () as u64, gleaner_sleep_end as *const () as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring;
    use crate::switching::ring_tests::world;
    use core::sync::atomic::AtomicBool;

    fn pause(turns: usize) {
        (0..turns).for_each(|_| core::hint::spin_loop());
    }

    /// A home's thread at its yields: parks where it is hooked, not at once. Whether it is at home
    /// in the end.
    fn home(area: &Area, over: &AtomicBool, slowness: usize) -> bool {
        let own = area.own();
        while !over.load(Acquire) {
            if own.next.load(Acquire) == own.pointer() {
                continue;
            }
            pause(slowness);
            if !begins(area) {
                continue;
            }
            pause(slowness);
            own.state.store(state::PARKED, Release);
            while own.state.load(Acquire) != state::HOME {
                if over.load(Acquire) {
                    return own.state.load(Acquire) == state::HOME;
                }
            }
        }
        true
    }

    /// The supervisor at the end: hooks, wants no context any more, and polls until none waits for
    /// it.
    fn supervisor(area: &Area, patience: usize) {
        ring::hook(area);
        pause(patience);
        loop {
            let now = area.own().state.load(Acquire);
            pause(patience % 64);
            match now {
                state::HOME if !ring::may_park(area) => return,
                state::PARKED => area.own().state.store(state::HOME, Release),
                _ => {}
            }
        }
    }

    #[test]
    fn nobody_parks_once_the_supervisor_waits_for_nobody() {
        let (_, homes) = world(1);
        for round in 0..2000 {
            let (area, over) = (homes[0].home(), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| home(area, &over, round % 7 * 10));
                (0..5).for_each(|_| supervisor(area, round % 100 * 10));
                pause(round % 50 * 100);
                over.store(true, Release);
                assert!(thread.join().expect("no panic"), "it sleeps, and nobody wakes it");
            });
        }
    }

    #[test]
    fn a_guest_recalled_a_moment_ago_goes_on_at_home() {
        let (_, homes) = world(1);
        let own = homes[0];
        ring::hook(own.home());
        assert!(ring::unhook(own.home()));
        assert!(!begins(own.home()));
        assert_eq!(own.state.load(Relaxed), state::HOME);
    }
}

//! A scavenger's thread at home gives its context away and sleeps until it is back.

use crate::area::{Area, Context, asked, settled, state};
use crate::signals::deliver::stack_at_home;
use crate::signals::entry::send_put_off;
use crate::{ring, stranded, sys};
use core::arch::global_asm;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Entered from a yield at home by way of the butler's hook, on the slow stack; the own context is saved. Returns it when it
/// is to go on here.
pub(crate) extern "C" fn park(area: &'static Area) -> *mut Context {
    let own = area.own();
    // A child that this process forked has a copy of the area, or (vfork) the area itself, and is not the one to park.
    let mine = sys::getpid() == area.pid.load(Relaxed) && sys::gettid() == area.tid.load(Relaxed);
    own.next.store(own.pointer(), Release);
    if area.lent.load(Relaxed) != 0 {
        return own.pointer(); // until its thread has it again
    }
    if !mine {
        area.settled.fetch_or(settled::FOR_GOOD, Relaxed);
    }
    if area.settled.load(Relaxed) != 0 {
        return own.pointer();
    }
    give_away(area, || true);
    own.pointer()
}

/// The same for a sibling, which comes by way of its ring's control context and has no guests. A signal that was put off on the way
/// is handled first.
pub(crate) fn sibling(area: &'static Area) -> *mut Context {
    let mine = sys::getpid() == area.pid.load(Relaxed) && sys::gettid() == area.tid.load(Relaxed);
    if mine && area.lent.load(Relaxed) == 0 && area.settled.load(Relaxed) == 0 {
        give_away(area, || area.deferred.load(Relaxed) == 0);
    }
    area.asked.store(asked::NOTHING, Release);
    area.own().pointer()
}

/// Sleeps while the context is elsewhere. `free` is asked once no signal can come any more.
fn give_away(area: &'static Area, free: impl FnOnce() -> bool) {
    let own = area.own();
    // Its handlers would run beside the program, which is elsewhere. They wait until it is fetched home for them.
    let mask = sys::set_signal_mask(u64::MAX);
    if free() {
        area.parked_mask.store(mask, Relaxed);
        own.modes.store(ring::modes(), Relaxed);
        own.state.store(state::PARKED, Release);
        if area.sibling.load(Relaxed) != 0 {
            stranded::wait(area);
        } else {
            wait(area, mask);
            send_put_off(area);
            return let_in(area, mask);
        }
    }
    sys::set_signal_mask(mask);
}

/// Signals are let in again: on the program's stack, since ours is small, and as if they came at its yield ([`Area::let_in`]).
fn let_in(area: &Area, mask: u64) {
    area.let_in.store(gleaner_let_in_end as *const () as u64, Relaxed);
    // SAFETY: the mask is read in the call; what lies below the program's stack pointer, and its red zone, which the kernel leaves alone, is
    // free for handlers.
    unsafe { gleaner_let_in(&raw const mask, stack_at_home(area)) };
}

/// Sleeps until the context is home. Signals of the program's are let in, and say so to the butler: it is fetched for the first one.
fn wait(area: &'static Area, mask: u64) {
    let own = area.own();
    loop {
        match own.state.load(Acquire) {
            state::HOME => break,
            now if area.deferred.load(Acquire) != 0 => sys::futex_wait(&own.state, now),
            now => {
                let (from, to) = sleep_ends();
                area.sleeps[1].store(to, Relaxed);
                area.sleeps[0].store(from, Release);
                sys::set_signal_mask(!(open_to(area) & !mask));
                // SAFETY: words of the area and its context, which are never unmapped.
                unsafe { gleaner_sleep(own.state.as_ptr(), sys::FUTEX_WAIT, now, 0, area.deferred.as_ptr()) };
                sys::set_signal_mask(u64::MAX);
                area.sleeps[0].store(0, Release);
                if area.deferred.load(Acquire) != 0 {
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
    let wrapped = unsafe { area.wrapped.load(Acquire).as_ref() };
    wrapped.map_or(0, |wrapped| wrapped.load(Relaxed)) & ORDINARY
}

// Sleeps while a word is what it was, unless another (in r8) is not zero. Whoever sets that, in a handler that interrupts this, puts
// RIP to its end.
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

// Sets the signal mask (its address in rdi) with the stack pointer in rsi. A handler that comes then returns to the program.
global_asm!(
    ".globl gleaner_let_in",
    ".hidden gleaner_let_in",
    "gleaner_let_in:",
    "push rbx",
    "mov rbx, rsp",
    "mov rsp, rsi",
    "mov rsi, rdi",
    "mov edi, {SIG_SETMASK}",
    "xor edx, edx",
    "mov r10d, 8",
    "mov eax, {SIGPROCMASK}",
    "syscall",
    ".globl gleaner_let_in_end",
    ".hidden gleaner_let_in_end",
    "gleaner_let_in_end:",
    "mov rsp, rbx",
    "pop rbx",
    "ret",
    SIG_SETMASK = const 2,
    SIGPROCMASK = const sys::nr::RT_SIGPROCMASK,
);

// SAFETY: the assembly above; the second is a label in it.
unsafe extern "C" {
    fn gleaner_sleep(word: *mut u32, operation: usize, value: u32, no_time: usize, awake: *mut u32);
    fn gleaner_sleep_end();
    fn gleaner_let_in(mask: *const u64, stack: u64);
    fn gleaner_let_in_end();
}

fn sleep_ends() -> (u64, u64) {
    (gleaner_sleep as *const () as u64, gleaner_sleep_end as *const () as u64)
}

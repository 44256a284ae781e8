//! The program's handlers of signals. One may interrupt a twin while it writes down an entry, and
//! twins of the handler use the same words. So each handler is called by ours, which keeps the
//! words.

use super::chunks;
use super::full::exchange;
use super::words::{self, CURSOR, FIRST, FULL, RETURN, SECOND};
use bare_calls::look_up;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const MOST: usize = 65;
const IGNORED: usize = 1;
const FAILED: usize = usize::MAX;

/// `struct sigaction` of libc.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

/// The program's handlers, by signal.
static HANDLERS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static BEHIND: AtomicUsize = AtomicUsize::new(0);

/// What signals with handlers come to.
///
/// # Safety
/// Called by the kernel alone, as a handler with information.
unsafe extern "C" fn entry(number: i32, information: usize, context: usize) {
    let kept = (words::read::<FIRST>(), words::read::<SECOND>(), words::read::<RETURN>());
    let handler = HANDLERS.get(number as usize).map_or(0, |handler| handler.load(Acquire));
    if handler > IGNORED {
        // SAFETY: the program gave it as the handler of this signal.
        unsafe {
            let handler: unsafe extern "C" fn(i32, usize, usize) = core::mem::transmute(handler);
            handler(number, information, context);
        }
    }
    // The entry that was interrupted has found space before: it must find some again.
    if words::read::<CURSOR>() % super::layout::CHUNK_BYTES == 0 {
        if words::read::<FULL>() != 0 {
            exchange();
        }
        if words::read::<CURSOR>() == 0 {
            words::write::<CURSOR>(chunks::nowhere());
        }
    }
    words::write::<FIRST>(kept.0);
    words::write::<SECOND>(kept.1);
    words::write::<RETURN>(kept.2);
}

/// # Safety
/// As libc's.
unsafe fn behind(number: i32, new: *const Action, old: *mut Action) -> i32 {
    let mut function = BEHIND.load(Relaxed);
    if function == 0 {
        function = look_up(c"sigaction") as usize;
        BEHIND.store(function, Relaxed);
    }
    if function == 0 {
        return -1;
    }
    // SAFETY: a function of that name has that type; the caller's arguments.
    unsafe {
        let function: unsafe extern "C" fn(i32, *const Action, *mut Action) -> i32 =
            core::mem::transmute(function);
        function(number, new, old)
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(number: i32, new: *const Action, old: *mut Action) -> i32 {
    let known = usize::try_from(number).ok().and_then(|number| HANDLERS.get(number));
    let Some(known) = known else {
        // SAFETY: as the program calls it.
        return unsafe { behind(number, new, old) };
    };
    // SAFETY: the program's pointers, as it calls libc with them.
    unsafe {
        let before = known.load(Acquire);
        let mut ours = new.as_ref().copied();
        if let Some(action) = ours.as_mut().filter(|action| action.handler > IGNORED) {
            known.store(action.handler, Release);
            action.handler = entry as *const () as usize;
        }
        let failed = behind(number, ours.as_ref().map_or(core::ptr::null(), core::ptr::from_ref), old);
        if failed != 0 {
            known.store(before, Release);
        } else if let Some(old) = old.as_mut().filter(|old| old.handler == entry as *const () as usize) {
            old.handler = before;
        }
        failed
    }
}

const SA_RESTART: i32 = 0x1000_0000;
const SA_ONCE: i32 = 0xc000_0000_u32 as i32; // SA_RESETHAND, SA_NODEFER

/// # Safety
/// As libc's `signal`.
unsafe fn set(number: i32, handler: usize, flags: i32) -> usize {
    let mut new = Action { handler, mask: [0; 16], flags, restorer: 0 };
    if flags == SA_RESTART && (1..=64).contains(&number) {
        new.mask[0] = 1 << (number - 1);
    }
    let mut old = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
    // SAFETY: two actions of ours.
    match unsafe { sigaction(number, &raw const new, &raw mut old) } {
        0 => old.handler,
        _ => FAILED,
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn signal(number: i32, handler: usize) -> usize {
    // SAFETY: the program's arguments.
    unsafe { set(number, handler, SA_RESTART) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn bsd_signal(number: i32, handler: usize) -> usize {
    // SAFETY: the program's arguments.
    unsafe { set(number, handler, SA_RESTART) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn sysv_signal(number: i32, handler: usize) -> usize {
    // SAFETY: the program's arguments.
    unsafe { set(number, handler, SA_ONCE) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn __sysv_signal(number: i32, handler: usize) -> usize {
    // SAFETY: the program's arguments.
    unsafe { set(number, handler, SA_ONCE) }
}

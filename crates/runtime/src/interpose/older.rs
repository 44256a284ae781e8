//! Handlers and masks by the interfaces of System V and BSD. Libc serves them by functions of its
//! own inside, so ours would not know of a handler: in a primary it would run in the midst of a
//! yield, and use the slots of what it interrupted.

use crate::interpose::handlers::{EINVAL, SIG_ERR, change_mask, current, is_programs, register, simple};
use crate::interpose::mine::mine_for_signals as mine;
use crate::interpose::next::{call_next, fail};
use crate::layout::area::kind;
use crate::signals::action::{IGNORE, SA_RESTART, bit, set_to_interrupt};
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;

const SIG_HOLD: usize = 2;
const SIG_BLOCK: i32 = 0;
const SIG_UNBLOCK: i32 = 1;
const SIG_SETMASK: i32 = 2;

/// Changes the mask, and returns what it was.
fn mask(how: i32, new: u64) -> u64 {
    let mut before = 0;
    // SAFETY: both are words of ours.
    if unsafe { change_mask(how, &raw const new, &raw mut before) }.is_some() {
        return before;
    }
    let at = [&raw const new as usize, &raw mut before as usize];
    // SAFETY: as above; as libc does it, which keeps its own signals out of it.
    unsafe { sys::syscall(sys::nr::RT_SIGPROCMASK, [how as usize, at[0], at[1], 8, 0, 0]) };
    before
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sigset(number: i32, handler: usize) -> usize {
    if mine().is_none() || !is_programs(number) || handler == SIG_ERR {
        return call_next!(c"sigset" as fn(i32, usize) -> usize, (number, handler), else SIG_ERR);
    }
    let set = bit(number);
    if handler == SIG_HOLD {
        let before = current(number).handler;
        return if mask(SIG_BLOCK, set) & set != 0 { SIG_HOLD } else { before };
    }
    match simple(number, handler, 0, 0) {
        SIG_ERR => SIG_ERR,
        _ if mask(SIG_UNBLOCK, set) & set != 0 => SIG_HOLD,
        before => before,
    }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sighold(number: i32) -> i32 {
    if mine().is_none() || !is_programs(number) {
        return call_next!(c"sighold" as fn(i32) -> i32, (number), else fail(EINVAL));
    }
    mask(SIG_BLOCK, bit(number));
    0
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sigrelse(number: i32) -> i32 {
    if mine().is_none() || !is_programs(number) {
        return call_next!(c"sigrelse" as fn(i32) -> i32, (number), else fail(EINVAL));
    }
    mask(SIG_UNBLOCK, bit(number));
    0
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sigignore(number: i32) -> i32 {
    if mine().is_none() || !is_programs(number) {
        return call_next!(c"sigignore" as fn(i32) -> i32, (number), else fail(EINVAL));
    }
    if simple(number, IGNORE, 0, 0) == SIG_ERR { -1 } else { 0 }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn siginterrupt(number: i32, interrupt: i32) -> i32 {
    let Some(area) = mine().filter(|_| is_programs(number)) else {
        return call_next!(c"siginterrupt" as fn(i32, i32) -> i32, (number, interrupt), else fail(EINVAL));
    };
    let mut action = current(number);
    action.flags = if interrupt != 0 { action.flags & !SA_RESTART } else { action.flags | SA_RESTART };
    set_to_interrupt(number, interrupt != 0);
    match register(area.kind.load(Relaxed), number, &action) {
        error if error > 0 => fail(error),
        _ => 0,
    }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn ssignal(number: i32, handler: usize) -> usize {
    super::handlers::signal(number, handler)
}

/// BSD's know the first 32 signals.
fn old_mask(how: i32, set: i32) -> i32 {
    mask(how, u64::from(set as u32)) as u32 as i32
}

/// In a primary. Elsewhere libc's own do as well.
fn is_in_primary() -> bool {
    mine().is_some_and(|area| area.kind.load(Relaxed) == kind::PRIMARY)
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sigblock(set: i32) -> i32 {
    if is_in_primary() {
        return old_mask(SIG_BLOCK, set);
    }
    call_next!(c"sigblock" as fn(i32) -> i32, (set), else fail(EINVAL))
}

/// What is beyond the first 32 is let in, as libc does it.
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sigsetmask(set: i32) -> i32 {
    if is_in_primary() {
        return old_mask(SIG_SETMASK, set);
    }
    call_next!(c"sigsetmask" as fn(i32) -> i32, (set), else fail(EINVAL))
}

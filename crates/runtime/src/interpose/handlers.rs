//! `sigaction` and its kin: the runtime keeps what the program asks for, and registers its own
//! handler.

use crate::interpose::mine::mine_for_signals as mine;
use crate::interpose::next::{call_next, fail};
use crate::layout::area::{Area, kind};
use crate::signals::action::{
    self, FAULT_MASK, FAULTS, IGNORE, SA_NOCLDSTOP, SA_NOCLDWAIT, SA_NODEFER, SA_ONSTACK, SA_RESETHAND,
    SA_RESTART, SA_RESTORER,
};
use crate::signals::entry::registration;
use crate::signals::frame::{SS_AUTODISARM, SS_DISABLE, SS_ONSTACK, SignalStack};
use crate::switching::labels;
use crate::sys::{self, SigAction};
use core::sync::atomic::Ordering::Relaxed;

const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
pub(super) const EINVAL: i32 = 22;
pub(super) const SIG_ERR: usize = usize::MAX;

/// `struct sigaction` as glibc and musl have it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LibcAction {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

/// Signals that the program has in its hands: not those that cannot be caught, and not libc's own.
pub(super) fn is_programs(signal: i32) -> bool {
    (1..=64).contains(&signal) && !matches!(signal, 9 | 19 | 32..=34)
}

/// Registers what the program wants; returns the kernel's error.
pub(super) fn register(area_kind: u32, signal: i32, wanted: &SigAction) -> i32 {
    let fault = FAULTS.contains(&signal) && area_kind == kind::PRIMARY;
    let wrapped = wanted.handler > IGNORE || fault;
    action::set(signal, wanted, wrapped);
    let passed = wanted.flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART);
    let kernels = if !wrapped {
        SigAction { restorer: labels::restorer_address(), ..*wanted }
    } else if area_kind == kind::PRIMARY {
        registration(passed | SA_ONSTACK, u64::MAX)
    } else {
        registration(passed | wanted.flags & (SA_ONSTACK | SA_NODEFER), wanted.mask)
    };
    // SAFETY: our handler, or none.
    unsafe { -sys::sigaction(signal, Some(&kernels), None) as i32 }
}

/// Libc's own signals that it sends to every thread, whichever context runs there. In a primary
/// that may be a guest, whose stack may have no space left: the kernel would end the primary. Libc
/// registers its handler at the first thread, past ours, so it is looked for after each.
pub(super) fn take_over_libcs(area: &Area) {
    /// All threads are to call `setuid` or one of its kin.
    const SETXID: i32 = 33;
    if area.kind.load(Relaxed) != kind::PRIMARY || action::is_wrapped(SETXID) {
        return;
    }
    let mut libcs = SigAction::default();
    // SAFETY: asks only.
    unsafe { sys::sigaction(SETXID, None, Some(&mut libcs)) };
    let ours = registration(libcs.flags & SA_RESTART | SA_ONSTACK, u64::MAX);
    if libcs.handler > IGNORE && libcs.handler != ours.handler {
        action::set(SETXID, &libcs, true);
        // SAFETY: our handler is one.
        unsafe { sys::sigaction(SETXID, Some(&ours), None) };
    }
}

/// What the program believes to be registered.
pub(super) fn current(signal: i32) -> SigAction {
    let mut kernels = SigAction::default();
    // SAFETY: asks only.
    unsafe { sys::sigaction(signal, None, Some(&mut kernels)) };
    // What libc set behind our back (system(), posix_spawn()) counts.
    let ours = kernels.handler == registration(0, 0).handler;
    if ours || action::is_wrapped(signal) && FAULTS.contains(&signal) { action::get(signal) } else { kernels }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn sigaction(signal: i32, new: *const LibcAction, old: *mut LibcAction) -> i32 {
    let Some(area) = mine().filter(|_| is_programs(signal)) else {
        return call_next!(c"sigaction" as fn(i32, *const LibcAction, *mut LibcAction) -> i32,
            (signal, new, old), else fail(EINVAL));
    };
    let before = current(signal);
    // SAFETY: the program's pointers, as sigaction takes them. `new` is read before `old` is
    // written: they may be one.
    let wanted = unsafe { new.as_ref() }.copied();
    if let Some(wanted) = wanted {
        let flags = u64::from(wanted.flags as u32);
        // Every libc sets the restorer, and shows that it did.
        let flags = flags | SA_RESTORER;
        let wanted = SigAction { handler: wanted.handler, flags, restorer: 0, mask: wanted.mask[0] };
        let error = register(area.kind.load(Relaxed), signal, &wanted);
        if error > 0 {
            return fail(error);
        }
    }
    if !old.is_null() {
        let mut mask = [0; 16];
        mask[0] = before.mask;
        let flags = before.flags as u32 as i32;
        let restorer = if before.flags & SA_RESTORER != 0 { labels::restorer_address() } else { 0 };
        // SAFETY: as above.
        unsafe { old.write(LibcAction { handler: before.handler, mask, flags, restorer }) };
    }
    0
}

/// As `sigaction` with these flags.
pub(super) fn simple(signal: i32, handler: usize, flags: u64, mask: u64) -> usize {
    let Some(area) = mine().filter(|_| is_programs(signal)) else { return SIG_ERR };
    let before = current(signal).handler;
    let wanted = SigAction { handler, flags: flags | SA_RESTORER, restorer: 0, mask };
    match register(area.kind.load(Relaxed), signal, &wanted) {
        error if error > 0 => {
            fail(error);
            SIG_ERR
        }
        _ => before,
    }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
pub(super) extern "C" fn signal(number: i32, handler: usize) -> usize {
    if mine().is_none() || !is_programs(number) || handler == SIG_ERR {
        return call_next!(c"signal" as fn(i32, usize) -> usize, (number, handler), else SIG_ERR);
    }
    simple(number, handler, if action::is_to_interrupt(number) { 0 } else { SA_RESTART }, 0)
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn bsd_signal(number: i32, handler: usize) -> usize {
    signal(number, handler)
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn __sysv_signal(number: i32, handler: usize) -> usize {
    if mine().is_none() || !is_programs(number) || handler == SIG_ERR {
        return call_next!(c"__sysv_signal" as fn(i32, usize) -> usize, (number, handler), else SIG_ERR);
    }
    simple(number, handler, SA_RESETHAND | SA_NODEFER, 0)
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn sysv_signal(number: i32, handler: usize) -> usize {
    __sysv_signal(number, handler)
}

/// The primary's signal stack is the slot's; the program's is used for its handlers.
///
/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> i32 {
    const MINIMUM: u64 = 2048;
    let primary = mine().filter(|area| area.kind.load(Relaxed) == kind::PRIMARY);
    let Some(area) = primary else {
        return call_next!(c"sigaltstack" as fn(*const SignalStack, *mut SignalStack) -> i32,
            (new, old), else fail(EINVAL));
    };
    let here = 0_u8;
    let mut before = area.signals.program_stack();
    if before.holds(&raw const here as u64) {
        before.flags |= SS_ONSTACK;
    }
    // SAFETY: the program's pointers, as sigaltstack takes them; they may be one.
    if let Some(wanted) = unsafe { new.as_ref() }.copied() {
        if before.flags & SS_ONSTACK != 0 {
            return fail(EPERM);
        }
        if wanted.flags & !(SS_DISABLE | SS_AUTODISARM | SS_ONSTACK) != 0 {
            return fail(EINVAL);
        }
        if wanted.flags & SS_DISABLE == 0 && wanted.size < MINIMUM {
            return fail(ENOMEM);
        }
        area.signals.ask_stack(&SignalStack { flags: wanted.flags & !SS_ONSTACK, ..wanted });
    }
    if !old.is_null() {
        // SAFETY: as above.
        unsafe { old.write(before) };
    }
    0
}

/// Faults are never blocked in a primary: a guest's must come through. The program sees them as it
/// left them.
///
/// # Safety
/// As `sigprocmask`: the pointers are the program's.
pub(super) unsafe fn change_mask(how: i32, new: *const u64, old: *mut u64) -> Option<i32> {
    const SIG_BLOCK: i32 = 0;
    const SIG_UNBLOCK: i32 = 1;
    const RT_SIGPROCMASK: usize = sys::nr::RT_SIGPROCMASK;
    let area = mine().filter(|area| area.kind.load(Relaxed) == kind::PRIMARY)?;
    let blocked = area.signals.blocked_faults();
    // SAFETY: the program's pointers, as the call takes them; they may be one.
    let wanted = unsafe { new.as_ref() }.copied();
    let mut kernels_old = 0_u64;
    let passed = wanted.map(|mask| if how == SIG_UNBLOCK { mask } else { mask & !FAULT_MASK & !LIBCS });
    let new_at = passed.as_ref().map_or(0, |mask| core::ptr::from_ref(mask) as usize);
    // SAFETY: the kernel reads and writes one word each.
    let result = unsafe {
        sys::syscall(RT_SIGPROCMASK, [how as usize, new_at, &raw mut kernels_old as usize, 8, 0, 0])
    };
    if result < 0 {
        return Some(-result as i32);
    }
    if let Some(mask) = wanted.map(|mask| mask & FAULT_MASK) {
        let now = match how {
            SIG_BLOCK => blocked | mask,
            SIG_UNBLOCK => blocked & !mask,
            _ => mask,
        };
        area.signals.block_faults(now);
    }
    if !old.is_null() {
        // SAFETY: as above.
        unsafe { old.write(kernels_old | blocked) };
    }
    Some(0)
}

/// Signals that libc keeps for itself, and does not let programs block.
const LIBCS: u64 = 0b11 << 31;

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn sigprocmask(how: i32, new: *const u64, old: *mut u64) -> i32 {
    // SAFETY: the program's pointers.
    match unsafe { change_mask(how, new, old) } {
        Some(0) => 0,
        Some(error) => fail(error),
        None => call_next!(c"sigprocmask" as fn(i32, *const u64, *mut u64) -> i32,
            (how, new, old), else fail(EINVAL)),
    }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn pthread_sigmask(how: i32, new: *const u64, old: *mut u64) -> i32 {
    // SAFETY: the program's pointers.
    if let Some(error) = unsafe { change_mask(how, new, old) } {
        return error;
    }
    call_next!(c"pthread_sigmask" as fn(i32, *const u64, *mut u64) -> i32, (how, new, old), else EINVAL)
}

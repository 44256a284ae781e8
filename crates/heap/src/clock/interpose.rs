//! Functions that programs call and that concern the clock: threads, signals, sandboxes. While it
//! does not run in a process, each is a jump to the function behind it.

use super::action::{Action as KernelAction, DEFAULT, IGNORED, THOUGHT, bit};
use super::arm;
use super::state::{self, SIGNAL};
use crate::next::{self, next};
use crate::recording;
use crate::sys::nr;
use crate::traps::{self, IS_OURS, SIGTRAP};
use bare_calls::look_up;
use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// To add a function: its number here, its name below, the number of all, and its entry.
const PTHREAD_CREATE: usize = 0;
const SIGACTION: usize = 1;
const SIGNAL_: usize = 2;
const PTHREAD_SIGMASK: usize = 3;
const SIGPROCMASK: usize = 4;
const SYSCALL: usize = 5;
const BSD_SIGNAL: usize = 6;
const SYSV_SIGNAL: usize = 7;
const OLD_SYSV_SIGNAL: usize = 8;
const SIGSET: usize = 9;
const ALL: usize = 10;
const NAMES: [&CStr; ALL] = [
    c"pthread_create",
    c"sigaction",
    c"signal",
    c"pthread_sigmask",
    c"sigprocmask",
    c"syscall",
    c"bsd_signal",
    c"sysv_signal",
    c"__sysv_signal",
    c"sigset",
];

/// The functions behind ours; null while they are not known. Looked up at their first call.
static BEHIND: [AtomicPtr<()>; ALL] = [const { AtomicPtr::new(core::ptr::null_mut()) }; ALL];

extern "C" fn find(function: usize) -> *mut () {
    let known = BEHIND[function].load(Acquire);
    if !known.is_null() {
        return known;
    }
    let found = match look_up(NAMES[function]) {
        none if none.is_null() => missing as *mut (),
        found => found,
    };
    BEHIND[function].store(found, Release);
    found
}

/// A libc that lacks a function does not come here.
extern "C" fn missing() -> isize {
    -1
}

/// Leaves the function's address in r11, and its arguments in their registers.
macro_rules! find_behind {
    () => {
        "mov r11, [rip + {behind} + 8 * {number}]
        test r11, r11
        jnz 3f
        push rax
        push rdi
        push rsi
        push rdx
        push rcx
        push r8
        push r9
        mov edi, {number}
        call {find}
        mov r11, rax
        pop r9
        pop r8
        pop rcx
        pop rdx
        pop rsi
        pop rdi
        pop rax
        3:"
    };
}

/// A function that goes to ours while the clock runs; and for the signal of probes to theirs, while
/// they have it. Only one of both is ever the case.
macro_rules! interposed {
    ($name:ident, $number:expr, $function:expr, $trap:expr) => {
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "cmp dword ptr [rip + {signal}], 0",
                "jne {function}",
                "cmp byte ptr [rip + {is_ours}], 0",
                "je 5f",
                "cmp edi, {sigtrap}",
                "je {trap}",
                "5:",
                find_behind!(),
                "jmp r11",
                signal = sym SIGNAL,
                function = sym $function,
                is_ours = sym IS_OURS,
                sigtrap = const SIGTRAP,
                trap = sym $trap,
                behind = sym BEHIND,
                number = const $number,
                find = sym find,
            )
        }
    };
    ($name:ident, $number:expr, $function:expr) => {
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "cmp dword ptr [rip + {signal}], 0",
                "jne {function}",
                find_behind!(),
                "jmp r11",
                signal = sym SIGNAL,
                function = sym $function,
                behind = sym BEHIND,
                number = const $number,
                find = sym find,
            )
        }
    };
}

interposed!(pthread_create, PTHREAD_CREATE, create_thread);
interposed!(sigaction, SIGACTION, set_action, traps::set_action);
interposed!(signal, SIGNAL_, set_handler::<SIGNAL_>, traps::set_handler);
interposed!(bsd_signal, BSD_SIGNAL, set_handler::<BSD_SIGNAL>, traps::set_handler);
interposed!(sysv_signal, SYSV_SIGNAL, set_handler::<SYSV_SIGNAL>, traps::set_handler);
interposed!(__sysv_signal, OLD_SYSV_SIGNAL, set_handler::<OLD_SYSV_SIGNAL>, traps::set_handler);
interposed!(sigset, SIGSET, set_handler::<SIGSET>, traps::set_handler);
interposed!(pthread_sigmask, PTHREAD_SIGMASK, set_thread_mask);
interposed!(sigprocmask, SIGPROCMASK, set_process_mask);

/// A program may enter a sandbox this way, or set what our signal or that of probes does; all other
/// calls go on at once.
///
/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp edi, {seccomp}",
        "je 2f",
        "cmp edi, {sigaction}",
        "jne 4f",
        "cmp dword ptr [rip + {signal}], 0",
        "je 6f",
        "cmp esi, dword ptr [rip + {signal}]",
        "je {set_action}",
        "6: cmp byte ptr [rip + {is_ours}], 0",
        "je 4f",
        "cmp esi, {sigtrap}",
        "je {set_trap}",
        "jmp 4f",
        "2: push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "call {enter}",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "4:",
        find_behind!(),
        "jmp r11",
        seccomp = const SECCOMP,
        sigaction = const nr::RT_SIGACTION,
        signal = sym SIGNAL,
        set_action = sym set_kernel_action,
        is_ours = sym IS_OURS,
        sigtrap = const SIGTRAP,
        set_trap = sym traps::set_kernel_action,
        enter = sym enter_sandbox,
        behind = sym BEHIND,
        number = const SYSCALL,
        find = sym find,
    )
}

const SECCOMP: usize = 317;

/// From now on the clock makes no system call that a sandbox may forbid. Called with the first two
/// arguments of `prctl` or `syscall`.
pub(crate) extern "C" fn enter_sandbox(number: usize, operation: usize) {
    const STRICT: usize = 0;
    if (number, operation) == (SECCOMP, STRICT) {
        recording::end();
        arm::end();
    }
    state::enter_sandbox();
}

/// Has forked children go on with the clock.
pub(crate) fn follow_forks() {
    let forked = arm::forked as *const () as usize;
    let (with_handle, plain) = (look_up(c"__register_atfork"), look_up(c"pthread_atfork"));
    // SAFETY: functions of those names have those types, in glibc and elsewhere.
    unsafe {
        if !with_handle.is_null() {
            let register: unsafe extern "C" fn(usize, usize, usize, usize) -> i32 =
                core::mem::transmute(with_handle);
            register(0, 0, forked, 0);
        } else if !plain.is_null() {
            let register: unsafe extern "C" fn(usize, usize, usize) -> i32 = core::mem::transmute(plain);
            register(0, 0, forked);
        }
    }
}

/// What a new thread is to do.
#[repr(C)]
struct Start {
    function: usize,
    argument: usize,
}

/// # Safety
/// As libc's.
unsafe extern "C" fn create_thread(
    thread: usize,
    attributes: usize,
    function: usize,
    argument: usize,
) -> i32 {
    const EAGAIN: i32 = 11;
    // SAFETY: functions of those names have those types; the arguments are the program's.
    unsafe {
        let create: unsafe extern "C" fn(usize, usize, usize, usize) -> i32 =
            core::mem::transmute(find(PTHREAD_CREATE));
        let (allocate, free) = (next(next::MALLOC), next(next::FREE));
        if allocate.is_null() || free.is_null() {
            return create(thread, attributes, function, argument);
        }
        let allocate: unsafe extern "C" fn(usize) -> *mut Start = core::mem::transmute(allocate);
        let start = allocate(size_of::<Start>());
        if start.is_null() {
            return EAGAIN;
        }
        start.write(Start { function, argument });
        let failed = create(thread, attributes, thread_begins as *const () as usize, start as usize);
        if failed != 0 {
            let free: unsafe extern "C" fn(*mut Start) = core::mem::transmute(free);
            free(start);
        }
        failed
    }
}

/// Where threads begin. Ours is no frame below the program's.
///
/// # Safety
/// Called by libc, with a `Start` that was allocated.
#[unsafe(naked)]
unsafe extern "C" fn thread_begins() {
    naked_asm!(
        "sub rsp, 24",
        "mov rsi, rsp",
        "call {begins}",
        "mov rax, [rsp]",
        "mov rdi, [rsp + 8]",
        "add rsp, 24",
        "jmp rax",
        begins = sym begins,
    )
}

/// # Safety
/// Only by `thread_begins`.
unsafe extern "C" fn begins(start: *mut Start, to: *mut Start) {
    // SAFETY: what `create_thread` has allocated and written; space on the stack above.
    unsafe {
        to.write(start.read());
        let free: unsafe extern "C" fn(*mut Start) = core::mem::transmute(next(next::FREE));
        free(start);
    }
    arm::add_thread();
}

/// `struct sigaction` of libc.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: u64,
    restorer: usize,
}

/// # Safety
/// As libc's.
unsafe extern "C" fn set_action(number: i32, new: *const Action, old: *mut Action) -> i32 {
    // SAFETY: a function of that name has that type.
    let behind: unsafe extern "C" fn(i32, *const Action, *mut Action) -> i32 =
        unsafe { core::mem::transmute(find(SIGACTION)) };
    let ours = SIGNAL.load(Acquire);
    if number as u32 != ours {
        // The program's handlers are sampled, too.
        // SAFETY: the program's pointers.
        let copied = unsafe { new.as_ref() }.map(|action| {
            let mut action = *action;
            action.mask[0] &= !bit(ours.max(1));
            action
        });
        // SAFETY: as the program calls it.
        return unsafe {
            behind(number, copied.as_ref().map_or(core::ptr::null(), core::ptr::from_ref), old)
        };
    }
    // SAFETY: the program's pointers.
    unsafe {
        if new.as_ref().is_some_and(|action| action.handler > IGNORED) {
            arm::change_signal(ours);
            return behind(number, new, old);
        }
        let thought = THOUGHT.load(Relaxed);
        if let Some(action) = new.as_ref() {
            THOUGHT.store(action.handler, Relaxed);
        }
        if let Some(old) = old.as_mut() {
            *old = Action { handler: thought, mask: [0; 16], flags: 0, restorer: 0 };
        }
    }
    0
}

/// `syscall(SYS_rt_sigaction, …)` for our signal: without this, a program that resets all signals
/// past libc would be ended by the next sample.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn set_kernel_action(
    number: usize,
    signal: usize,
    new: *const KernelAction,
    old: *mut KernelAction,
    bytes: usize,
) -> isize {
    // SAFETY: the program's pointers.
    unsafe {
        if new.as_ref().is_some_and(|action| action.handler > IGNORED) {
            arm::change_signal(signal as u32);
            let behind: unsafe extern "C" fn(usize, usize, usize, usize, usize) -> isize =
                core::mem::transmute(find(SYSCALL));
            return behind(number, signal, new as usize, old as usize, bytes);
        }
        let thought = THOUGHT.load(Relaxed);
        if let Some(action) = new.as_ref() {
            THOUGHT.store(action.handler, Relaxed);
        }
        if let Some(old) = old.as_mut() {
            *old = KernelAction { handler: thought, ..KernelAction::default() };
        }
    }
    0
}

/// # Safety
/// As libc's.
unsafe extern "C" fn set_handler<const FUNCTION: usize>(number: i32, handler: usize) -> usize {
    let ours = SIGNAL.load(Acquire);
    if number as u32 == ours {
        if handler == DEFAULT || handler == IGNORED {
            return THOUGHT.swap(handler, Relaxed);
        }
        arm::change_signal(ours);
    }
    // SAFETY: a function of that name has that type; the arguments are the program's.
    unsafe {
        let behind: unsafe extern "C" fn(i32, usize) -> usize = core::mem::transmute(find(FUNCTION));
        behind(number, handler)
    }
}

/// # Safety
/// As libc's.
unsafe extern "C" fn set_thread_mask(how: i32, new: *const [u64; 16], old: *mut [u64; 16]) -> i32 {
    // SAFETY: the program's arguments.
    unsafe { set_mask(PTHREAD_SIGMASK, how, new, old) }
}

/// # Safety
/// As libc's.
unsafe extern "C" fn set_process_mask(how: i32, new: *const [u64; 16], old: *mut [u64; 16]) -> i32 {
    // SAFETY: the program's arguments.
    unsafe { set_mask(SIGPROCMASK, how, new, old) }
}

/// A program that blocks all signals does not mean ours. One that blocks ours and few others waits
/// for it.
///
/// # Safety
/// As libc's.
unsafe fn set_mask(function: usize, how: i32, new: *const [u64; 16], old: *mut [u64; 16]) -> i32 {
    const UNBLOCK: i32 = 1;
    const REAL_TIME: u64 = !0 << 33;
    const MOST: u32 = 16;
    // SAFETY: functions of those names have that type.
    let behind: unsafe extern "C" fn(i32, *const [u64; 16], *mut [u64; 16]) -> i32 =
        unsafe { core::mem::transmute(find(function)) };
    let ours = SIGNAL.load(Acquire);
    // SAFETY: the program's pointers; libc reads the first word of a set, and no more is read here.
    unsafe {
        if ours == 0 || new.is_null() || how == UNBLOCK || (*new.cast::<u64>()) & bit(ours) == 0 {
            return behind(how, new, old);
        }
        let set = *new.cast::<u64>();
        if (set & REAL_TIME).count_ones() < MOST {
            arm::change_signal(ours);
            return behind(how, new, old);
        }
        let mut without = [0; 16];
        without[0] = set & !bit(ours);
        behind(how, &raw const without, old)
    }
}

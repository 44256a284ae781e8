//! The signal of probes, SIGTRAP, which the kernel sends to a thread that stands at a breakpoint of
//! the profiler.
//!
//! The program may have a handler of its own for that signal: it is kept here and called for what
//! is not ours. `clock/interpose.rs` has `sigaction` and its relatives come here, `syscall` among
//! them; a program that asks the kernel in code of its own (Go's do) is not probed, which the
//! profiler sees to.

use crate::layout::Region;
use crate::probe::{General, probe};
use crate::recording;
use crate::sys::{nr, syscall};
use core::arch::naked_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub(crate) const SIGTRAP: i32 = 5;
/// A signal of a perf event.
const TRAP_PERF: i32 = 6;
/// The largest code of a signal that was sent, not caused by what this thread did.
const SENT: i32 = 0;

const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;
const DEFAULT: usize = 0;
const IGNORED: usize = 1;

/// As the kernel has it.
#[repr(C)]
pub(crate) struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// As libc has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

/// What the program wants to happen.
struct Wanted(UnsafeCell<Action>, AtomicBool);

// SAFETY: it is reached while the flag is held.
unsafe impl Sync for Wanted {}

static WANTED: Wanted = Wanted(
    UnsafeCell::new(Action { handler: DEFAULT, mask: [0; 16], flags: 0, restorer: 0 }),
    AtomicBool::new(false),
);
/// The kernel has our handler.
pub(crate) static IS_OURS: AtomicBool = AtomicBool::new(false);

impl Wanted {
    /// What it was; from now on it is `new`, if there is one.
    fn replace(&self, new: Option<Action>) -> Action {
        // Held for some instructions. A signal may come between them, but not this one: no
        // breakpoint is in this library.
        while self.1.swap(true, Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: this thread has the flag.
        let old = unsafe {
            let at = self.0.get();
            let old = *at;
            if let Some(new) = new {
                *at = new;
            }
            old
        };
        self.1.store(false, Release);
        old
    }
}

/// From now on traps come to us, unless the program was started with them ignored.
pub(crate) fn begin() {
    let mut old = KernelAction { handler: DEFAULT, flags: 0, restorer: 0, mask: 0 };
    let asked = to_kernel(None, Some(&mut old));
    if asked == 0 && old.handler == DEFAULT {
        let ours = KernelAction {
            handler: entry as *const () as usize,
            flags: SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_RESTART,
            restorer: restorer as *const () as usize,
            mask: 0,
        };
        IS_OURS.store(to_kernel(Some(&ours), None) == 0, Relaxed);
    }
}

fn to_kernel(new: Option<&KernelAction>, old: Option<&mut KernelAction>) -> isize {
    let new = new.map_or(0, |new| core::ptr::from_ref(new) as usize);
    let old = old.map_or(0, |old| core::ptr::from_mut(old) as usize);
    // SAFETY: both are whole, or null.
    unsafe { syscall(nr::RT_SIGACTION, [SIGTRAP as usize, new, old, 8, 0, 0]) }
}

/// Where the kernel lets a handler return to.
#[unsafe(naked)]
extern "C" fn restorer() {
    naked_asm!("mov eax, {number}", "syscall", number = const nr::RT_SIGRETURN)
}

/// Offsets in what the kernel hands over.
const CODE: usize = 8;
const GENERAL: usize = 40;
/// In the saved registers: where those are by the numbers of instructions, and the next
/// instruction.
const PLACES: [usize; 16] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
const RIP: usize = 16;

extern "C" fn entry(signal: i32, about: *const u8, context: *const u8) {
    // SAFETY: the kernel hands over a `siginfo_t` and an `ucontext_t`.
    let (code, saved) =
        unsafe { (about.add(CODE).cast::<i32>().read(), context.add(GENERAL).cast::<[u64; 23]>().read()) };
    if code != TRAP_PERF {
        pass_on(signal, code, about, context);
        return;
    }
    let Some(region) = region() else { return };
    let general: General = PLACES.map(|place| saved[place]);
    // SAFETY: the thread stands at the breakpoint, before what is there. If the signal was held
    // back, it stands elsewhere, and that is no place that is probed.
    unsafe { probe(region, recording::process(), saved[RIP], &general) };
}

fn region() -> Option<&'static Region> {
    recording::region()
}

/// A trap that is not ours.
fn pass_on(signal: i32, code: i32, about: *const u8, context: *const u8) {
    let wanted = WANTED.replace(None);
    let flags = wanted.flags as u32;
    if u64::from(flags) & SA_RESETHAND != 0 {
        WANTED.replace(Some(Action { handler: DEFAULT, ..wanted }));
    }
    match wanted.handler {
        IGNORED if code <= SENT => {}
        DEFAULT | IGNORED => {
            let default = KernelAction { handler: DEFAULT, flags: 0, restorer: 0, mask: 0 };
            to_kernel(Some(&default), None);
            // It ends the process when this handler has returned.
            // SAFETY: no pointers.
            unsafe {
                let process = syscall(nr::GETPID, [0; 6]) as usize;
                let thread = syscall(nr::GETTID, [0; 6]) as usize;
                syscall(nr::TGKILL, [process, thread, SIGTRAP as usize, 0, 0, 0]);
            }
        }
        handler => {
            // SAFETY: what the program gave as its handler.
            let handler: extern "C" fn(i32, *const u8, *const u8) = unsafe { core::mem::transmute(handler) };
            handler(signal, about, context);
        }
    }
}

/// `sigaction` for this signal, while it is ours.
///
/// # Safety
/// As libc's.
pub(crate) unsafe extern "C" fn set_action(_signal: i32, new: *const Action, old: *mut Action) -> i32 {
    // SAFETY: the program's, as libc would use them.
    unsafe {
        let was = WANTED.replace(if new.is_null() { None } else { Some(*new) });
        if !old.is_null() {
            *old = was;
        }
    }
    0
}

/// `syscall(SYS_rt_sigaction, …)` for this signal, while it is ours.
///
/// # Safety
/// As the system call.
pub(crate) unsafe extern "C" fn set_kernel_action(
    _number: usize,
    _signal: usize,
    new: *const KernelAction,
    old: *mut KernelAction,
) -> isize {
    // SAFETY: the program's, as the kernel would use them.
    unsafe {
        let wanted = new.as_ref().map(|new| Action {
            handler: new.handler,
            mask: core::array::from_fn(|word| if word == 0 { new.mask } else { 0 }),
            flags: new.flags as i32,
            restorer: new.restorer,
        });
        let was = WANTED.replace(wanted);
        if let Some(old) = old.as_mut() {
            *old = KernelAction {
                handler: was.handler,
                flags: was.flags as u32 as u64,
                restorer: was.restorer,
                mask: was.mask[0],
            };
        }
    }
    0
}

/// `signal` and its relatives for this signal, while it is ours.
pub(crate) extern "C" fn set_handler(_signal: i32, handler: usize) -> usize {
    let new = Action { handler, mask: [0; 16], flags: SA_RESTART as i32, restorer: 0 };
    WANTED.replace(Some(new)).handler
}

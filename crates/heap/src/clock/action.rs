//! The handler of the clock's signal, and what the program thinks that this signal does.

use super::layout::kind;
use super::sample::{self, Record, Registers};
use super::{maps, state};
use crate::sys::{self, nr, syscall};
use core::arch::naked_asm;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// Signals that are tried: the first real-time signal of glibc, to whose handler Go's runtime adds
/// an alternate stack where it would replace others; then some that programs hardly use.
pub(super) const SIGNALS: [u32; 3] = [34, 47, 51];
pub(super) const DEFAULT: usize = 0;
pub(super) const IGNORED: usize = 1;

/// What the program has set for our signal: `DEFAULT` or `IGNORED`.
pub(super) static THOUGHT: AtomicUsize = AtomicUsize::new(DEFAULT);

/// In the upper half of a timer's value, whose lower one is its thread: other signals lack it.
pub(super) const MARK: u64 = 0x474c_434b;

/// As the kernel has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Action {
    pub handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

/// Sets the handler of a signal, if there is no other one.
pub(super) fn take(signal: u32) -> bool {
    const SA_SIGINFO: usize = 4;
    const SA_RESTORER: usize = 0x0400_0000;
    const SA_ONSTACK: usize = 0x0800_0000;
    const SA_RESTART: usize = 0x1000_0000;
    let handler = on_expiry as *const () as usize;
    let is_free = get(signal).is_some_and(|known| [DEFAULT, handler].contains(&known.handler));
    let action = Action {
        handler,
        flags: SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_RESTART,
        restorer: restorer as *const () as usize,
        mask: !0,
    };
    is_free && set(signal, &action) && unblock(signal)
}

fn reset(signal: u32) {
    set(signal, &Action::default());
}

fn get(signal: u32) -> Option<Action> {
    let mut action = Action::default();
    // SAFETY: the kernel writes the action; its set has 8 bytes.
    let result =
        unsafe { syscall(nr::RT_SIGACTION, [signal as usize, 0, (&raw mut action) as usize, 8, 0, 0]) };
    (result == 0).then_some(action)
}

fn set(signal: u32, action: &Action) -> bool {
    let action = core::ptr::from_ref(action) as usize;
    // SAFETY: the kernel reads the action; a handler in it is a function of the right type.
    unsafe { syscall(nr::RT_SIGACTION, [signal as usize, action, 0, 8, 0, 0]) == 0 }
}

/// For this thread, and those that it makes.
fn unblock(signal: u32) -> bool {
    const UNBLOCK: usize = 1;
    let set = bit(signal);
    // SAFETY: the kernel reads the set.
    unsafe { syscall(nr::RT_SIGPROCMASK, [UNBLOCK, (&raw const set) as usize, 0, 8, 0, 0]) == 0 }
}

/// A signal in a set.
pub(super) fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Returns from a handler. Unwinders know this code by its bytes.
///
/// # Safety
/// Not to be called.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    naked_asm!(".byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05", "ud2")
}

/// The parts of `siginfo_t` that a timer fills.
#[repr(C)]
struct Info {
    signal: i32,
    error: i32,
    code: i32,
    padding: i32,
    timer: i32,
    overrun: i32,
    value: u64,
}

/// `ucontext_t` up to its registers: R8 to R15, then those of `ORDER`.
#[repr(C)]
struct Context {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    registers: [u64; 17],
}

/// Where a context has each register, by its number in instructions, and RIP.
const ORDER: [usize; 17] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7, 16];

/// A sample.
///
/// # Safety
/// Called by the kernel.
unsafe extern "C" fn on_expiry(signal: i32, info: &Info, context: &Context) {
    const SI_TIMER: i32 = -2;
    if info.code != SI_TIMER || (info.value >> 32) != MARK {
        not_ours(signal as u32);
        return;
    }
    let Some((clock, process)) = state::clock() else { return };
    let registers: Registers = ORDER.map(|at| context.registers[at]);
    let record = Record {
        kind: kind::SAMPLE,
        process,
        thread: info.value as u32,
        overrun: info.overrun.max(0) as u32,
        ticks: sys::ticks(),
        registers: &registers,
    };
    maps::sampled(clock, process, record.ticks);
    let number = sample::write(clock, &record);
    let every = u64::from(clock.stack_every.load(Relaxed));
    if number.is_some_and(|number| every > 0 && number % every == 0) {
        sample::copy_stack(clock, &record);
    }
}

/// The signal was sent, by no timer of ours: it does what it would have done without a clock.
fn not_ours(signal: u32) {
    if THOUGHT.load(Relaxed) == DEFAULT {
        reset(signal);
        let process = sys::process() as usize;
        // SAFETY: it takes no pointers. The signal ends the process once this handler returns.
        unsafe { syscall(nr::TGKILL, [process, sys::thread() as usize, signal as usize, 0, 0, 0]) };
    }
}

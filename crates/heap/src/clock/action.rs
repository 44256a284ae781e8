//! The handler of the clock's signal, and what the program thinks that this signal does.

use super::layout::kind;
use super::sample::{self, Record, Registers};
use super::{maps, state, timers};
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

/// Handlers whose frames were set up before ours.
const MOST_NESTED: usize = 4;

/// As the kernel has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Action {
    pub handler: usize,
    pub flags: usize,
    pub restorer: usize,
    pub mask: u64,
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
    if info.code != SI_TIMER || (info.value >> 32) != timers::MARK {
        not_ours(signal as u32);
        return;
    }
    let Some((clock, process)) = state::clock() else { return };
    if clock.is_over.load(Relaxed) != 0 {
        if !state::is_in_sandbox() {
            timers::remove(info.value as u32);
        }
        return;
    }
    let registers = interrupted(context);
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

/// The registers of the code that was interrupted. The program's own signal may have come at the
/// same time, and its timer at the same tick: then the kernel had set up that handler's frame
/// before, and it is the handler's entry that ours interrupts. What it interrupts is in that frame.
fn interrupted(context: &Context) -> Registers {
    /// A frame: the return address, the context, and the information behind it.
    const CONTEXT_AT: u64 = 8;
    const INFO_AT: u64 = 312;
    const MOST_SIGNALS: u64 = 64;
    let mut registers: Registers = ORDER.map(|at| context.registers[at]);
    for _ in 0..MOST_NESTED {
        let [rdx, rsp, rsi, rdi] = [2, 4, 6, 7].map(|number: usize| registers[number]);
        let is_entry = rdx == rsp.wrapping_add(CONTEXT_AT)
            && rsi == rsp.wrapping_add(INFO_AT)
            && (1..=MOST_SIGNALS).contains(&rdi)
            && sys::may_read(rdx)
            && sys::may_read(rsi);
        if !is_entry {
            break;
        }
        // SAFETY: a context of which the kernel can read both ends; it has just written it.
        let below = unsafe { &*(rdx as *const Context) };
        registers = ORDER.map(|at| below.registers[at]);
    }
    registers
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

#[cfg(test)]
mod tests {
    use super::*;

    const RIP: usize = 16;

    /// A context whose registers, by their numbers in instructions, are these.
    fn context(registers: Registers) -> Context {
        let mut context = Context { flags: 0, link: 0, stack: [0; 3], registers: [0; 17] };
        for (at, value) in ORDER.into_iter().zip(registers) {
            context.registers[at] = value;
        }
        context
    }

    #[test]
    fn registers_have_their_numbers() {
        let registers = core::array::from_fn(|number| number as u64 + 100);
        assert_eq!(interrupted(&context(registers)), registers);
    }

    #[test]
    fn behind_the_entry_of_a_handler_is_what_that_one_interrupts() {
        /// As large as a frame up to the end of its information.
        #[repr(C)]
        struct Frame {
            return_address: u64,
            context: Context,
            rest: [u64; 40],
        }
        let mut code = [0; 17];
        code[RIP] = 0x40_1000;
        let frame = Frame { return_address: 0, context: context(code), rest: [0; 40] };
        let rsp = &raw const frame as u64;
        let mut entry = [0; 17];
        (entry[2], entry[4], entry[6], entry[7], entry[RIP]) = (rsp + 8, rsp, rsp + 312, 27, 0x50_0000);
        assert_eq!(interrupted(&context(entry))[RIP], 0x40_1000);
        entry[7] = 99;
        assert_eq!(interrupted(&context(entry))[RIP], 0x50_0000, "no signal has this number");
    }
}

//! The clock's part of the shared memory. The profiler zeroes it, and sets the period before the
//! program begins.
//!
//! ```text
//! period      what a timer is set to
//! rings       samples, and what becomes of processes: records of 192 bytes
//! stacks      registers and stack of some samples
//! maps        text of /proc/PID/maps, in parts
//! ```

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

pub const RINGS: usize = 4;
/// All CPUs of one ring together may take this number of samples before the profiler must read.
pub const SLOTS: usize = 4096;
pub const STACKS: usize = 256;
pub const STACK_BYTES: usize = 8 << 10;
pub const PARTS: usize = 32;
pub const PART_BYTES: usize = (32 << 10) - 64;
/// RAX to R15 by their numbers in instructions, then RIP.
pub const REGISTERS: usize = 17;

#[repr(C, align(64))]
pub struct Clock {
    /// CPU time between two expirations of a timer.
    pub period_ns: AtomicU64,
    /// A stack is copied at one sample of this number; 0 for none.
    pub stack_every: AtomicU32,
    /// 1 once the profiler has ended: timers go.
    pub is_over: AtomicU32,
    /// Threads that got no timer.
    pub without_timer: AtomicU32,
    /// Processes that took all signals for themselves.
    pub without_signal: AtomicU32,
    /// Samples that found no space.
    pub lost: AtomicU64,
    pub next_stack: AtomicU32,
    pub rings: [Ring; RINGS],
    pub stacks: [Stack; STACKS],
    pub parts: [Part; PARTS],
}

#[repr(C, align(64))]
pub struct Ring {
    /// Slots that were given to writers.
    pub head: AtomicU64,
    /// Slots that were read.
    pub tail: AtomicU64,
    pub slots: [Slot; SLOTS],
}

/// What a record tells.
pub mod kind {
    /// A timer expired: thread, overrun, registers.
    pub const SAMPLE: u64 = 1;
    /// A process executed a program.
    pub const BEGAN: u64 = 2;
    /// A process was forked: `thread` is its parent.
    pub const FORKED: u64 = 3;
}

/// One record. `sequence` is written last.
#[repr(C, align(64))]
pub struct Slot {
    /// The number of this record in its ring, counted from one.
    pub sequence: AtomicU64,
    pub ticks: AtomicU64,
    /// The kind, and the process in the upper half.
    pub kind: AtomicU64,
    pub thread: AtomicU32,
    /// Expirations that this one stands for, beside itself.
    pub overrun: AtomicU32,
    pub registers: [AtomicU64; REGISTERS],
}

/// Registers and stack of a sample. Its state is one of `crate::layout::state`.
#[repr(C, align(64))]
pub struct Stack {
    pub state: AtomicU32,
    pub process: AtomicU32,
    pub thread: AtomicU32,
    pub ticks: AtomicU64,
    pub registers: [AtomicU64; REGISTERS],
    /// Bytes of the stack that are there, from the stack pointer on.
    pub length: AtomicU64,
    pub words: [AtomicU64; STACK_BYTES / 8],
}

/// A part of what a process has mapped. Parts of one text have the same process and ticks.
#[repr(C, align(64))]
pub struct Part {
    pub state: AtomicU32,
    pub process: AtomicU32,
    pub ticks: AtomicU64,
    /// Which part of the text it is, counted from zero.
    pub number: AtomicU32,
    /// 1 for the last part.
    pub is_last: AtomicU32,
    pub length: AtomicU64,
    /// The process's name, with zeros behind it.
    pub name: [AtomicU8; 16],
    pub text: [AtomicU8; PART_BYTES],
}

const _: () = assert!(size_of::<Slot>() == 192 && size_of::<Part>() == 32 << 10);

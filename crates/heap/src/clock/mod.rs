//! The clock where the kernel's performance events are forbidden: a timer of CPU time for each
//! thread, whose signal is a sample.
//!
//! The kernel looks at such timers at its tick. A tick that comes while a load waits for memory is
//! taken behind that load, as any interrupt is, and the signal comes when the kernel returns: its
//! context holds the registers of the interrupted code. So there is at most one sample a tick of
//! each thread, and what runs longer in the kernel is sampled once, when it returns; the count of
//! expirations (`overrun`) tells how long that was.
//!
//! - Timers are the threads' own, not the process's: before Linux 6.4 a process's signal goes to
//!   its main thread, whichever ran.
//! - The signal is a real-time one: `SIGPROF` is the program's. If it uses ours, we take another.
//! - The handler makes no system call but to copy stacks and mappings, and touches nothing of libc:
//!   no `errno`, no thread-local storage.
//! - It runs on the alternate stack where the thread has one: stacks of goroutines are small.
//! - Calls are not interrupted while they sleep: that takes no CPU time. A tick that comes while
//!   the thread falls asleep may end a call early that is not restarted (`EINTR`).
//!
//! It is a part of this library, not one of its own: the profiled program would have two libraries
//! in front of its own, and both would have to know of each `fork`, each `exec` and each sandbox.
//!
//! ```text
//! layout      its part of the shared memory
//! state       whether it runs in this process, and with which signal
//! sample      a sample and its stack, written into the shared memory
//! maps        what the process has mapped, copied there
//! action      the handler, and what the program thinks of its signal
//! timers      of all threads
//! arm         threads, forks, and the change to another signal
//! interpose   functions that programs call: threads, signals, sandboxes
//! ```

mod action;
pub mod arm;
#[cfg(freestanding)]
mod interpose;
pub mod layout;
mod maps;
mod sample;
mod state;
mod timers;

#[cfg(freestanding)]
pub(crate) use interpose::{enter_sandbox, follow_forks};

//! Samples where a program spends its time: by the kernel's CPU clock, which needs no PMU. Where
//! its events are forbidden: by timers whose signals the preloaded library takes.
//!
//! ```text
//! perf/        the kernel's events: opened, read from their rings, taken apart
//! allocations/ where the program's memory is allocated, as a preloaded library tells
//! signals/     samples that the preloaded library takes, read
//! target       the program: started, so that it waits until it is watched; or attached to
//! probes/      loads stopped now and then, to see what they read and how long that takes
//! recorder     events in the order of their times, counted into a tally
//! chain        loads of its own that the profiler knows
//! calibrate    where samples land behind a load that is known to stall, and what one costs
//! skid         where samples land behind that load, for `gleaner doctor --skid`
//! frequency    how many samples a second that allows
//! made_code    the maps of code that programs make while they run
//! interpreted/ lines of scripts, beside the frames of the interpreter that runs them
//! runtime_heaps where runtimes keep the objects that they allocate themselves
//! memory       words of a process's memory
//! files        the files that were mapped, read
//! opened       the same of all processes of the machine, opened while these run
//! debug_files  their separate debug information
//! partly       a file, read whole, or in part while the program runs
//! request      what to profile and how
//! overhead     what that took from the program
//! method/      what differs by what takes the samples
//! session/     all of it, one run
//! hardware/    the same of loads that the hardware samples
//! perf_data/   the same from a file of `perf record`
//! stored/      the same from files of other profilers: pprof, OpenTelemetry, folded stacks
//! ```
//!
//! `unsafe` stands in `perf/open.rs`, `perf/ring.rs`, `target.rs`, `chain.rs`,
//! `allocations/region.rs`, `probes/calibrate.rs` and `signals/calibration.rs`.

mod allocations;
mod calibrate;
mod chain;
mod debug_files;
mod files;
mod frequency;
pub mod hardware;
mod interpreted;
mod made_code;
mod memory;
mod method;
mod opened;
mod overhead;
mod partly;
mod perf;
pub mod perf_data;
mod probes;
mod recorder;
mod request;
mod runtime_heaps;
pub mod session;
mod signals;
pub mod skid;
pub mod stored;
pub mod system;
mod target;

pub use request::{Backend, FindsOut, Output, Request, SampleError, Subject};

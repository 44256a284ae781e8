//! Samples where a program spends its time: by the kernel's CPU clock, which needs no PMU. Where
//! its events are forbidden: by timers whose signals the preloaded library takes.
//!
//! ```text
//! perf/        the kernel's events: opened, read from their rings, taken apart
//! allocations/ where the program's memory is allocated, as a preloaded library tells
//! signals/     samples that the preloaded library takes, read
//! target       the program: started, so that it waits until it is watched; or attached to
//! recorder     events in the order of their times, counted into a tally
//! calibrate    where samples land behind a load that is known to stall
//! files        the files that were mapped, read
//! session      all of it, one run
//! ```
//!
//! `unsafe` stands in `perf/open.rs`, `perf/ring.rs`, `target.rs`, `allocations/region.rs` and
//! `signals/calibration.rs`.

mod allocations;
mod calibrate;
mod files;
mod perf;
mod recorder;
pub mod session;
mod signals;
mod target;

pub use session::{Backend, Request, SampleError, Subject};

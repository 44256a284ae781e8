//! Samples where a program spends its time: by the kernel's CPU clock, which needs no PMU.
//!
//! ```text
//! perf/        the kernel's events: opened, read from their rings, taken apart
//! allocations/ where the program's memory is allocated, as a preloaded library tells
//! target       the program: started, so that it waits until it is watched; or attached to
//! recorder     events in the order of their times, counted into a tally
//! calibrate    where samples land behind a load that is known to stall
//! files        the files that were mapped, read
//! session      all of it, one run
//! perf_data/   the same from a file of `perf record`
//! ```
//!
//! `unsafe` stands in `perf/open.rs`, `perf/ring.rs`, `target.rs` and `allocations/region.rs`.

mod allocations;
mod calibrate;
mod files;
mod perf;
pub mod perf_data;
mod recorder;
pub mod session;
mod target;

pub use session::{Request, SampleError, Subject};

//! The experiments: what to run, not how. One file each (a folder where it also analyses), each
//! with a head that says what it measures and how to read it.
//!
//! To add one: its result type in `records::machine`, a file or folder here that declares its
//! [`catalogue::Entry`] with all that the command line says of it, and a line in
//! [`catalogue::ALL`]. A test holds entries and record together.
#![forbid(unsafe_code)]

mod bandwidth;
mod c2c;
pub mod catalogue;
mod chase_batches;
pub mod choices;
mod cliff;
mod clock;
pub mod context;
mod costs;
mod crews;
mod defect;
mod effort;
mod entry;
mod latency;
pub mod levels;
mod line;
mod mlp;
mod numa;
pub mod odd;
mod prefetch;
mod prefetch_reach;
mod probe;
mod resample;
mod rob;
mod session;
mod smt;
mod stride;
pub mod stride_choice;
mod threads;
mod time_budget;
mod tlb;
mod uncached;
mod windows;
mod yields;

pub use context::{Context, Refused};
pub use session::{Request, measure};

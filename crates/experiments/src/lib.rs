//! The experiments: what to run, not how. One file each (a folder where there is analysis to it), each with a head that
//! says what it measures and how to read it.
//!
//! To add one: its result type in `records::machine`, a file here with
//! `pub(crate) fn run(&mut Context, &Machine) -> Result<T, Refused>`, and a line in [`catalogue`].
#![forbid(unsafe_code)]

mod bandwidth;
mod c2c;
pub mod catalogue;
mod chases;
mod clock;
pub mod context;
mod crews;
mod defect;
mod followed;
mod latency;
pub mod levels;
mod mlp;
mod numa;
mod prefetch;
mod purse;
mod resample;
mod rob;
mod session;
mod stride;
mod threads;
mod tlb;
mod windows;
mod yields;

pub use context::{Context, Progress, Refused};
pub use session::{Request, measure};

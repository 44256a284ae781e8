//! What would run: programs, their libraries, and the loads in them that may stall.

pub(crate) mod analysis_cache;
pub(crate) mod callers;
pub mod candidates;
pub(crate) mod checksums;
pub mod library;
pub mod linked;
pub mod names;
pub mod program;
mod unfit;

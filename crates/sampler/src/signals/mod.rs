//! Sampling where the kernel's events are forbidden: the preloaded library has a clock
//! (`crates/heap/src/clock/mod.rs`), and what it writes into shared memory becomes events here.
//!
//! ```text
//! reader       samples, stacks and mappings, read
//! calibration  where samples land and how often they come, asked in this process
//! left_out     what such samples do not show, in words
//! ```

pub(crate) mod calibration;
pub(crate) mod left_out;
pub(crate) mod reader;

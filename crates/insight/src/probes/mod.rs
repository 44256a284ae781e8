//! Probes: loads stopped right before they are executed, with the address that they read and the
//! time that it takes (the crate `heap` says how).
//!
//! ```text
//! target       which load is behind a sample, and how its address is made up
//! latency      what its probes say of a load
//! stride       how far apart the addresses are that it reads one after the other
//! ```

pub(crate) mod latency;
pub(crate) mod stride;
pub(crate) mod target;

pub use latency::{Latencies, Timing, usual_ticks};
pub use target::{Operand, Part, targets};

//! Probes: loads stopped right before they are executed, with the address that they read and the
//! time that it takes (the crate `heap` says how).
//!
//! ```text
//! target       which load is behind a sample, and how its address is made up
//! latency      what its probes say of a load
//! stride       how far apart the addresses are that it reads one after the other
//! ```

pub mod latency;
pub mod stride;
pub mod target;

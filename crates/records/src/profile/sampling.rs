//! How samples were taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// How samples were taken, and how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    pub backend: Backend,
    /// Samples per second of each thread's CPU time: requested of the kernel's events, or measured
    /// of signals, which come at most once a tick of the kernel.
    pub frequency: Quantity,
    pub samples: u64,
    /// Samples lost since the kernel's buffer was full.
    pub lost: u64,
    /// Time in the kernel is sampled too.
    pub sees_kernel: bool,
    pub calibration: Calibration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A timer of CPU time: samples land behind the instruction that the core waits for.
    Clock,
    /// A timer of each thread's CPU time, whose signals the preloaded library takes: where the
    /// kernel's events are forbidden.
    Signal,
}

/// Samples of a test loop whose stalling load is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Share of the samples that land exactly one instruction behind the load.
    pub one_behind: Quantity,
    pub samples: u64,
}

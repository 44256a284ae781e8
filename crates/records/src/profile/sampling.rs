//! How samples were taken.

use super::not_told;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// How samples were taken, and how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    pub backend: Backend,
    /// Samples per second of each thread's CPU time.
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
}

/// Samples of a test loop whose stalling load is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Share of the samples that land exactly one instruction behind the load.
    pub one_behind: Quantity,
    /// CPU time that a sample takes from the program.
    #[serde(default = "not_told")]
    pub sample_cost: Quantity,
    pub samples: u64,
    /// CPU time that a probe takes from the program.
    #[serde(default = "not_told")]
    pub probe_cost: Quantity,
    /// What a load takes that the cache behind L2 serves, and how much of that its probes see: some
    /// cores bring the line before the probe reads it.
    #[serde(default = "not_told")]
    pub cache_latency: Quantity,
    #[serde(default = "not_told")]
    pub cache_latency_probed: Quantity,
}

//! How samples were taken.

use super::not_told;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// How samples were taken, and how many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampling {
    pub backend: Backend,
    /// Samples per second of each thread's CPU time: requested of the kernel's events, or measured
    /// of signals, which come at most once a tick of the kernel.
    pub frequency: Quantity,
    /// What a latency of these samples is; none where they hold none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyKind>,
    /// Loads that took less than this are not sampled: latencies are those of the slower ones.
    #[serde(default = "not_told")]
    pub least_latency: Quantity,
    pub samples: u64,
    /// Samples lost since the kernel's buffer was full.
    pub lost: u64,
    /// Time in the kernel is sampled too.
    pub sees_kernel: bool,
    /// Only samples of this part of the run count; else all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Selected>,
    pub calibration: Calibration,
}

/// A part of a run, in seconds from its beginning, or from when the profiler attached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Selected {
    pub from_s: f64,
    /// The end of the run, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A timer of CPU time: samples land behind the instruction that the core waits for.
    Clock,
    /// A timer of each thread's CPU time, whose signals the preloaded library takes: where the
    /// kernel's events are forbidden.
    Signal,
    /// Loads and stores that an Intel core samples (processor event-based sampling).
    Pebs,
    /// Operations that an AMD core samples (instruction-based sampling).
    Ibs,
    /// Operations that an Arm core samples (statistical profiling extension).
    Spe,
}

impl Backend {
    /// It samples loads and stores with their addresses, not time.
    pub fn samples_accesses(self) -> bool {
        !matches!(self, Self::Clock | Self::Signal)
    }
}

/// What the hardware counts as a load's latency. The kinds are different figures: they are never
/// put together, and not to be compared with one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Intel: from the load's dispatch until its data can be used.
    UntilUse,
    /// AMD: from the miss in the L1 data cache until the line arrives; hits have none.
    Miss,
    /// Arm: from the operation's dispatch until it is complete, its waiting to be issued included.
    Total,
}

impl LatencyKind {
    /// In words.
    pub fn says(self) -> &'static str {
        match self {
            Self::UntilUse => "from a load's dispatch until its data can be used",
            Self::Miss => "from a miss in L1 until the line arrives; hits have none",
            Self::Total => "from dispatch until complete, with the waiting to be issued",
        }
    }
}

/// Samples of a test loop whose stalling load is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What a load takes that memory serves.
    #[serde(default = "not_told")]
    pub memory_latency: Quantity,
}

impl Calibration {
    /// One that tells nothing, and why.
    pub fn unresolved(why: &str) -> Self {
        let not_asked = || Quantity::unresolved(why);
        Self {
            one_behind: not_asked(),
            sample_cost: not_asked(),
            samples: 0,
            probe_cost: not_asked(),
            cache_latency: not_asked(),
            cache_latency_probed: not_asked(),
            memory_latency: not_asked(),
        }
    }
}

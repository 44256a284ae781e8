//! How a measurement went: settings, effort, blocks, and the grade it gives itself.

use serde::{Deserialize, Serialize};
use units::{Bytes, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The host's name, to find it in a fleet; only `gleaner probe` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    pub cpu: u32,
    /// The seed of all random orders, permutations and resamples.
    pub seed: u64,
    pub effort: Effort,
    pub seconds: f64,
    /// Rate of the time stamp counter, to turn ticks into time.
    pub tsc: Quantity,
    pub blocks: Blocks,
    pub grade: Grade,
    #[serde(default)]
    pub memory: Memory,
    /// The user stopped it before its end.
    #[serde(default)]
    pub interrupted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Quick,
    Normal,
    Thorough,
}

/// Memory that the measurement itself used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Memory {
    /// The largest area that was measured in: all that one experiment held at a time, for all of
    /// its threads together.
    pub largest_area: Bytes,
    /// The experiment that it belongs to.
    pub largest_in: String,
    /// The most memory that the process had at any time, in ordinary and transparent huge pages.
    pub peak: Bytes,
}

/// Blocks that count, and void blocks by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Blocks {
    pub valid: usize,
    pub voided: usize,
    pub stolen: usize,
    pub switched: usize,
    pub faulted: usize,
    pub clock_moved: usize,
    /// Valid ones that ran while other tasks were ready to run.
    pub in_company: usize,
    /// Valid ones during which another hyperthread of the core was at work, in this system or in
    /// another guest.
    pub core_shared: usize,
    /// Other tasks that were ready to run beside most blocks, void ones among them: the median.
    pub other_tasks: u32,
}

/// How far the figures of the run can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grade {
    pub verdict: Verdict,
    /// Why the grade is not better.
    pub reasons: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing relevant interfered.
    Quiet,
    /// Something interfered; the figures are valid, with wider intervals.
    Fair,
    /// Do not compare these figures with others before reading the reasons.
    Noisy,
}

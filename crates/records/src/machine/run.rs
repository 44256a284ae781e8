//! How a measurement went: settings, effort, blocks, and the grade it gives itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub cpu: u32,
    /// Orders, permutations and resamples all follow from it.
    pub seed: u64,
    pub effort: Effort,
    pub seconds: f64,
    /// Rate of the time stamp counter, to turn ticks into time.
    pub tsc: Quantity,
    pub blocks: Blocks,
    pub grade: Grade,
    /// The user stopped it before its end.
    #[serde(default)]
    pub interrupted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Quick,
    Normal,
    Thorough,
}

/// Blocks that count, and those that do not, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}

/// What the run thinks of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grade {
    pub verdict: Verdict,
    /// Whatever spoke against a better one.
    pub reasons: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing worth mentioning interfered.
    Quiet,
    /// Something did; figures stand, with wider intervals.
    Fair,
    /// Do not compare these figures with others before reading the reasons.
    Noisy,
}

//! Changes that were tried: the program run with and without them.

use super::FindingKind;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// One change, tried in pairs of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    pub kind: FindingKind,
    /// In words: what was changed.
    pub says: String,
    /// Which form of it, if there are several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    pub outcome: TrialOutcome,
    /// Pairs of runs.
    pub rounds: usize,
    /// Times of whole runs: the medians.
    pub without: Quantity,
    pub with: Quantity,
    /// How often as fast it is with the change.
    pub faster: Quantity,
    /// How likely such a difference is by chance (Student's t over the pairs' ratios; a permutation
    /// test in older records). What it is called goes by the interval.
    pub by_chance: f64,
    /// Whether its standard output and its end are the same; unknown if they differ from run to run
    /// without the change, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_output: Option<bool>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum TrialOutcome {
    Faster,
    Slower,
    /// None that is more than chance.
    NoDifference,
    /// It ran, and did something else.
    Failed {
        why: String,
    },
    NotTried {
        why: String,
    },
}

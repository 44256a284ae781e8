//! The run record: what became of a harvest.
//!
//! Figures that a run could not have are `{"unresolved": "why"}`. To add one: a field in the part
//! it belongs to, and the place in the crate `harvest` that puts the record together.

mod absence;
mod program;
mod siblings;
mod site;
mod slowdown;

pub use absence::{Absences, Bucket};
pub use program::{Ended, HomeTrip, Leave, Process, Proof, Scavenger, Times, TwinUsed};
pub use siblings::{SiblingThread, Siblings};
pub use site::{SiteRun, SwitchedOff};
pub use slowdown::Slowdown;

use crate::Record;
use crate::plan::{Bounds, Part};
use serde::{Deserialize, Serialize};
use units::{Quantity, WouldHelp};

/// What became of a harvest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    pub primary: Process,
    pub scavengers: Vec<Scavenger>,
    /// Of older runs: the primary's threads, where they were each other's guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<Siblings>,
    /// Of older runs: the scavengers ran together, and the primary only carried them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// Of older runs: for how long of that, or of the siblings' run, they ran apart, since together
    /// they did less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Quantity>,
    /// Why all programs ran as they are, each in a process of its own, and the scavengers where a
    /// CPU was idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    pub bounds: Bounds,
    /// Parts of the harvest that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Part>,
    /// Wall-clock time from the primary's start to its end.
    pub wall: Quantity,
    /// In older records, where it was never known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Cycles>,
    pub yields: Yields,
    pub absences: Absences,
    #[serde(default)]
    pub slowdown: Slowdown,
    /// The work of all of them in the same time, where that of one that has a processor alone is 1:
    /// the primary's, and the pace of each scavenger, also at home.
    #[serde(default = "program::not_told")]
    pub work: Quantity,
    #[serde(default)]
    pub sites: Vec<SiteRun>,
    #[serde(default)]
    pub switched_off: Vec<SwitchedOff>,
    /// What was asked for and not done, or only done in part.
    #[serde(default)]
    pub refusals: Vec<Refused>,
}

impl Record for Run {
    const KIND: &'static str = "run";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// What the primary's stalls gave to guests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cycles {
    /// Cycles in which the primary waited for memory.
    pub stalled: Quantity,
    /// Those of them in which guests ran.
    pub harvested: Quantity,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Yields {
    /// In older records, where it was never known: how often the primary yielded to guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Quantity>,
    /// How often guests yielded to each other or to the primary.
    pub guests: Quantity,
    /// In older records, where it was never known: the cost of one yield, in core cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Quantity>,
}

/// Something that was asked for and could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    pub what: String,
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_help: Option<String>,
}

impl WouldHelp for Refused {
    fn would_help(&self) -> Option<&str> {
        self.would_help.as_deref()
    }
}

//! What to do about the waiting.

use serde::{Deserialize, Serialize};
use units::Quantity;

/// Something that costs time, and what would help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    pub kind: FindingKind,
    /// The data that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where it costs most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// In words: what was seen, and what to change.
    pub says: String,
    /// Share of the CPU time that the change would save at most; the interval begins at zero where
    /// it may save nothing.
    pub gain: Quantity,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Threads write different data in one cache line.
    FalseSharing,
    /// Threads write the same data.
    TrueSharing,
    /// Memory was touched first by a thread on another node than those that use it.
    FirstTouch,
    /// Page faults cost time, or the TLB does not reach.
    HugePages,
    /// Addresses are known long before the data is needed.
    Prefetch,
    /// Each load takes its address from the one before: they are waited for one by one.
    Chain,
    /// The core waits until its stores are taken.
    Stores,
    /// Data that is used together lies in more cache lines than it must.
    Pad,
    /// Memory cannot deliver more.
    Bandwidth,
    /// Threads or memory are better off on other CPUs or nodes.
    Placement,
    /// In older records: other work could run in the stalls, which saves this program nothing.
    Harvest,
}

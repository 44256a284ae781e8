//! NUMA: where memory lies, and what that costs.

use super::Shot;
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Numa {
    /// The node of the CPU that measured the placements.
    pub local: u32,
    /// Nodes with memory that this process may use.
    pub nodes: Vec<u32>,
    /// Of each placement's memory.
    pub size: Bytes,
    pub placements: Vec<PlacementResult>,
    /// Every node with CPUs against every node with memory.
    pub matrix: Vec<NodePair>,
    /// Nodes that were left out, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlacementKind {
    /// Bound to the measuring CPU's node.
    Local,
    /// Bound to another node.
    Remote,
    /// Page by page over all nodes.
    Interleaved,
    /// Not placed at all: threads on all nodes touch pages first, at random.
    Off,
}

/// Pages found on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodePages {
    pub node: i32,
    pub pages: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacementResult {
    pub kind: PlacementKind,
    /// The nodes that were asked for.
    pub nodes: Vec<u32>,
    /// Where a sample of the pages was found, as the kernel says (`move_pages`).
    pub found: Vec<NodePages>,
    /// All of them where they were asked to be; for several nodes, all on these and none of these
    /// without any.
    pub as_asked: bool,
    /// Random loads, one after the other.
    pub latency: Latency,
    /// As many loads at once as [`PlacementResult::chains`], the time for each.
    pub parallel: Latency,
    pub chains: u32,
    /// How many loads were under way at once: the first figure over the second.
    pub parallelism: Quantity,
    /// N independent accesses between two readings of the clock, by N.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<Shot>,
    /// The largest N whose accesses take less time than two in sequence here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Quantity>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodePair {
    /// The node whose CPU loads.
    pub from: u32,
    pub cpu: u32,
    /// The node in whose memory it loads.
    pub to: u32,
    /// What firmware claims, 10 being local.
    pub distance_claimed: Quantity,
    pub latency: Latency,
    /// What this one CPU reads in sequence.
    pub read_rate: Quantity,
}

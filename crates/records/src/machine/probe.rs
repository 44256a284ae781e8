//! The fleet probe: few figures, measured in seconds, that hosts of the same hardware should share.

use super::PageSupply;
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

/// What `gleaner probe` measures. Each figure names the fault that it gives away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetProbe {
    /// Core clock while busy: a power cap, a wrong governor.
    pub core_clock: Quantity,
    /// Random loads in the last cache: a neighbour that takes its share of it.
    pub cache_latency: Latency,
    pub cache_area: Bytes,
    /// Random loads in memory: a wrong memory speed, another NPS or interleaving.
    pub memory_latency: Latency,
    /// The pages that this memory had.
    pub pages: PageSupply,
    pub memory_area: Bytes,
    /// The 95th percentile of its blocks over the 5th: traffic of neighbours comes and goes.
    pub memory_spread: Quantity,
    /// Random loads in memory in base pages: the price of page walks, nested ones in guests.
    pub small_pages_latency: Latency,
    /// Share of the memory that got huge pages when they were advised: THP off, or memory in
    /// fragments.
    pub huge_pages: Quantity,
    /// Random latency over that of an ascending stream: about one with prefetchers off.
    pub prefetch_gain: Quantity,
    /// What one CPU reads from memory.
    pub bandwidth_one: Quantity,
    /// What all CPUs read from memory together: a slow or missing DIMM takes its channel's share.
    pub bandwidth_all: Quantity,
    /// The same for copies, in bytes read and written.
    pub copy_all: Quantity,
    /// How many CPUs that were.
    pub threads: u32,
    /// Blocks that were void, as a share of all: stolen time, other tasks, a clock that moves.
    pub void_share: Quantity,
    /// One for each NUMA node with CPUs and memory, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ProbedNode>,
    /// Of the nodes' bandwidths the lowest over the highest: a slow or missing DIMM on one of them.
    pub node_balance: Quantity,
    /// Remarks on these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One NUMA node, used by its own CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedNode {
    pub node: u32,
    /// CPUs that read.
    pub threads: u32,
    pub latency: Latency,
    /// What all its CPUs read from its memory.
    pub bandwidth: Quantity,
}

impl FleetProbe {
    /// The figures of the whole host, by the names that limits use.
    pub fn figures(&self) -> [(&'static str, &Quantity); 12] {
        [
            ("core_clock", &self.core_clock),
            ("cache_latency", &self.cache_latency.ns),
            ("memory_latency", &self.memory_latency.ns),
            ("memory_spread", &self.memory_spread),
            ("small_pages_latency", &self.small_pages_latency.ns),
            ("huge_pages", &self.huge_pages),
            ("prefetch_gain", &self.prefetch_gain),
            ("bandwidth_one", &self.bandwidth_one),
            ("bandwidth_all", &self.bandwidth_all),
            ("copy_all", &self.copy_all),
            ("void_share", &self.void_share),
            ("node_balance", &self.node_balance),
        ]
    }
}

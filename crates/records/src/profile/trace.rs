//! All accesses of a run, through a model of the caches.

use serde::{Deserialize, Serialize};
use units::{Bytes, Quantity};

/// What a model of the caches makes of all accesses of a second run. Its figures are modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    pub model: CacheModel,
    /// Loads and stores that were traced, stack and string instructions among them. The kernel's
    /// are none of them.
    pub accesses: u64,
    /// Share of the CPU time outside the kernel, by the samples of the first run, that was spent in
    /// code whose accesses are traced.
    pub covered: Quantity,
    /// How many times as long the traced run took.
    pub slowdown: Quantity,
    /// Shares of the accesses by what serves them.
    pub by_level: TracedLevels,
    /// Bytes that memory read and wrote in the whole run. What the caches hold at the end is not
    /// written back yet.
    pub read: Quantity,
    pub written: Quantity,
    /// Those instructions that most lines come from memory for, most first.
    pub instructions: Vec<TracedInstruction>,
    /// Modules in which time was spent, and which were not traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<ModuleLeftOut>,
}

/// The caches that were modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheModel {
    #[serde(rename = "L1")]
    pub l1: Bytes,
    #[serde(rename = "L2")]
    pub l2: Bytes,
    #[serde(rename = "L3")]
    pub l3: Bytes,
    /// It holds what L2 replaces, and not what L2 holds.
    pub l3_is_victim: bool,
    /// Entries of the translation buffers, and the size of pages.
    pub tlb_first: u32,
    pub tlb_second: u32,
    pub page: Bytes,
    /// Cores that have an L1 and an L2 each; threads are dealt out to them in turn.
    pub cores: u32,
    /// Where the sizes are from, and what was changed in them.
    pub because: String,
}

/// Shares of accesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedLevels {
    #[serde(rename = "L1")]
    pub l1: Quantity,
    #[serde(rename = "L2")]
    pub l2: Quantity,
    #[serde(rename = "L3")]
    pub l3: Quantity,
    #[serde(rename = "DRAM")]
    pub dram: Quantity,
    /// Those beyond L2 that a prefetcher would have seen coming, as neighbours of earlier ones.
    pub expected: Quantity,
    /// Those whose translation takes a walk of the page tables.
    pub walks: Quantity,
}

/// An instruction that accesses memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedInstruction {
    /// Bytes that are not valid UTF-8 are written as `\xHH`.
    pub module: String,
    pub address: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub instruction: String,
    pub accesses: u64,
    /// Lines that memory was asked for; a string instruction may ask for many each time.
    pub lines_from_memory: u64,
    pub by_level: TracedLevels,
}

/// A module that was not traced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleLeftOut {
    pub module: String,
    /// Share of the CPU time that was spent in it.
    pub time: Quantity,
    pub why: String,
}

/// What memory moves in one stretch of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthSlice {
    /// Of the first run, in seconds since it began.
    pub from: Quantity,
    pub to: Quantity,
    pub read: Quantity,
    pub write: Quantity,
    /// Both together, as a share of the most that this machine's memory delivers.
    pub of_maximum: Quantity,
    /// The function that most of it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

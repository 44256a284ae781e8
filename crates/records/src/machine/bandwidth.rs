//! Bandwidth: what caches and memory move, and what a load costs meanwhile.

use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bandwidth {
    /// The most that the CPUs of this run drew from memory by any operation, in bytes that the
    /// program moves.
    pub platform_maximum: Quantity,
    /// Which operation that was, on how many threads.
    pub platform_maximum_by: String,
    /// The most that one CPU drew from memory.
    pub single_maximum: Quantity,
    pub single_maximum_by: String,
    /// Bytes that one load or store moves.
    pub vector_bytes: u32,
    /// The CPUs in the order in which they join.
    pub order: Vec<u32>,
    /// What is counted for each operation.
    pub counting: Vec<Counting>,
    pub streams: Vec<StreamRate>,
    /// Latency beside traffic; none on a single CPU.
    #[serde(default)]
    pub loaded: Vec<LoadedCurve>,
    /// Remarks on these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    Read,
    Write,
    Copy,
    /// Computes `a = b + 3 c`.
    Triad,
    /// Stores that go past the caches.
    NtWrite,
    NtCopy,
}

impl StreamKind {
    /// As tables and CSV spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Triad => "triad",
            Self::NtWrite => "nt-write",
            Self::NtCopy => "nt-copy",
        }
    }
}

/// For each 64 bytes of each array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counting {
    pub operation: StreamKind,
    /// Bytes that the program loads and stores: these make the bandwidths here.
    pub moved: u32,
    /// Bytes that are read besides because a line is fetched before it is overwritten, where the
    /// processor does not avoid that. Not counted.
    pub write_allocate: u32,
}

/// What starting each pass over the arrays costs is part of it, which matters in a first-level
/// cache only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamRate {
    pub operation: StreamKind,
    /// `L1`, `L2`, `L3` or `DRAM`: where the arrays fit, by what the host claims.
    pub within: String,
    /// All arrays of one thread together.
    pub size: Bytes,
    pub threads: u32,
    /// Of all threads together, in bytes that the program moves.
    pub rate: Quantity,
    /// The slowest and the fastest thread's share of it.
    pub slowest_thread: Quantity,
    pub fastest_thread: Quantity,
}

/// Latency over bandwidth: one CPU chases a chain in memory while the others stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedCurve {
    pub traffic: StreamKind,
    /// The CPU that chases.
    pub cpu: u32,
    /// How many stream.
    pub streams: u32,
    /// From no traffic to as much as they can.
    pub points: Vec<LoadedPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedPoint {
    /// Core cycles, at least, that each stream pauses for each 256 bytes of each array; absent
    /// where nothing streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
    /// Streams and chaser together, in bytes that the programs move.
    pub rate: Quantity,
    pub latency: Latency,
}

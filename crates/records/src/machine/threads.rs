//! Several threads at once, each chasing its own chain: what they take from each other, and which
//! caches they share.

use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threads {
    /// CPUs in the order in which they join: whole cores first, siblings of a busy core last.
    pub order: Vec<u32>,
    /// By size, then by number of threads.
    pub crowds: Vec<Crowd>,
    /// Whether pairs of CPUs share a cache, by level.
    pub sharing: Vec<Sharing>,
    /// Remarks on these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Several threads at once, each over its own memory of this size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crowd {
    /// The level that a thread's memory lies in when it is alone, by what the host claims.
    pub within: String,
    /// Of each thread.
    pub size: Bytes,
    pub threads: u32,
    /// The median thread's.
    pub latency: Latency,
    /// Against one thread alone.
    pub slowdown: Quantity,
    /// In the order in which they joined.
    pub per_thread: Vec<ThreadLatency>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadLatency {
    pub cpu: u32,
    pub ns: Quantity,
}

/// Is a cache of one CPU also another's?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sharing {
    /// `L1`, `L2`, …
    pub level: String,
    pub cpus: [u32; 2],
    pub nearness: Nearness,
    pub test: SharingTest,
    /// Of the first CPU's chain.
    pub size: Bytes,
    /// The first CPU's latency in that test, against its latency while the second one keeps to a
    /// few lines of its own.
    pub ratio: Quantity,
    /// What the ratio shows; absent if it is not conclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// What sysfs states; absent if it states nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<bool>,
}

/// How sharing is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SharingTest {
    /// Both CPUs' chains fill more than half of what is claimed: a slowdown shows that they share
    /// one cache.
    PushedOut,
    /// The second CPU has just written the lines that the first one reads: they are near if the
    /// cache is common to both, and far away if not. A slowdown shows that they do *not* share it.
    HandedOn,
}

/// How close two CPUs are, by what the host claims: the closest that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// Two hardware threads of one core.
    SameCore,
    /// Two cores under one last-level cache.
    SameLastCache,
    /// On one NUMA node, under different last-level caches.
    SameNode,
    SamePackage,
    OtherPackage,
    /// The host does not report enough.
    Unknown,
}

impl Nearness {
    /// As tables and CSV spell it.
    pub fn words(self) -> &'static str {
        match self {
            Self::SameCore => "same core",
            Self::SameLastCache => "same last cache",
            Self::SameNode => "same node",
            Self::SamePackage => "same package",
            Self::OtherPackage => "other package",
            Self::Unknown => "unknown",
        }
    }
}

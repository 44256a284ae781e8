//! Latency over size: curves for each pattern, kind of access and kind of page.

use serde::{Deserialize, Serialize};
use units::{Bytes, Latency};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyCurves {
    /// Size of a cache line, as the host claims it: the distance of neighbouring nodes.
    pub line: Bytes,
    pub curves: Vec<Curve>,
    /// Single loads, each timed by itself, inside each level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub single: Vec<SingleLoads>,
    /// Kinds of pages that were requested and not available, and why.
    #[serde(default)]
    pub pages_refused: Vec<PagesRefused>,
}

/// How the times of single loads from one level are spread. Each load waits for the one before it;
/// percentiles are of each block, and the figure is the median over the blocks, less `clock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SingleLoads {
    /// `L1`, `L2`, `L3`, … `DRAM`.
    pub level: String,
    /// The area that the loads read, at random.
    pub area: Bytes,
    pub pages: PageSupply,
    /// Loads that were timed, in blocks that count.
    pub shots: u64,
    /// What reading the clock takes without a load: taken off the others.
    pub clock: Latency,
    /// Half of the loads take less.
    pub p50: Latency,
    /// 99% take less.
    pub p99: Latency,
    /// 99.9% take less.
    pub p999: Latency,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagesRefused {
    pub pages: String,
    pub why: String,
    pub would_help: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    pub pattern: Pattern,
    pub access: Access,
    pub pages: PageSupply,
    /// Ascending in size.
    pub points: Vec<Point>,
}

/// The order in which memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One random cycle through all lines.
    Random,
    /// Random inside windows of a few pages, window after window: few TLB misses.
    Windowed,
    Forward,
    Backward,
    /// Forward, but several lines at a time.
    Stride,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    /// Every line is written as well, so that evicted lines are dirty.
    ReadModifyWrite,
}

/// Pages that were asked for, and what the kernel gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageSupply {
    /// `4K`, `thp`, `2M` or `1G`.
    pub asked: String,
    /// Share of the memory that has such pages, as smaps says.
    pub share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    pub size: Bytes,
    /// Distance of neighbouring nodes.
    pub pitch: Bytes,
    pub latency: Latency,
    /// The fastest block and the 5th and 95th percentile of blocks, in nanoseconds.
    pub min_ns: f64,
    pub p05_ns: f64,
    pub p95_ns: f64,
    /// The 5th percentile of blocks in core cycles, each by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p05_cycles: Option<f64>,
    pub blocks: usize,
    pub voided: usize,
}

impl Pattern {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Windowed => "windowed",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Stride => "stride",
        }
    }
}

impl Access {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadModifyWrite => "read_modify_write",
        }
    }
}

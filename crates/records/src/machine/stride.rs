//! Latency over stride and size, and what it reveals of lines and prefetchers.

use super::PageSupply;
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stride {
    /// Size of a cache line: the smallest distance at which two words are not loaded together.
    pub line: Quantity,
    pub line_claimed: Quantity,
    pub pages: PageSupply,
    /// Ascending in size, then by direction, then in stride.
    pub points: Vec<StridePoint>,
    /// Two neighbouring words at a random place, over their distance.
    pub pairs: Vec<PairPoint>,
    /// How far strides may reach for prefetchers to follow, for each size that the first cache does
    /// not hold.
    pub followed: Vec<StrideFollowed>,
    /// What a stream through memory saves at each page boundary against one that has to begin anew
    /// in each page, in nanoseconds: about nothing where prefetchers stop at pages.
    pub page_boundary: Quantity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Forward,
    Backward,
    /// One random cycle over the same lines: what no prefetcher follows.
    Random,
    /// Ascending inside pages, page after page at random.
    Pages,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StridePoint {
    pub size: Bytes,
    pub stride: Bytes,
    pub direction: Direction,
    /// Of one access. Every line of the area is accessed, whatever the stride.
    pub latency: Latency,
    pub blocks: usize,
    pub voided: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairPoint {
    pub distance: Bytes,
    /// Mean of the two accesses.
    pub latency: Latency,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StrideFollowed {
    pub size: Bytes,
    /// The longest ascending stride that is faster than a random order; the interval ends where it
    /// no longer is.
    pub forward: Quantity,
    pub backward: Quantity,
    /// How many times faster than a random order the best one is.
    pub gain: Quantity,
}

impl Direction {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Random => "random",
            Self::Pages => "pages",
        }
    }
}

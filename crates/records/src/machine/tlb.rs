//! Translation buffers: how many pages each level holds, and what it costs to miss it.

use super::{PageSupply, PagesRefused};
use serde::{Deserialize, Serialize};
use units::{Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tlb {
    /// One for each kind of page.
    pub kinds: Vec<TlbOfPages>,
    #[serde(default)]
    pub pages_refused: Vec<PagesRefused>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbOfPages {
    pub pages: PageSupply,
    /// Nearest first.
    pub levels: Vec<TlbLevel>,
    /// Of all passes, in their order.
    pub points: Vec<TlbPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbLevel {
    pub level: u32,
    /// Pages that it holds.
    pub entries: Quantity,
    /// What CPUID says of that.
    pub claimed: Quantity,
    /// The additional cost of a load that misses this level.
    pub miss: Latency,
    pub then: AfterMiss,
    /// What each pass, on memory and in an order of its own, found of the entries.
    pub passes: Vec<Quantity>,
}

/// Where the translation comes from after a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AfterMiss {
    NextLevel,
    /// From the page tables, most of them in caches.
    Walk,
    /// No further level was found as far as was measured.
    Unknown,
}

/// A pair of chains: the same number of lines, read in the same manner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbPoint {
    pub pass: u32,
    /// Pages, and lines.
    pub pages: u64,
    /// Core cycles of a step where every line lies on a page of its own.
    pub spread: Quantity,
    /// The same where the lines lie side by side.
    pub packed: Quantity,
}

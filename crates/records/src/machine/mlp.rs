//! Memory-level parallelism: how many misses are served at once.

use super::{PageSupply, PagesRefused};
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mlp {
    /// One for each kind of page: with small ones a page walk comes to most misses.
    pub kinds: Vec<MlpOfPages>,
    #[serde(default)]
    pub pages_refused: Vec<PagesRefused>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MlpOfPages {
    pub pages: PageSupply,
    /// Huge pages on host and guest: `H0G1` means enabled on the host and disabled in the guest;
    /// `?` where no program can tell from inside, and no `G` where there is no guest.
    pub combination: String,
    /// The area that is accessed.
    pub area: Bytes,
    /// The largest number of independent accesses that take less time than two in sequence.
    pub effective: Quantity,
    /// Two accesses in sequence: the second one depends on the first.
    pub in_sequence: Latency,
    /// The same number, where the two in sequence are independent ones so far apart in the program
    /// that the core cannot hold both, as the experiment was first published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_by_gap: Option<Quantity>,
    /// As `effective_by_gap`, with the two not just beyond the cliff but 2000 fillers apart, where
    /// sweeps over the gap end: larger, for the time of 2000 fillers counts as that of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_by_far_gap: Option<Quantity>,
    /// N independent accesses, by N. Times of shots include reading the clock: see `empty`.
    pub bursts: Vec<Shot>,
    /// Two independent accesses, by the number of fillers between them.
    pub gaps: Vec<GapShot>,
    /// The largest gap at which the two still overlap.
    pub cliff: Quantity,
    /// Bursts with fillers before their last access: a curve over the fillers for each N.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<BurstCurve>,
    /// Bursts of each N in areas of all sizes, each area walked before; of one kind of page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaBursts>,
    /// As `effective`, with CPUID for a fence as the experiment was first published; not on guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_by_cpuid: Option<Quantity>,
    /// The same experiment with the translations of all accesses at hand, so that no page walk
    /// mixes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated: Option<Translated>,
    /// What a shot without any access takes.
    pub empty: Latency,
    /// n dependent accesses, by n.
    pub sequence: Vec<Shot>,
    pub line: SequenceLine,
    /// k chains side by side, by k.
    pub chains: Vec<ChainsPoint>,
    /// The fewest chains that come within a twentieth of the highest throughput.
    pub saturation: Quantity,
    /// Accesses in flight on average at the highest throughput: a lone access's time over the time
    /// per access then.
    pub sustained: Quantity,
    /// Time per access at the highest throughput.
    pub per_access: Latency,
}

/// Misses without page walks: each page was touched just before, at a line that is not accessed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Translated {
    pub effective: Quantity,
    pub in_sequence: Latency,
    pub bursts: Vec<Shot>,
}

/// A shot of some accesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shot {
    pub accesses: u32,
    pub time: Latency,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapShot {
    /// No-operations of one byte.
    pub gap: u32,
    pub time: Latency,
}

/// N accesses, the last one behind fillers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstCurve {
    /// N.
    pub accesses: u32,
    /// Ascending in the number of fillers.
    pub points: Vec<GapShot>,
}

/// Bursts in one area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AreaBursts {
    pub area: Bytes,
    /// By N. Times include reading the clock: see `empty`.
    pub bursts: Vec<Shot>,
}

/// `T(n) = n·M + C`, with every measured T(n) within its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequenceLine {
    /// M: one access.
    pub per_access: Latency,
    /// C: what comes to every shot, however many accesses.
    pub constant: Latency,
    /// No line meets all intervals: the ticks by which each half of an interval was made wider.
    pub widened: Quantity,
    /// The numbers of accesses whose intervals contradict each other most; empty where none do.
    pub conflict: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainsPoint {
    pub chains: u32,
    /// Time in which every chain takes one step.
    pub round: Latency,
}

//! Loads that the core waited for.

use super::{TracedLevels, not_told};
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A load that the core waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallingLoad {
    /// Bytes that are not valid UTF-8 are written as `\xHH`.
    pub module: String,
    /// The GNU build id of the module, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Address in the ELF file (as `objdump` shows it), without load bias.
    pub address: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Functions that were inlined there, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub instruction: String,
    /// The program that waited most for it, where all processes of the machine were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Share of the CPU time in which the core waited for it.
    pub stall: Quantity,
    pub samples: u64,
    /// Threads that waited for it.
    pub threads: usize,
    /// How long it takes, measured by probes: the thread is stopped right before it, and what it
    /// reads is read and timed. Misses that other loads would have started meanwhile are not seen.
    /// Of hardware samples, the average; `sampling` says what a latency is. Modelled by the level
    /// where probes come too late: what is read ahead, or in a cache that stopping has changed.
    pub latency: Quantity,
    /// Its part of the latency of all sampled loads; only hardware samples tell.
    #[serde(default = "not_told")]
    pub latency_share: Quantity,
    /// Share of its probes that took as long as memory does, not a cache.
    #[serde(default = "not_told")]
    pub from_memory: Quantity,
    /// How often it was probed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub probes: u64,
    /// The level that served it most often, or, where hardware tells, cost it most latency.
    pub level: Level,
    /// What each level cost it, most first; only hardware samples tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_level: Vec<LevelShare>,
    /// What serves it by the model of the caches, if the run was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedLevels>,
    /// Share of its samples whose address was translated by a walk of the page tables; only
    /// hardware samples tell.
    #[serde(default = "not_told")]
    pub translation: Quantity,
    /// Share of its samples that were locked operations; only hardware samples tell.
    #[serde(default = "not_told")]
    pub locked: Quantity,
    /// Neither L1 nor L2 serves it, even where the level is not resolved.
    #[serde(default)]
    pub beyond_l2: bool,
    /// Why that level, or why none.
    pub level_because: String,
    pub pattern: Pattern,
    /// How far apart the addresses are that it reads one after the other, if that is nearly always
    /// the same; measured by probes.
    #[serde(default = "not_told")]
    pub stride: Quantity,
    /// How much memory its addresses are spread over. The interval has no upper end if no address
    /// was seen twice: then the value is a lower bound.
    pub footprint: Quantity,
    /// The object that holds most of the addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Who calls it most often, the innermost caller first; by samples that have a stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
    /// Share of its samples with a stack in which these are the callers.
    #[serde(default = "no_stacks")]
    pub callers_share: Quantity,
    /// How long the core waits each time the load runs: modelled from the samples of the
    /// instructions beside it, which run as often.
    #[serde(default = "not_told")]
    pub stall_each: Quantity,
    /// Share of the CPU time that would be left for other work if the program yielded each time
    /// before this load: its stall less the yields' own cost.
    pub harvestable: Quantity,
}

fn no_stacks() -> Quantity {
    Quantity::unresolved("none of its samples has a stack")
}

/// What a load's samples show of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelShare {
    pub level: Level,
    /// Share of the load's latency, or of its samples where they hold no latency.
    pub share: Quantity,
    pub samples: u64,
    /// The average of what this level served.
    pub latency: Quantity,
}

/// What served a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Level {
    L1,
    L2,
    L3,
    #[serde(rename = "DRAM")]
    Dram,
    #[serde(rename = "remote")]
    Remote,
    /// The cache of another core, which had modified the line.
    #[serde(rename = "dirty")]
    Dirty,
    /// A miss that an earlier load started (line fill buffer hit).
    #[serde(rename = "in_flight")]
    InFlight,
    #[serde(rename = "unresolved")]
    Unresolved,
}

impl Level {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::Dram => "DRAM",
            Self::Remote => "remote",
            Self::Dirty => "dirty",
            Self::InFlight => "in_flight",
            Self::Unresolved => "unresolved",
        }
    }
}

/// How a load's addresses follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Each address comes from the value loaded before: misses cannot overlap.
    Chain,
    /// Addresses do not depend on values loaded before: misses overlap until a queue is full.
    Parallel,
    /// Addresses ascend or descend steadily.
    Stream,
    Unresolved,
}

impl Pattern {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Parallel => "parallel",
            Self::Stream => "stream",
            Self::Unresolved => "unresolved",
        }
    }
}

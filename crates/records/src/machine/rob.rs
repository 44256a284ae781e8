//! How far a core looks ahead: cliffs in the time of two misses, by what stands between them.

use super::PageSupply;
use serde::{Deserialize, Serialize};
use units::{Bytes, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rob {
    pub pages: PageSupply,
    /// The area that is accessed.
    pub area: Bytes,
    /// Entries of the re-order buffer, from the mixed filler, which uses few entries of every other
    /// resource.
    pub entries: Quantity,
    /// No-operations (one byte) that share an entry.
    pub nops_per_entry: Quantity,
    /// One for each filler.
    pub cliffs: Vec<Cliff>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cliff {
    /// `nop1` to `nop9`, `int_add`, `vector_add`, `alternating`, `mixed`, `load`, `store`,
    /// `branch`, `taken_branch`, `cmp`.
    pub filler: String,
    /// Fillers between two misses beyond which these no longer overlap.
    pub gap: Quantity,
    pub runs_out: RunsOut,
    /// The number of entries that a program can use.
    pub capacity: Quantity,
    /// The same in words.
    pub meaning: String,
    /// Core cycles of a pair of misses, ascending in gap.
    pub points: Vec<GapPoint>,
}

/// The resource that is exhausted at a cliff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunsOut {
    ReorderBuffer,
    /// The re-order buffer, several of these instructions having shared each entry.
    SharedEntries,
    IntegerRegisters,
    VectorRegisters,
    /// Registers of one kind although two are used in turn, or something else that both share.
    Registers,
    Flags,
    LoadQueue,
    StoreQueue,
    Branches,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapPoint {
    pub gap: u32,
    pub cycles: Quantity,
}

//! What is said of a load by the rooms that find it, plan for it and rewrite it.

use serde::{Deserialize, Serialize};

/// What static analysis knows of a load's address. Its probability of missing depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadClass {
    /// The same instruction loaded it in the previous iteration: a pointer chase.
    Chased,
    /// Another instruction of the loop loaded it: a field of an object behind a pointer.
    Pointed,
    /// Its index was loaded from memory: a gather.
    Gathered,
    /// Its index is computed by more than additions, as in hashing.
    Scattered,
    /// It moves by the same distance in each iteration: hardware prefetchers predict it.
    Strided,
    /// It does not change in its loop.
    Fixed,
    /// The load is in no loop of its function, and its address is a pointer loaded from memory.
    Loose,
    /// None of these.
    Unknown,
}

impl LoadClass {
    /// As records spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chased => "chased",
            Self::Pointed => "pointed",
            Self::Gathered => "gathered",
            Self::Scattered => "scattered",
            Self::Strided => "strided",
            Self::Fixed => "fixed",
            Self::Loose => "loose",
            Self::Unknown => "unknown",
        }
    }
}

/// The instruction that fetches a line ahead of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Prefetch {
    /// `prefetcht0`.
    Read,
    /// `prefetchw`: the program writes the line soon.
    Write,
}

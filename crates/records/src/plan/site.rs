//! Loads: those that give way, and those that do not.

use super::Gain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load before which its program gives way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    #[serde(flatten)]
    pub place: Place,
    pub class: LoadClass,
    pub prefetch: Prefetch,
    /// How many loops it lies in, of those its function shows.
    pub loop_depth: u32,
    /// Further loads, by address, whose lines the same yield fetches.
    #[serde(default)]
    pub with: Vec<u64>,
    pub live: Live,
    pub gain: Gain,
}

/// A loop that busy-waits: before this instruction its program yields, as long as it waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spin {
    #[serde(flatten)]
    pub place: Place,
    pub waits_for: WaitsFor,
    pub loop_depth: u32,
    pub live: Live,
}

/// What lets a program out of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A time.
    Clock,
    /// Memory that another thread or program writes.
    Memory,
    /// It says `pause`: whatever it is.
    Pause,
}

impl WaitsFor {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clock => "the time",
            Self::Memory => "somebody's store",
            Self::Pause => "something, with `pause`",
        }
    }
}

/// Where in a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Stated address: as the file's headers say, before it is loaded anywhere.
    pub address: u64,
    pub instruction: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Bytes behind the function's first.
    pub offset: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
}

/// What is known of a load's address without running it: what its probability of missing hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadClass {
    /// It was loaded by the same instruction a round ago: a chase.
    Chased,
    /// It was loaded by another instruction of the loop: a field of what a pointer leads to.
    Pointed,
    /// Its index was loaded: a gather.
    Gathered,
    /// Its index was computed by more than adding: a hash.
    Scattered,
    /// It moves by the same distance each round: prefetchers foresee it.
    Strided,
    /// It stays where it is in its loop.
    Fixed,
    /// In no loop that its function shows, but through a pointer that was loaded.
    Loose,
    /// Nothing of this could be told.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prefetch {
    /// `prefetcht0`.
    Read,
    /// `prefetchw`: the line is written soon.
    Write,
}

/// What must be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    pub general: Vec<String>,
    pub vectors: u32,
    pub masks: u32,
    pub flags: bool,
}

/// A load that was left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rejected {
    #[serde(flatten)]
    pub place: Place,
    pub class: LoadClass,
    pub loop_depth: u32,
    pub because: Because,
    /// In words, with figures.
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The yield costs more than the miss, as often as it happens.
    DoesNotPay,
    /// A neighbour's yield fetches its line.
    ServedByNeighbour,
    /// Its line was fetched by an earlier access to the same object.
    SameLine,
    /// Twins cannot put a yield there.
    NoTwin,
    /// The plan was limited to fewer sites.
    Limit,
    /// The user excluded it.
    Excluded,
}

impl LoadClass {
    /// As the record spells it.
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

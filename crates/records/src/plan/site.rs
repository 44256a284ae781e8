//! Loads: those that get a yield, and those that do not.

use super::Gain;
use serde::{Deserialize, Serialize};
use units::load::{LoadClass, Prefetch};

/// A load with a yield before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    #[serde(flatten)]
    pub place: Place,
    pub class: LoadClass,
    pub prefetch: Prefetch,
    /// The number of loops around it, as far as its function's code shows them.
    pub loop_depth: u32,
    /// Addresses of further loads whose lines the same yield prefetches.
    #[serde(default)]
    pub with: Vec<u64>,
    pub live: Live,
    pub gain: Gain,
}

/// Of older plans: a loop that busy-waits, in each iteration of which the program yielded before
/// this instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spin {
    #[serde(flatten)]
    pub place: Place,
    pub waits_for: WaitsFor,
    pub loop_depth: u32,
    pub live: Live,
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A time.
    Clock,
    /// Memory that another thread or program writes.
    Memory,
    /// The loop executes `pause`; what ends it is not known.
    Pause,
}

/// Where in a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Address in the ELF file (as `objdump` shows it), without load bias.
    pub address: u64,
    pub instruction: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Offset from the start of the function, in bytes.
    pub offset: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
}

/// Registers that the yield must save.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    pub general: Vec<String>,
    pub vectors: u32,
    pub masks: u32,
    pub flags: bool,
}

/// A load that gets no yield.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rejected {
    #[serde(flatten)]
    pub place: Place,
    pub class: LoadClass,
    pub loop_depth: u32,
    pub because: Because,
    /// The reason in words, with figures.
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The yield costs more than the expected gain.
    DoesNotPay,
    /// The yield of a neighbouring load prefetches its line.
    ServedByNeighbour,
    /// An earlier access to the same object fetched its line.
    SameLine,
    /// A twin cannot have a yield there.
    NoTwin,
    /// The plan was limited to fewer sites.
    Limit,
    /// The user excluded it.
    Excluded,
}

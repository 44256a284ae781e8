//! Lines of scripts, which an interpreter runs.

use serde::{Deserialize, Serialize};
use units::Quantity;

/// A line of a script: what its interpreter did for it, by the samples that have a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptLine {
    /// As `Python`.
    pub language: String,
    pub file: String,
    pub function: String,
    pub line: u32,
    /// Share of the CPU time.
    pub time: Quantity,
    /// Share of the CPU time in which the core waited for loads of the interpreter, or of what it
    /// called, while it ran this line.
    pub stall: Quantity,
    /// The function that most of these loads are in: the interpreter's eval loop, or what it
    /// called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_in: Option<String>,
    /// What that function reads, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Samples with a stack in which this was the innermost line.
    pub samples: u64,
}

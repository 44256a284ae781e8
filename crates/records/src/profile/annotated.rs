//! The code of functions that took time, with the samples of each instruction.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// A function, with its instructions around those that were sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnnotatedFunction {
    /// Bytes that are no text stand as `\xHH`.
    pub module: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Stated address of its first byte: as the file's headers say, before it is loaded anywhere.
    pub address: u64,
    /// Of all of its instructions.
    pub samples: u64,
    /// By ascending address. What is further than a few instructions away from any sample is left
    /// out: then the next one does not begin where the one before ends.
    pub instructions: Vec<AnnotatedInstruction>,
}

/// An instruction with the samples that are put down to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnnotatedInstruction {
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u32,
    /// In Intel's syntax.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Samples in which the core waited for this instruction; for one that has no operand in
    /// memory, samples that landed on it and mean that it waited for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// It reads or writes memory, and its samples are the core's waiting for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_waited_for: bool,
}

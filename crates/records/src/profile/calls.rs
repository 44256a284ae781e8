//! Who called what was sampled.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Who called what was sampled: a tree of calls, by samples of an event of their own that copies
/// the stack, slower than those that the other figures are from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallTree {
    /// Samples with a stack. Nodes count all samples of the run: those of a function in the
    /// proportions of its stacks.
    pub samples: u64,
    /// Of those, without their outermost frames: their stacks are deeper than what is copied, or
    /// code on the way has no unwind information.
    pub cut_off: u64,
    /// The same by their reasons, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off_because: Vec<CutOffStacks>,
    /// Samples that were lost.
    pub lost: u64,
    /// What nodes stand for.
    pub frames: Vec<CallFrame>,
    /// A caller comes before what it calls.
    pub nodes: Vec<CallNode>,
}

/// Samples whose stacks are known without their outermost frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CutOffStacks {
    pub why: String,
    pub samples: u64,
}

/// A function, or a line of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFrame {
    /// The function; one without a name by its file and stated address, as `libc.so.6+0x2a140`. For
    /// the outermost frame, the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file that its code is from. Bytes that are no text stand as `\xHH`. None for the frame
    /// of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Stated address of an instruction there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its code is part of its caller's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inlined: bool,
}

/// A frame as called by the frame of another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallNode {
    /// Index of the caller's node; none for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<usize>,
    /// Index of its frame.
    pub frame: usize,
    /// Samples in this frame itself, not in what it calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Of those, while the core waited for a load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stall: u64,
}

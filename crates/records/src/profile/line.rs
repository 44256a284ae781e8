//! Cache lines that threads share.

use super::not_told;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A cache line that several threads use, at least one of which writes: threads of one process, or
/// of several that share memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedLine {
    pub sharing: Sharing,
    pub process: u32,
    /// All processes that use it, if it lies in memory that several share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<u32>,
    /// Where the line begins in the process.
    pub address: u64,
    /// The object that holds most of what is accessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Share of the CPU time in which the core waited for it.
    pub stall: Quantity,
    /// Share of the latency of all sampled loads that is due to its sharing; only hardware samples
    /// tell.
    #[serde(default = "not_told")]
    pub latency_share: Quantity,
    /// By offset and thread.
    pub parts: Vec<LinePart>,
}

/// What threads do to one another on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Sharing {
    /// They use different bytes of it at the same time.
    #[serde(rename = "false")]
    False,
    /// They use the same bytes of it at the same time.
    #[serde(rename = "true")]
    True,
    /// They write to this line and to the next one: they would share one line at another alignment,
    /// or where the processor fetches lines in pairs.
    #[serde(rename = "latent")]
    Latent,
}

impl Sharing {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::False => "false",
            Self::True => "true",
            Self::Latent => "latent",
        }
    }
}

/// The accesses of one thread at one offset of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinePart {
    /// Bytes from the line's beginning; 64 and more are in the next line.
    pub offset: u32,
    pub bytes: u32,
    /// The process of the thread, if several use the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    pub thread: u32,
    /// How this part is shared; none where it does not disturb, or too few samples tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// Samples that waited for instructions which only read it.
    pub reads: u64,
    /// Samples that waited for instructions which write it, or read it and write it nearby.
    pub writes: u64,
    /// Share of the CPU time in which the core waited for it.
    pub stall: Quantity,
    /// Share of the latency of all sampled loads that is due to its sharing.
    #[serde(default = "not_told")]
    pub latency_share: Quantity,
    /// The object there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where the allocation begins that it lies in, in the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<u64>,
    /// The code that waited most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

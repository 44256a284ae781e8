//! From cache to cache: what handing a line to another CPU costs, and what sharing a line by
//! mistake does.

use super::Nearness;
use serde::{Deserialize, Serialize};
use units::{Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheToCache {
    /// CPUs between which lines were handed over.
    pub cpus: Vec<u32>,
    /// Pairs there are, each direction counted; more than were measured where there are too many.
    pub pairs_possible: usize,
    pub pairs: Vec<Transfer>,
    /// The same by how close the two CPUs are.
    pub classes: Vec<TransferClass>,
    pub false_sharing: Vec<FalseSharing>,
    /// Remarks on these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A line handed over and back, half a round trip: the other side's store is seen, and the line is
/// then taken over to be written, which are two messages on most processors. Over many lines, as
/// their addresses matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transfer {
    /// The CPU that has the first turn.
    pub from: u32,
    pub to: u32,
    pub nearness: Nearness,
    /// The node whose memory the lines are of, where there are several nodes: pairs of CPUs on
    /// two nodes are measured with the lines at home on either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u32>,
    pub latency: Latency,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferClass {
    pub nearness: Nearness,
    pub pairs_possible: usize,
    pub pairs_measured: usize,
    /// The median pair; the interval spans the pairs' own.
    pub ns: Quantity,
}

/// Two CPUs that count, each in a word of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FalseSharing {
    pub cpus: [u32; 2],
    pub nearness: Nearness,
    /// By atomic (locked) additions or by plain ones.
    pub locked: bool,
    /// Each word on lines of its own, for each count.
    pub apart: Latency,
    /// Both words on one line.
    pub together: Latency,
    /// How many times as long it takes on one line.
    pub price: Quantity,
}

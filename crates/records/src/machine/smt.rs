//! What the other hyperthread of a core takes from this one.

use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

/// Random loads of one hyperthread, alone and while its sibling chases through memory of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusySibling {
    /// The measuring CPU, and its sibling by what the kernel says.
    pub cpus: [u32; 2],
    /// By size.
    pub points: Vec<SiblingPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiblingPoint {
    /// Of each hyperthread's memory.
    pub size: Bytes,
    /// While the sibling has nothing to do.
    pub alone: Latency,
    /// While the sibling chases, too.
    pub beside: Latency,
    /// The second over the first.
    pub slowdown: Quantity,
}

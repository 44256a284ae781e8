//! Levels: where a load can be served from, and what that costs.

use serde::{Deserialize, Serialize};
use units::{Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// `L1`, `L2`, `L3`, … `DRAM`.
    pub name: String,
    /// How much of the level a program on this host can use; DRAM has no such figure.
    pub size: Quantity,
    /// What the host claims.
    pub size_claimed: Quantity,
    pub latency: Latency,
    /// A remark on these figures: a slope instead of a plateau, a part instead of a whole cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

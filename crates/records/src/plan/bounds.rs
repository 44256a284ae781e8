//! How long a primary may be away, and what follows from it.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// The longest absence that the user allows (`--max-absence`).
    pub max_absence: Quantity,
    /// The share by which the primary may become slower (`--max-slowdown`).
    pub max_slowdown: Quantity,
    /// Cycles, by static estimate, after which a scavenger yields, at a site or not.
    pub quantum: u32,
    /// Guests that may be in a primary's ring at once.
    pub ring: u32,
    /// How ring and quantum were computed.
    pub arithmetic: String,
}

impl Bounds {
    /// Scavengers yield at their sites only.
    pub fn without_quantum(&mut self) {
        self.quantum = i32::MAX as u32;
        self.arithmetic += "; left out: no quantum";
    }
}

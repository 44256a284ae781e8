//! What a miss and a yield cost on the machine that a plan is for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prices {
    pub source: Source,
    /// What a load costs that is served from there, nearest first; in core cycles.
    pub levels: Vec<LevelPrice>,
    /// Switches between contexts by what is saved, cheapest first.
    pub yields: Vec<YieldPrice>,
    /// Misses that are served at once.
    pub overlap: Quantity,
    /// How far ahead of a load that waits the core looks, in instructions.
    #[serde(default = "unknown_reach")]
    pub reach: Quantity,
    /// The core clock, to turn cycles into time.
    pub clock: Quantity,
    /// What a guest costs the one it interrupts besides the switch: lines and predictions it
    /// displaces.
    pub pollution: Quantity,
    /// Figures that were not measured here, and what was taken in their place.
    #[serde(default)]
    pub assumed: Vec<String>,
}

/// Plans from before it was asked for.
fn unknown_reach() -> Quantity {
    Quantity::unresolved("not asked for")
}

/// Where the figures came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Source {
    /// A machine record.
    Machine { path: String, created: String },
    /// No machine record was there: figures of a common machine, as listed.
    Defaults { why: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelPrice {
    pub name: String,
    pub cycles: Quantity,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct YieldPrice {
    /// General registers saved and restored.
    pub live: u32,
    pub flags: bool,
    /// 128-bit vector registers.
    pub vectors: u32,
    /// Of one switch.
    pub cycles: Quantity,
}

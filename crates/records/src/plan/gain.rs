//! What a yield is expected to gain: P(miss) × miss latency − yield cost − pollution, in cycles for each execution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// How often the load misses.
    pub p_miss: Quantity,
    pub p_miss_from: Origin,
    /// What a miss costs.
    pub miss: Quantity,
    /// The level the miss is served from.
    pub miss_level: String,
    /// Switching away and back.
    pub yield_cost: Quantity,
    pub pollution: Quantity,
    /// P(miss) × miss − yield cost − pollution.
    pub net: Quantity,
}

/// Where a probability came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Assumed for all loads of its class: nobody has watched this program.
    Prior,
    /// Seen while the program ran.
    Profile,
}

//! What a yield is expected to gain: P(miss) × what a miss costs − yield cost − pollution, in
//! cycles for each execution.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// The probability that the load misses.
    pub p_miss: Quantity,
    pub p_miss_from: Origin,
    /// What a miss costs.
    pub miss: Quantity,
    /// The level that serves the miss.
    pub miss_level: String,
    /// The number of such misses that are served at once, since the iterations of its loop do not
    /// depend on one another: each costs a share of its latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<Quantity>,
    /// The cost of switching away and back.
    pub yield_cost: Quantity,
    pub pollution: Quantity,
    /// What a guest loses that gives way at a load that hits, while the primary still waits for
    /// its miss: the rest of that time, as far as no other guest has it. Times the probability of a
    /// hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_turn: Option<Quantity>,
    /// P(miss) × miss ÷ at once − yield cost − pollution − lost turn.
    pub net: Quantity,
}

/// Where a probability came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Assumed for all loads of its class: this program was not profiled.
    Prior,
    /// Measured in a profile of this program.
    Profile,
}

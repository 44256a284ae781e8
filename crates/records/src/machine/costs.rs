//! What plans of a harvest need, measured in two seconds.

use super::{Level, UserSwitch};
use serde::{Deserialize, Serialize};
use units::Quantity;

/// Measured by `gleaner harvest` itself where there is no machine record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShortCosts {
    /// One area in each cache, and one that none holds.
    pub levels: Vec<Level>,
    /// Switches between contexts, by what is saved and restored.
    pub yields: Vec<UserSwitch>,
    /// How many misses overlap.
    pub overlap: Quantity,
    /// How many instructions the core looks ahead.
    pub reach: Quantity,
    pub clock: Quantity,
}

//! Sites of a run: how often each gave way, and which were switched off.

use crate::plan::{Place, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteRun {
    pub file: String,
    pub role: Role,
    #[serde(flatten)]
    pub place: Place,
    pub yields: Quantity,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwitchedOff {
    pub file: String,
    pub role: Role,
    #[serde(flatten)]
    pub place: Place,
    pub why: String,
}

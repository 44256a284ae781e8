//! Sites of a run: how often each gave way, and which were switched off.

use crate::plan::{Place, Role};
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteRun {
    pub file: String,
    pub role: Role,
    #[serde(flatten)]
    pub place: Place,
    /// In older records, where it was never known: how often it yielded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yields: Option<Quantity>,
    /// Yields at this site that were timed while the primary ran alone.
    #[serde(default)]
    pub watched: u64,
    /// The share of them in which the load hit a cache: the next yield came too soon for a miss.
    #[serde(default = "not_watched")]
    pub hits: Quantity,
    /// Why the site is not worth its yield, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

fn not_watched() -> Quantity {
    Quantity::unresolved("not watched")
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchedOff {
    pub file: String,
    pub role: Role,
    #[serde(flatten)]
    pub place: Place,
    pub why: String,
}

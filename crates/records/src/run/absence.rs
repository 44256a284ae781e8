//! Absences: the times from a primary's yield to its going on.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Absences {
    /// The number of absences that were timed: a sample of all.
    pub count: Quantity,
    pub p50: Quantity,
    pub p95: Quantity,
    pub p99: Quantity,
    pub p999: Quantity,
    pub max: Quantity,
    /// Counts by length, ascending; empty where none were measured.
    #[serde(default)]
    pub histogram: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Nanoseconds, exclusive.
    pub below_ns: f64,
    pub count: u64,
}

impl Absences {
    pub fn unresolved(why: &str) -> Self {
        let none = || Quantity::unresolved(why);
        Self {
            count: none(),
            p50: none(),
            p95: none(),
            p99: none(),
            p999: none(),
            max: none(),
            histogram: Vec::new(),
        }
    }
}

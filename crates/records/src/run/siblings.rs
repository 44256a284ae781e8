//! What became of threads that were each other's guests.

use super::HomeTrip;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// All threads of the program together, and figures of some of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Siblings {
    /// The number of threads seen; very short-lived ones may be missing.
    pub threads: Quantity,
    /// How often a thread went aboard another one.
    pub boardings: Quantity,
    /// Guests that were taken from a thread that slept, or that stayed long in a library.
    pub taken: Quantity,
    #[serde(default)]
    pub trips_home: Vec<HomeTrip>,
    /// The first of them, in the order in which they were seen.
    pub each: Vec<SiblingThread>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiblingThread {
    pub tid: u32,
    /// How often it went aboard another thread.
    pub boardings: Quantity,
    /// How often another thread came aboard it.
    pub hosted: Quantity,
    /// Time in which it was a guest of other threads.
    pub aboard: Quantity,
    /// Time in which it waited to go aboard, or to return home.
    pub waiting: Quantity,
}

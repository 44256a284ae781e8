//! What became of threads that were each other's guests.

use super::HomeTrip;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// All threads of the program together, and those of them that were looked at one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Siblings {
    /// How many were seen; those that lived for less than a moment may not have been.
    pub threads: Quantity,
    /// Times one went aboard another.
    pub boardings: Quantity,
    /// Guests that were taken from a thread that slept, or was long in a library.
    pub taken: Quantity,
    #[serde(default)]
    pub trips_home: Vec<HomeTrip>,
    /// The first of them, in the order in which they were seen.
    pub each: Vec<SiblingThread>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingThread {
    pub tid: u32,
    /// Times it went aboard another one.
    pub boardings: Quantity,
    /// Times another one came aboard it.
    pub hosted: Quantity,
    /// Time it was a guest of others.
    pub aboard: Quantity,
    /// Time it waited to be one, or to be home again.
    pub waiting: Quantity,
}

//! Data that the core waited for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A variable, or an area of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryObject {
    /// A variable's name and its module; or the kind of the area.
    pub name: String,
    /// Its size, where known.
    pub bytes: Quantity,
    /// The number of such objects.
    pub count: u64,
    /// Share of the CPU time in which the core waited for it. Loads without an address count
    /// nowhere.
    pub stall: Quantity,
    /// Threads that waited for it.
    pub threads: usize,
}

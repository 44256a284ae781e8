//! Names of what is run for a document: of profiles, of harvests, of figures.

/// Which programs a document needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Threads that share cache lines, and others that share memory that one has initialised.
    Sharing,
    /// A pointer chase beside scavengers.
    Harvest,
}

/// Profiles: sums of two threads side by side in a cache line; each in lines of its own.
pub const SHARED: &str = "shared";
pub const PADDED: &str = "padded";
/// A triad over arrays that one thread has initialised.
pub const TRIAD: &str = "triad";
/// How many times as fast the padded program is.
pub const PADDED_FASTER: &str = "padded-faster";

/// How many times as fast a triad is whose threads, on two nodes, initialise their own parts.
pub const FIRST_TOUCH_FASTER: &str = "first-touch-faster";

/// Profile of a pointer chase.
pub const CHASE: &str = "chase";
/// Harvests: chases beside a chase, under the contract by default.
pub const CONTRACT: &str = "contract";
/// A scavenger that seldom stalls.
pub const SCAN: &str = "scan";
/// Loads of scavengers for each load of the primary: one of them, and eight.
pub const LOADS_OF_ONE: &str = "loads-1";
pub const LOADS_OF_EIGHT: &str = "loads-8";
/// The same for eight under a tight bound of the slowdown, and under a loose one.
pub const LOADS_TIGHT: &str = "loads-tight";
pub const LOADS_LOOSE: &str = "loads-loose";
/// Loads a second of all nine chases together, over those of one alone.
pub const THROUGHPUT: &str = "throughput-8";

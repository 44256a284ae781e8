//! What tests may run on.

/// How many processors there are for this process; 1 where that cannot be told.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

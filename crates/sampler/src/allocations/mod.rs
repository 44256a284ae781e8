//! Allocations of the profiled processes, as the preloaded library tells of them.
//!
//! ```text
//! preload    the library as a file, and the environment that brings it into the program
//! region     the shared memory that it writes into, read
//! recorded   what was read, in the order of time, with the calls that led there
//! left_out   what was not told, in words
//! ```

pub(crate) mod left_out;
pub(crate) mod preload;
pub(crate) mod recorded;
pub(crate) mod region;

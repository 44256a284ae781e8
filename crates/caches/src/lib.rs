//! A model of caches and translation buffers. It is told of accesses, one after the other, and
//! says of each which level serves it; and what memory reads and writes meanwhile. Pure.
//!
//! ```text
//!  core 0: L1 ── L2 ──┐
//!  core 1: L1 ── L2 ──┼── L3 ── memory      each L3 of a list by itself: what their replacement
//!                     └── L3' ─ memory      and size leave open becomes an interval
//! ```
//!
//! - Lines of 64 bytes. Writes allocate, and lines are written back when they are replaced.
//! - L1 and L2 replace the least recently used line. L3 does so or replaces any.
//! - L3 holds what L2 replaced (*victim*, as on AMD since Zen and Intel's servers since Skylake),
//!   or all that was ever fetched (*filled*, as on Intel's clients).
//! - Caches of several cores are not kept coherent: what one writes stays valid in another.
//! - Streams of misses are recognised, and counted, but nothing is prefetched: a prefetcher moves a
//!   line's traffic to an earlier time and hardly changes it.
//!
//! ```text
//! set          one cache: sets, ways, replacement
//! geometry     what caches and buffers there are
//! hierarchy    an access on its way through all of them
//! pages        translation buffers
//! streams      misses that a prefetcher would have seen coming
//! ```
//!
//! ```
//! use gleaner_caches::{Access, Geometry, Hierarchy, Served};
//!
//! let mut caches = Hierarchy::new(&Geometry::default(), 1);
//! let read = |caches: &mut Hierarchy, address| caches.access(0, address, 8, Access::Read).served;
//! assert_eq!(read(&mut caches, 0x1000), Served::Memory);
//! assert_eq!(read(&mut caches, 0x1008), Served::L1);
//! assert_eq!(caches.traffic()[0].read, 64);
//! ```
#![forbid(unsafe_code)]

mod geometry;
mod hierarchy;
mod pages;
mod set;
mod streams;

pub use geometry::{Buffers, Cache, Geometry, Last, Replacement};
pub use hierarchy::{Access, Hierarchy, Outcome, Served, Traffic};

/// Bytes of a line.
pub const LINE: u64 = 64;

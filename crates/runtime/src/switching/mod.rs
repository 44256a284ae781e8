//! What runs on a primary's kernel thread between two yields, and how a scavenger's thread parks.
//!
//! [`switch`] is the assembly, [`ring`] the list of contexts that share a thread, [`park`] a
//! scavenger's thread at home, [`redirect`] makes a context lead back to the thread's own,
//! [`supervisor_lost`] is what siblings do without a supervisor, [`gs`] is the register that leads
//! to a thread's area.

pub(crate) mod gs;
pub(crate) mod park;
pub(crate) mod redirect;
pub(crate) mod ring;
#[cfg(test)]
pub(crate) mod ring_tests;
pub(crate) mod supervisor_lost;
pub(crate) mod switch;

//! What runs on a primary's kernel thread between two yields, and how a scavenger's thread parks.
//!
//! `switch` is the assembly, [`labels`] its addresses, [`ring`] the list of contexts that share a
//! thread, [`links`] how one is put in and taken out, [`park`] a
//! scavenger's thread at home, [`redirect`] makes a context lead back to the thread's own,
//! [`supervisor_lost`] is what siblings do without a supervisor, [`gs`] is the register that leads
//! to a thread's area.

pub(crate) mod gs;
pub(crate) mod labels;
pub(crate) mod links;
pub(crate) mod park;
pub(crate) mod redirect;
pub(crate) mod ring;
#[cfg(test)]
pub(crate) mod ring_tests;
pub(crate) mod supervisor_lost;
mod switch;

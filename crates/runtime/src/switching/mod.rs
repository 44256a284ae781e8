//! What runs on a primary's kernel thread between two yields, and how a scavenger's thread parks.
//!
//! `switch` is the assembly, [`labels`] its addresses, `across` the part of it by which a guest
//! stays aboard beyond its module, [`twin_pages`] and [`twin_entries`] what that looks up, [`ring`]
//! the list of contexts that share a thread, [`links`] how one is put in and taken out, [`park`] a
//! scavenger's thread at home, [`redirect`] makes a context lead back to the thread's own,
//! [`leaves`] counts where guests go home, [`loans`] lends a thread's processor to homes,
//! [`gs`] is the register that leads to a thread's area.

mod across;
pub(crate) mod gs;
pub(crate) mod labels;
mod leaves;
pub(crate) mod links;
pub(crate) mod loan_words;
pub(crate) mod loans;
pub(crate) mod park;
pub(crate) mod redirect;
pub(crate) mod ring;
#[cfg(test)]
pub(crate) mod ring_tests;
mod switch;
pub(crate) mod twin_entries;
pub(crate) mod twin_pages;

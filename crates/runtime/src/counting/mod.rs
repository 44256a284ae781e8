//! What a primary's thread counts and times between two of its yields: samples of its pace, for the
//! supervisor.
//!
//! [`count`] counts at yields, [`busy_waits`] between waits.

mod absences;
pub(crate) mod area_words;
pub(crate) mod busy_waits;
#[cfg(test)]
mod busy_waits_tests;
pub(crate) mod count;
#[cfg(test)]
pub(crate) mod count_tests;
pub(crate) mod order;

//! What a primary's thread counts and times between two of its yields: samples of its pace, for the
//! supervisor.
//!
//! [`count`] counts at yields, [`turns`] how often guests had their turn.

mod absences;
pub(crate) mod area_words;
pub(crate) mod count;
#[cfg(test)]
mod count_tests;
pub(crate) mod order;
pub(crate) mod turn_words;
pub(crate) mod turns;

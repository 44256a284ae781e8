//! Harvesting: which loads of which program become yields, and what runs in them.
//!
//! A [`session`] goes from what was asked for to what became of it: [`program`] finds what would run, [`candidates`] looks
//! for loads that might wait (what they were is kept, `seen.rs`), [`planner`] chooses among them by [`prices`], [`twins`] has the files rewritten and [`cache`]
//! keeps them, and [`launch`] starts a primary with its scavengers in its address space, watches them and gathers how
//! they ended.
#![forbid(unsafe_code)]

pub mod cache;
mod callers;
pub mod candidates;
pub mod launch;
mod libraries;
pub mod linked;
pub mod names;
pub mod outcome;
pub mod planner;
pub mod prices;
pub mod program;
mod rewritten;
mod seen;
pub mod session;
mod shelves;
mod signals;
pub mod twins;
mod visits;

pub use libraries::Libraries;
pub use signals::end_like;

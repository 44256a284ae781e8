//! Harvesting: which loads of which program become yields, and what runs in them.
//!
//! [`program`] finds what would run, [`planner`] chooses its sites by [`prices`], [`cache`] keeps the rewritten files.
//! [`launch`] starts a primary with its scavengers in its address space, watches them and gathers how they ended.
#![forbid(unsafe_code)]

pub mod cache;
pub mod candidates;
pub mod launch;
pub mod names;
pub mod planner;
pub mod prices;
pub mod program;

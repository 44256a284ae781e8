//! Harvesting: which loads of which program become yields, and what runs in them.
//!
//! A [`session`] goes from what was asked for to what became of it: [`program`] finds what would run, [`candidates`] looks
//! for loads that might wait (what they were is kept, `find/analysis_cache/mod.rs`), [`planner`] chooses among them by [`prices`], [`twins`] has the files rewritten and [`cache`]
//! keeps them, and [`launch`] starts a primary with its scavengers in its address space, watches them and gathers how
//! they ended.
#![forbid(unsafe_code)]

pub mod find;
pub mod launch;
pub mod machine_record;
pub mod plan;
pub mod report;
pub mod rewrite;
pub mod session;

pub use find::libraries::Libraries;
pub use launch::signals::end_like;

//! Harvesting: which loads of which program become yields, and what runs in them.
//!
//! [`launch`] starts a primary with its scavengers in its address space, watches them and gathers how they ended.
#![forbid(unsafe_code)]

pub mod launch;

//! What tests of several rooms share. Never part of a release: a development dependency only.
#![forbid(unsafe_code)]

mod golden;
mod repository;

pub use golden::{golden, golden_bytes, golden_files};
pub use repository::root;

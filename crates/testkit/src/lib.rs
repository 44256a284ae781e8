//! What tests of several rooms share. Never part of a release: a development dependency only.
#![forbid(unsafe_code)]

mod golden;
mod kill;
mod place;
mod processors;
mod repository;
mod said;
mod supervisor;

pub use golden::{golden, golden_bytes, golden_files};
pub use kill::kill;
pub use place::Place;
pub use processors::processors;
pub use repository::root;
pub use said::{said, text, without_executions, without_summary};
pub use supervisor::supervisor_of;

//! What tests of several rooms share. Never part of a release: a development dependency only.
#![forbid(unsafe_code)]

mod golden;
mod kill;
mod limit;
pub mod perf_data;
mod place;
mod processes;
mod processors;
mod programs;
mod readers;
mod repository;
mod said;
mod supervisor;
mod wait;

pub use golden::{golden, golden_bytes};
pub use kill::kill;
pub use limit::TimeLimit;
pub use place::Place;
pub use processes::{pids_in, threads_in};
pub use processors::{on_one_processor, processors};
pub use programs::CHASE_UNTIL_END;
pub use readers::{of_readers, python_reader, schema_faults};
pub use repository::root;
pub use said::{said, text, without_executions, without_summary};
pub use supervisor::supervisor_of;
pub use wait::{wait_for, wait_until};

//! The `gleaner` binary from the outside, in one test binary: one module for each part of its
//! behaviour.
//!
//! All modules run in one process, in several threads. So a test sets nothing that belongs to the
//! process: no environment variable, working directory, limit or signal action of its own, only
//! those of the commands that it starts (`sh -c "ulimit …; exec …"` where a `Command` cannot).
//!
//! To add one: its file here, and its line below.
//! `cargo test -p gleaner-cli --test cli MODULE::` runs one module.
#![forbid(unsafe_code)]

mod across;
mod allocation_paths;
mod allocations;
mod beside;
mod cleanup;
mod compare;
mod debug_files;
mod degraded;
mod early_libraries;
mod edges;
mod export;
// Its databases read Parquet: without it nothing asks them.
#[cfg_attr(not(feature = "parquet"), allow(dead_code, unused_imports))]
mod fleet;
mod front_door;
mod gains;
mod generated;
mod habits;
mod handlers;
mod harvest;
mod harvest_says;
mod hosts;
mod idle_cpus;
mod installed;
mod interpreted;
mod kernel;
mod levels;
mod libraries;
mod made;
mod measured;
mod measuring;
mod no_yield;
mod other_users;
mod outputs;
mod perf_data;
mod perf_data_sharing;
mod plan;
mod probe;
mod probes;
mod profile;
mod profile_attached;
mod profile_computing;
mod profile_degraded;
mod profile_made_code;
mod refusals;
mod report;
mod rewritten_libraries;
mod scavenger_libc;
mod sharing;
mod signals;
mod smoke;
mod speed;
mod stored;
mod survey;
mod switches;
mod system;
mod terminal;
mod tiles;
mod top;
mod traces;
mod tries;
mod unseen;

//! Harvesting: which loads of which programs become yields, and what runs in them.
//!
//! ```text
//!  command line ─► find ─► plan ─► decide ─► rewrite ─► launch ─► report ─► run record
//!                   │                           │
//!                   └────────── store ──────────┘
//! ```
//!
//! - [`find`]: the programs that would run, their libraries, and the loads in them that may stall
//! - [`plan`]: which of these loads become sites, by what a miss and a yield cost
//! - [`decide`]: whether the primary's stalls are worth harvesting, by what is known of it
//! - [`rewrite`]: a plan's modules become rewritten files, each checked by the independent checker
//! - [`machine_prices`]: where the costs of misses and yields come from
//! - [`launch`]: starts a primary with its scavengers in its address space, and watches them
//! - [`report`]: the run record, and what to do next
//! - [`session`]: takes the steps above in their order
//!
//! The crate `store` keeps analyses and rewritten files from run to run.
#![forbid(unsafe_code)]

pub mod decide;
pub mod find;
pub mod launch;
pub mod machine_prices;
pub mod plan;
pub mod progress;
pub mod report;
pub mod rewrite;
pub mod session;

pub use image::libraries::Libraries;
pub use launch::signals::end_like;

//! Runs a program with a change and without it, in pairs whose order alternates, and says whether
//! it is faster with the change: by the times of whole runs, and by whether what it leaves is the
//! same. Nothing of the program's source is needed. What is faster can be kept as a recipe, by
//! which a program is started.
//!
//! ```text
//! change       what can be tried, by what a profile says, and in which forms
//! settings     what a form is made of: files written once, and what a program is started with
//! program      what is run, and how it is started
//! run          one run: its time, and what it used
//! served       a server under a load
//! left         what a run left: its end, its output, the files that it wrote
//! built        which build a file is
//! pairs        the ratio of the times, and how likely it is by chance
//! tried        each change alone, at a number of pairs
//! search       all changes within a budget, and the best of them together
//! online       prefetches in a program that runs, on and off in turns
//! ```
//!
//! To add a change: a variant in [`Change`], its forms, and where a profile proposes it, in
//! `change.rs`; what is new in how a program is started, in `settings`.
#![forbid(unsafe_code)]

mod built;
mod change;
mod left;
mod online;
mod pairs;
mod program;
mod run;
mod search;
mod served;
mod settings;
mod tried;

pub use built::{built, is_as_built};
pub use change::{Candidate, Change, candidates, proposed};
pub use online::{Counted, Running, Switchable};
pub use program::{Program, TrialError, input};
pub use search::{Asked, Found, search};
pub use served::Served;
pub use settings::huge::HugePages;
pub use settings::own_lines::Aligned;
pub use settings::own_prefetches::OwnPrefetches;
pub use settings::placed::Cpus;
pub use settings::prefetched::{Prefetched, Walk};
pub use settings::prepared::Start;
pub use settings::{files, says, start, write};
pub use tried::run;

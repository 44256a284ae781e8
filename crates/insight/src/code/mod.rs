//! The code around samples: which instruction the core waited for, and what it is called.
//!
//! ```text
//! cause       from a sampled instruction to the load that the core waited for
//! each        how long the core waits each time a load runs
//! operation   how long an operation takes by itself that a loop's next turn waits for
//! dependence  what the code around a load tells of how its misses follow one another
//! source      a mapped file: its code around what was sampled, and its names
//! names       names of functions and variables as their programmers wrote them
//! made_code   code that programs make while they run, and its names
//! made_file   such code, put into files, so that it is decoded as all other
//! calls       the tree of calls with names
//! landings    where samples of each load of a file land
//! annotate    the code of functions that took time, with its samples
//! ```
//!
//! Whatever is read out of instructions and debug information belongs here.

pub(crate) mod annotate;
pub(crate) mod calls;
pub(crate) mod cause;
pub(crate) mod dependence;
pub(crate) mod each;
pub(crate) mod landings;
pub(crate) mod made_code;
pub(crate) mod made_file;
pub(crate) mod names;
pub(crate) mod operation;
pub(crate) mod source;

//! Where things lie on disk from run to run: all below Gleaner's directory in the user's cache
//! directory.
//!
//! ```text
//!  ~/.cache/gleaner       or $XDG_CACHE_HOME/gleaner
//!    machine.json         what `gleaner measure` found: the record that other verbs take
//!    prices.json          what a harvest measured shortly, since that was not there
//!    kept/profile, run    the last of each program, by build id and arguments
//!    recipes              what makes a program faster, by build id, with the files that it needs
//!    twins                rewritten files and analyses, by what they were made from
//! ```
//!
//! - [`directory`]: that directory, which no other user may write to
//! - [`machine_record`]: the two records: found, and replaced by better ones
//! - [`kept_records`]: what was found out of a program once, for later runs of it
//! - [`recipes`]: how programs are started faster
//! - [`cache`]: entries that are made once, by one process, and whole
//!
//! To keep another kind of thing: if it can be made again from what it was made from, an entry of
//! the [`cache`], with a key of all that it hangs on; else a file with a function for its place.
#![forbid(unsafe_code)]

pub mod cache;
pub mod directory;
pub mod kept_records;
pub mod machine_record;
pub mod recipes;

//! What is written is what was last agreed on, and readers of each format see in it what the record
//! says.
//!
//! To add a format: its golden text in `formats.rs`, its reader in `readers.rs`.
#![forbid(unsafe_code)]

mod fixture;
mod formats;
mod hwloc;
mod raw;
mod readers;
mod tables;

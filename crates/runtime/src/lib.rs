//! The library inside a harvested process.
//!
//! It is preloaded into the primary and into every scavenger that has a dynamic loader, and runs
//! where little may be relied on: between two instructions of a program, on kernel threads whose
//! libc is another program's, in a process that has just been made. So it has rules:
//!
//! - No libc, no thread-local storage, no allocation, no formatting: it makes its own system calls
//!   (`sys`) and has its own memory (`layout::region`). Functions that it interposes it finds by
//!   `dlsym`, and only through them does it call a libc: the caller's.
//! - No state in statics but caches of what does not change: several instances of it live in one
//!   address space, one for the primary and one for each scavenger. What they share is reached
//!   through the area in GS.
//! - Code that runs on a primary's thread between two of its yields (`switching`, `counting`) makes
//!   no system call and does not wait. What needs either is done by the `supervisor` or at home.
//! - A field that two kernel threads touch is an atomic, and its doc says which side writes it
//!   when. An area's words are split by owner (`layout::area`).
//!
//! | room | what is in it | runs in |
//! |---|---|---|
//! | `layout` | areas, contexts, the region that holds them, the control page | all |
//! | `switching` | assembly of a switch, rings, parking | primary's and home threads |
//! | `counting` | samples of the primary's pace and absences | primary's threads |
//! | `signals` | faults and handlers | all threads |
//! | `interpose` | libc functions that must not pass by the runtime | all threads |
//! | `mappings` | which memory is a scavenger's | scavengers |
//! | `exec` | a user-space exec: how a scavenger becomes a process | scavengers |
//! | `startup` | the constructor | primary, scavengers |
//! | `supervisor` | boarding, pace, sites, stalls, cleanup | the supervisor's process |
//! | `sys` | system calls, and what a standard library would bring | all |
//!
//! `docs/harvest-abi.md` is the contract with the code in twins, `runtime-abi` its numbers.
//!
//! It is built twice: as an ordinary crate, for tests and lints, and with `--cfg freestanding` by
//! the harvest room as the shared object that is preloaded.
#![cfg_attr(freestanding, no_std)]
// In an ordinary crate the constructor is not called, and what it calls seems unused.
#![cfg_attr(not(freestanding), allow(dead_code))]

#[cfg(freestanding)]
extern crate core;

mod counting;
mod exec;
mod interpose;
mod layout;
mod mappings;
mod signals;
mod startup;
mod supervisor;
mod switching;
mod sys;

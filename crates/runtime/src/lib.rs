//! The library inside a harvested process.
//!
//! It is preloaded into the primary and into every scavenger that has a dynamic loader, and runs
//! where nothing may be taken for granted: between two instructions of a program, on kernel threads
//! whose libc is another's, in a process that has just been made. So it has rules:
//!
//! - No libc, no thread-local storage, no allocation, no formatting: system calls of its own
//!   ([`sys`]) and memory of its own ([`layout::region`]). What it interposes it finds by `dlsym`,
//!   and only then does it call a libc: the caller's.
//! - No state in statics but caches of what does not change: several instances of it live in one
//!   address space, one for the primary and one for each scavenger. What they share hangs on the
//!   area in GS.
//! - Whatever runs on a primary's thread between two of its yields ([`switching`]) makes no system
//!   call and does not wait. What needs either is done by the [`supervisor`] or at home.
//! - A field that two kernel threads touch is an atomic, and its doc says who writes it when.
//!
//! `docs/harvest-abi.md` is the contract with the code in twins, `runtime-abi` its numbers.
//!
//! Built twice: here as an ordinary crate, for tests and lints, and with `--cfg freestanding` by
//! the harvest room as the shared object that is preloaded.
#![cfg_attr(freestanding, no_std)]
// As an ordinary crate nobody calls the constructor, and what hangs on it seems unused.
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

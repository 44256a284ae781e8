//! The library inside a profiled process: it tells where memory is allocated. Where the kernel's
//! events are forbidden it samples the process's time, too (`clock/mod.rs`).
//!
//! It is preloaded into the profiled program and its children, and takes the place of `malloc` and
//! its relatives: each calls the function that comes behind it in the search order, and writes what
//! it saw into memory that it shares with the profiler. It runs inside every program there is, in
//! signal handlers and before libc is ready, so it has rules:
//!
//! - No libc but the functions that it interposes, no thread-local storage, no allocation, no lock.
//! - No system call once the constructor is over, with one exception (`stack.rs`), and those of the
//!   clock.
//! - An allocation that is not chosen costs a hash and a comparison.
//! - What goes wrong is lost and counted. The program does not notice.
//!
//! # Which allocations are recorded
//!
//! Those in *chosen pages*: pages of 4 KiB whose hash is below a threshold. `free` sees only an
//! address, and decides by the same hash. So everything is known about chosen pages and nothing
//! about others, which makes them a fair sample of the heap. The threshold begins at "all" and is
//! lowered where events come too fast (`record.rs`); chosen pages stay chosen or go, none is added.
//!
//! An allocation of 4 KiB and more (`large_from`) would be lost with its first page. It is recorded
//! in any case, and so is a small one that reaches into a chosen page. Their addresses are in a
//! table (`table.rs`), by which `free` finds them.
//!
//! What the program maps itself (`areas.rs`) is recorded from the same size on. Its ends name their
//! range, so that no table is needed.
//!
//! ```text
//! layout       the shared memory: header, rings of records, buffers for stacks
//! record       an allocation or its end, written into a ring
//! stack        registers and stack of an allocation whose calls are not known yet
//! calls        the calls that led to an allocation
//! keys         those that the profiler knows already
//! table        addresses that are recorded though their page is not chosen
//! arena        memory for what the loader allocates before the next `malloc` is known
//! probe        a load's address and the time that it takes, just before the program executes it
//! traps        the signal of probes; the program's own handler for it
//! next         the functions behind ours
//! interpose    the functions that programs call
//! areas        those of them that map memory
//! recording    whether anything is recorded in this process, and where
//! startup      the constructor
//! clock        a timer for each thread, whose signals are samples
//! environment  the variable that names the shared memory
//! sys          system calls
//! changes      another library: it changes a program's memory, for trials (`changes/mod.rs`)
//! traces       a third one: it hands over the accesses that trace twins write down
//! java         a fourth one: it tells which code a Java virtual machine makes
//! library      those that this crate builds, as files
//! ```
//!
//! It is built five times: as an ordinary crate, for tests and for the profiler, which uses its
//! `layout`; by this crate's build script with `--cfg freestanding`, as the shared object that is
//! preloaded, and with `--cfg changes` or `--cfg java` besides, as other libraries; and by the
//! trace room with `--cfg traces` besides.
#![cfg_attr(freestanding, no_std)]
#![allow(dead_code)] // each build uses a part of it: in an ordinary crate nothing is interposed

#[cfg(freestanding)]
extern crate core;

#[cfg(all(freestanding, not(any(changes, java, traces))))]
mod areas;
#[cfg(not(any(java, traces)))]
mod arena;
#[cfg(not(any(changes, java, traces)))]
mod calls;
#[cfg(any(not(freestanding), changes))]
pub mod changes;
#[cfg(not(any(changes, java, traces)))]
pub mod clock;
#[cfg(all(freestanding, not(java)))]
mod environment;
#[cfg(freestanding)]
mod freestanding;
#[cfg(all(freestanding, not(any(changes, java, traces))))]
mod interpose;
#[cfg(java)]
mod java;
#[cfg(not(any(changes, java, traces)))]
mod keys;
#[cfg(not(any(changes, java, traces)))]
pub mod layout;
#[cfg(not(freestanding))]
pub mod library;
#[cfg(all(freestanding, not(java)))]
mod next;
#[cfg(not(any(changes, java, traces)))]
pub mod probe;
#[cfg(not(any(changes, java, traces)))]
mod record;
#[cfg(all(freestanding, not(any(changes, java, traces))))]
mod recording;
#[cfg(not(any(changes, java, traces)))]
mod stack;
#[cfg(all(freestanding, not(any(changes, java, traces))))]
mod startup;
mod sys;
#[cfg(not(any(changes, java, traces)))]
mod table;
#[cfg(not(any(changes, java)))]
pub mod traces;
#[cfg(all(freestanding, not(any(changes, java, traces))))]
mod traps;

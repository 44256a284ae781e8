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
//! ```text
//! layout       the shared memory: header, rings of records, buffers for stacks
//! record       an allocation or its end, written into a ring
//! stack        registers and stack of an allocation whose calls are not known yet
//! keys         calls that the profiler knows already
//! table        addresses that are recorded though their page is not chosen
//! arena        memory for what the loader allocates before the next `malloc` is known
//! probe        a load's address and the time that it takes, just before the program executes it
//! traps        the signal of probes; the program's own handler for it
//! next         the functions behind ours
//! interpose    the functions that programs call
//! recording    whether anything is recorded in this process, and where
//! startup      the constructor
//! clock        a timer for each thread, whose signals are samples
//! sys          system calls
//! traces       another library: it hands over the accesses that trace twins write down
//! ```
//!
//! It is built three times: as an ordinary crate, for tests and for the profiler, which uses its
//! `layout`; by the sampler room with `--cfg freestanding`, as the shared object that is preloaded;
//! and by the trace room with `--cfg traces` besides, as another one.
#![cfg_attr(freestanding, no_std)]
// In an ordinary crate nothing is interposed, and what would be called seems unused.
#![cfg_attr(any(traces, not(freestanding)), allow(dead_code))]

#[cfg(freestanding)]
extern crate core;

#[cfg(not(traces))]
mod arena;
#[cfg(not(traces))]
pub mod clock;
#[cfg(freestanding)]
mod freestanding;
#[cfg(all(freestanding, not(traces)))]
mod interpose;
#[cfg(not(traces))]
mod keys;
#[cfg(not(traces))]
pub mod layout;
#[cfg(freestanding)]
mod next;
#[cfg(not(traces))]
pub mod probe;
#[cfg(not(traces))]
mod record;
#[cfg(all(freestanding, not(traces)))]
mod recording;
#[cfg(not(traces))]
mod stack;
#[cfg(all(freestanding, not(traces)))]
mod startup;
mod sys;
#[cfg(not(traces))]
mod table;
pub mod traces;
#[cfg(all(freestanding, not(traces)))]
mod traps;

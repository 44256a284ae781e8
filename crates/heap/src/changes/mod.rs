//! Another library, for trials: it changes how a program gets its memory, and where its threads
//! run. Nothing is recorded. Each change is one that no correct program can tell from what libc or
//! the kernel may do anyhow: more space, a higher alignment, other pages behind the same addresses.
//!
//! ```text
//! layout      the shared page: what is asked for, and what was done
//! page        that page in this process
//! mappings    lines of /proc/self/maps
//! sites       allocation sites as addresses in this process; whether a call comes from one
//! blocks      allocations at those sites, aligned and with space up to the next line
//! pages       memory that the program maps itself, on huge pages
//! code        code that is there when the program begins, on huge pages
//! placement   CPUs that threads may use; nodes that memory is spread over
//! interpose   the functions that programs call
//! startup     the constructor
//! ```
//!
//! To add a change: a word in `layout` that asks for it, what it does in a file of its own, and a
//! word that counts how often it did something.

#[cfg(all(freestanding, changes))]
mod blocks;
#[cfg(all(freestanding, changes))]
mod code;
#[cfg(all(freestanding, changes))]
mod interpose;
pub mod layout;
mod mappings;
#[cfg(all(freestanding, changes))]
mod page;
#[cfg(all(freestanding, changes))]
mod pages;
#[cfg(all(freestanding, changes))]
mod placement;
mod sites;
#[cfg(all(freestanding, changes))]
mod startup;

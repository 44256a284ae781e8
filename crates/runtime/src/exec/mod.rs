//! A user-space exec: an ordinary executable becomes a process of its own in an address space that
//! is not.
//!
//! [`start`] makes the process, [`elf`] reads headers, [`load`] maps files, [`stack`] lays out what
//! the kernel would have put on the stack, [`filter`] keeps from it the system calls that the
//! address space has only once, [`onward`] is what it executes if it has no loader.

pub(crate) mod auxiliaries;
pub(crate) mod elf;
pub(crate) mod filter;
mod load;
mod onward;
pub(crate) mod stack;
pub(crate) mod start;

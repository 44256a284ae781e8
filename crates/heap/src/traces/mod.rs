//! The library inside a traced process: it takes the chunks that trace twins fill with accesses
//! and hands them to the profiler.
//!
//! It is another library than the one that tells of allocations, built from the same crate with
//! `--cfg traces`, and the program gets only one of them. Trace twins (`docs/twin-format.md`) write
//! down each access through words of the thread control block. Here those words are set up, and
//! what twins jump to when a chunk is full.
//!
//! ```text
//! layout       the shared memory: header, what becomes of chunks, the chunks
//! words        the words of a thread, and of which process and thread its chunk is
//! chunks       taken and handed over
//! full         what twins jump to
//! threads      threads of the program: set up before they begin, handed over when they end
//! signals      the program's handlers: they must not disturb an entry that is being written
//! startup      the constructor
//! ```
//!
//! The rules of the crate hold, but for one: a thread whose chunk is full waits until there is a
//! free one. If the profiler takes none for ten seconds, the thread writes nothing down any more.

#[cfg(traces)]
mod chunks;
#[cfg(traces)]
mod full;
pub mod layout;
#[cfg(traces)]
mod signals;
#[cfg(traces)]
mod startup;
#[cfg(traces)]
mod threads;
#[cfg(traces)]
mod words;

//! The memory that traced processes share with the profiler, which makes it:
//!
//! ```text
//! header      4096 bytes
//! states      of each chunk: free, being filled, full
//! chunks      64 KiB each, at multiples of 64 KiB; all zero when free
//! ```
//!
//! A chunk's first entry stays free. Entries behind are written in order, so the first place that
//! is 0 is the end, however its thread ended.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// `GLEANER_TRACE` names the file of the shared memory.
pub const VARIABLE: &str = "GLEANER_TRACE";
/// What the link of that file under `/proc` begins with: another process's file is not opened.
pub const MEMORY_NAME: &str = "gleaner-trace";
/// "GLTRAC" and the version of this layout.
pub const MAGIC: u64 = 0x474c_5452_4143_0001;

pub const CHUNK_BYTES: usize = 1 << 16;
pub const ENTRY_BYTES: usize = 16;
pub const CHUNKS: usize = 512;
pub const STATES_AT: usize = 4096;
pub const CHUNKS_AT: usize = CHUNK_BYTES;
pub const REGION_BYTES: usize = CHUNKS_AT + CHUNKS * CHUNK_BYTES;

const _: () = assert!(STATES_AT + CHUNKS * size_of::<State>() <= CHUNKS_AT);

#[repr(C)]
pub struct Header {
    pub magic: AtomicU64,
    /// Chunks that were handed over.
    pub handed_over: AtomicU64,
    /// Threads that gave up, since no chunk became free.
    pub gave_up: AtomicU32,
    /// Goes up with each chunk that is handed over; the profiler waits for it.
    pub any_full: AtomicU32,
    /// Goes up with each chunk that becomes free; threads wait for it.
    pub any_free: AtomicU32,
    /// Processes that the library came into.
    pub processes: AtomicU32,
}

/// What becomes of a chunk.
pub mod state {
    pub const FREE: u32 = 0;
    pub const TAKEN: u32 = 1;
    pub const FULL: u32 = 2;
}

#[repr(C, align(32))]
pub struct State {
    pub state: AtomicU32,
    pub process: AtomicU32,
    pub thread: AtomicU32,
    pub unused: AtomicU32,
    /// In which order chunks were handed over.
    pub sequence: AtomicU64,
}

/// One entry.
#[repr(C)]
pub struct Entry {
    pub address: AtomicU64,
    pub place: AtomicU64,
}

pub const ENTRIES: usize = CHUNK_BYTES / ENTRY_BYTES;

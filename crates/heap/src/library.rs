//! The libraries as files.

/// It records allocations, and samples and probes where that is asked for.
pub static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgleaner_heap.so"));

/// An agent for Java virtual machines, which tells of the code that they make.
pub static JAVA_AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgleaner_java.so"));

/// It changes how a program gets its memory, and where its threads run.
pub static CHANGES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgleaner_changes.so"));

//! What this machine is and can.
//!
//! Everything is read under a root, so that recorded machines are test data and a user's trouble can be replayed from
//! the file that `gleaner doctor --record` writes. What no file tells comes through two doors: [`Cpuid`] (an
//! instruction, or a dump of it) and [`Prober`] (opening counters, reading model-specific registers; its live side is
//! in the lab, where `unsafe` has a room).
//!
//! To add a fact: its field in `records::host`, a reader here in the file of its kind (never a panic: every reader is
//! fed random bytes in `tests/garbage.rs`), its line in `gleaner doctor`, and its value in the tests of the recorded
//! machines.
#![forbid(unsafe_code)]

mod auxv;
mod caches;
mod cgroup;
pub mod cpuid;
mod cpuid_caches;
mod memory;
mod source;
mod topology;
mod tree;

pub use records::host::Host;
pub use source::Source;
pub use tree::{Tree, TreeError};

use std::path::Path;

/// What can be known of a machine without probing it: `/`, another root, or a recorded tree.
pub fn read(root: &Path) -> Host {
    read_from(&Source::open(root))
}

pub fn read_from(source: &Source) -> Host {
    let cpuid = cpuid::Cpuid::of(source);
    let cpus = topology::cpus(source);
    Host {
        topology: topology::topology(source, &cpus),
        caches: caches::caches(source, &cpus),
        cpus,
        cache_claims: cpuid_caches::cache_claims(&cpuid),
        tlb_claims: cpuid_caches::tlb_claims(&cpuid),
        pages: memory::pages(source),
        memory: memory::memory(source),
        nodes: memory::nodes(source),
        ..Host::default()
    }
}

//! What this machine is and can.
//!
//! Everything is read under a root, so that recorded machines are test data and a user's trouble
//! can be replayed from the file that `gleaner doctor --record` writes. What no file tells comes
//! through two doors: [`cpuid::Cpuid`] (an instruction, or a dump of it) and [`probe::Prober`]
//! (opening counters, reading model-specific registers; its live side is in the lab, where `unsafe`
//! has a room).
//!
//! To add a fact: its field in `records::host`, a reader here in the file of its kind (never a
//! panic: every reader is fed garbage in `tests/host/garbage.rs`), its file in `recorder.rs`, its
//! line in `gleaner doctor`, and its value in the tests of the recorded machines.
#![forbid(unsafe_code)]

mod auxv;
mod caches;
mod cgroup;
mod clocks;
mod company;
mod contradictions;
mod counters;
pub mod cpuid;
mod cpuid_caches;
mod identity;
mod limits;
mod memory;
mod microarchitecture;
pub mod prefetch;
pub mod probe;
mod processor;
mod recorder;
mod remedies;
mod source;
mod topology;
mod tree;
mod verdict;
mod virtualization;

pub use recorder::record;
pub use records::host::Host;
pub use source::{Source, SourceError};
pub use tree::{Tree, TreeError};

use records::host::Fact;
use std::path::Path;

/// What can be known of a machine without trying anything: `/`, another root, or a recorded tree.
pub fn read(root: &Path) -> Host {
    let source = Source::open(root);
    read_with(&source, &probe::RecordedProber::of(&source))
}

/// The same of memory alone, which takes less time.
pub fn memory(root: &Path) -> records::host::Memory {
    memory::memory(&Source::open(root))
}

/// The same, with a prober that tries what no file tells.
pub fn read_with(source: &Source, prober: &dyn probe::Prober) -> Host {
    let cpuid = cpuid::Cpuid::of(source);
    let cpus = topology::cpus(source);
    let topology = topology::topology(source, &cpus);
    let virtualization = virtualization::virtualization(source, &cpuid);
    let limits = limits::limits(source);
    let place = remedies::Place::of(&virtualization);
    let first_cpu = topology.allowed.get().or(topology.online.get()).and_then(records::host::CpuList::first);
    let mut host = Host {
        identity: identity::identity(source),
        processor: processor::processor(source, &cpuid),
        topology,
        caches: caches::caches(source, &cpus),
        cache_claims: cpuid_caches::cache_claims(&cpuid),
        tlb_claims: cpuid_caches::tlb_claims(&cpuid),
        pages: memory::pages(source),
        memory: memory::memory(source),
        nodes: memory::nodes(source),
        clocks: clocks::clocks(source, &cpuid, &cpus),
        counters: counters::counters(source, &cpuid, prober, &place, &limits),
        prefetch: prefetch::prefetch(source, &cpuid, prober, &place, first_cpu.unwrap_or(0)),
        company: company::company(source),
        limits,
        virtualization,
        cpus,
        ..Host::default()
    };
    invented_microcode(&mut host);
    host.contradictions = contradictions::find(&host, &cpuid);
    host.verdict = verdict::verdict(&host);
    host
}

/// Hypervisors that hide the microcode show a number of their own: KVM's for AMD and Intel guests,
/// Hyper-V's.
fn invented_microcode(host: &mut Host) {
    let guest = host.virtualization.hypervisor.get().is_some_and(|h| h != virtualization::name::NONE);
    if let (true, Some(shown)) = (guest, host.processor.microcode.get()) {
        if ["0x1000065", "0x1", "0xffffffff"].contains(&shown.as_str()) {
            host.processor.microcode =
                Fact::unknown(format!("the hypervisor shows {shown} in place of the microcode revision"));
        }
    }
}

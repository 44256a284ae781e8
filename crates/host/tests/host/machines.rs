//! Recorded machines: every fact that matters of each, known by hand.
//!
//! To add one: `gleaner doctor --record fixtures/NAME.tree` on it, a test here, and `make
//! regenerate` for its page.

use gleaner_host::Host;
use records::host::{Ability, CacheKind, CoreKind, ThpMode};
use std::path::Path;
use units::Bytes;

fn machine(name: &str) -> Host {
    let file = format!("{}/fixtures/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap();
    gleaner_host::Tree::parse(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
    gleaner_host::read(Path::new(&file))
}

/// Sockets, cores, threads, threads per core.
fn shape(host: &Host) -> (u32, u32, u32, u32) {
    let t = &host.topology;
    let number = |f: &records::host::Fact<u32>| f.value().unwrap();
    (number(&t.sockets), number(&t.cores), number(&t.threads), number(&t.smt.threads_per_core))
}

/// The data caches of a CPU as `L1 32 KiB of 0,16`, nearest first.
fn data_caches(host: &Host, cpu: u32) -> Vec<String> {
    let describe =
        |c: &&records::host::Cache| format!("L{} {} of {}", c.level, c.size.get().unwrap(), c.shared_by);
    host.data_caches_of(cpu).iter().map(describe).collect()
}

fn nodes(host: &Host) -> Vec<(String, Vec<u32>)> {
    host.nodes.iter().map(|n| (n.cpus.to_string(), n.distances.get().unwrap().clone())).collect()
}

fn about(host: &Host) -> Vec<&str> {
    host.contradictions.iter().map(|c| c.about.as_str()).collect()
}

fn help(ability: &Ability) -> &str {
    match ability {
        Ability::No { would_help, .. } => would_help,
        other => panic!("expected a no, found {other:?}"),
    }
}

fn known<T: Clone>(fact: &records::host::Fact<T>) -> T {
    fact.get().expect("a known fact").clone()
}

#[test]
fn two_socket_haswell() {
    let host = machine("xeon-e5-2640v3");
    assert_eq!(shape(&host), (2, 16, 32, 2));
    assert_eq!(known(&host.processor.microarchitecture), "Haswell");
    assert_eq!(known(&host.virtualization.hypervisor), "none");
    // CPUs of the two sockets take turns.
    let socket = "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31";
    let expected = ["L1 32 KiB of 3,19", "L2 256 KiB of 3,19", &format!("L3 20 MiB of {socket}")];
    assert_eq!(data_caches(&host, 3), expected);
    assert_eq!(nodes(&host)[1], (socket.to_owned(), vec![21, 10]));
    assert_eq!(host.node_of(4).unwrap().id, 0);
    assert_eq!(known(&host.pages.thp.enabled), ThpMode::Always);
    assert!(about(&host).is_empty(), "{:?}", host.contradictions);
    // TLBs stand in leaf 2 as descriptors.
    let tlb = host.tlb_claims.iter().find(|t| t.level == 2).unwrap();
    assert_eq!((tlb.leaf.as_str(), tlb.entries), ("0x2", 1024));
    // The processor can, but a kernel that old cannot.
    assert!(help(&host.processor.fsgsbase).contains("5.9"));
    assert!(host.counters.pebs.is_yes());
    assert!(host.prefetch.controls.iter().all(|c| known(&c.state) == "on"));
    assert_eq!(host.prefetch.controls.len(), 4);
    assert_eq!(host.clocks.max_hz.value(), Some(3_400_000_000));
}

#[test]
fn two_socket_epyc() {
    let host = machine("epyc-7313-2s");
    assert_eq!(shape(&host), (2, 32, 64, 2));
    assert_eq!(known(&host.processor.microarchitecture), "Zen 3");
    assert_eq!(data_caches(&host, 5), ["L1 32 KiB of 5,37", "L2 512 KiB of 5,37", "L3 32 MiB of 4-7,36-39"]);
    assert_eq!(nodes(&host)[0], ("0-15,32-47".to_owned(), vec![10, 32]));
    // 128 MiB by the old leaf are the package's four complexes: no contradiction on bare metal.
    let old = host.cache_claims.iter().find(|c| c.leaf == "0x80000006" && c.level == 3).unwrap();
    assert_eq!(old.size, Bytes::mib(128));
    assert!(about(&host).is_empty(), "{:?}", host.contradictions);
    // Everything is there, and forbidden.
    for ability in [&host.counters.hardware, &host.counters.ibs, &host.counters.breakpoints] {
        assert!(help(ability).contains("perf_event_paranoid"), "{ability:?}");
    }
    assert_eq!(host.counters.paranoid.value(), Some(4));
    assert!(matches!(host.prefetch.control, Ability::No { .. }));
    let pool = &host.pages.hugetlb[0];
    assert_eq!((pool.size, pool.total.value(), pool.free.value()), (Bytes::mib(2), Some(1024), Some(1000)));
    assert_eq!(host.nodes[1].hugetlb[0].total.value(), Some(512));
}

#[test]
fn sapphire_rapids_with_sub_numa_clusters() {
    let host = machine("spr-8462y-snc4");
    assert_eq!(shape(&host), (2, 64, 64, 1));
    assert_eq!(known(&host.processor.microarchitecture), "Sapphire Rapids");
    assert_eq!(data_caches(&host, 40), ["L1 48 KiB of 40", "L2 2 MiB of 40", "L3 60 MiB of 32-63"]);
    assert_eq!(host.nodes.len(), 8);
    assert_eq!(nodes(&host)[5], ("40-47".to_owned(), vec![21, 21, 21, 21, 12, 10, 12, 12]));
    assert_eq!(known(&host.topology.isolated).to_string(), "56-63");
    assert_eq!(host.clocks.counter_hz.value(), Some(2_800_000_000));
    assert_eq!(host.clocks.base_hz.value(), Some(2_800_000_000));
    assert_eq!(host.clocks.frequency.turbo.value(), Some(false));
    let l1 = host.tlb_claims.iter().find(|t| t.level == 1 && t.kind == CacheKind::Data).unwrap();
    assert_eq!((l1.entries, l1.pages.as_slice()), (96, &["4K".to_owned()][..]));
    let off: Vec<&str> =
        host.prefetch.controls.iter().filter(|c| known(&c.state) == "off").map(|c| c.name.as_str()).collect();
    assert_eq!(off, ["L2 adjacent line"]);
    assert!(about(&host).is_empty(), "{:?}", host.contradictions);
}

#[test]
fn arm_server_with_large_pages() {
    let host = machine("graviton3-64k");
    assert_eq!(shape(&host), (1, 64, 64, 1));
    assert_eq!(known(&host.identity.architecture), "aarch64");
    assert_eq!(known(&host.processor.microarchitecture), "Neoverse V1");
    assert_eq!(known(&host.virtualization.hypervisor), "none");
    assert_eq!(host.virtualization.cloud.as_deref(), Some("AWS"));
    assert_eq!(known(&host.pages.base), Bytes::kib(64));
    assert_eq!(known(&host.pages.thp.pmd_size), Bytes::mib(512));
    assert_eq!(known(&host.pages.thp.enabled), ThpMode::Never);
    let sizes: Vec<String> = host.pages.hugetlb.iter().map(|p| p.size.to_string()).collect();
    assert_eq!(sizes, ["2 MiB", "512 MiB", "16 GiB"]);
    assert_eq!(data_caches(&host, 63), ["L1 64 KiB of 63", "L2 1 MiB of 63", "L3 32 MiB of 0-63"]);
    assert!(host.cache_claims.is_empty(), "there is no CPUID");
    assert!(host.counters.spe.is_yes());
    assert_eq!(host.clocks.counter_hz.value(), Some(1_050_000_000));
    assert!(host.cpus.iter().all(|c| c.kind == CoreKind::Uniform));
    assert!(matches!(host.verdict.measure, Ability::No { .. }));
}

#[test]
fn power_partition() {
    let host = machine("power9-s922");
    assert_eq!(shape(&host), (1, 4, 32, 8));
    assert_eq!(known(&host.identity.architecture), "ppc64le");
    assert_eq!(known(&host.processor.microarchitecture), "POWER9");
    assert_eq!(known(&host.virtualization.hypervisor), "PowerVM");
    // A core of eight threads is two halves that share nothing.
    assert_eq!(known(&host.cpu(9).unwrap().siblings).to_string(), "8-15");
    let half = "9,11,13,15";
    let expected =
        [format!("L1 32 KiB of {half}"), format!("L2 512 KiB of {half}"), format!("L3 10 MiB of {half}")];
    assert_eq!(data_caches(&host, 9), expected);
    assert_eq!(known(&host.caches[0].line), Bytes(128));
    let sizes: Vec<String> = host.pages.hugetlb.iter().map(|p| p.size.to_string()).collect();
    assert_eq!(sizes, ["16 MiB", "16 GiB"]);
    assert_eq!(nodes(&host), [(String::new(), vec![10, 40]), ("0-31".to_owned(), vec![40, 10])]);
    assert_eq!(host.clocks.counter_hz.value(), Some(512_000_000));
    assert_eq!(host.clocks.base_hz.value(), Some(3_800_000_000));
    assert_eq!(host.prefetch.controls[0].place, "/sys/devices/system/cpu/dscr_default");
    assert!(known(&host.company.steal_seen));
}

#[test]
fn hybrid_laptop() {
    let host = machine("laptop-12700h");
    assert_eq!(shape(&host), (1, 14, 20, 2));
    let small: Vec<u32> = host.cpus.iter().filter(|c| c.kind == CoreKind::Efficiency).map(|c| c.id).collect();
    assert_eq!(small, (12..20).collect::<Vec<_>>());
    assert_eq!(data_caches(&host, 3), ["L1 48 KiB of 2-3", "L2 1.25 MiB of 2-3", "L3 24 MiB of 0-19"]);
    assert_eq!(data_caches(&host, 17), ["L1 32 KiB of 17", "L2 2 MiB of 16-19", "L3 24 MiB of 0-19"]);
    assert_eq!(host.cpu(12).unwrap().max_hz.value(), Some(3_500_000_000));
    assert_eq!(host.clocks.max_hz.value(), Some(4_700_000_000));
    // CPUID was asked on a fast core: that the small ones differ is no contradiction.
    assert!(about(&host).is_empty(), "{:?}", host.contradictions);
    assert!(host.counters.pebs.is_yes());
    assert!(help(&host.prefetch.control).contains("root"));
    assert_eq!(known(&host.limits.lockdown), "integrity");
}

#[test]
fn container_with_limits_in_a_made_up_topology() {
    let host = machine("qemu-docker");
    assert_eq!(shape(&host), (8, 8, 8, 1));
    assert_eq!(host.usable_cpus(), [2, 3, 4, 5]);
    assert_eq!(known(&host.virtualization.hypervisor), "QEMU (KVM)");
    assert_eq!(host.virtualization.container.as_deref(), Some("Docker"));
    assert_eq!(host.memory.usable(), Some(Bytes::gib(3)));
    assert_eq!(known(&host.limits.cpu_quota_milli), Some(2500));
    assert_eq!(known(&host.limits.seccomp), "filter");
    assert!(
        host.processor
            .microcode
            .why_unknown()
            .is_some_and(|w| w.contains("in place of the microcode revision"))
    );
    // QEMU's old leaf says 512 KiB whatever the others say.
    assert_eq!(about(&host), ["L2 size", "sockets"]);
    assert!(help(&host.counters.hardware).contains("docker run"));
    assert!(help(&host.prefetch.control).contains("modprobe"));
}

#[test]
fn firecracker_guest_of_a_newer_processor() {
    let host = machine("firecracker-zen5");
    assert_eq!(known(&host.processor.microarchitecture), "Zen 5");
    assert_eq!(data_caches(&host, 0), ["L1 48 KiB of 0", "L2 1 MiB of 0", "L3 32 MiB of 0-1"]);
    assert_eq!(host.contradictions[0].claims[0].1, "384 MiB");
    // This one's guests are lent counters.
    assert!(host.counters.hardware.is_yes());
    // The second level is counted in units of 32, of which the hypervisor hides the flag.
    let data: Vec<u32> =
        host.tlb_claims.iter().filter(|t| t.kind == CacheKind::Data).map(|t| t.entries).collect();
    assert_eq!(data, [96, 96, 4096, 4096, 96, 1024]);
}

#[test]
fn firecracker_guest_with_the_number_of_another_processor() {
    let host = machine("firecracker-spr");
    assert_eq!((host.processor.family.value(), host.processor.model.value()), (Some(6), Some(0xa7)));
    assert_eq!(known(&host.processor.microarchitecture), "Sapphire Rapids or later");
    assert_eq!(about(&host), ["processor"]);
    assert_eq!(host.contradictions[0].claims[0].1, "Rocket Lake");
    assert_eq!(data_caches(&host, 0), ["L1 48 KiB of 0", "L2 2 MiB of 0", "L3 105 MiB of 0-1"]);
    assert!(help(&host.counters.hardware).contains("Firecracker"));
}

#[test]
fn firecracker_guest() {
    let host = machine("firecracker-zen4");
    assert_eq!(shape(&host), (1, 2, 2, 1));
    assert_eq!(known(&host.processor.microarchitecture), "Zen 4");
    assert_eq!(known(&host.virtualization.hypervisor), "Firecracker (KVM)");
    assert_eq!(host.virtualization.container, None, "booted from a container's image, which is not one");
    assert_eq!(data_caches(&host, 1), ["L1 32 KiB of 1", "L2 1 MiB of 1", "L3 32 MiB of 0-1"]);
    assert_eq!(about(&host), ["L3 size", "memory"]);
    let (source, size) = &host.contradictions[0].claims[0];
    assert_eq!((source.as_str(), size.as_str()), ("CPUID leaf 0x80000006", "320 MiB"));
    assert!(host.contradictions[0].judgement.starts_with("believe 32 MiB"));
    assert!(help(&host.counters.hardware).contains("Firecracker"));
    assert!(host.counters.breakpoints.is_yes() && host.counters.software.is_yes());
    assert!(host.processor.fsgsbase.is_yes());
    let tlb: Vec<u32> =
        host.tlb_claims.iter().filter(|t| t.kind == CacheKind::Data).map(|t| t.entries).collect();
    assert_eq!(tlb, [72, 72, 3072, 3072]);
    assert!(host.verdict.measure.is_yes() && host.verdict.harvest.is_yes());
}

#[test]
fn a_directory_reads_like_the_file_it_came_from() {
    for name in ["power9-s922", "epyc-7313-2s"] {
        let file = format!("{}/fixtures/{name}.tree", env!("CARGO_MANIFEST_DIR"));
        let tree = gleaner_host::Tree::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        tree.unpack(directory.path()).unwrap();
        assert_eq!(gleaner_host::read(directory.path()), machine(name));
    }
}

#[test]
fn what_was_recorded_from_a_recording_is_the_recording() {
    for name in ["firecracker-zen4", "firecracker-zen5", "laptop-12700h", "qemu-docker", "graviton3-64k"] {
        let file = format!("{}/fixtures/{name}.tree", env!("CARGO_MANIFEST_DIR"));
        let source = gleaner_host::Source::open(Path::new(&file));
        let prober = gleaner_host::probe::RecordedProber::of(&source);
        let again = gleaner_host::Tree::parse(&gleaner_host::record(&source, &prober)).unwrap();
        let source = gleaner_host::Source::recorded(again);
        let prober = gleaner_host::probe::RecordedProber::of(&source);
        assert_eq!(gleaner_host::read_with(&source, &prober), machine(name), "{name}");
    }
}

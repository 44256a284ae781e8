//! What follows from the answers of a prober, on machines that nobody here has.

use gleaner_host::probe::{EventSpec, Prober, RecordedProber, Refusal};
use gleaner_host::{Host, Source, Tree};
use records::host::Ability;
use std::cell::RefCell;

const EINVAL: i32 = 22;
const EIO: i32 = 5;
const EOPNOTSUPP: i32 = 95;

/// Answers by rule, and keeps the questions.
struct Mock<F: Fn(&EventSpec) -> Result<u64, Refusal>> {
    event: F,
    msr: Result<u64, Refusal>,
    asked: RefCell<Vec<EventSpec>>,
}

impl<F: Fn(&EventSpec) -> Result<u64, Refusal>> Mock<F> {
    fn new(event: F) -> Self {
        Self { event, msr: Err(Refusal::Errno(EIO)), asked: RefCell::default() }
    }

    fn asked(&self, name: &str) -> Vec<EventSpec> {
        self.asked.borrow().iter().filter(|e| e.name == name).cloned().collect()
    }
}

impl<F: Fn(&EventSpec) -> Result<u64, Refusal>> Prober for Mock<F> {
    fn event(&self, event: &EventSpec) -> Result<u64, Refusal> {
        self.asked.borrow_mut().push(event.clone());
        (self.event)(event)
    }

    fn msr(&self, _cpu: u32, _register: u32) -> Result<u64, Refusal> {
        self.msr.clone()
    }
}

fn tree(name: &str) -> Tree {
    let file = format!("{}/fixtures/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    Tree::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn read(tree: Tree, prober: &dyn Prober) -> Host {
    gleaner_host::read_with(&Source::recorded(tree), prober)
}

fn no(ability: &Ability) -> (&str, &str) {
    match ability {
        Ability::No { why, would_help } => (why, would_help),
        other => panic!("expected a no, found {other:?}"),
    }
}

#[test]
fn an_event_that_opens_and_never_counts_is_none() {
    let host = read(tree("xeon-e5-2640v3"), &Mock::new(|_| Ok(0)));
    assert!(no(&host.counters.hardware).0.contains("counts nothing"));
    assert!(no(&host.counters.breakpoints).0.contains("never fires"));
    assert!(host.counters.pebs.is_yes(), "samples come by another way than the count");
}

#[test]
fn loads_are_asked_for_as_the_kernel_names_them() {
    let mock = Mock::new(|_| Ok(1));
    read(tree("spr-8462y-snc4"), &mock);
    let asked = mock.asked("mem-loads");
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].kind, asked[0].config, asked[0].config1, asked[0].precise), (4, 0x1cd, 3, 2));
    assert_eq!(asked[0].leader, Some(0x8203), "since Golden Cove an auxiliary event leads the group");
    let mock = Mock::new(|_| Ok(1));
    read(tree("xeon-e5-2640v3"), &mock);
    assert_eq!(mock.asked("mem-loads")[0].leader, None);
}

#[test]
fn old_kernels_sample_ibs_with_the_kernel_or_not_at_all() {
    let mock =
        Mock::new(
            |e| if e.name == "ibs_op" && e.exclude_kernel { Err(Refusal::Errno(EINVAL)) } else { Ok(1) },
        );
    let host = read(tree("epyc-7313-2s"), &mock);
    assert!(host.counters.ibs.is_yes());
    let asked = mock.asked("ibs_op");
    assert_eq!(asked.iter().map(|e| e.exclude_kernel).collect::<Vec<_>>(), [true, false]);
    assert!(asked.iter().all(|e| e.kind == 11 && e.period.is_some_and(|p| p % 16 == 0)));
}

#[test]
fn what_was_not_tried_is_not_a_no() {
    let mut unprobed = tree("xeon-e5-2640v3");
    unprobed.insert("gleaner/probes", "");
    let source = Source::recorded(unprobed);
    let host = gleaner_host::read_with(&source, &RecordedProber::of(&source));
    for ability in
        [&host.counters.hardware, &host.counters.pebs, &host.counters.breakpoints, &host.prefetch.control]
    {
        assert!(matches!(ability, Ability::Unknown { .. }), "{ability:?}");
    }
}

#[test]
fn a_register_that_faults_is_the_hypervisors_or_the_processors() {
    let mock = Mock::new(|_| Ok(1));
    assert!(no(&read(tree("xeon-e5-2640v3"), &mock).prefetch.control).1.contains("firmware"));
    assert!(no(&read(tree("qemu-docker"), &mock).prefetch.control).1.contains("bare metal"));
    let readable = Mock { msr: Ok(0b0101), ..Mock::new(|_| Ok(1)) };
    let host = read(tree("qemu-docker"), &readable);
    assert!(
        matches!(&host.prefetch.control, Ability::Yes { detail } if detail.contains("only measuring shows"))
    );
    let states: Vec<&str> = host.prefetch.controls.iter().map(|c| c.state.get().unwrap().as_str()).collect();
    assert_eq!(states, ["off", "on", "off", "on"]);
}

/// The Firecracker guest with other marks: signature of CPUID leaf 0x40000000, maker and product by
/// DMI.
fn guest(signature: &[u8; 12], vendor: &str, product: &str) -> Tree {
    let mut tree = tree("firecracker-zen4");
    let word = |i: usize| u32::from_le_bytes(signature[i..i + 4].try_into().unwrap());
    let dump = String::from_utf8(tree.file("gleaner/cpuid").unwrap().to_vec()).unwrap();
    let other = format!(
        "   0x40000000 0x00: eax=0x40000001 ebx=0x{:08x} ecx=0x{:08x} edx=0x{:08x}",
        word(0),
        word(4),
        word(8)
    );
    let lines = dump.lines().map(|l| if l.contains("0x40000000") { other.as_str() } else { l });
    tree.insert("gleaner/cpuid", lines.collect::<Vec<_>>().join("\n"));
    tree.insert("sys/firmware/acpi/tables/FACP", "FACP");
    tree.insert("sys/class/dmi/id/sys_vendor", vendor);
    tree.insert("sys/class/dmi/id/product_name", product);
    tree
}

#[test]
fn every_hypervisor_has_a_help_of_its_own() {
    let kvm = b"KVMKVMKVM\0\0\0";
    let cases: [(&[u8; 12], &str, &str, &str, &str); 9] = [
        (kvm, "QEMU", "Standard PC", "QEMU (KVM)", "-cpu host,pmu=on"),
        (kvm, "Amazon EC2", "m7a.large", "KVM", ".metal"),
        (kvm, "Google", "Google Compute Engine", "KVM", "performance-monitoring-unit"),
        (kvm, "Alibaba Cloud", "Alibaba Cloud ECS", "KVM", "bare-metal"),
        (b"VMwareVMware", "VMware, Inc.", "VMware7,1", "VMware", "vpmc.enable"),
        (b"Microsoft Hv", "Microsoft Corporation", "Virtual Machine", "Hyper-V", "Set-VMProcessor"),
        (b"XenVMMXenVMM", "Xen", "HVM domU", "Xen", "vpmu=1"),
        (b"VBoxVBoxVBox", "innotek GmbH", "VirtualBox", "VirtualBox", "KVM or VMware"),
        (b"TCGTCGTCGTCG", "QEMU", "Standard PC", "QEMU (software emulation)", "-accel kvm"),
    ];
    let mut helps = std::collections::BTreeSet::new();
    for (signature, vendor, product, hypervisor, mark) in cases {
        let host = read(guest(signature, vendor, product), &Mock::new(|_| Err(Refusal::Errno(EOPNOTSUPP))));
        assert_eq!(host.virtualization.hypervisor.get().map(String::as_str), Some(hypervisor), "{vendor}");
        let help = no(&host.counters.hardware).1.to_owned();
        assert!(help.contains(mark), "{vendor}: {help}");
        assert!(helps.insert(help), "{vendor} shares its help");
    }
}

#[test]
fn azure_is_known_by_its_asset_tag() {
    let mut tree = guest(b"Microsoft Hv", "Microsoft Corporation", "Virtual Machine");
    tree.insert("sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77");
    let host = read(tree, &Mock::new(|_| Err(Refusal::Errno(EOPNOTSUPP))));
    assert_eq!(host.virtualization.cloud.as_deref(), Some("Azure"));
    assert!(no(&host.counters.hardware).1.contains("Azure"));
}

#[test]
fn containers_are_told_from_images_by_their_namespace() {
    let mock = Mock::new(|_| Ok(1));
    let marks = [
        ("proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice", "Kubernetes"),
        ("run/.containerenv", "engine=podman", "Podman"),
        ("run/systemd/container", "lxc", "lxc"),
    ];
    for (file, content, kind) in marks {
        let mut inside = tree("laptop-12700h");
        inside.insert("proc/self/ns/pid", "pid:[4026532567]");
        inside.insert(file, content);
        assert_eq!(read(inside, &mock).virtualization.container.as_deref(), Some(kind));
    }
    assert_eq!(read(tree("laptop-12700h"), &mock).virtualization.container, None);
}

#[test]
fn copies_of_files_are_not_memory_that_a_group_lacks() {
    let mock = Mock::new(|_| Ok(1));
    let groups = [
        ("0::/box", "sys/fs/cgroup/box/memory.max", "sys/fs/cgroup/box/memory.current"),
        (
            "4:memory:/box",
            "sys/fs/cgroup/memory/box/memory.limit_in_bytes",
            "sys/fs/cgroup/memory/box/memory.usage_in_bytes",
        ),
    ];
    for (group, limit, usage) in groups {
        let mut inside = tree("laptop-12700h");
        inside.insert("proc/self/cgroup", group);
        inside.insert(limit, "400000000");
        inside.insert(usage, "390000000");
        let used = |tree: &Tree| read(tree.clone(), &mock).memory.cgroup_used.value().expect("a figure").0;
        assert_eq!(used(&inside), 390_000_000, "{group}");
        let directory = limit.rsplit_once('/').unwrap().0;
        inside.insert(
            format!("{directory}/memory.stat"),
            "anon 1000\ninactive_file 300000000\nactive_file 40000000\n",
        );
        assert_eq!(used(&inside), 70_000_000, "{group}");
    }
    let mut below = tree("laptop-12700h");
    below.insert("proc/self/cgroup", "4:memory:/box");
    below.insert("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "400000000");
    below.insert("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "390000000");
    below.insert(
        "sys/fs/cgroup/memory/box/memory.stat",
        "inactive_file 1\ntotal_inactive_file 200000000\ntotal_active_file 0\nactive_file 8\n",
    );
    assert_eq!(read(below, &mock).memory.cgroup_used.value().expect("a figure").0, 190_000_000);
}

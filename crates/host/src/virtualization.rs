//! What stands between this process and the silicon: hypervisor, cloud, container.
//!
//! Each conclusion keeps its evidence, because every single mark can be absent or forged: a KVM
//! guest can wear Hyper-V's signature, and a virtual machine can boot from a container's image.
//!
//! To add a hypervisor: its CPUID signature in [`SIGNATURES`] or its maker in [`MAKERS`], and what
//! would help there in `remedies.rs`.

use crate::cpuid::Cpuid;
use crate::identity::dmi;
use crate::source::Source;
use records::host::{Fact, Virtualization};

/// Names used for hypervisors throughout; `remedies.rs` matches on them.
pub(crate) mod name {
    pub(crate) const NONE: &str = "none";
    pub(crate) const KVM: &str = "KVM";
    pub(crate) const FIRECRACKER: &str = "Firecracker (KVM)";
    pub(crate) const QEMU: &str = "QEMU (KVM)";
    pub(crate) const CLOUD_HYPERVISOR: &str = "Cloud Hypervisor (KVM)";
    pub(crate) const TCG: &str = "QEMU (software emulation)";
    pub(crate) const HYPER_V: &str = "Hyper-V";
    pub(crate) const WSL: &str = "WSL 2 (Hyper-V)";
    pub(crate) const VMWARE: &str = "VMware";
    pub(crate) const XEN: &str = "Xen";
    pub(crate) const VIRTUALBOX: &str = "VirtualBox";
    pub(crate) const POWERVM: &str = "PowerVM";
    pub(crate) const OTHER: &str = "an unknown hypervisor";
}

const SIGNATURES: [(&str, &str); 11] = [
    ("KVMKVMKVM", name::KVM),
    ("Linux KVM Hv", name::KVM),
    ("Microsoft Hv", name::HYPER_V),
    ("VMwareVMware", name::VMWARE),
    ("XenVMMXenVMM", name::XEN),
    ("VBoxVBoxVBox", name::VIRTUALBOX),
    ("TCGTCGTCGTCG", name::TCG),
    ("bhyve bhyve", "bhyve"),
    ("prl hyperv", "Parallels"),
    ("ACRNACRNACRN", "ACRN"),
    ("QNXQVMBSQG", "QNX"),
];

/// Maker by DMI, hypervisor it implies where CPUID is silent, and cloud.
const MAKERS: [(&str, Option<&str>, Option<&str>); 15] = [
    ("Amazon EC2", None, Some("AWS")),
    ("Google", None, Some("Google Cloud")),
    ("Microsoft Corporation", Some(name::HYPER_V), None),
    ("QEMU", Some(name::QEMU), None),
    ("VMware, Inc.", Some(name::VMWARE), None),
    ("Xen", Some(name::XEN), None),
    ("innotek GmbH", Some(name::VIRTUALBOX), None),
    ("Alibaba Cloud", None, Some("Alibaba Cloud")),
    ("DigitalOcean", Some(name::KVM), Some("DigitalOcean")),
    ("Hetzner", None, Some("Hetzner")),
    ("OpenStack Foundation", Some(name::KVM), Some("OpenStack")),
    ("Scaleway", None, Some("Scaleway")),
    ("Tencent Cloud", None, Some("Tencent Cloud")),
    ("Parallels Software International Inc.", Some("Parallels"), None),
    ("Cloud Hypervisor", Some(name::CLOUD_HYPERVISOR), None),
];

pub(crate) fn virtualization(source: &Source, cpuid: &Cpuid) -> Virtualization {
    let mut evidence = Vec::new();
    let (cloud, implied) = maker(source, &mut evidence);
    let hypervisor = hypervisor(source, cpuid, implied, &mut evidence);
    let container = container(source, &mut evidence);
    let bare = hypervisor.get().is_some_and(|h| h == name::NONE);
    Virtualization {
        host_backing: if bare {
            Fact::Known("this is the host".into())
        } else {
            Fact::unknown(
                "a guest cannot see which pages back its memory: H?G0 with THP, H?G1 with base pages",
            )
        },
        hypervisor,
        cloud,
        container,
        evidence,
    }
}

fn maker(source: &Source, evidence: &mut Vec<String>) -> (Option<String>, Option<&'static str>) {
    let vendor = dmi(source, "sys_vendor").unwrap_or_default();
    let product = dmi(source, "product_name").unwrap_or_default();
    let tag = dmi(source, "chassis_asset_tag").unwrap_or_default();
    let found = MAKERS.iter().find(|(maker, ..)| vendor == *maker);
    let mut cloud = found.and_then(|(_, _, cloud)| *cloud).map(str::to_owned);
    let mut implied = found.and_then(|(_, hypervisor, _)| *hypervisor);
    if tag == "OracleCloud.com" {
        cloud = Some("Oracle Cloud".into());
    } else if tag == "7783-7084-3265-9085-8269-3286-77" {
        cloud = Some("Azure".into());
    }
    if vendor == "Microsoft Corporation" && product != "Virtual Machine" {
        implied = None; // Microsoft sells laptops, too.
    }
    if product == "VirtualBox" {
        implied = Some(name::VIRTUALBOX);
    }
    if cloud.is_some() || implied.is_some() {
        let named =
            [vendor, product, tag].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ");
        evidence.push(format!("DMI: {named}"));
    }
    (cloud, implied)
}

fn hypervisor(
    source: &Source,
    cpuid: &Cpuid,
    implied: Option<&str>,
    evidence: &mut Vec<String>,
) -> Fact<String> {
    let known = |n: &str| Fact::Known(n.to_owned());
    let kernel = source.text("proc/sys/kernel/osrelease").get().cloned().unwrap_or_default();
    if kernel.to_ascii_lowercase().contains("microsoft") && kernel.contains("WSL") {
        evidence.push(format!("kernel {kernel}"));
        return known(name::WSL);
    }
    let by_cpuid = by_cpuid(cpuid, evidence);
    let found = by_cpuid.or_else(|| by_files(source, evidence)).or(implied);
    if let Some(found) = found {
        return known(if found == name::KVM { monitor(source, implied, evidence) } else { found });
    }
    let cpuinfo = source.text("proc/cpuinfo").get().cloned().unwrap_or_default();
    let flag = cpuinfo
        .lines()
        .filter(|l| l.starts_with("flags"))
        .any(|l| l.split_whitespace().any(|w| w == "hypervisor"));
    if flag {
        evidence.push("/proc/cpuinfo has the flag 'hypervisor'".into());
        return known(name::OTHER);
    }
    if !cpuid.is_empty() {
        evidence.push("CPUID leaf 1 has the hypervisor bit clear".into());
        return known(name::NONE);
    }
    if cpuinfo.contains("PowerNV") {
        evidence.push("/proc/cpuinfo: platform PowerNV".into());
        return known(name::NONE);
    }
    if cpuinfo.is_empty() {
        return Fact::unknown("neither CPUID nor /proc/cpuinfo can be read");
    }
    // On Arm nothing says "bare metal"; firmware of physical machines names a maker, that of guests
    // a hypervisor.
    match dmi(source, "sys_vendor") {
        Some(vendor) => {
            evidence.push(format!("DMI names the maker {vendor} and nothing names a hypervisor"));
            known(name::NONE)
        }
        None => {
            Fact::unknown("this architecture has no sign for it, and neither DMI nor the device tree tells")
        }
    }
}

fn by_cpuid(cpuid: &Cpuid, evidence: &mut Vec<String>) -> Option<&'static str> {
    let signature = cpuid.hypervisor()?;
    evidence.push(format!("CPUID leaf 0x40000000 says {signature:?}"));
    // KVM puts Hyper-V's leaves first when it poses as Hyper-V, and its own at 0x40000100; the
    // range asked ends before.
    Some(SIGNATURES.iter().find(|(s, _)| *s == signature).map_or(name::OTHER, |(_, n)| n))
}

fn by_files(source: &Source, evidence: &mut Vec<String>) -> Option<&'static str> {
    if let Fact::Known(kind) = source.text("sys/hypervisor/type") {
        evidence.push(format!("/sys/hypervisor/type says {kind}"));
        if kind == "xen" {
            return Some(name::XEN);
        }
    }
    if let Fact::Known(text) = source.text("proc/device-tree/hypervisor/compatible") {
        let text = text.replace('\0', " ");
        evidence.push(format!("the device tree names the hypervisor {}", text.trim()));
        let names = [("kvm", name::KVM), ("vmware", name::VMWARE), ("xen", name::XEN)];
        return Some(names.iter().find(|(mark, _)| text.contains(mark)).map_or(name::OTHER, |(_, n)| n));
    }
    if source.exists("proc/device-tree/ibm,partition-name") {
        evidence.push("the device tree names a logical partition".into());
        return Some(name::POWERVM);
    }
    let cpuinfo = source.text("proc/cpuinfo");
    if cpuinfo.get().is_some_and(|t| t.contains("(emulated by qemu)")) {
        evidence.push("/proc/cpuinfo says 'emulated by qemu'".into());
        return Some(name::QEMU);
    }
    // Arm guests of the large clouds show no other sign than the product's name.
    let product = dmi(source, "product_name").unwrap_or_default();
    let vendor = dmi(source, "sys_vendor").unwrap_or_default();
    (vendor == "Amazon EC2" && !product.contains("metal") || vendor == "Google").then_some(name::KVM)
}

/// Which program drives KVM: it decides what can be switched on.
fn monitor(source: &Source, implied: Option<&str>, evidence: &mut Vec<String>) -> &'static str {
    if let Some(maker) = acpi_maker(source) {
        if maker.contains("FIRECK") {
            evidence.push("the ACPI tables are made by FIRECK".into());
            return name::FIRECRACKER;
        }
        if maker.contains("CLOUDH") {
            evidence.push("the ACPI tables are made by CLOUDH".into());
            return name::CLOUD_HYPERVISOR;
        }
        if maker.contains("BOCHS") && implied.is_none_or(|i| i == name::QEMU) {
            evidence.push("the ACPI tables are made by BOCHS, which is QEMU's mark".into());
            return name::QEMU;
        }
    }
    match implied {
        Some(name::QEMU) => name::QEMU,
        Some(name::CLOUD_HYPERVISOR) => name::CLOUD_HYPERVISOR,
        _ => name::KVM,
    }
}

/// The maker's six letters in the head of any ACPI table.
fn acpi_maker(source: &Source) -> Option<String> {
    ["FACP", "APIC", "DSDT"].iter().find_map(|table| {
        let bytes = source.bytes(&format!("sys/firmware/acpi/tables/{table}"));
        let maker = bytes.get()?.get(10..16)?.to_vec();
        Some(String::from_utf8_lossy(&maker).trim().to_owned())
    })
}

/// The initial PID namespace has had this inode number since Linux 3.8.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

fn container(source: &Source, evidence: &mut Vec<String>) -> Option<String> {
    let marked = marks(source);
    let initial = source.link("proc/self/ns/pid").get().is_some_and(|l| l == INITIAL_PID_NAMESPACE);
    match (marked, initial) {
        (Some((_, mark)), true) if !mark.starts_with("the control group") => {
            evidence.push(format!(
                "{mark}, but this is the kernel's first PID namespace: an image run as a machine"
            ));
            None
        }
        (Some((kind, mark)), _) => {
            evidence.push(mark);
            Some(kind)
        }
        (None, true) => None,
        (None, false) => {
            let link = source.link("proc/self/ns/pid");
            link.get().map(|l| {
                evidence.push(format!("{l} is not the kernel's first PID namespace"));
                "some container (own PID namespace)".to_owned()
            })
        }
    }
}

/// What kind of container, and what says so.
fn marks(source: &Source) -> Option<(String, String)> {
    let groups = source.text("proc/self/cgroup").get().cloned().unwrap_or_default();
    let words = [
        ("kubepods", "Kubernetes"),
        ("libpod", "Podman"),
        ("docker", "Docker"),
        ("lxc", "LXC"),
        ("containerd", "containerd"),
    ];
    if let Some((word, kind)) = words.iter().find(|(word, _)| groups.contains(word)) {
        return Some(((*kind).into(), format!("the control group's path contains '{word}'")));
    }
    if let Some(kind) = source.text("run/systemd/container").get() {
        return Some((kind.clone(), format!("/run/systemd/container says {kind}")));
    }
    let environment = source.text("proc/1/environ").get().cloned().unwrap_or_default();
    if let Some(kind) = environment.split('\0').find_map(|v| v.strip_prefix("container=")) {
        return Some((kind.to_owned(), format!("process 1 was started with container={kind}")));
    }
    let files = [("run/.containerenv", "Podman"), (".dockerenv", "Docker")];
    files
        .iter()
        .find(|(file, _)| source.exists(file))
        .map(|(file, kind)| ((*kind).to_owned(), format!("/{file} exists")))
}

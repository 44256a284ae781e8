//! Writes down what the readers read, so that a machine can be looked at elsewhere.
//!
//! Only files named here are taken: no command lines, no environment, no serial numbers, no host
//! name.

use crate::cpuid::{self, Cpuid};
use crate::probe::{self, Prober};
use crate::source::Source;
use crate::tree::Tree;
use records::host::Fact;

/// Files taken as they are.
const FILES: &[&str] = &[
    ".dockerenv",
    "run/.containerenv",
    "run/systemd/container",
    "proc/device-tree/hypervisor/compatible",
    "proc/device-tree/model",
    "proc/loadavg",
    "proc/self/cgroup",
    "proc/sys/kernel/arch",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/sys/kernel/yama/ptrace_scope",
    "proc/sys/vm/overcommit_memory",
    "proc/uptime",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_core/cpus",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/dscr_default",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/smt/control",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/hypervisor/type",
    "sys/kernel/security/lockdown",
];

/// Files taken from a directory and those below, to a depth that sysfs loops cannot outrun.
const DIRECTORIES: &[(&str, usize, &[&str])] = &[
    (
        "sys/class/dmi/id",
        0,
        &["sys_vendor", "product_name", "chassis_asset_tag", "bios_vendor", "bios_version", "bios_date"],
    ),
    ("sys/kernel/mm/transparent_hugepage", 1, &["enabled", "defrag", "shmem_enabled", "hpage_pmd_size"]),
    (
        "sys/kernel/mm/hugepages",
        1,
        &["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"],
    ),
    ("sys/bus/event_source/devices", 2, &["type", "cpus", "cpumask", "mem-loads", "mem-loads-aux"]),
];

/// Files of many lines of which these are taken.
const LINES: &[(&str, &[&str])] = &[
    ("proc/meminfo", &["MemTotal", "MemFree", "MemAvailable", "SwapTotal", "Hugepagesize"]),
    ("proc/self/limits", &["Limit", "Max locked memory", "Max address space", "Max open files"]),
    ("proc/self/status", &["Uid", "CapEff", "NoNewPrivs", "Seccomp:", "Cpus_allowed_list"]),
    ("etc/os-release", &["PRETTY_NAME"]),
];

/// Per CPU, below `sys/devices/system/cpu/cpuN`.
const PER_CPU: &[&str] = &[
    "cpu_capacity",
    "cpufreq/base_frequency",
    "cpufreq/cpuinfo_max_freq",
    "cpufreq/scaling_driver",
    "cpufreq/scaling_governor",
    "topology/cluster_id",
    "topology/core_cpus_list",
    "topology/core_id",
    "topology/die_id",
    "topology/physical_package_id",
];

const PER_CACHE: &[&str] = &[
    "coherency_line_size",
    "level",
    "number_of_sets",
    "shared_cpu_list",
    "size",
    "type",
    "ways_of_associativity",
];

const PER_NODE: &[&str] = &["cpulist", "distance"];

/// The machine behind a source, as text that [`Tree::parse`] reads.
pub fn record(source: &Source, prober: &dyn Prober) -> String {
    let mut tree = Tree::default();
    for file in FILES {
        take(source, &mut tree, file);
    }
    for (path, lines) in LINES {
        take_lines(source, &mut tree, path, lines);
    }
    for (directory, depth, names) in DIRECTORIES {
        take_below(source, &mut tree, directory, *depth, names);
    }
    for cpu in source.numbered("sys/devices/system/cpu", "cpu") {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}");
        for file in PER_CPU {
            take(source, &mut tree, &format!("{directory}/{file}"));
        }
        for index in source.numbered(&format!("{directory}/cache"), "index") {
            for file in PER_CACHE {
                take(source, &mut tree, &format!("{directory}/cache/index{index}/{file}"));
            }
        }
        for node in source.numbered(&directory, "node") {
            tree.insert(format!("{directory}/node{node}/cpulist"), "");
        }
    }
    for node in source.numbered("sys/devices/system/node", "node") {
        let directory = format!("sys/devices/system/node/node{node}");
        let lines = ["MemTotal", "MemFree"].map(|l| format!("Node {node} {l}"));
        take_lines(source, &mut tree, &format!("{directory}/meminfo"), &lines.each_ref().map(String::as_str));
        for file in PER_NODE {
            take(source, &mut tree, &format!("{directory}/{file}"));
        }
        take_below(
            source,
            &mut tree,
            &format!("{directory}/hugepages"),
            1,
            &["nr_hugepages", "free_hugepages"],
        );
    }
    for path in crate::cgroup::files(source) {
        take(source, &mut tree, &path);
    }
    heads(source, &mut tree);
    if let Fact::Known(link) = source.link("proc/self/ns/pid") {
        tree.insert("proc/self/ns/pid", format!("{link}\n"));
    }
    let leaves = Cpuid::of(source);
    if !leaves.is_empty() {
        tree.insert(cpuid::DUMP, leaves.dump());
    }
    let keeping = probe::Keeping::new(prober);
    let _ = crate::read_with(source, &keeping);
    let answers = keeping.into_text();
    if !answers.is_empty() {
        tree.insert(probe::ANSWERS, answers);
    }
    tree.to_text()
}

fn take(source: &Source, tree: &mut Tree, path: &str) {
    if let Fact::Known(content) = source.bytes(path) {
        tree.insert(path, content);
    }
}

fn take_below(source: &Source, tree: &mut Tree, directory: &str, depth: usize, names: &[&str]) {
    for name in source.names(directory) {
        let path = format!("{directory}/{name}");
        if names.contains(&name.as_str()) {
            take(source, tree, &path);
        } else if depth > 0 {
            take_below(source, tree, &path, depth - 1, names);
        }
    }
}

fn take_lines(source: &Source, tree: &mut Tree, path: &str, starts: &[&str]) {
    if let Fact::Known(text) = source.text(path) {
        let taken = text.lines().filter(|l| starts.iter().any(|s| l.starts_with(s)));
        tree.insert(path, taken.fold(String::new(), |t, l| t + l + "\n"));
    }
}

/// Long files of which not all is read.
fn heads(source: &Source, tree: &mut Tree) {
    if let Fact::Known(text) = source.text("proc/cpuinfo") {
        tree.insert("proc/cpuinfo", short_cpuinfo(&text));
    }
    if let Fact::Known(table) = source.bytes("sys/firmware/acpi/tables/FACP") {
        tree.insert("sys/firmware/acpi/tables/FACP", &table[..table.len().min(36)]);
    }
    if let Fact::Known(text) = source.text("proc/stat") {
        tree.insert("proc/stat", text.lines().take(1).fold(String::new(), |t, l| t + l + "\n"));
    }
    if let Fact::Known(vector) = source.bytes("proc/self/auxv") {
        tree.insert("proc/self/auxv", crate::auxv::without_addresses(&vector));
    }
    if source.exists("proc/device-tree/ibm,partition-name") {
        tree.insert("proc/device-tree/ibm,partition-name", "(not recorded)\n");
    }
}

/// The first CPU's lines, the numbers of the others, and whatever concerns all of them.
fn short_cpuinfo(text: &str) -> String {
    let mut blocks = text.split("\n\n");
    let mut short = blocks.next().unwrap_or_default().trim_end().to_owned() + "\n";
    for block in blocks {
        let first = block.lines().next().unwrap_or_default();
        let one_cpu = first.split_once(':').is_some_and(|(key, _)| key.trim() == "processor");
        short += "\n";
        short += if one_cpu { first } else { block.trim_end() };
        short += "\n";
    }
    short
}

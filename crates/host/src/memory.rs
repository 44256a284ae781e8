//! Memory, page sizes and NUMA nodes.

use crate::source::{Source, field_fact, garbled, parsed};
use records::host::{CpuList, Fact, HugetlbPool, Memory, Node, Pages, Thp, ThpMode, ThpSize};
use units::Bytes;

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const NODES: &str = "sys/devices/system/node";

pub(crate) fn pages(source: &Source) -> Pages {
    Pages { base: base_page(source), thp: thp(source), hugetlb: pools(source, "sys/kernel/mm/hugepages") }
}

/// From the auxiliary vector, or else from the page size that smaps names for any mapping.
fn base_page(source: &Source) -> Fact<Bytes> {
    const AT_PAGESZ: u64 = 6;
    crate::auxv::entry(source, AT_PAGESZ).map(Bytes).or_else(|| {
        let smaps = source.text("proc/self/smaps");
        size(field_fact(&smaps, "KernelPageSize", "proc/self/smaps"), "proc/self/smaps")
    })
}

fn thp(source: &Source) -> Thp {
    let enabled_path = format!("{THP}/enabled");
    let mut sizes: Vec<ThpSize> = source
        .names(THP)
        .iter()
        .filter_map(|name| {
            let path = format!("{THP}/{name}/enabled");
            Some(ThpSize { size: sized_directory(name)?, enabled: mode(source, &path), path })
        })
        // The smallest sizes exist for shared memory only and have no such switch.
        .filter(|s| source.exists(&s.path))
        .collect();
    sizes.sort_by_key(|s| s.size);
    Thp {
        enabled: mode(source, &enabled_path),
        enabled_path,
        defrag: source.chosen(&format!("{THP}/defrag")),
        shmem: source.chosen(&format!("{THP}/shmem_enabled")),
        pmd_size: source.value(&format!("{THP}/hpage_pmd_size")).map(Bytes),
        sizes,
    }
}

fn mode(source: &Source, path: &str) -> Fact<ThpMode> {
    match source.chosen(path) {
        Fact::Known(word) => match word.as_str() {
            "always" => Fact::Known(ThpMode::Always),
            "madvise" => Fact::Known(ThpMode::Madvise),
            "never" => Fact::Known(ThpMode::Never),
            "inherit" => Fact::Known(ThpMode::Inherit),
            other => garbled(path, other),
        },
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

fn pools(source: &Source, directory: &str) -> Vec<HugetlbPool> {
    let mut pools: Vec<HugetlbPool> = source
        .names(directory)
        .iter()
        .filter_map(|name| {
            let path = format!("{directory}/{name}");
            let count = |file: &str| source.value::<u64>(&format!("{path}/{file}"));
            Some(HugetlbPool {
                size: sized_directory(name)?,
                total: count("nr_hugepages"),
                free: count("free_hugepages"),
                reserved: count("resv_hugepages"),
                surplus: count("surplus_hugepages"),
                path: path.clone(),
            })
        })
        .collect();
    pools.sort_by_key(|p| p.size);
    pools
}

/// `hugepages-2048kB` names its size.
fn sized_directory(name: &str) -> Option<Bytes> {
    let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

pub(crate) fn memory(source: &Source) -> Memory {
    const PATH: &str = "proc/meminfo";
    let info = source.text(PATH);
    let line = |key| size(field_fact(&info, key, PATH), PATH);
    let groups = crate::cgroup::memory(source);
    Memory {
        total: line("MemTotal"),
        available: line("MemAvailable"),
        cgroup_limit: groups.limit,
        cgroup_used: groups.used,
        swap: line("SwapTotal"),
        overcommit: source.value("proc/sys/vm/overcommit_memory"),
    }
}

pub(crate) fn nodes(source: &Source) -> Vec<Node> {
    source.numbered(NODES, "node").into_iter().map(|id| node(source, id)).collect()
}

fn node(source: &Source, id: u32) -> Node {
    let directory = format!("{NODES}/node{id}");
    let path = format!("{directory}/meminfo");
    // Lines read "Node 0 MemTotal: 123 kB".
    let prefix = format!("Node {id} ");
    let info = source
        .text(&path)
        .map(|t| t.lines().map(|l| l.strip_prefix(&prefix).unwrap_or(l)).collect::<Vec<_>>().join("\n"));
    let distances = match source.text(&format!("{directory}/distance")) {
        Fact::Known(text) => {
            let all: Option<Vec<u32>> = text.split_whitespace().map(|d| d.parse().ok()).collect();
            all.map_or_else(|| garbled(&format!("{directory}/distance"), &text), Fact::Known)
        }
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    };
    Node {
        id,
        cpus: source.cpus(&format!("{directory}/cpulist")).get().cloned().unwrap_or_else(CpuList::default),
        total: size(field_fact(&info, "MemTotal", &path), &path),
        free: size(field_fact(&info, "MemFree", &path), &path),
        distances,
        hugetlb: pools(source, &format!("{directory}/hugepages")),
    }
}

/// `24684096 kB`, as procfs writes sizes.
fn size(text: Fact<String>, path: &str) -> Fact<Bytes> {
    parsed(text, path)
}

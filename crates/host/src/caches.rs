//! Caches as sysfs tells them: one entry per cache, however many CPUs share it.

use crate::source::Source;
use records::host::{Cache, CacheKind, Cpu, CpuList, Fact};
use units::Bytes;

pub(crate) fn caches(source: &Source, cpus: &[Cpu]) -> Vec<Cache> {
    let mut found: Vec<Cache> = Vec::new();
    for cpu in cpus.iter().filter(|c| c.online) {
        let directory = format!("sys/devices/system/cpu/cpu{}/cache", cpu.id);
        for index in source.numbered(&directory, "index") {
            if let Some(cache) = one(source, &format!("{directory}/index{index}"), cpu.id) {
                let known = found
                    .iter()
                    .any(|c| (c.level, c.kind) == (cache.level, cache.kind) && c.shared_by.contains(cpu.id));
                if !known {
                    found.push(cache);
                }
            }
        }
    }
    found.sort_by_key(|c| (c.level, c.kind, c.shared_by.first()));
    found
}

fn one(source: &Source, directory: &str, cpu: u32) -> Option<Cache> {
    let file = |name: &str| format!("{directory}/{name}");
    let level = source.value(&file("level")).value()?;
    let kind = match source.text(&file("type")).get()?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let shared_by = source.cpus(&file("shared_cpu_list")).get().cloned().unwrap_or_default();
    Some(Cache {
        level,
        kind,
        size: nonzero(source.value::<Bytes>(&file("size"))),
        line: source.value(&file("coherency_line_size")).map(Bytes),
        ways: source.value(&file("ways_of_associativity")),
        sets: source.value(&file("number_of_sets")),
        // A cache that lists no CPU, or only others, still serves the CPU it hangs under.
        shared_by: if shared_by.contains(cpu) { shared_by } else { CpuList::from_iter([cpu]) },
    })
}

fn nonzero(size: Fact<Bytes>) -> Fact<Bytes> {
    match size {
        Fact::Known(Bytes(0)) => Fact::unknown("the kernel says 0"),
        other => other,
    }
}

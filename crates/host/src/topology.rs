//! CPUs and how they hang together: packages, dies, clusters, cores, siblings, hybrid kinds.

use crate::source::{Source, field_fact, parsed};
use records::host::{CoreKind, Cpu, CpuList, Fact, Smt, Topology};
use std::collections::BTreeSet;

const CPU: &str = "sys/devices/system/cpu";

pub(crate) fn cpus(source: &Source) -> Vec<Cpu> {
    let online = online(source);
    let kinds = Kinds::read(source);
    let mut ids = source.numbered(CPU, "cpu");
    if ids.is_empty() {
        // A kernel or sandbox without sysfs still has the list in procfs.
        ids = online.get().map(|l| l.iter().collect()).unwrap_or_default();
    }
    ids.into_iter().map(|id| cpu(source, id, &online, &kinds)).collect()
}

fn cpu(source: &Source, id: u32, online: &Fact<CpuList>, kinds: &Kinds) -> Cpu {
    let topology = |name: &str| format!("{CPU}/cpu{id}/topology/{name}");
    // The kernel writes -1 for what it does not know, and 65535 for "no cluster" on some.
    let number = |name: &str| match source.value::<i64>(&topology(name)) {
        Fact::Known(n) if (0..65535).contains(&n) => Fact::Known(n as u32),
        Fact::Known(n) => Fact::unknown(format!("the kernel says {n}")),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    };
    let node = source
        .names(&format!("{CPU}/cpu{id}"))
        .iter()
        .find_map(|n| n.strip_prefix("node")?.parse().ok())
        .map_or_else(|| Fact::unknown("the kernel links no node"), Fact::Known);
    Cpu {
        id,
        online: online.get().is_none_or(|l| l.contains(id)),
        kind: kinds.of(source, id),
        package: number("physical_package_id"),
        die: number("die_id"),
        cluster: number("cluster_id"),
        core: number("core_id"),
        node,
        siblings: source
            .cpus(&topology("core_cpus_list"))
            .or_else(|| source.cpus(&topology("thread_siblings_list"))),
        max_hz: source
            .value::<u64>(&format!("{CPU}/cpu{id}/cpufreq/cpuinfo_max_freq"))
            .map(|khz| khz.saturating_mul(1000)),
    }
}

pub(crate) fn topology(source: &Source, cpus: &[Cpu]) -> Topology {
    let online = online(source);
    let running: Vec<&Cpu> = cpus.iter().filter(|c| c.online).collect();
    let status = source.text("proc/self/status");
    let allowed = parsed(field_fact(&status, "Cpus_allowed_list", "proc/self/status"), "proc/self/status");
    Topology {
        allowed,
        sockets: distinct(&running, "physical_package_id", |c| c.package.value().map(|p| (p, 0, 0))),
        cores: cores(&running),
        threads: online.clone().map(|l| l.len() as u32),
        smt: Smt {
            threads_per_core: threads_per_core(&running),
            control: source.text(&format!("{CPU}/smt/control")),
            measured: Fact::unknown("not measured: run gleaner measure"),
        },
        isolated: source.cpus(&format!("{CPU}/isolated")),
        online,
    }
}

fn online(source: &Source) -> Fact<CpuList> {
    let listed = source.cpus(&format!("{CPU}/online"));
    let listed = match listed {
        Fact::Known(l) if l.is_empty() => Fact::unknown(format!("/{CPU}/online is empty")),
        other => other,
    };
    listed.or_else(|| match source.text("proc/cpuinfo") {
        Fact::Known(text) => {
            let list: CpuList = text
                .lines()
                .filter_map(|l| l.split_once(':'))
                .filter(|(k, _)| k.trim() == "processor")
                .filter_map(|(_, v)| v.trim().parse().ok())
                .collect();
            if list.is_empty() {
                Fact::unknown("/proc/cpuinfo lists no processor")
            } else {
                Fact::Known(list)
            }
        }
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    })
}

fn cores(running: &[&Cpu]) -> Fact<u32> {
    // Core numbers repeat between packages, and between dies on some: sibling sets do not.
    let sets: Option<BTreeSet<&CpuList>> = running.iter().map(|c| c.siblings.get()).collect();
    match sets {
        Some(sets) if !sets.is_empty() => Fact::Known(sets.len() as u32),
        _ => distinct(running, "core_id", |c| {
            Some((c.package.value().unwrap_or(0), c.die.value().unwrap_or(0), c.core.value()?))
        }),
    }
}

fn threads_per_core(running: &[&Cpu]) -> Fact<u32> {
    let most = running.iter().filter_map(|c| c.siblings.get()).map(CpuList::len).max();
    most.map_or_else(|| Fact::unknown("no CPU lists its siblings"), |n| Fact::Known(n as u32))
}

fn distinct(running: &[&Cpu], file: &str, key: impl Fn(&Cpu) -> Option<(u32, u32, u32)>) -> Fact<u32> {
    let keys: Option<BTreeSet<_>> = running.iter().map(|c| key(c)).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Fact::Known(keys.len() as u32),
        _ => Fact::unknown(format!("not every CPU has its {file}")),
    }
}

/// Which cores of a hybrid processor are which.
struct Kinds {
    performance: CpuList,
    efficiency: CpuList,
    most_capacity: Option<u32>,
}

impl Kinds {
    fn read(source: &Source) -> Self {
        // Intel lists one PMU per kind of core; Arm gives capacities.
        let of =
            |pmu: &str| source.cpus(&format!("sys/devices/{pmu}/cpus")).get().cloned().unwrap_or_default();
        let capacities: BTreeSet<u32> =
            source.numbered(CPU, "cpu").into_iter().filter_map(|id| capacity(source, id)).collect();
        Self {
            performance: of("cpu_core"),
            efficiency: of("cpu_atom"),
            most_capacity: if capacities.len() > 1 { capacities.last().copied() } else { None },
        }
    }

    fn of(&self, source: &Source, id: u32) -> CoreKind {
        if self.performance.contains(id) {
            return CoreKind::Performance;
        }
        if self.efficiency.contains(id) {
            return CoreKind::Efficiency;
        }
        match (self.most_capacity, capacity(source, id)) {
            (Some(most), Some(mine)) if mine < most => CoreKind::Efficiency,
            (Some(_), Some(_)) => CoreKind::Performance,
            _ => CoreKind::Uniform,
        }
    }
}

fn capacity(source: &Source, id: u32) -> Option<u32> {
    source.value(&format!("{CPU}/cpu{id}/cpu_capacity")).value()
}

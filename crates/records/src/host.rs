//! What a machine is and can, as the machine record holds it.
//!
//! Everything here is *claimed* (by CPUID, sysfs, procfs, the hypervisor) unless its name says
//! otherwise; what the lab measures stands elsewhere in the record, beside it. A fact that could
//! not be had is `{"unknown": "why"}`, never a guess and never left out. To add a fact: a field
//! here with [`Fact`] around it, its reader in the `host` crate, its line in `gleaner doctor`.

mod cpulist;
mod fact;
mod memory;
mod platform;
mod rights;

pub use cpulist::{CpuList, ParseCpuListError};
pub use fact::{Ability, Fact, Verdict};
pub use memory::{HugetlbPool, Memory, Node, Pages, Thp, ThpMode, ThpSize};
pub use platform::{
    Cache, CacheClaim, CacheKind, Clocks, Contradiction, CoreKind, Cpu, CpuFreq, Identity, Processor, Smt,
    TlbClaim, Topology, Virtualization,
};
pub use rights::{Company, Counters, Limits, PmuDevice, Prefetch, PrefetchControl};

use serde::{Deserialize, Serialize};
use units::Bytes;

/// One machine, or the part of it that a guest or container is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Host {
    pub identity: Identity,
    pub virtualization: Virtualization,
    pub processor: Processor,
    pub topology: Topology,
    /// One entry per CPU the kernel lists, online or not, in ascending order.
    pub cpus: Vec<Cpu>,
    /// One entry per cache (not per CPU), from sysfs.
    pub caches: Vec<Cache>,
    /// What CPUID says about caches, leaf by leaf, as seen from the CPU that was asked.
    pub cache_claims: Vec<CacheClaim>,
    pub tlb_claims: Vec<TlbClaim>,
    pub pages: Pages,
    pub memory: Memory,
    pub nodes: Vec<Node>,
    pub clocks: Clocks,
    pub counters: Counters,
    pub prefetch: Prefetch,
    pub limits: Limits,
    pub company: Company,
    /// Claims that cannot all be true, and which one to believe.
    pub contradictions: Vec<Contradiction>,
    pub verdict: Verdict,
}

impl Host {
    /// CPUs that are online and that this process may run on, ascending. Empty only when neither
    /// could be read.
    pub fn usable_cpus(&self) -> Vec<u32> {
        let online = self.topology.online.get();
        let allowed = self.topology.allowed.get();
        match (online, allowed) {
            (Some(o), Some(a)) => o.iter().filter(|c| a.contains(*c)).collect(),
            (Some(one), None) | (None, Some(one)) => one.iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|c| c.id == id)
    }

    /// The caches a CPU reaches, nearest first.
    pub fn caches_of(&self, cpu: u32) -> Vec<&Cache> {
        let mut found: Vec<&Cache> = self.caches.iter().filter(|c| c.shared_by.contains(cpu)).collect();
        found.sort_by_key(|c| (c.level, c.kind));
        found
    }

    /// The caches that hold data a CPU loads, nearest first: no instruction caches.
    pub fn data_caches_of(&self, cpu: u32) -> Vec<&Cache> {
        self.caches_of(cpu).into_iter().filter(|c| c.kind != CacheKind::Instruction).collect()
    }

    /// Sizes of the data caches a CPU reaches, nearest first, for choosing what to measure: as
    /// sysfs lists them, or where it lists none, as CPUID does, which does not say which other CPUs
    /// reach them.
    pub fn data_cache_sizes_of(&self, cpu: u32) -> Vec<DataCacheSize> {
        let listed = self.data_caches_of(cpu);
        if !listed.is_empty() {
            let size = |c: &Cache| (c.level, c.size.value(), c.line.value());
            return listed.into_iter().map(size).map(DataCacheSize::of).collect();
        }
        let mut sizes: Vec<DataCacheSize> = Vec::new();
        // Of leaves that differ the first: the one that describes caches one by one.
        for claim in self.cache_claims.iter().filter(|c| c.kind != CacheKind::Instruction) {
            if !sizes.iter().any(|s| s.level == claim.level) {
                sizes.push(DataCacheSize::of((claim.level, Some(claim.size), claim.line)));
            }
        }
        sizes.sort_by_key(|s| s.level);
        sizes
    }

    /// The NUMA node that holds a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<&Node> {
        self.nodes.iter().find(|n| n.cpus.contains(cpu))
    }
}

/// A data cache as far as it concerns one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCacheSize {
    pub level: u32,
    pub size: Option<Bytes>,
    pub line: Option<Bytes>,
}

impl DataCacheSize {
    fn of((level, size, line): (u32, Option<Bytes>, Option<Bytes>)) -> Self {
        Self { level, size, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_reads_as_a_host_of_unknowns() {
        let host: Host = serde_json::from_str("{}").unwrap();
        assert_eq!(host, Host::default());
        assert!(host.usable_cpus().is_empty());
        assert!(host.processor.vendor.why_unknown().is_some());
    }

    #[test]
    fn usable_is_online_and_allowed() {
        let mut host = Host::default();
        host.topology.online = Fact::Known("0-3".parse().unwrap());
        assert_eq!(host.usable_cpus(), [0, 1, 2, 3]);
        host.topology.allowed = Fact::Known("2-9".parse().unwrap());
        assert_eq!(host.usable_cpus(), [2, 3]);
    }

    #[test]
    fn survives_json() {
        let mut host = Host::default();
        host.processor.family = Fact::Known(25);
        host.topology.online = Fact::Known("0-1,4".parse().unwrap());
        host.counters.breakpoints = Ability::no("refused", "ask nicely");
        let text = serde_json::to_string(&host).unwrap();
        assert!(text.contains(r#""online":"0-1,4""#), "{text}");
        assert_eq!(serde_json::from_str::<Host>(&text).unwrap(), host);
    }

    #[test]
    fn cpuid_tells_sizes_where_sysfs_lists_no_caches() {
        let claim = |leaf: &str, level, kind, size| CacheClaim {
            leaf: leaf.to_owned(),
            level,
            kind,
            size,
            line: Some(Bytes(64)),
            sharers: None,
        };
        let mut host = Host {
            cache_claims: vec![
                claim("0x8000001D", 1, CacheKind::Instruction, Bytes::kib(64)),
                claim("0x8000001D", 1, CacheKind::Data, Bytes::kib(32)),
                claim("0x8000001D", 3, CacheKind::Unified, Bytes::mib(32)),
                claim("0x80000006", 2, CacheKind::Unified, Bytes::mib(1)),
                claim("0x80000006", 3, CacheKind::Unified, Bytes::mib(320)),
            ],
            ..Host::default()
        };
        let sizes = |host: &Host| -> Vec<(u32, Bytes)> {
            host.data_cache_sizes_of(0).iter().map(|c| (c.level, c.size.unwrap())).collect()
        };
        assert_eq!(sizes(&host), [(1, Bytes::kib(32)), (2, Bytes::mib(1)), (3, Bytes::mib(32))]);
        host.caches.push(Cache {
            level: 1,
            kind: CacheKind::Data,
            size: Fact::Known(Bytes::kib(48)),
            line: Fact::Known(Bytes(64)),
            ways: Fact::Known(12),
            sets: Fact::Known(64),
            shared_by: CpuList::from_iter([0]),
        });
        assert_eq!(sizes(&host), [(1, Bytes::kib(48))]);
    }
}

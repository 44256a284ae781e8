//! Memory: how much, on which nodes, in pages of which sizes.

use super::{CpuList, Fact};
use serde::{Deserialize, Serialize};
use units::Bytes;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Pages {
    /// The kernel's base page.
    pub base: Fact<Bytes>,
    pub thp: Thp,
    /// Reserved huge pages, one pool per size the kernel supports.
    pub hugetlb: Vec<HugetlbPool>,
}

/// Transparent huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Thp {
    pub enabled: Fact<ThpMode>,
    /// The file that says so, under the root.
    pub enabled_path: String,
    /// `always`, `defer`, `defer+madvise`, `madvise`, `never`.
    pub defrag: Fact<String>,
    pub shmem: Fact<String>,
    /// The size of a PMD-mapped page.
    pub pmd_size: Fact<Bytes>,
    /// The settings of each page size (mTHP), on kernels that have them.
    pub sizes: Vec<ThpSize>,
}

impl Thp {
    /// Whether PMD-sized pages can be had, heeding the switch of that size where there is one.
    pub fn effective(&self) -> Fact<ThpMode> {
        let own = self.sizes.iter().find(|s| Some(s.size) == self.pmd_size.value());
        match own.and_then(|s| s.enabled.value()) {
            None | Some(ThpMode::Inherit) => self.enabled.clone(),
            Some(mode) => Fact::Known(mode),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThpMode {
    Always,
    Madvise,
    Never,
    /// For one size: as the global switch says.
    Inherit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThpSize {
    pub size: Bytes,
    pub enabled: Fact<ThpMode>,
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugetlbPool {
    pub size: Bytes,
    pub total: Fact<u64>,
    pub free: Fact<u64>,
    pub reserved: Fact<u64>,
    pub surplus: Fact<u64>,
    /// The directory of its switches, under the root.
    pub path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Memory {
    pub total: Fact<Bytes>,
    /// Memory available without swapping, by the kernel's estimate.
    pub available: Fact<Bytes>,
    /// The tightest limit of the control groups around this process; `null` when there is none.
    pub cgroup_limit: Fact<Option<Bytes>>,
    /// What the control group of that limit uses and cannot reclaim: page cache does not count.
    pub cgroup_used: Fact<Bytes>,
    pub swap: Fact<Bytes>,
    /// `vm.overcommit_memory`.
    pub overcommit: Fact<u32>,
}

impl Memory {
    /// What an experiment may take: available memory, or what the control group leaves of it.
    pub fn usable(&self) -> Option<Bytes> {
        let available = self.available.value()?;
        let limit = self.cgroup_limit.value().flatten();
        let left = limit.map(|l| Bytes(l.0.saturating_sub(self.cgroup_used.value().map_or(0, |u| u.0))));
        Some(left.map_or(available, |r| r.min(available)))
    }
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    pub id: u32,
    /// Empty for a node of memory only.
    pub cpus: CpuList,
    pub total: Fact<Bytes>,
    pub free: Fact<Bytes>,
    /// Claimed distance to each node, in the order of the nodes: 10 is local.
    pub distances: Fact<Vec<u32>>,
    pub hugetlb: Vec<HugetlbPool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_of_its_own_beats_the_global_one() {
        let mut thp = Thp { enabled: Fact::Known(ThpMode::Always), ..Thp::default() };
        assert_eq!(thp.effective().value(), Some(ThpMode::Always));
        thp.pmd_size = Fact::Known(Bytes::mib(2));
        for (switch, effective) in [(ThpMode::Inherit, ThpMode::Always), (ThpMode::Never, ThpMode::Never)] {
            thp.sizes =
                vec![ThpSize { size: Bytes::mib(2), enabled: Fact::Known(switch), path: String::new() }];
            assert_eq!(thp.effective().value(), Some(effective));
        }
    }

    #[test]
    fn usable_memory_heeds_the_control_group() {
        let mut memory = Memory { available: Fact::Known(Bytes::gib(8)), ..Memory::default() };
        assert_eq!(memory.usable(), Some(Bytes::gib(8)));
        memory.cgroup_limit = Fact::Known(Some(Bytes::gib(4)));
        memory.cgroup_used = Fact::Known(Bytes::gib(1));
        assert_eq!(memory.usable(), Some(Bytes::gib(3)));
        memory.cgroup_limit = Fact::Known(None);
        assert_eq!(memory.usable(), Some(Bytes::gib(8)));
    }
}

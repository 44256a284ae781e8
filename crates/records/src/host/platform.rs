//! The machine, its processor, CPUs, caches and clocks.

use super::{CpuList, Fact};
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Which machine this is, and what runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Identity {
    /// `x86_64`, `aarch64`, `ppc64le`, …
    pub architecture: Fact<String>,
    /// Maker and product by DMI or the device tree.
    pub product: Fact<String>,
    pub firmware: Fact<String>,
    /// Release and version of the kernel.
    pub kernel: Fact<String>,
    pub distribution: Fact<String>,
}

/// Hypervisor and container around this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Virtualization {
    /// The hypervisor's name, or `none` on bare metal.
    pub hypervisor: Fact<String>,
    /// The cloud, where its fingerprints are seen.
    pub cloud: Option<String>,
    /// The kind of container around this process, where one is seen.
    pub container: Option<String>,
    /// The observations from which the above was concluded.
    pub evidence: Vec<String>,
    /// Whether the memory behind guest pages is backed by huge pages: not visible from inside, so
    /// named by convention.
    pub host_backing: Fact<String>,
}

impl Virtualization {
    /// Whether a hypervisor lies between this system and the machine; false where that is not
    /// known.
    pub fn is_guest(&self) -> bool {
        self.hypervisor.get().is_some_and(|name| name != "none")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Processor {
    pub vendor: Fact<String>,
    pub name: Fact<String>,
    pub family: Fact<u32>,
    pub model: Fact<u32>,
    pub stepping: Fact<u32>,
    pub microcode: Fact<String>,
    /// `Zen 4`, `Haswell`, `Neoverse V1`: from family and model, where known.
    pub microarchitecture: Fact<String>,
    /// Feature flags that change what Gleaner can do or how it measures, of those the processor
    /// has.
    pub features: Vec<String>,
    /// User programs may read and write FS and GS bases (`AT_HWCAP2` bit 1 on x86).
    pub fsgsbase: super::Ability,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Topology {
    pub online: Fact<CpuList>,
    /// What this process may run on: affinity and cpuset together.
    pub allowed: Fact<CpuList>,
    pub sockets: Fact<u32>,
    /// Cores with at least one CPU online.
    pub cores: Fact<u32>,
    /// CPUs online.
    pub threads: Fact<u32>,
    pub smt: Smt,
    pub isolated: Fact<CpuList>,
}

/// Simultaneous multithreading: what is claimed, and space for what the lab finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Smt {
    /// Hardware threads per core by topology: 1 means no siblings are shown.
    pub threads_per_core: Fact<u32>,
    /// The kernel's switch: `on`, `off`, `forceoff`, `notsupported`, …
    pub control: Fact<String>,
    /// Pairs of CPUs that slow each other down when both run, as found by running them. Filled in
    /// by the lab.
    pub measured: Fact<Vec<CpuList>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CoreKind {
    /// The fast cores of a hybrid processor.
    Performance,
    /// The small cores of a hybrid processor.
    Efficiency,
    /// All cores of this processor are alike.
    Uniform,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    pub id: u32,
    pub online: bool,
    pub kind: CoreKind,
    pub package: Fact<u32>,
    pub die: Fact<u32>,
    /// Cores that share something closer than the last cache, where the kernel tells.
    pub cluster: Fact<u32>,
    pub core: Fact<u32>,
    pub node: Fact<u32>,
    /// CPUs on the same core, this one included.
    pub siblings: Fact<CpuList>,
    /// Claimed highest frequency.
    pub max_hz: Fact<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

/// One cache, from sysfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    pub level: u32,
    pub kind: CacheKind,
    pub size: Fact<Bytes>,
    pub line: Fact<Bytes>,
    pub ways: Fact<u32>,
    pub sets: Fact<u32>,
    pub shared_by: CpuList,
}

/// One cache, from a CPUID leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheClaim {
    /// `0x8000001D`, `0x80000006`, `4`, `2`.
    pub leaf: String,
    pub level: u32,
    pub kind: CacheKind,
    pub size: Bytes,
    pub line: Option<Bytes>,
    /// How many logical CPUs share it at most, where the leaf says so.
    pub sharers: Option<u32>,
}

/// One translation buffer, from CPUID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbClaim {
    pub leaf: String,
    pub level: u32,
    pub kind: CacheKind,
    /// Page sizes it holds: `4K`, `2M`, `1G`.
    pub pages: Vec<String>,
    pub entries: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Clocks {
    /// The time stamp counter (x86), the generic timer (Arm) or the timebase (POWER) ticks at a
    /// constant rate.
    pub counter_invariant: super::Ability,
    /// Its claimed rate.
    pub counter_hz: Fact<u64>,
    /// Where the claimed rate comes from.
    pub counter_source: Fact<String>,
    pub clocksource: Fact<String>,
    pub clocksources: Fact<Vec<String>>,
    pub frequency: CpuFreq,
    /// Claimed base frequency of the core.
    pub base_hz: Fact<u64>,
    /// Claimed highest frequency of the core.
    pub max_hz: Fact<u64>,
}

/// Frequency scaling as the kernel runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuFreq {
    pub driver: Fact<String>,
    /// Governors in use; more than one when CPUs differ.
    pub governors: Fact<Vec<String>>,
    pub turbo: Fact<bool>,
}

/// Claims that cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contradiction {
    /// A word or two: `L3 size`, `memory`.
    pub about: String,
    /// Source and what it says.
    pub claims: Vec<(String, String)>,
    /// Which one to believe, and why.
    pub judgement: String,
}

//! What a process may do here: counters, prefetch controls, limits; and what else runs on the
//! machine.

use super::{Ability, CpuList, Fact};
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Hardware counters and the samplers that use them. Each ability was tested by opening the event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Counters {
    /// Core cycles and instructions count.
    pub hardware: Ability,
    /// Last-level cache misses count.
    pub cache_misses: Ability,
    /// Intel: loads sampled with address, latency and data source.
    pub pebs: Ability,
    /// AMD: instruction-based sampling of operations.
    pub ibs: Ability,
    /// Arm: statistical profiling extension.
    pub spe: Ability,
    /// A hardware breakpoint on data, through a perf event.
    pub breakpoints: Ability,
    /// Software clocks: sampling by time, without a PMU.
    pub software: Ability,
    /// PMUs that the kernel lists. A listed PMU may still not count.
    pub devices: Vec<PmuDevice>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Fact<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmuDevice {
    pub name: String,
    /// The type number an event of this PMU carries.
    pub kind: Fact<u32>,
    pub cpus: Option<CpuList>,
}

/// Switches of the hardware prefetchers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Prefetch {
    /// Whether they can be read here at all.
    pub control: Ability,
    pub controls: Vec<PrefetchControl>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchControl {
    pub name: String,
    /// `MSR 0x1A4 bit 0`, or a path.
    pub place: String,
    /// Its state now: `on`, `off`, or POWER's depth.
    pub state: Fact<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Limits {
    /// `RLIMIT_MEMLOCK`, soft; `null` is unlimited.
    pub memlock: Fact<Option<Bytes>>,
    /// `RLIMIT_AS`, soft; `null` is unlimited.
    pub address_space: Fact<Option<Bytes>>,
    pub open_files: Fact<Option<u64>>,
    /// Thousandths of a CPU the control group may use; `null` is as many as there are.
    pub cpu_quota_milli: Fact<Option<u64>>,
    /// `kernel.yama.ptrace_scope`; `null` when Yama is absent, which restricts nothing.
    pub ptrace_scope: Fact<Option<u32>>,
    /// `none`, `strict`, `filter`.
    pub seccomp: Fact<String>,
    pub no_new_privileges: Fact<bool>,
    /// User id this process acts as.
    pub uid: Fact<u32>,
    /// Capabilities that matter here, of those this process has.
    pub capabilities: Fact<Vec<String>>,
    pub lockdown: Fact<String>,
}

/// What else runs on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Company {
    /// Millionths of the CPU time since boot that the hypervisor gave to other guests.
    pub steal_ppm: Fact<u64>,
    /// Whether steal time is reported: bare metal has none, and some hypervisors do not report it.
    pub steal_seen: Fact<bool>,
    /// Load averages over 1, 5 and 15 minutes, in thousandths.
    pub load_milli: Fact<[u64; 3]>,
    /// Threads running or ready to run now, this one included.
    pub runnable: Fact<u64>,
    /// The number of threads.
    pub threads: Fact<u64>,
    pub uptime_seconds: Fact<u64>,
}

//! A profile of all processes of a machine: which programs its CPU time goes to.

use super::not_told;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// Whom the CPU time of a machine went to. Shares are of the CPU time that was sampled, unless it
/// is said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct System {
    /// CPUs that were sampled.
    pub cpus: usize,
    /// The control group that was asked for, with those below it; none for all of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Share of what all of these CPUs had to give, idle time included, that was sampled.
    pub busy: Quantity,
    /// The profiler's own CPU time as a share of the same. It is in no other figure.
    pub own: Quantity,
    /// Processes that began, and that ended, meanwhile.
    #[serde(default)]
    pub began: u64,
    #[serde(default)]
    pub ended: u64,
    /// By program and control group, most CPU time first.
    pub programs: Vec<ProgramShare>,
    /// By control group, most CPU time first.
    pub cgroups: Vec<CgroupShare>,
    /// Functions of the kernel, most CPU time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<KernelFunction>,
}

/// A control group, by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// As the kernel names it, from the root of its hierarchy on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The container that it is of: what runs it, and the first digits of its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The unit of systemd that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Cgroup {
    /// The shortest name that tells it from others.
    pub fn brief(&self) -> Option<&str> {
        self.container.as_deref().or(self.unit.as_deref()).or(self.cgroup.as_deref())
    }
}

/// A process, or all processes of one program in one control group that are too small to be told
/// one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramShare {
    /// Its name, as the kernel has it. Bytes that are not valid UTF-8 are written as `\xHH`.
    pub program: String,
    /// Of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Processes that were sampled.
    pub processes: u64,
    /// It is a thread of the kernel, or several.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kernel_thread: bool,
    pub group: Cgroup,
    pub time: Quantity,
    /// In which the core waited for a load.
    pub stall: Quantity,
    pub in_kernel: Quantity,
    pub samples: u64,
    /// Where it waits most: the function and the line of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Share of the CPU time in which it waited there.
    #[serde(default = "not_told")]
    pub stall_there: Quantity,
}

/// All processes of one control group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupShare {
    pub group: Cgroup,
    pub processes: u64,
    pub time: Quantity,
    pub stall: Quantity,
    pub in_kernel: Quantity,
    pub samples: u64,
}

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelFunction {
    /// None where the kernel does not tell its symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    pub time: Quantity,
    pub samples: u64,
}

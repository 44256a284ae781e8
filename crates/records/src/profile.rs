//! The profile record: which loads of a program stall, and on which data.
//!
//! To add a figure: a field in the part it belongs to, and the place in the crate `insight` that
//! puts the record together.

mod annotated;
mod calls;
mod finding;
mod line;
mod load;
mod object;
mod sampling;
mod script;
mod system;
mod trace;
mod trial;

pub use annotated::{AnnotatedFunction, AnnotatedInstruction};
pub use calls::{CallFrame, CallNode, CallTree, CutOffStacks};
pub use finding::{Finding, FindingKind};
pub use line::{LinePart, SharedLine, Sharing};
pub use load::{Level, LevelShare, Pattern, StallingLoad};
pub use object::{AllocationContext, AllocationSite, CodeAddress, MemoryObject, SourceCall};
pub use sampling::{Backend, Calibration, LatencyKind, Sampling, Selected};
pub use script::ScriptLine;
pub use system::{Cgroup, CgroupShare, KernelFunction, ProgramShare, System};
pub use trace::{BandwidthSlice, CacheModel, ModuleLeftOut, Trace, TracedInstruction, TracedLevels};
pub use trial::{Trial, TrialOutcome};

use crate::Record;
use crate::run::Refused;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// Which loads of a program stall, and on which data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    pub program: ProfiledProgram,
    pub sampling: Sampling,
    pub summary: Summary,
    /// The loads that the core waited for, most stall first.
    pub loads: Vec<StallingLoad>,
    /// By function, most CPU time first.
    pub functions: Vec<FunctionShare>,
    /// The data that the core waited for, most stall first.
    pub objects: Vec<MemoryObject>,
    /// Lines of scripts, those that wait most first; empty where no interpreter is known to have
    /// run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptLine>,
    /// Cache lines that threads share, most stall first.
    #[serde(default)]
    pub lines: Vec<SharedLine>,
    /// What to do about it, what promises most first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Changes that were tried, by running the program with and without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// What memory moved over time; only a traced run tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth: Vec<BandwidthSlice>,
    /// The same program once more, with all of its accesses through a model of the caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Whom the CPU time went to, if all processes of the machine were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// The code of the functions that took most time.
    #[serde(default)]
    pub code: Vec<AnnotatedFunction>,
    /// Who called what was sampled; empty where no stacks were sampled.
    #[serde(default)]
    pub calls: CallTree,
    /// What was asked for and not done, or only done in part.
    #[serde(default)]
    pub refusals: Vec<Refused>,
}

impl Record for Profile {
    const KIND: &'static str = "profile";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// What was profiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfiledProgram {
    /// Bytes that are not valid UTF-8 are written as `\xHH`. Empty if the profiler attached to a
    /// process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments that the profiler put in front of those, so that a runtime tells of the code that
    /// it makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The process that the profiler attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The file of another profiler that the samples are from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perf_data: Option<PerfDataFile>,
    pub ended: ProgramEnd,
    /// Processes that were sampled: the program and its children.
    pub processes: usize,
    /// Threads that were sampled.
    pub threads: usize,
}

/// How the profiled program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    Exited {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    /// It ran on when the profiler left it.
    StillRunning,
    /// The profiler attached to it and is not told how it ends, or its samples are from a file.
    Unknown,
}

/// A file of samples that another profiler wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerfDataFile {
    #[serde(default, skip_serializing_if = "FileFormat::is_perf_data")]
    pub format: FileFormat,
    /// As it was named; `-` for standard input.
    pub path: String,
    /// The command that wrote it; empty where the file does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded_by: Vec<String>,
    /// The events, or types of samples, that these figures are from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The processor that it was recorded on, where the file tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
}

/// What a file of samples is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Of `perf record`.
    #[default]
    PerfData,
    /// `profile.proto` of pprof, or a CPU profile of gperftools.
    Pprof,
    /// Profiles of OpenTelemetry.
    Otlp,
    /// Folded stacks, a line each.
    Collapsed,
}

impl FileFormat {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_perf_data(&self) -> bool {
        *self == Self::PerfData
    }
}

/// The whole run in a few figures. Shares are of the CPU time of all threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Wall-clock time.
    pub elapsed: Quantity,
    /// CPU time of all threads while they were sampled.
    pub cpu_time: Quantity,
    /// For how long its first thread was ready to run and had no CPU.
    #[serde(default = "not_told")]
    pub waited_for_cpu: Quantity,
    /// Time in which the core waited for a load, whatever level served it.
    pub memory_bound: Quantity,
    /// Time in which the core waited for an instruction that only writes memory.
    pub stores: Quantity,
    /// Time in which the core waited for no operand in memory.
    pub computing: Quantity,
    pub in_kernel: Quantity,
    /// Of that, in system calls that the program made.
    #[serde(default = "not_told")]
    pub system_calls: Quantity,
    /// Of that, for instructions that access memory: page faults, and interrupts that came just
    /// then.
    #[serde(default = "not_told")]
    pub page_faults: Quantity,
    /// Time of which it is not known what the core waited for.
    pub not_attributed: Quantity,
    /// The same by its reasons, most first.
    #[serde(default)]
    pub not_attributed_because: Vec<Unattributed>,
    pub by_level: ByLevel,
    /// Of the loads that were probed, each by its stall; of hardware samples, of all loads that are
    /// sampled: `sampling` says what a latency is, and which loads are left out.
    pub average_latency: Quantity,
    /// CPU time that profiling took, as a share of the program's: that of the profiler beside it,
    /// and that of the samples by what one costs in the calibration.
    pub overhead: Quantity,
    /// Of that, the profiler's own, beside the program.
    #[serde(default = "not_told")]
    pub overhead_beside: Quantity,
}

fn not_told() -> Quantity {
    Quantity::unresolved("the record does not say")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Time of which it is not known what the core waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unattributed {
    pub why: String,
    /// Share of the CPU time.
    pub time: Quantity,
}

/// `memory_bound` by the level that served the loads. Hardware samples tell no time: theirs are
/// shares of the latency of all sampled loads, or of their number where they hold no latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByLevel {
    #[serde(rename = "L1")]
    pub l1: Quantity,
    #[serde(rename = "L2")]
    pub l2: Quantity,
    #[serde(rename = "L3")]
    pub l3: Quantity,
    #[serde(rename = "DRAM")]
    pub dram: Quantity,
    /// Lines that other threads write at the same time: another core's cache had modified them.
    #[serde(default = "not_told")]
    pub dirty: Quantity,
    /// L3, DRAM, lines of other threads, and loads of which only that is known that they go beyond
    /// L2.
    pub beyond_l2: Quantity,
    /// Another node or another group of cores; only hardware samples tell.
    #[serde(default = "not_told")]
    pub remote: Quantity,
    /// A miss that was under way already; only hardware samples tell.
    #[serde(default = "not_told")]
    pub in_flight: Quantity,
    /// Loads whose level is not known.
    pub unresolved: Quantity,
}

/// What the samples of one function show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionShare {
    /// Bytes that are not valid UTF-8 are written as `\xHH`.
    pub module: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Address of its first byte in the ELF file (as `objdump` shows it), without load bias.
    pub address: u64,
    /// The program that ran most of it, where all processes of the machine were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Share of the CPU time.
    pub time: Quantity,
    /// Share of the CPU time in which the core waited for this function's loads.
    pub stall: Quantity,
    /// Share of the latency of all sampled loads; only hardware samples tell.
    #[serde(default = "not_told")]
    pub latency_share: Quantity,
    pub samples: u64,
}

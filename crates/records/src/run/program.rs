//! The programs of a harvest: what ran, how it ended, what it got.

use crate::plan::{Counts, Place};
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A program that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// As it was asked for.
    pub command: Vec<String>,
    /// The file that was executed: for a script, its interpreter.
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub ended: Ended,
    pub twin: TwinUsed,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Ended {
    Exited {
        code: i32,
    },
    Killed {
        signal: i32,
        core_dumped: bool,
    },
    /// It was running when the primary ended, and was killed.
    WithThePrimary,
    /// It was never started.
    NotStarted {
        why: String,
    },
    Unknown {
        why: String,
    },
}

/// The rewritten file that ran in a program's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinUsed {
    pub counts: Counts,
    /// It came from the cache.
    pub cached: bool,
    pub proof: Proof,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Proof {
    /// By these rules of this checker.
    Proven {
        #[serde(default)]
        by: String,
    },
    NotProven {
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scavenger {
    #[serde(flatten)]
    pub process: Process,
    /// Which of the copies of its command it is, from 1.
    pub copy: u32,
    /// Where its standard output and error went.
    pub output: String,
    pub times: Times,
    /// Its pace from its start to its end, as a share of that of its twins alone on a processor:
    /// what its time aboard was worth, and its CPU time at home. Resolved where it was hardly
    /// aboard; in older records also by how long its turns took at home.
    pub progress: Quantity,
    /// Turns aboard.
    #[serde(default = "not_told")]
    pub turns: Quantity,
    /// In older records: how long a turn took alone, as it was timed at home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_alone: Option<Quantity>,
    /// In older records: turns while the yields at its own loads were off, and how long a turn that
    /// ended there took alone. These yields are never off any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_with_sites_off: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_turn_alone: Option<Quantity>,
    pub faults_aboard: Quantity,
    #[serde(default)]
    pub trips_home: Vec<HomeTrip>,
    /// Where it left its twins while it was aboard, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<Leave>,
    /// Visits home from which it was back aboard at once, without the supervisor.
    #[serde(default = "not_told")]
    pub visits_home: Quantity,
}

/// Where a scavenger spent its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    pub aboard: Quantity,
    /// From its start to its end, without the time aboard.
    pub at_home: Quantity,
    /// Time in which its own thread ran on a CPU.
    #[serde(default = "not_told")]
    pub running: Quantity,
    /// Time in which its own thread was runnable without a CPU, under `SCHED_IDLE`. The thread may
    /// be aboard already, and about to sleep.
    #[serde(default = "not_told")]
    pub waiting: Quantity,
    /// Time of visits home, for which the primary's thread lent it the processor. Paid by the
    /// credit of `--max-slowdown`, and part of `at_home`.
    #[serde(default = "not_told")]
    pub lent: Quantity,
}

pub(super) fn not_told() -> Quantity {
    Quantity::unresolved("earlier versions did not record it")
}

/// A place at which a scavenger had to go home: a system call, or a call of code without a twin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leave {
    pub file: String,
    /// The instruction that it went home for.
    #[serde(flatten)]
    pub place: Place,
    /// How often, at most: where a program leaves at many places, rare ones are not kept apart.
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomeTrip {
    pub because: String,
    pub count: u64,
}

//! The programs of a harvest: what ran, how it ended, what it got.

use crate::plan::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

/// A program that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// As it was asked for.
    pub command: Vec<String>,
    /// The file that ran: the interpreter, for a script.
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub ended: Ended,
    pub twin: TwinUsed,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Ended {
    Exited {
        code: i32,
    },
    Killed {
        signal: i32,
        core_dumped: bool,
    },
    /// It was running when the primary ended, and was ended then.
    WithThePrimary,
    /// It never ran.
    NotStarted {
        why: String,
    },
    Unknown {
        why: String,
    },
}

/// The rewritten file that ran in a program's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwinUsed {
    pub counts: Counts,
    /// It came from the cache.
    pub cached: bool,
    pub proof: Proof,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scavenger {
    #[serde(flatten)]
    pub process: Process,
    /// Which of the copies of its command it is, from 1.
    pub copy: u32,
    /// Where its standard output and error went.
    pub output: String,
    pub times: Times,
    /// Yields aboard: how far it got, as far as that can be told from outside.
    pub progress: Quantity,
    pub faults_aboard: Quantity,
    #[serde(default)]
    pub trips_home: Vec<HomeTrip>,
}

/// Where a scavenger spent its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    pub aboard: Quantity,
    /// From its start to its end, but for the time aboard.
    pub at_home: Quantity,
    /// Its own thread on a processor.
    #[serde(default = "not_told")]
    pub running: Quantity,
    /// Its own thread waiting for a processor: it comes behind everybody else. It may be aboard
    /// already, and only on its way to sleep.
    #[serde(default = "not_told")]
    pub waiting: Quantity,
}

fn not_told() -> Quantity {
    Quantity::unresolved("an earlier version did not tell it")
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HomeTrip {
    pub because: String,
    pub count: u64,
}

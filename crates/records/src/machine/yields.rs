//! What a switch to other work costs.

use serde::{Deserialize, Serialize};
use units::{Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Yields {
    /// Switches between contexts without the kernel, by what is saved and restored.
    pub user: Vec<UserSwitch>,
    /// Hand-overs between two threads by way of the kernel.
    pub kernel: Vec<HandOver>,
    /// Costs to compare them with.
    pub calls: Vec<CallCost>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserSwitch {
    /// General registers saved and restored, beside the stack pointer.
    pub live: u32,
    pub flags: bool,
    /// 128-bit vector registers.
    pub vectors: u32,
    /// The number of yields in the program, used in turn: with a single one, its jump is easy to
    /// predict.
    pub sites: u32,
    /// Of one switch.
    pub cost: Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HandOverBy {
    Futex,
    Pipe,
    SchedYield,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandOver {
    pub by: HandOverBy,
    /// The other thread's CPU; the first one's is the run's.
    pub partner_cpu: u32,
    pub same_cpu: bool,
    /// Of one hand-over, half a round trip.
    pub cost: Latency,
    /// For `sched_yield`: calls for each hand-over; more than one where the kernel let the same
    /// thread go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Quantity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A call of an empty function by its address.
    Function,
    /// Reading the time stamp counter, with fences.
    ReadTsc,
    /// The system call that does least: `getppid`.
    SystemCall,
    /// `sched_yield` with no other thread ready to run.
    YieldToNobody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCost {
    pub what: Call,
    pub cost: Latency,
}

impl HandOverBy {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::Pipe => "pipe",
            Self::SchedYield => "sched_yield",
        }
    }
}

impl Call {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::ReadTsc => "read_tsc",
            Self::SystemCall => "system_call",
            Self::YieldToNobody => "yield_to_nobody",
        }
    }
}

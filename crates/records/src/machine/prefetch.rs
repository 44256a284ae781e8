//! Prefetchers: what each of them does where they can be switched, and what patterns reveal of them
//! where not.

use super::PageSupply;
use serde::{Deserialize, Serialize};
use units::{Bytes, Latency, Quantity};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prefetching {
    pub pages: PageSupply,
    /// How this machine's prefetchers are switched, and whether that is possible here.
    pub control: ControlOutcome,
    /// The same patterns under each setting; the first is the one that was found.
    pub states: Vec<PrefetchState>,
    /// What the patterns reveal of the prefetchers as they were found, for each size.
    pub revealed: Vec<Revealed>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlOutcome {
    pub switched: bool,
    /// What was switched, or why nothing was.
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_help: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchState {
    /// `as found`, `L2 streamer off`, `all off`, `depth 7 (deepest)` …
    pub name: String,
    /// The register or file, and what was in it; empty for the state that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    pub probes: Vec<ProbePoint>,
}

/// A pattern, and what an access of it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbePoint {
    pub size: Bytes,
    pub probe: Probe,
    pub latency: Latency,
    pub blocks: usize,
    pub voided: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// One random cycle.
    Random,
    /// Random inside pages, page after page at random.
    RandomInPages,
    /// Every n-th line, ascending, until all are read.
    Forward {
        lines: u64,
    },
    Backward {
        lines: u64,
    },
    /// Runs of n neighbouring lines, each run elsewhere.
    Run {
        lines: u64,
    },
    RunBackward {
        lines: u64,
    },
    /// n ascending streams, a step of each in turn.
    Streams {
        count: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revealed {
    pub size: Bytes,
    /// Random latency over that of an ascending stream: the lines that are under way at once, on
    /// average.
    pub ahead_forward: Quantity,
    pub ahead_backward: Quantity,
    /// Neighbouring lines that are loaded at full cost before the next ones come early.
    pub learns_after: Quantity,
    /// The longest stride that is followed; the interval ends at the first that is not.
    pub longest_stride: Quantity,
    /// Streams that are followed at once; the interval ends at the first number that is too many.
    pub streams: Quantity,
    /// What each page boundary costs a stream, beyond its usual pace, in nanoseconds.
    pub page_crossing: Quantity,
    /// The same in words.
    pub remarks: Vec<String>,
}

impl Probe {
    /// As the record spells it, and its number, if it has one.
    pub fn word(self) -> (&'static str, Option<u64>) {
        match self {
            Self::Random => ("random", None),
            Self::RandomInPages => ("random_in_pages", None),
            Self::Forward { lines } => ("forward", Some(lines)),
            Self::Backward { lines } => ("backward", Some(lines)),
            Self::Run { lines } => ("run", Some(lines)),
            Self::RunBackward { lines } => ("run_backward", Some(lines)),
            Self::Streams { count } => ("streams", Some(count)),
        }
    }
}

//! The machine record: what one machine is, and what was measured of it.
//!
//! To add an experiment: a file in `machine/` with its result type, a field in [`Experiments`], and
//! the experiment itself in the crate of that name.

mod bandwidth;
mod c2c;
mod clock;
mod costs;
mod latency;
mod level;
mod mlp;
mod numa;
mod prefetch;
mod probe;
mod rob;
mod run;
mod smt;
mod stride;
mod threads;
mod tlb;
mod windows;
mod yields;

pub use bandwidth::{Bandwidth, Counting, LoadedCurve, LoadedPoint, StreamKind, StreamRate};
pub use c2c::{CacheToCache, FalseSharing, Transfer, TransferClass};
pub use clock::Clock;
pub use costs::ShortCosts;
pub use latency::{Access, Curve, LatencyCurves, PageSupply, PagesRefused, Pattern, Point, SingleLoads};
pub use level::Level;
pub use mlp::{
    AreaBursts, BurstCurve, ChainsPoint, GapShot, Mlp, MlpOfPages, SequenceLine, Shot, Translated,
};
pub use numa::{NodePages, NodePair, Numa, PlacementKind, PlacementResult};
pub use prefetch::{ControlOutcome, PrefetchState, Prefetching, Probe, ProbePoint, Revealed};
pub use probe::{FleetProbe, ProbedNode};
pub use rob::{Cliff, GapPoint, Rob, RunsOut};
pub use run::{Blocks, Effort, Grade, Memory, Run, Verdict};
pub use smt::{BusySibling, SiblingPoint};
pub use stride::{Direction, PairPoint, Stride, StrideFollowed, StridePoint};
pub use threads::{Crowd, Nearness, Sharing, SharingTest, ThreadLatency, Threads};
pub use tlb::{AfterMiss, Tlb, TlbLevel, TlbOfPages, TlbPoint};
pub use windows::{WindowCurve, WindowPoint, Windows};
pub use yields::{Call, CallCost, HandOver, HandOverBy, UserSwitch, Yields};

use crate::{Record, host::Host};
use serde::{Deserialize, Serialize};
use units::WouldHelp;

/// What one machine is, and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    pub host: Host,
    pub run: Run,
    /// What a load costs, from the first cache to memory; empty where latencies were not measured.
    #[serde(default)]
    pub levels: Vec<Level>,
    #[serde(default)]
    pub experiments: Experiments,
}

impl Record for Machine {
    const KIND: &'static str = "machine";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// The outcome of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome<T> {
    pub status: Status,
    /// Why there is no result, or only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What would make it possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_help: Option<String>,
    /// Wall-clock time it took.
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Done,
    /// Stopped by the user; what was measured until then is kept.
    Interrupted,
    /// This host does not allow it.
    NotPossible,
    /// The experiment failed.
    Failed,
}

/// A result for each experiment that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Experiments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Outcome<Clock>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Outcome<LatencyCurves>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<Outcome<Stride>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Outcome<Prefetching>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Outcome<Windows>>,
    #[serde(rename = "yield", skip_serializing_if = "Option::is_none")]
    pub yields: Option<Outcome<Yields>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb: Option<Outcome<Tlb>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp: Option<Outcome<Mlp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rob: Option<Outcome<Rob>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa: Option<Outcome<Numa>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Outcome<Threads>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<Outcome<BusySibling>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Outcome<Bandwidth>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c2c: Option<Outcome<CacheToCache>>,
    /// Of `gleaner harvest` alone, where there was no machine record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Outcome<ShortCosts>>,
    /// Of `gleaner probe` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Outcome<FleetProbe>>,
}

/// How one experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending<'a> {
    pub name: &'static str,
    pub status: Status,
    pub why: Option<&'a str>,
    pub would_help: Option<&'a str>,
}

impl WouldHelp for Ending<'_> {
    fn would_help(&self) -> Option<&str> {
        self.would_help
    }
}

impl<T> WouldHelp for Outcome<T> {
    fn would_help(&self) -> Option<&str> {
        self.would_help.as_deref()
    }
}

impl<T> Outcome<T> {
    /// How the experiment of this name ended.
    pub fn ending(&self, name: &'static str) -> Ending<'_> {
        Ending { name, status: self.status, why: self.why.as_deref(), would_help: self.would_help.as_deref() }
    }
}

//! The plan record: which loads of which modules give way, what that is expected to gain, and what
//! was left alone.
//!
//! To add a reason for leaving a load alone: a variant of [`Because`], and its test in the planner.

mod bounds;
mod gain;
mod part;
mod prices;
mod site;

pub use bounds::Bounds;
pub use gain::{Gain, Origin};
pub use part::{Part, told};
pub use prices::{LevelPrice, Prices, Source, YieldPrice};
pub use site::{Because, Live, Place, Rejected, Site, SourceLine, Spin, WaitsFor};
pub use units::load::{LoadClass, Prefetch};

use crate::Record;
use serde::{Deserialize, Serialize};
use units::{Bytes, Quantity};

/// Which loads of which modules get a yield, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The costs that the arithmetic uses.
    pub prices: Prices,
    pub bounds: Bounds,
    /// Parts of the harvest that are left out, to see what they gain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Part>,
    pub modules: Vec<PlannedModule>,
    /// Alternative plans, with the gain expected of each.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

impl Record for Plan {
    const KIND: &'static str = "plan";
    const VERSION: u32 = 1;
    crate::body_by_serde!();
}

/// What a program is in a harvest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its latency matters.
    Primary,
    /// Best effort: it runs while a primary waits.
    Scavenger,
    /// Of older plans: its threads run while others of them wait.
    Sibling,
}

/// The plan for one file in one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedModule {
    /// Bytes that are not valid UTF-8 are written as `\xHH`.
    pub path: String,
    pub role: Role,
    /// The GNU build id, where the file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// SHA-256 of the file: a plan is for exactly these bytes.
    pub content: String,
    pub size: Bytes,
    pub counts: Counts,
    pub sites: Vec<Site>,
    /// Of older plans, of a primary: loops that busy-wait, which yielded too. They are followed no
    /// more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spins: Vec<Spin>,
    pub rejected: Vec<Rejected>,
}

/// What the analysis found in a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Counts {
    pub functions: usize,
    /// Instructions that access memory by an address computed at run time, in code that twins can
    /// have.
    pub accesses: usize,
    pub candidates: usize,
    pub sites: usize,
    /// Accesses whose lines the yield of a neighbouring load prefetches.
    pub coalesced: usize,
}

/// An alternative plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alternative {
    pub name: String,
    pub what: String,
    pub sites: usize,
    /// Cycles gained if each site is executed once, by the same arithmetic.
    pub gain: Quantity,
    /// The most that the primary loses if each of its sites is executed once and no load misses.
    pub cost_if_all_hit: Quantity,
    /// This plan uses it.
    #[serde(default)]
    pub chosen: bool,
}

impl Role {
    /// As the record spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Scavenger => "scavenger",
            Self::Sibling => "sibling",
        }
    }
}

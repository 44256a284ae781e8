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
pub use site::{Because, Live, LoadClass, Place, Prefetch, Rejected, Site, SourceLine, Spin, WaitsFor};

use crate::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Quantity};

/// Which loads of which modules give way, and why those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What the arithmetic goes by.
    pub prices: Prices,
    pub bounds: Bounds,
    /// Parts of the harvest that are left out, to see what they gain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Part>,
    pub modules: Vec<PlannedModule>,
    /// Other plans that were weighed, and what was expected of them.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

impl Record for Plan {
    const KIND: &'static str = "plan";
    const VERSION: u32 = 1;
}

/// What a program is in a harvest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its latency matters.
    Primary,
    /// Best effort: it runs while a primary waits.
    Scavenger,
    /// Its threads run while others of them wait.
    Sibling,
}

/// The plan for one file in one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedModule {
    /// Bytes of it that are no text stand as `\xHH`.
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
    /// Of a primary: loops that busy-wait, where it yields too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spins: Vec<Spin>,
    pub rejected: Vec<Rejected>,
}

/// What was looked at in a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    pub functions: usize,
    /// Instructions that access memory by an address computed at run time, in code that twins can
    /// have.
    pub accesses: usize,
    pub candidates: usize,
    pub sites: usize,
    /// Accesses that a neighbour's yield serves as well.
    pub coalesced: usize,
}

/// A plan that was weighed against the one chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    pub name: String,
    pub what: String,
    pub sites: usize,
    /// Cycles gained in one pass over all sites, by the same arithmetic.
    pub gain: Quantity,
    /// What the primary pays at most in one pass over all of its sites, if no load misses.
    pub cost_if_all_hit: Quantity,
    /// The one this plan holds.
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

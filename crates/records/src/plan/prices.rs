//! What a miss and a yield cost on the machine that a plan is for.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    pub source: Source,
    /// What a load costs that this level serves, nearest level first; in core cycles.
    pub levels: Vec<LevelPrice>,
    /// Switches between contexts by what is saved, cheapest first.
    pub yields: Vec<YieldPrice>,
    /// The number of misses that are served at once.
    pub overlap: Quantity,
    /// How many instructions the core looks ahead of a load that stalls.
    #[serde(default = "unknown_reach")]
    pub reach: Quantity,
    /// The core clock, to turn cycles into time.
    pub clock: Quantity,
    /// What a guest costs the program that it interrupts, besides the switch: it displaces cache
    /// lines and branch predictions.
    pub pollution: Quantity,
    /// Figures that were not measured on this machine, and the values assumed instead.
    #[serde(default)]
    pub assumed: Vec<String>,
}

impl Prices {
    /// How [`Self::assumed`] names the latencies of levels.
    pub const LATENCIES: &'static str = "latencies";

    /// Whether it was measured what misses cost here.
    pub fn knows_misses(&self) -> bool {
        let is_measured = matches!(self.source, Source::Machine { .. });
        is_measured && !self.assumed.iter().any(|line| line.starts_with(Self::LATENCIES))
    }
}

/// Plans of earlier versions do not have it.
fn unknown_reach() -> Quantity {
    Quantity::unresolved("not asked for")
}

/// Where the figures came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Source {
    /// A machine record.
    Machine { path: String, created: String },
    /// There was no machine record: figures of a common machine, as listed.
    Defaults { why: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelPrice {
    pub name: String,
    pub cycles: Quantity,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct YieldPrice {
    /// General registers saved and restored.
    pub live: u32,
    pub flags: bool,
    /// 128-bit vector registers.
    pub vectors: u32,
    /// Of one switch.
    pub cycles: Quantity,
}

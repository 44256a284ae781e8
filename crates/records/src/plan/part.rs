//! Parts of a harvest that can be left out, to see what they gain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The quantum after which a scavenger gives way wherever it is: without it only its sites do.
    Bounds,
    /// What is known of dead registers: without it each yield saves and loads all there are, and
    /// the next two are gone, too.
    LiveRegisters,
    /// What a loop does not change is saved once, before it: without it, at each yield, and the
    /// next one is gone, too.
    SavingAhead,
    /// What a scavenger's loop does not use is loaded once, behind it: without it, at each yield.
    LeftInSlots,
    /// What slots hold is stored again where a yield would load much and store little.
    StoredAgain,
}

impl Part {
    /// As records spell it, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::LiveRegisters => "live registers",
            Self::SavingAhead => "saving ahead",
            Self::LeftInSlots => "left in slots",
            Self::StoredAgain => "stored again",
        }
    }
}

/// All of these, in words.
pub fn told(parts: &[Part]) -> String {
    parts.iter().map(|part| part.words()).collect::<Vec<_>>().join(", ")
}

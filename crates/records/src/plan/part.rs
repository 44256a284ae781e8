//! Parts of a harvest that can be left out, to see what they gain. Records spell them as they
//! always did.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The quantum after which a scavenger yields at a bound: without it, only at its sites.
    Bounds,
    /// Only live registers are saved: without it, each yield saves and loads all registers, and the
    /// next two parts are left out, too.
    LiveRegisters,
    /// A register that a loop does not change is saved once, before the loop: without it, at each
    /// yield, and the next part is left out, too.
    #[serde(rename = "saving_ahead")]
    HoistedSaves,
    /// A register that a scavenger's loop does not use is loaded once, behind the loop: without it,
    /// at each yield.
    #[serde(rename = "left_in_slots")]
    SunkRestores,
    /// Where a yield loads much and stores little, registers that slots hold already are saved
    /// again.
    #[serde(rename = "stored_again")]
    LoadStoreBalance,
}

impl Part {
    /// In words, as on the command line.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::LiveRegisters => "live registers",
            Self::HoistedSaves => "hoisted saves",
            Self::SunkRestores => "sunk restores",
            Self::LoadStoreBalance => "load-store balance",
        }
    }
}

/// All of these, in words.
pub fn told(parts: &[Part]) -> String {
    parts.iter().map(|part| part.words()).collect::<Vec<_>>().join(", ")
}

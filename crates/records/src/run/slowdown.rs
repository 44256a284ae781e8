//! How much slower guests made the primary, by its pace with them and without.

use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slowdown {
    /// The slowdown as a share, over the time watched: 0.05 is 5% slower than alone.
    pub share: Quantity,
    /// Time in which the primary's threads were watched, without the time in which they slept; the
    /// sum over all threads.
    pub watched: Quantity,
    /// The part of that time with guests.
    pub with_guests: Quantity,
    /// Time for which the primary's threads lent their CPUs to scavengers off the primary; part of
    /// the time watched, and of what was lost.
    #[serde(default = "not_told")]
    pub lent: Quantity,
    /// The number of comparisons of pace.
    pub samples: u64,
    /// Those comparisons in which yields were too rare for an estimate: a bound was taken.
    #[serde(default)]
    pub bounded: u64,
}

impl Default for Slowdown {
    fn default() -> Self {
        Self::unresolved("earlier versions did not measure it")
    }
}

impl Slowdown {
    pub fn unresolved(why: &str) -> Self {
        let none = || Quantity::unresolved(why);
        Self { share: none(), watched: none(), with_guests: none(), lent: none(), samples: 0, bounded: 0 }
    }
}

fn not_told() -> Quantity {
    Quantity::unresolved("earlier versions did not record it")
}

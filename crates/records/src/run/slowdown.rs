//! How much slower guests made the primary, by its pace with them and without.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Quantity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// By this share, over the time watched: 0.05 is 5% slower than alone.
    pub share: Quantity,
    /// Time for which threads of the primary were watched, but for what they slept; of several, the
    /// sum.
    pub watched: Quantity,
    /// Of it, with guests.
    pub with_guests: Quantity,
    /// Times that pace was compared.
    pub samples: u64,
    /// Of them, those in which yields were too rare: a bound was taken.
    #[serde(default)]
    pub bounded: u64,
}

impl Default for Slowdown {
    fn default() -> Self {
        Self::unresolved("an earlier version did not watch it")
    }
}

impl Slowdown {
    pub fn unresolved(why: &str) -> Self {
        let none = || Quantity::unresolved(why);
        Self { share: none(), watched: none(), with_guests: none(), samples: 0, bounded: 0 }
    }
}

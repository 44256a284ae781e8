//! What is put between the instructions of twins.

use crate::select::sites::{Bounds, Sites};
use serde::{Deserialize, Serialize};

/// The mode of a rewrite. Its number is written into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode<'s> {
    /// Nothing: twins are copies.
    Identity,
    /// Garbage into everything claimed dead, before every instruction.
    Poison(VectorWidth),
    /// Yields at sites, for a program that is to keep its pace (`docs/harvest-abi.md`).
    Primary(&'s Sites),
    /// Yields at sites and bounds, for a program that runs in the waits of others.
    Scavenger(&'s Sites, Bounds),
    /// The same for a program whose threads run in each other's waits. It is started as any program is, so what may run
    /// before its thread has an area gets no twin at all.
    Sibling(&'s Sites, Bounds),
}

/// How wide the vector registers of the machine are that the result will run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorWidth {
    Sse,
    Avx,
    Avx512,
}

impl VectorWidth {
    /// For whoever rewrites for the machine that it runs on; a rewrite itself goes by what it is given.
    pub fn of_this_machine() -> Self {
        if std::is_x86_feature_detected!("avx512bw") {
            Self::Avx512
        } else if std::is_x86_feature_detected!("avx") {
            Self::Avx
        } else {
            Self::Sse
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            Self::Sse => 16,
            Self::Avx => 32,
            Self::Avx512 => 64,
        }
    }
}

impl<'s> Mode<'s> {
    pub(crate) fn sites(self) -> Option<&'s Sites> {
        match self {
            Self::Identity | Self::Poison(_) => None,
            Self::Primary(sites) | Self::Scavenger(sites, _) | Self::Sibling(sites, _) => Some(sites),
        }
    }

    pub(crate) fn bounds(self) -> Option<Bounds> {
        match self {
            Self::Scavenger(_, bounds) | Self::Sibling(_, bounds) => Some(bounds),
            _ => None,
        }
    }

    pub fn number(self) -> u32 {
        match self {
            Self::Identity => 1,
            Self::Poison(_) => 2,
            Self::Primary(_) => 3,
            Self::Scavenger(..) => 4,
            Self::Sibling(..) => 5,
        }
    }

    /// Whether a twin may run on another's kernel thread, and has to go home from there.
    pub(crate) fn goes_aboard(self) -> bool {
        matches!(self, Self::Scavenger(..) | Self::Sibling(..))
    }
}

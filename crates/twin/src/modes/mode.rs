//! The modes of a rewrite: what twins hold between their instructions.

use crate::modes::prefetch::Prefetches;
use crate::modes::width::VectorWidth;
use crate::select::sites::{Bounds, Sites};

/// The mode of a rewrite. Its number is written into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode<'s> {
    /// Nothing: twins are copies.
    Identity,
    /// Garbage into everything claimed dead, before every instruction.
    Poison(VectorWidth),
    /// Yields at sites, for a primary (`docs/harvest-abi.md`).
    Primary(&'s Sites),
    /// Yields at sites and bounds, for a scavenger.
    Scavenger(&'s Sites, Bounds),
    /// Prefetches before these loads; what holds none of them has no twin.
    Prefetch(&'s Prefetches),
    /// Each memory access is written down, with this number of the module.
    Trace(u16),
}

impl<'s> Mode<'s> {
    pub(crate) fn sites(self) -> Option<&'s Sites> {
        match self {
            Self::Identity | Self::Poison(_) | Self::Prefetch(_) | Self::Trace(_) => None,
            Self::Primary(sites) | Self::Scavenger(sites, _) => Some(sites),
        }
    }

    pub(crate) fn bounds(self) -> Option<Bounds> {
        match self {
            Self::Scavenger(_, bounds) => Some(bounds),
            _ => None,
        }
    }

    pub fn number(self) -> u32 {
        match self {
            Self::Identity => 1,
            Self::Poison(_) => 2,
            Self::Primary(_) => 3,
            Self::Scavenger(..) => 4,
            // 5 was that of a parked one.
            Self::Prefetch(_) => 6,
            Self::Trace(_) => 7,
        }
    }

    /// Whether a twin may run on another's kernel thread, and has to go home from there.
    pub(crate) fn goes_aboard(self) -> bool {
        matches!(self, Self::Scavenger(..))
    }
}

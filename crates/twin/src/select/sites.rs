//! Which instructions get a yield, and how.

use crate::modes::mode::VectorWidth;
use image::liveness::Knowledge;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The sites of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    pub which: Which,
    /// Instructions of a primary before which it yields because the loop around them only waits, by address.
    pub spins: BTreeSet<u64>,
    /// How wide the vector registers are that have to be saved on the machine the result will run on.
    pub width: VectorWidth,
    /// How much is made of what is known about what is live: the more, the less has to be saved.
    pub knowledge: Knowledge,
    /// Instructions before which everything is taken to be live, by address: whoever checks the result may know less.
    pub wary: BTreeSet<u64>,
    pub spares: Spares,
}

/// What yields are spared. Each can be left out, to see what it gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent parts")]
pub struct Spares {
    /// Registers that are dead are neither saved nor loaded. Without that the others are not, either.
    pub dead: bool,
    /// Registers that a loop does not change are saved once, before it, rather than at each of its yields.
    pub ahead: bool,
    /// Of those, a scavenger's that a loop does not use are loaded once, behind it.
    pub left: bool,
    /// Places for loads, of which a core has fewer than it would need: so much is stored again that it runs out of places for stores first.
    pub even: bool,
}

impl Spares {
    pub const ALL: Self = Self { dead: true, ahead: true, left: true, even: true };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Every instruction that loads: a test of the rewriter, and an upper limit.
    EveryLoad(Reach),
    /// These, by address in the module.
    Listed(BTreeMap<u64, Site>),
}

/// Which loads `EveryLoad` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Not those from the stack and from fixed places, which hardly ever miss.
    #[default]
    Usual,
    All,
}

/// A place to yield at: before an instruction with a memory operand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Loads further down the same block whose lines are fetched here too, so that they need no yield. One whose address
    /// is not known here yet gets a yield of its own.
    pub with: Vec<u64>,
    /// What the line is fetched for; `None`: as the instruction itself says.
    pub prefetch: Option<Prefetch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefetch {
    /// `prefetcht0`
    Read,
    /// `prefetchw`
    Write,
}

/// How far apart the yields of a scavenger may be, and how that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Cycles between two yields.
    pub quantum: u32,
    pub costs: Costs,
}

/// Static estimates, in sixteenths of a cycle: of throughput, since what waits for memory has a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    pub plain: u32,
    pub memory: u32,
    pub branch: u32,
    pub call: u32,
    pub divide: u32,
    /// Locked instructions and fences.
    pub locked: u32,
    /// A repeated string instruction, whatever its count.
    pub repeated: u32,
    /// A site where nobody else is in the ring, or whose line is there already.
    pub site: u32,
}

impl Default for Costs {
    fn default() -> Self {
        Self { plain: 5, memory: 8, branch: 10, call: 32, divide: 320, locked: 320, repeated: 1600, site: 64 }
    }
}

impl Bounds {
    /// Most sixteenths of a cycle from a site to the next yield, which nobody counts.
    pub(crate) fn uncounted(&self) -> u64 {
        u64::from(self.quantum / UNCOUNTED) * 16
    }
}

/// Which part of a quantum may pass uncounted, besides it.
pub const UNCOUNTED: u32 = 8;

impl Default for Bounds {
    /// About a third of a microsecond, the order of a wait for memory.
    fn default() -> Self {
        Self { quantum: 1000, costs: Costs::default() }
    }
}

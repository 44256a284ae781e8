//! Which instructions get a yield, and how.

use crate::modes::width::VectorWidth;
use image::liveness::Knowledge;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use units::load::Prefetch;

/// The sites of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    pub which: SiteChoice,
    /// The width of vector registers to save: that of the machine which runs the result.
    pub width: VectorWidth,
    /// How much of the liveness analysis is relied on: the more, the fewer registers are saved.
    pub knowledge: Knowledge,
    /// Instructions, by address, before which every register counts as live: the checker may know
    /// less than the rewriter does.
    pub save_all_at: BTreeSet<u64>,
    pub optimisations: Optimisations,
}

/// How yields are made cheaper. Each of these can be left out, to see what it gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent parts")]
pub struct Optimisations {
    /// Dead registers are neither saved nor loaded. Without it, no other one is made.
    pub live_registers: bool,
    /// Registers that a loop does not change are saved once, before it, not at each of its yields.
    pub hoisted_saves: bool,
    /// Registers that a scavenger's loop does not use are loaded once, behind it.
    pub sunk_restores: bool,
    /// Where a yield loads much and stores little, some hoisted registers are saved again, so that
    /// the core does not run out of places for loads first.
    pub load_store_balance: bool,
}

impl Optimisations {
    pub const ALL: Self =
        Self { live_registers: true, hoisted_saves: true, sunk_restores: true, load_store_balance: true };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteChoice {
    /// Every instruction that loads: a test of the rewriter, and an upper limit.
    EveryLoad(LoadReach),
    /// These, by address in the module.
    Listed(BTreeMap<u64, Site>),
}

/// Which loads `EveryLoad` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadReach {
    /// Not those from the stack and from fixed places, which hardly ever miss.
    #[default]
    Usual,
    All,
}

/// A place to yield at: before an instruction with a memory operand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Loads further down the same block whose lines are fetched here too, so that they need no
    /// yield. One whose address is not known here yet gets a yield of its own.
    pub with: Vec<u64>,
    /// What the line is fetched for; `None`: as the instruction itself says.
    pub prefetch: Option<Prefetch>,
}

/// How far apart the yields of a scavenger may be, and how that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Cycles between two yields.
    pub quantum: u32,
    pub costs: Costs,
}

/// Static estimates, in sixteenths of a cycle: of throughput, since what waits for memory has a
/// site.
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
    /// Most sixteenths of a cycle from a site to the next yield, which no yield counts.
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

//! Rigs: a kernel bolted to its memory.
//!
//! A rig's constructor checks what the kernel's contract demands, so that running it is safe. To add one: a file here,
//! with a constructor that owns (or keeps alive) all memory that the kernel touches, and [`Rig`] for it.

mod after_warming;
mod bump;
mod chase;
mod hand_over;
mod node_supply;
mod ping_pong;
mod shots;
mod side_by_side;
mod spin;
mod stream;
mod switching;
mod windows;
mod with_setting;

pub use after_warming::AfterWarmingRig;
pub use bump::{CountRig, Words};
pub use chase::ChaseRig;
pub use hand_over::{HandOverMeans, HandOverRig};
pub use node_supply::NodeSupply;
pub use ping_pong::PingPongRig;
pub use shots::ShotRig;
pub use side_by_side::SideBySideRig;
pub use spin::SpinRig;
pub use stream::{Region, StreamRig, widest};
pub use switching::{SmallCall, SmallCallRig, SwitchRig};
pub use windows::{Doubles, Warming, WindowsRig};
pub use with_setting::{SharedSetting, WithSettingRig};

use crate::interference::Interference;

/// What happened where a rig ran, on whatever CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elsewhere {
    /// Core cycles per tick before and after, where they differed most.
    pub cycles_per_tick: (f64, f64),
    pub interference: Interference,
}

/// Something that can be run and timed.
pub trait Rig {
    /// Brings caches, TLBs and predictors into the state that the timed run presumes.
    fn warm(&mut self);

    /// Told once, before anything is timed, how many loops a block will have: the moment to get memory for them.
    fn prepare(&mut self, loops: u64) {
        let _ = loops;
    }

    /// Runs `loops` loops. The values are what a block of this rig measures, most often one: ticks per operation.
    fn run(&mut self, loops: u64) -> Vec<f64>;

    /// How many ticks one loop takes, roughly, from a short run: for choosing how many make a block.
    fn ticks_per_loop(&mut self) -> f64;

    /// A run may follow another one without warming up in between, and measures the same.
    fn goes_on(&self) -> bool {
        false
    }

    /// How many of the involuntary switches around the last run were somebody else's doing: all, unless the rig itself
    /// switches between threads and knows better.
    fn foreign_switches(&self, involuntary: u64) -> u64 {
        involuntary
    }

    /// It waits in the kernel by itself; of any other rig a sleep is somebody else's doing: a signal that stops, a freezer.
    fn sleeps(&self) -> bool {
        false
    }

    /// The block is over: lets go of whoever waits for this rig on another CPU.
    fn release(&mut self) {}

    /// What the last run saw, for rigs that work on other CPUs too: it takes the place of what is seen on the caller's
    /// own.
    fn elsewhere(&mut self) -> Option<Elsewhere> {
        None
    }
}

//! Rigs: a kernel with its memory.
//!
//! A rig's constructor checks what the kernel's contract demands, so that running it is safe. To
//! add one: a file here, with a constructor that owns (or keeps alive) all memory that the kernel
//! touches, and an implementation of [`Rig`].

mod after_warming;
mod bump;
mod chase;
mod each_shot;
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
pub use each_shot::{EachShotRig, SHOT_PERCENTILES};
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

/// What interfered on the CPUs where a rig ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteReading {
    /// Core cycles per tick before and after, of the CPU where they differ most.
    pub cycles_per_tick: (f64, f64),
    pub interference: Interference,
}

/// A setting that can be run and timed.
pub trait Rig {
    /// Brings caches, TLBs and predictors into the state that the timed run presumes.
    fn warm(&mut self);

    /// What the timed run finds in the caches depends on that: a warm-up that was interrupted is
    /// repeated. Not so where no cache holds what is walked.
    fn warming_matters(&self) -> bool {
        true
    }

    /// Roughly how many loads a warm-up takes, for choosing what there is time for.
    fn warming_loads(&self) -> u64 {
        0
    }

    /// Called once before anything is timed, with the number of loops of a block: the moment to get
    /// memory for them.
    fn prepare(&mut self, loops: u64) {
        let _ = loops;
    }

    /// Runs `loops` loops, and returns what a block of this rig measures: most often one value,
    /// ticks per operation.
    fn run(&mut self, loops: u64) -> Vec<f64>;

    /// Roughly how many ticks one loop takes, from a short run: for choosing the loops of a block.
    fn ticks_per_loop(&mut self) -> f64;

    /// A run may follow another one without warming up in between, and measures the same.
    fn goes_on(&self) -> bool {
        false
    }

    /// How many of the involuntary switches around the last run were caused by other tasks: all,
    /// unless the rig itself switches between threads and can tell.
    fn foreign_switches(&self, involuntary: u64) -> u64 {
        involuntary
    }

    /// The rig sleeps by itself. A sleep of any other rig was caused by another process: a stop
    /// signal, or a freezer.
    fn sleeps(&self) -> bool {
        false
    }

    /// The block is over: ends the wait of a rig on another CPU for this one.
    fn release(&mut self) {}

    /// What interfered with the last run, for rigs that work on other CPUs too; it replaces what
    /// was seen on the caller's CPU.
    fn elsewhere(&mut self) -> Option<RemoteReading> {
        None
    }
}

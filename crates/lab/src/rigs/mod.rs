//! Rigs: a kernel bolted to its memory.
//!
//! A rig's constructor checks what the kernel's contract demands, so that running it is safe. To add one: a file here,
//! with a constructor that owns (or keeps alive) all memory that the kernel touches, and [`Rig`] for it.

mod chase;
mod hand_over;
mod switching;
mod under;
mod windows;

pub use chase::ChaseRig;
pub use hand_over::{By, HandOverRig};
pub use switching::{Little, LittleRig, SwitchRig};
pub use under::{Switch, Under};
pub use windows::{Doubles, Warming, WindowsRig};

/// Something that can be run and timed.
pub trait Rig {
    /// Brings caches, TLBs and predictors into the state that the timed run presumes.
    fn warm(&mut self);

    /// Runs `loops` loops. The values are what a block of this rig measures, most often one: ticks per operation.
    fn run(&mut self, loops: u64) -> Vec<f64>;

    /// How many ticks one loop takes, roughly, from a short run: for choosing how many make a block.
    fn ticks_per_loop(&mut self) -> f64;

    /// How many of the involuntary switches around the last run were somebody else's doing: all, unless the rig itself
    /// switches between threads and knows better.
    fn foreign_switches(&self, involuntary: u64) -> u64 {
        involuntary
    }
}

//! Several cursors that walk one chain side by side, each a stretch of its own: what of their
//! misses overlaps.

use super::{NodeSupply, Rig};
use crate::code::Loaded;
use crate::tsc;
use kernels::Spec;

const WARM_LOOPS: u64 = 16;

/// A `ParallelChains` or a `Rob` kernel. A block's value: the ticks of a loop, in which every
/// cursor takes one step, or those of a step.
#[derive(Debug)]
pub struct SideBySideRig {
    kernel: Loaded,
    supply: NodeSupply,
    /// Where the cursors stand: before and after for the one kernel, after for the other.
    cursors: Vec<u64>,
    /// What a loop's ticks are divided by.
    steps: f64,
}

impl SideBySideRig {
    /// `kernel` must be a `ParallelChains` or a `Rob`; anything else is a broken program.
    pub fn new(kernel: Loaded, supply: NodeSupply) -> Self {
        let cursors = match kernel.kernel.spec {
            Spec::ParallelChains { chains } => chains as usize,
            Spec::Rob { .. } => 2,
            _ => panic!("not a kernel of several chains"),
        };
        Self { kernel, supply, cursors: vec![0; cursors], steps: 1.0 }
    }

    /// The same, its values the ticks of a step.
    #[must_use]
    pub fn per_step(mut self) -> Self {
        self.steps = self.cursors.len() as f64;
        self
    }

    fn walk(&mut self, loops: u64) -> u64 {
        let count = self.cursors.len() as u64;
        let from = self.supply.take(loops * count);
        for (cursor, i) in self.cursors.iter_mut().zip(0..) {
            *cursor = self.supply.address(from + i * loops);
        }
        let (first, second) = match self.kernel.kernel.spec {
            Spec::Rob { .. } => (self.cursors[0], self.cursors[1]),
            _ => (0, 0),
        };
        let began = tsc::now();
        // SAFETY: every cursor is a node of a checked chain, whose nodes all point to nodes; the
        // kernels only follow them, and write as many words as there are cursors.
        unsafe {
            self.kernel.call(first as *mut u8, loops, self.cursors.as_mut_ptr(), second as *mut u64);
        }
        tsc::end().0 - began
    }
}

impl Rig for SideBySideRig {
    fn warm(&mut self) {
        self.walk(WARM_LOOPS);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        vec![self.walk(loops) as f64 / loops as f64 / self.steps]
    }

    /// The supply goes on along its cycle.
    fn goes_on(&self) -> bool {
        true
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.walk(WARM_LOOPS);
        self.walk(64) as f64 / 64.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{PageKind, Placement};
    use crate::chain::{self, Layout};
    use crate::rng::Rng;
    use units::Bytes;

    #[test]
    fn cursors_walk_a_stretch_each_and_leave_none_out() {
        let layout = Layout::random(Bytes::mib(1), 64);
        let chain = chain::build(&[layout], PageKind::Small, &Placement::FirstTouch, &mut Rng::new(1))
            .unwrap()
            .remove(0);
        let kernel = kernels::assemble(&Spec::ParallelChains { chains: 16 }).unwrap();
        let mut rig =
            SideBySideRig::new(Loaded::new(kernel).unwrap(), NodeSupply::of(chain.clone())).per_step();
        for block in 0..3 {
            assert!(rig.run(100)[0] > 0.0);
            for (i, &cursor) in rig.cursors.iter().enumerate() {
                let end = (block * 16 + i as u64 + 1) * 100;
                assert_eq!(cursor, chain.address(end) as u64, "block {block}, cursor {i}");
            }
        }
    }
}

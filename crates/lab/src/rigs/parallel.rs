//! Several independent cursors on one chain, a step of each a loop: what memory gives to a core that has many misses
//! under way.

use super::Rig;
use crate::chain::Chain;
use crate::code::Loaded;
use crate::tsc;

/// A `ParallelChains` kernel on one long chain, its cursors spread evenly over it. They follow each other at that
/// distance and never meet.
#[derive(Debug)]
pub struct ParallelRig {
    kernel: Loaded,
    /// Held for its arena, in which the cursors stand.
    chain: Chain,
    cursors: Vec<u64>,
}

const WARM_STEPS: u64 = 1 << 12;

impl ParallelRig {
    /// `kernel` must be `ParallelChains`; anything else is a broken program.
    pub fn new(kernel: Loaded, chain: Chain) -> Self {
        let kernels::Spec::ParallelChains { chains } = kernel.kernel.spec else {
            panic!("not a kernel of parallel chains");
        };
        let cursors = chain.starts(chains as usize).into_iter().map(|at| at as u64).collect();
        Self { kernel, chain, cursors }
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    fn walk(&mut self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the table has as many words as the kernel has chains; each holds the address of a node of a checked
        // chain that is kept alive, whose nodes all point to nodes; the kernel only reads them.
        unsafe {
            self.kernel.call(std::ptr::null_mut(), loops, self.cursors.as_mut_ptr(), std::ptr::null_mut());
        }
        tsc::end().0 - from
    }
}

impl Rig for ParallelRig {
    fn warm(&mut self) {
        self.walk(WARM_STEPS / self.cursors.len() as u64);
    }

    /// Ticks per access.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let ticks = self.walk(loops);
        vec![ticks as f64 / (loops * self.kernel.kernel.ops_per_loop) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
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
    fn cursors_move_on_by_as_many_steps_as_loops() {
        let layout = Layout::random(Bytes::kib(64), 64);
        let chain = chain::build(&[layout], PageKind::Small, &Placement::FirstTouch, &mut Rng::new(1))
            .unwrap()
            .remove(0);
        let kernel = kernels::assemble(&kernels::Spec::ParallelChains { chains: 16 }).unwrap();
        let mut rig = ParallelRig::new(Loaded::new(kernel).unwrap(), chain.clone());
        assert!(rig.run(100)[0] > 0.0);
        for (i, &cursor) in rig.cursors.iter().enumerate() {
            let expected = chain.address(i as u64 * chain.nodes() / 16 + 100);
            assert_eq!(cursor, expected as u64);
        }
    }
}

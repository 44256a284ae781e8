//! One or several cursors walking pointer chains.

use super::Rig;
use crate::chain::Chain;
use crate::code::Loaded;
use crate::tsc;

/// A chase kernel on a chain. The cursor goes on from block to block, so that a chain larger than the caches is not
/// measured over the same few lines again and again.
#[derive(Debug)]
pub struct ChaseRig {
    kernel: Loaded,
    chain: Chain,
    cursor: *mut u8,
    /// At most so many nodes are walked to warm up.
    warm_limit: u64,
    /// Loads walked since the last warm-up that covered the whole chain.
    warmed: bool,
}

// SAFETY: the cursor points into the chain's arena, which the chain keeps alive.
unsafe impl Send for ChaseRig {}

impl ChaseRig {
    /// `kernel` must be a `Chase`; anything else is a broken program.
    pub fn new(kernel: Loaded, chain: Chain, warm_limit: u64) -> Self {
        assert!(matches!(kernel.kernel.spec, kernels::Spec::Chase { .. }), "not a chase kernel");
        let cursor = chain.start();
        Self { kernel, chain, cursor, warm_limit, warmed: false }
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    fn walk(&mut self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the cursor is a node of a checked chain, whose nodes all point to nodes; a chase kernel only follows
        // them, and stores at most what it loaded at the place it loaded it from.
        let end = unsafe { self.kernel.call(self.cursor, loops, std::ptr::null_mut(), std::ptr::null_mut()) };
        let (to, _) = tsc::end();
        self.cursor = end as *mut u8;
        to - from
    }

    fn ops(&self) -> u64 {
        self.kernel.kernel.ops_per_loop
    }
}

impl Rig for ChaseRig {
    fn warm(&mut self) {
        let once = self.chain.nodes().min(self.warm_limit).div_ceil(self.ops());
        // Small chains are walked a few times over: replacement policies need that to settle.
        let laps = (4096 / self.chain.nodes().max(1)).clamp(2, 64);
        let loops = if self.chain.nodes() > self.warm_limit { once } else { once * laps };
        self.walk(loops);
        self.warmed = true;
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let ticks = self.walk(loops);
        vec![ticks as f64 / (loops * self.ops()) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        if !self.warmed {
            self.warm();
        }
        let loops = (2000 / self.ops()).max(1);
        self.walk(loops) as f64 / loops as f64
    }
}

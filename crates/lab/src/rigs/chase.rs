//! One or several cursors walking pointer chains.

use super::Rig;
use crate::chain::Chain;
use crate::code::Loaded;
use crate::tsc;

/// A chase kernel on a chain. The cursor goes on from block to block; otherwise a chain larger than
/// the caches would be measured over the same few lines again and again.
#[derive(Clone, Debug)]
pub struct ChaseRig {
    kernel: Loaded,
    chain: Chain,
    cursor: *mut u8,
    /// A chain of more nodes than this fits into no cache; to warm up, this many of its nodes are
    /// walked.
    warm_limit: u64,
    /// Smaller chains are walked again and again, for at most this many ticks.
    warm_ticks: u64,
    /// The chain has been walked whole since the rig was made.
    warmed: bool,
}

// SAFETY: the cursor points into the chain's arena, which the chain keeps alive.
unsafe impl Send for ChaseRig {}

impl ChaseRig {
    /// `kernel` must be a `Chase`; anything else is a broken program.
    pub fn new(kernel: Loaded, chain: Chain, warm_limit: u64, warm_ticks: u64) -> Self {
        assert!(matches!(kernel.kernel.spec, kernels::Spec::Chase { .. }), "not a chase kernel");
        let cursor = chain.start();
        Self { kernel, chain, cursor, warm_limit, warm_ticks, warmed: false }
    }

    /// Begins at another node of the cycle. Rigs that take turns on one chain must not follow each
    /// other's tracks, or they find what the one before them has just brought into the caches.
    #[must_use]
    pub fn beginning_at(mut self, node: u64) -> Self {
        self.cursor = self.chain.address(node);
        self
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    fn walk(&mut self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the cursor is a node of a checked chain, whose nodes all point to nodes; a chase
        // kernel only follows them, and stores at most what it loaded at the place it loaded it
        // from.
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
    /// Walks the chain until it gets no faster: caches that protect themselves against streams keep
    /// a chain only after several laps. A chain that no cache holds gains nothing by that.
    fn warm(&mut self) {
        let nodes = self.chain.nodes();
        if nodes > self.warm_limit {
            self.walk(self.warm_limit.div_ceil(self.ops()));
        } else {
            let loops = nodes.max(2048).div_ceil(self.ops());
            let mut last = self.walk(loops);
            let mut spent = last;
            while spent < self.warm_ticks {
                let lap = self.walk(loops);
                spent += lap;
                if lap as f64 > last as f64 * 0.97 {
                    break;
                }
                last = lap;
            }
        }
        self.warmed = true;
    }

    fn warming_matters(&self) -> bool {
        self.chain.nodes() <= self.warm_limit
    }

    fn warming_loads(&self) -> u64 {
        self.chain.nodes().min(self.warm_limit)
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let ticks = self.walk(loops);
        vec![ticks as f64 / (loops * self.ops()) as f64]
    }

    /// The cursor goes on along its cycle, as if the block were longer.
    fn goes_on(&self) -> bool {
        true
    }

    fn ticks_per_loop(&mut self) -> f64 {
        if !self.warmed {
            self.warm();
        }
        let loops = (2000 / self.ops()).max(1);
        self.walk(loops) as f64 / loops as f64
    }
}

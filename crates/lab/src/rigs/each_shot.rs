//! Shots of one load each, of which every one counts: how the times of single loads are spread.

use super::{ChaseRig, NodeSupply, Rig, ShotRig};
use crate::code::Loaded;
use crate::stats;
use kernels::Spec;

/// The percentiles that a block's values are, in this order.
pub const SHOT_PERCENTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// A `Sequence` kernel on nodes of a chain that is walked before each block, so that every load
/// finds its data where the chain lies. A block's values: [`SHOT_PERCENTILES`] of the ticks of its
/// shots, timing overhead included, and the number of shots.
#[derive(Debug)]
pub struct EachShotRig {
    shots: ShotRig,
    warmer: ChaseRig,
}

impl EachShotRig {
    /// `kernel` must be a `Sequence`; `warmer` walks the chain that the supply is of.
    pub fn new(kernel: Loaded, supply: NodeSupply, warmer: ChaseRig) -> Self {
        assert!(matches!(kernel.kernel.spec, Spec::Sequence { .. }), "not a sequence");
        Self { shots: ShotRig::new(kernel, supply), warmer }
    }
}

impl Rig for EachShotRig {
    fn warm(&mut self) {
        self.warmer.warm();
        self.shots.warm();
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.shots.run(loops);
        let sorted = stats::sorted(self.shots.last());
        let mut values: Vec<f64> =
            SHOT_PERCENTILES.iter().map(|&q| stats::quantile_sorted(&sorted, q)).collect();
        values.push(sorted.len() as f64);
        values
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.shots.ticks_per_loop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{PageKind, Placement};
    use crate::chain::{self, Layout};
    use crate::rng::Rng;
    use kernels::{Access, Fence};
    use units::Bytes;

    #[test]
    fn a_block_gives_percentiles_of_all_its_shots() {
        let layout = Layout::random(Bytes::kib(16), 64);
        let placement = Placement::FirstTouch;
        let chain = chain::build(&[layout], PageKind::Small, &placement, &mut Rng::new(1)).unwrap().remove(0);
        let sequence = Spec::Sequence { accesses: 1, fence: Fence::Lfence };
        let chase = Loaded::of(&Spec::Chase { unroll: 64, access: Access::Read }).unwrap();
        let warmer = ChaseRig::new(chase, chain.clone(), chain.nodes(), 1000);
        let mut rig = EachShotRig::new(Loaded::of(&sequence).unwrap(), NodeSupply::of(chain), warmer);
        rig.warm();
        let values = rig.run(1000);
        assert_eq!((values.len(), values[3]), (4, 1000.0));
        assert!(values[0] > 0.0 && values[..3].is_sorted(), "{values:?}");
    }
}

//! Timed shots: a handful of accesses between two readings of the clock, over and over.

use super::{NodeSupply, Rig};
use crate::code::Loaded;
use crate::stats;
use crate::tsc;
use kernels::Spec;

/// Shots in one call of the kernel; few, so that the table of their targets stays in the caches.
const SHOTS_PER_CALL: u64 = 256;
/// Shots before a block, which warm code, stack and timer.
const WARM_SHOTS: u64 = 8;
/// Accesses at a time where their translations must be in the TLB: no more pages than any
/// first-level TLB holds.
const TRANSLATED_ACCESSES: u64 = 48;
const PAGE_BYTES: u64 = 4096;
const LINE_BYTES: u64 = 64;
/// The slowest twentieth of the shots met an interrupt or a refresh of the memory; their times are
/// left out.
const KEPT_SHARE: f64 = 0.95;

/// A `Burst` or a `Sequence` kernel. A block's value: the mean ticks of a shot, timing overhead
/// included, without the slowest twentieth.
#[derive(Debug)]
pub struct ShotRig {
    kernel: Loaded,
    supply: NodeSupply,
    accesses: u64,
    dependent: bool,
    /// Each access's page is touched before its shot.
    translated: bool,
    targets: Vec<u64>,
    ticks: Vec<u64>,
    /// Where on the cycle the last dependent shots began.
    began: u64,
    shots: Vec<f64>,
}

impl ShotRig {
    /// `kernel` must be a `Burst` or a `Sequence`; anything else is a broken program.
    pub fn new(kernel: Loaded, supply: NodeSupply) -> Self {
        let (accesses, dependent) = match kernel.kernel.spec {
            Spec::Burst { accesses, .. } => (u64::from(accesses), false),
            Spec::Sequence { accesses, .. } => (u64::from(accesses), true),
            _ => panic!("not a kernel of shots"),
        };
        Self {
            kernel,
            supply,
            accesses,
            dependent,
            translated: false,
            targets: vec![0; if dependent { 0 } else { (SHOTS_PER_CALL * accesses) as usize }],
            ticks: vec![0; SHOTS_PER_CALL as usize],
            began: 0,
            shots: Vec::new(),
        }
    }

    /// The same with all translations in the TLB, so that no page walk mixes in: huge pages of a
    /// guest may be small ones to its host, and then take as many translations.
    #[must_use]
    pub fn translated(mut self) -> Self {
        self.translated = true;
        self
    }

    /// Ticks of each shot of the last run that counts.
    pub(super) fn last(&self) -> &[f64] {
        &self.shots
    }

    /// Shots fired at a time.
    fn most(&self) -> u64 {
        if self.translated {
            (TRANSLATED_ACCESSES / self.accesses).clamp(1, SHOTS_PER_CALL)
        } else {
            SHOTS_PER_CALL
        }
    }

    /// The next node of the supply, its page touched at its first line. Nodes on first lines are
    /// passed over: their lines would be in the caches, fetched by other touches.
    fn touched(&self) -> u64 {
        loop {
            let place = self.supply.take(1);
            if !on_first_line(self.supply.address(place)) {
                return self.touch(place);
            }
        }
    }

    /// Touches the page of the node at this place; the node is returned.
    fn touch(&self, place: u64) -> u64 {
        let node = self.supply.address(place);
        // SAFETY: the arena is kept alive by the supply and begins at a page's start, so the first
        // word of a node's page lies in it; it is plain memory.
        unsafe {
            ((node & !(PAGE_BYTES - 1)) as *const u64).read_volatile();
        }
        node
    }

    /// A dependent shot cannot pass over nodes on first lines; it does not count.
    fn counts(&self, shot: u64) -> bool {
        let from = self.began + shot * self.accesses;
        !(self.translated && self.dependent)
            || (from..from + self.accesses).all(|place| !on_first_line(self.supply.address(place)))
    }

    /// Fires at most [`SHOTS_PER_CALL`] shots, whose ticks then stand in `ticks`.
    fn fire(&mut self, shots: u64) {
        assert!(shots <= SHOTS_PER_CALL, "more shots than there is space for");
        if self.translated && !self.dependent {
            for i in 0..(shots * self.accesses) as usize {
                self.targets[i] = self.touched();
            }
            // SAFETY: as below.
            unsafe {
                self.kernel.call(
                    self.targets.as_mut_ptr().cast(),
                    shots,
                    self.ticks.as_mut_ptr(),
                    std::ptr::null_mut(),
                );
            }
            return;
        }
        let from = self.supply.take(shots * self.accesses);
        self.began = from;
        if self.translated {
            for place in from..from + shots * self.accesses {
                self.touch(place);
            }
        }
        let start = if self.dependent {
            self.supply.address(from) as *mut u8
        } else {
            for (target, place) in self.targets[..(shots * self.accesses) as usize].iter_mut().zip(from..) {
                *target = self.supply.address(place);
            }
            self.targets.as_mut_ptr().cast()
        };
        // SAFETY: a `Sequence` gets a node of a checked chain; a `Burst` gets a table of `shots`
        // rows of `accesses` addresses, each of a node, which is 8 bytes of an arena that the
        // supply keeps alive. Both get space for `shots` results.
        unsafe {
            self.kernel.call(start, shots, self.ticks.as_mut_ptr(), std::ptr::null_mut());
        }
    }
}

fn on_first_line(node: u64) -> bool {
    node % PAGE_BYTES < LINE_BYTES
}

impl Rig for ShotRig {
    fn warm(&mut self) {
        self.fire(WARM_SHOTS.min(self.most()));
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.shots.clear();
        let mut left = loops;
        while left > 0 {
            let shots = left.min(self.most());
            self.fire(shots);
            for i in 0..shots {
                if self.counts(i) {
                    self.shots.push(self.ticks[i as usize] as f64);
                }
            }
            left -= shots;
        }
        if self.shots.is_empty() {
            self.shots.push(self.ticks[0] as f64);
        }
        vec![stats::trimmed_mean(&self.shots, KEPT_SHARE)]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.fire(WARM_SHOTS.min(self.most()));
        let shots = self.most().min(32);
        let from = tsc::now();
        self.fire(shots);
        (tsc::end().0 - from) as f64 / shots as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{PageKind, Placement};
    use crate::chain::{self, Layout};
    use crate::rng::Rng;
    use kernels::{Fence, Filler};
    use units::Bytes;

    #[test]
    fn touched_targets_are_nodes_but_never_first_lines() {
        let layout = Layout::random(Bytes::mib(1), 64);
        let chain = chain::build(&[layout], PageKind::Small, &Placement::FirstTouch, &mut Rng::new(1))
            .unwrap()
            .remove(0);
        let nodes: std::collections::HashSet<u64> =
            (0..chain.nodes()).map(|i| chain.address(i) as u64).collect();
        let spec =
            Spec::Burst { accesses: 5, gap: 1, filler: Filler::Nop { bytes: 1 }, fence: Fence::Lfence };
        let kernel = Loaded::new(kernels::assemble(&spec).unwrap()).unwrap();
        let supply = NodeSupply::of(chain);
        let mut rig = ShotRig::new(kernel, supply.clone()).translated();
        for _ in 0..300 {
            assert!(rig.run(20)[0] > 0.0);
            let most = rig.most() as usize * 5;
            assert!(rig.targets[..most].iter().all(|t| nodes.contains(t) && t % PAGE_BYTES >= LINE_BYTES));
        }
        // Dependent ones go where the chain leads, and those that meet a first line do not count.
        let spec = Spec::Sequence { accesses: 2, fence: Fence::Lfence };
        let kernel = Loaded::new(kernels::assemble(&spec).unwrap()).unwrap();
        let mut rig = ShotRig::new(kernel, supply).translated();
        rig.run(2000);
        assert!((1900..2000).contains(&rig.shots.len()), "{}", rig.shots.len());
    }
}

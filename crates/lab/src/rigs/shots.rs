//! Timed shots: a handful of accesses between two readings of the clock, over and over.

use super::{Rig, Trail};
use crate::code::Loaded;
use crate::stats;
use crate::tsc;
use kernels::Spec;

/// So many shots are fired in one call, so that the table of their targets stays in the caches.
const SHOTS: u64 = 256;
/// Before a block: code, stack and timer become warm.
const WARM_SHOTS: u64 = 8;
/// The slowest shots of a block met an interrupt or a refresh, not the memory's latency.
const KEEP: f64 = 0.95;

/// A `Burst` or a `Sequence` kernel. A block's value: the mean ticks of a shot, timing overhead included, without the
/// slowest twentieth.
#[derive(Debug)]
pub struct ShotRig {
    kernel: Loaded,
    trail: Trail,
    accesses: u64,
    dependent: bool,
    targets: Vec<u64>,
    ticks: Vec<u64>,
    shots: Vec<f64>,
}

impl ShotRig {
    /// `kernel` must be a `Burst` or a `Sequence`; anything else is a broken program.
    pub fn new(kernel: Loaded, trail: Trail) -> Self {
        let (accesses, dependent) = match kernel.kernel.spec {
            Spec::Burst { accesses, .. } => (u64::from(accesses), false),
            Spec::Sequence { accesses, .. } => (u64::from(accesses), true),
            _ => panic!("not a kernel of shots"),
        };
        Self {
            kernel,
            trail,
            accesses,
            dependent,
            targets: vec![0; if dependent { 0 } else { (SHOTS * accesses) as usize }],
            ticks: vec![0; SHOTS as usize],
            shots: Vec::new(),
        }
    }

    /// Fires at most [`SHOTS`] shots, whose ticks then stand in `ticks`.
    fn fire(&mut self, shots: u64) {
        assert!(shots <= SHOTS, "more shots than there is room for");
        let from = self.trail.take(shots * self.accesses);
        let start = if self.dependent {
            self.trail.address(from) as *mut u8
        } else {
            for (target, place) in self.targets[..(shots * self.accesses) as usize].iter_mut().zip(from..) {
                *target = self.trail.address(place);
            }
            self.targets.as_mut_ptr().cast()
        };
        // SAFETY: a `Sequence` gets a node of a checked chain; a `Burst` gets a table of `shots` rows of `accesses`
        // addresses, each of a node, which is 8 bytes of an arena that the trail keeps alive. Both get room for
        // `shots` results.
        unsafe {
            self.kernel.call(start, shots, self.ticks.as_mut_ptr(), std::ptr::null_mut());
        }
    }
}

impl Rig for ShotRig {
    fn warm(&mut self) {
        self.fire(WARM_SHOTS);
    }

    fn run(&mut self, loops: u64) -> Vec<f64> {
        self.shots.clear();
        let mut left = loops;
        while left > 0 {
            let shots = left.min(SHOTS);
            self.fire(shots);
            self.shots.extend(self.ticks[..shots as usize].iter().map(|&t| t as f64));
            left -= shots;
        }
        vec![stats::trimmed_mean(&self.shots, KEEP)]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.fire(WARM_SHOTS);
        let from = tsc::now();
        self.fire(32);
        (tsc::end().0 - from) as f64 / 32.0
    }
}

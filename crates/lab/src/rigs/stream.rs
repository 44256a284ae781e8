//! Passes over arrays: what memory, or a cache, can move.

use super::Rig;
use crate::arena::Arena;
use crate::code::Loaded;
use crate::tsc;
use kernels::{Isa, STREAM_LINES_PER_LOOP, Spec, StreamOp, Width};
use std::sync::Arc;

const BYTES_PER_LOOP: usize = 64 * STREAM_LINES_PER_LOOP as usize;

/// A part of an arena.
#[derive(Clone, Debug)]
pub struct Region {
    arena: Arc<Arena>,
    from: usize,
    len: usize,
}

impl Region {
    /// Both in bytes; rounded down to what a loop of a stream moves.
    pub fn new(arena: &Arc<Arena>, from: usize, len: usize) -> Self {
        let from = from / BYTES_PER_LOOP * BYTES_PER_LOOP;
        let len = len / BYTES_PER_LOOP * BYTES_PER_LOOP;
        assert!(len > 0 && from + len <= arena.len(), "a region outside its arena");
        Self { arena: arena.clone(), from, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Divides the region into `count` equal arrays, a little apart: arrays at a distance of a
    /// power of two would meet in the same cache sets, and loads would be taken for reloads of what
    /// was just stored.
    fn arrays(&self, count: usize) -> (Vec<usize>, usize) {
        const APART: usize = 5 * BYTES_PER_LOOP;
        let share = self.len / count;
        let len = if count > 1 && share > 4 * APART { share - APART } else { share };
        let len = len / BYTES_PER_LOOP * BYTES_PER_LOOP;
        ((0..count).map(|i| self.from + i * (share / BYTES_PER_LOOP * BYTES_PER_LOOP)).collect(), len)
    }
}

/// How many arrays an operation goes over.
fn arrays_of(op: StreamOp) -> usize {
    match op {
        StreamOp::Read | StreamOp::Write | StreamOp::NtWrite | StreamOp::Update => 1,
        StreamOp::Copy | StreamOp::NtCopy => 2,
        StreamOp::Triad => 3,
    }
}

/// The widest loads and stores that this processor has.
pub fn widest() -> Width {
    if has(Isa::Avx512F) {
        Width::Bytes64
    } else if has(Isa::Avx2) {
        Width::Bytes32
    } else {
        Width::Bytes16
    }
}

fn has(isa: Isa) -> bool {
    match isa {
        Isa::Baseline => true,
        Isa::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        Isa::Avx512F => std::arch::is_x86_feature_detected!("avx512f"),
    }
}

/// A stream kernel that goes round and round over its arrays.
#[derive(Debug)]
pub struct StreamRig {
    kernel: Loaded,
    region: Region,
    /// Where each array begins, from the arena's base.
    arrays: Vec<usize>,
    /// Loops that go over all of an array, and how far the current round has come.
    round: u64,
    at: u64,
    warm_loops: u64,
}

impl StreamRig {
    /// `kernel` must be `Stream`, and of a width that this processor has; anything else is a broken
    /// program. Up to `warm_bytes` of each array are gone over before a block. The region should
    /// hold ordinary doubles.
    pub fn new(kernel: Loaded, region: Region, warm_bytes: usize) -> Self {
        let Spec::Stream { op, .. } = kernel.kernel.spec else { panic!("not a stream kernel") };
        assert!(has(kernel.kernel.spec.isa()), "this processor has no vectors of that width");
        let (arrays, len) = region.arrays(arrays_of(op));
        assert!(len >= BYTES_PER_LOOP, "a region too small for its arrays");
        let round = (len / BYTES_PER_LOOP) as u64;
        let warm_loops = round.min((warm_bytes / BYTES_PER_LOOP) as u64);
        Self { kernel, region, arrays, round, at: 0, warm_loops }
    }

    fn pass(&mut self, loops: u64) -> u64 {
        let base = self.region.arena.base();
        let from = tsc::now();
        let mut left = loops;
        while left > 0 {
            let now = left.min(self.round - self.at);
            let array = |i: usize| {
                let offset = self.arrays.get(i).or(self.arrays.first()).copied().unwrap_or(0);
                base.wrapping_add(offset + self.at as usize * BYTES_PER_LOOP)
            };
            // SAFETY: the arrays lie in a region of an arena that is kept alive, aligned to 64
            // bytes, and hold `round` loops each; what the kernel does not use is never looked at.
            // No reference into the arena exists.
            unsafe {
                self.kernel.call(array(0), now, array(1).cast(), array(2).cast());
            }
            left -= now;
            self.at = (self.at + now) % self.round;
        }
        tsc::end().0 - from
    }
}

impl Rig for StreamRig {
    fn warm(&mut self) {
        self.pass(self.warm_loops);
    }

    /// Ticks per line (of each array).
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let ticks = self.pass(loops);
        vec![ticks as f64 / (loops * STREAM_LINES_PER_LOOP) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
        self.pass(64) as f64 / 64.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::PageKind;
    use units::Bytes;

    fn rig(op: StreamOp, from: usize, len: usize, fill: impl Fn(usize) -> f64) -> StreamRig {
        let mut arena = Arena::new(Bytes::kib(64), PageKind::Small).unwrap();
        for (i, word) in arena.words_mut().iter_mut().enumerate() {
            *word = fill(i).to_bits();
        }
        let kernel = kernels::assemble(&Spec::Stream { op, width: widest(), delay: 0 }).unwrap();
        StreamRig::new(Loaded::new(kernel).unwrap(), Region::new(&Arc::new(arena), from, len), usize::MAX)
    }

    fn words(rig: StreamRig) -> Vec<f64> {
        let StreamRig { kernel, region, .. } = rig;
        drop(kernel);
        let mut arena = Arc::into_inner(region.arena).unwrap();
        arena.words_mut().iter().map(|w| f64::from_bits(*w)).collect()
    }

    #[test]
    fn every_operation_stays_in_its_region_and_does_its_work() {
        for op in [
            StreamOp::Read,
            StreamOp::Write,
            StreamOp::Copy,
            StreamOp::Triad,
            StreamOp::NtWrite,
            StreamOp::NtCopy,
        ] {
            let (from, len) = (4096, 24 << 10);
            let mut rig = rig(op, from, len, |i| i as f64);
            let (arrays, share) = rig.region.arrays(arrays_of(op));
            // More than a round, so that it has come back to the beginning.
            assert!(rig.run(rig.round + 3)[0] > 0.0);
            let words = words(rig);
            let word = |array: usize, i: usize| arrays[array] / 8 + i;
            for i in 0..share / 8 {
                let a = words[word(0, i)];
                let was = |array| word(array, i) as f64;
                let expected = match op {
                    StreamOp::Read => was(0),
                    StreamOp::Write | StreamOp::NtWrite => 1.0,
                    StreamOp::Copy | StreamOp::NtCopy => was(1),
                    _ => was(1) + 3.0 * was(2),
                };
                assert_eq!(a, expected, "{op:?} {i}");
            }
            for (i, w) in words.iter().enumerate().filter(|(i, _)| *i < from / 8 || *i >= (from + len) / 8) {
                assert_eq!(*w, i as f64, "{op:?} wrote outside");
            }
        }
    }

    #[test]
    #[should_panic(expected = "outside its arena")]
    fn a_region_outside_its_arena_is_refused() {
        rig(StreamOp::Read, 60 << 10, 8 << 10, |_| 0.0);
    }
}

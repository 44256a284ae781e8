//! Counts up one word, while other rigs count up theirs: on the same cache line, or not.

use super::Rig;
use crate::code::Loaded;
use crate::tsc;
use kernels::Spec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words to count in, some on one line, some far from each other. What a line costs depends on its
/// address, so there are several sets, and each block uses the next one.
#[derive(Debug)]
pub struct Words {
    blocks: Vec<PaddedWords>,
    threads: usize,
    set: AtomicUsize,
}

const SETS: usize = 32;

/// Larger than a line and the neighbour that some prefetchers fetch with it.
#[derive(Debug, Default)]
#[repr(align(256))]
struct PaddedWords([AtomicU64; 32]);

/// Words on a line of 64 bytes, the smallest line there is.
const WORDS_PER_LINE: usize = 8;

impl Words {
    /// Space for `threads` words, each alone.
    pub fn new(threads: usize) -> Arc<Self> {
        let threads = threads.max(1);
        let blocks = (0..threads * SETS).map(|_| PaddedWords::default()).collect();
        Arc::new(Self { blocks, threads, set: AtomicUsize::new(0) })
    }

    fn set(&self) -> &[PaddedWords] {
        let from = self.set.load(Ordering::Acquire) % SETS * self.threads;
        &self.blocks[from..from + self.threads]
    }

    /// The `i`th word that shares no line with another.
    fn alone(&self, i: usize) -> &AtomicU64 {
        &self.set()[i].0[0]
    }

    /// The `i`th word of one line; from the eighth on they come again.
    fn together(&self, i: usize) -> &AtomicU64 {
        &self.set()[0].0[i % WORDS_PER_LINE]
    }
}

#[derive(Debug)]
pub struct CountRig {
    kernel: Loaded,
    words: Arc<Words>,
    member: usize,
    together: bool,
}

impl CountRig {
    /// `kernel` must be `Bump`; anything else is a broken program. `member` is which of the words
    /// is this rig's.
    pub fn new(kernel: Loaded, words: Arc<Words>, member: usize, together: bool) -> Self {
        assert!(matches!(kernel.kernel.spec, Spec::Bump { .. }), "not a counting kernel");
        assert!(member < words.threads, "there is no word for member {member}");
        Self { kernel, words, member, together }
    }

    fn word(&self) -> &AtomicU64 {
        if self.together { self.words.together(self.member) } else { self.words.alone(self.member) }
    }
}

impl Rig for CountRig {
    fn warm(&mut self) {
        if self.member == 0 {
            self.words.set.fetch_add(1, Ordering::AcqRel);
        }
        self.run(4);
    }

    /// Ticks per count.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let word = self.word().as_ptr();
        let from = tsc::now();
        // SAFETY: the word is kept alive and only ever used as an atomic; the kernel's 8-byte
        // accesses are aligned, and so atomic on x86-64 (each by itself).
        unsafe {
            self.kernel.call(word.cast(), loops, std::ptr::null_mut(), std::ptr::null_mut());
        }
        vec![(tsc::end().0 - from) as f64 / (loops * self.kernel.kernel.ops_per_loop) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.run(8);
        self.run(64)[0] * self.kernel.kernel.ops_per_loop as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counts_in_its_own_word() {
        let kernel = Loaded::new(kernels::assemble(&Spec::Bump { locked: true }).unwrap()).unwrap();
        let words = Words::new(3);
        for together in [false, true] {
            for member in 0..3 {
                let mut rig = CountRig::new(kernel.clone(), words.clone(), member, together);
                let before = rig.word().load(Ordering::Relaxed);
                rig.run(10);
                assert_eq!(rig.word().load(Ordering::Relaxed), before + 10 * rig.kernel.kernel.ops_per_loop);
            }
        }
        let at = |word: &AtomicU64| word.as_ptr() as usize / 64;
        assert_eq!(at(words.together(0)), at(words.together(2)));
        assert_ne!(at(words.alone(0)), at(words.alone(1)));
    }
}

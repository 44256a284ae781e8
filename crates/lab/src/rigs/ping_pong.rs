//! Two rigs that hand one cache line to and fro.

use super::Rig;
use crate::code::Loaded;
use crate::sys::SysError;
use crate::tsc;
use kernels::{Role, Spec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A word alone on its line, and on the neighbour that some prefetchers fetch with it.
#[derive(Debug, Default)]
#[repr(align(256))]
struct PaddedWord(AtomicU64);

/// Some caches keep track of a line's owner at a place that depends on its address, so some lines
/// are handed over faster than others: each round uses another line.
const LINES: usize = 64;

#[derive(Debug)]
struct SharedLines {
    /// The words that are handed over, one per round.
    words: Vec<PaddedWord>,
    round: AtomicUsize,
    /// Not 0: the round is over.
    over: PaddedWord,
}

impl SharedLines {
    fn word(&self) -> &AtomicU64 {
        &self.words[self.round.load(Ordering::Acquire) % LINES].0
    }
}

/// One side; the other must run at the same time on another CPU, else this one waits until it is
/// released.
#[derive(Debug)]
pub struct PingPongRig {
    kernel: Loaded,
    role: Role,
    lines: Arc<SharedLines>,
}

/// Ticks that a round trip may take, for the first choice of a piece.
const ROUND_TRIP_GUESS_TICKS: f64 = 600.0;

impl PingPongRig {
    /// Both sides: the one that begins, and the other.
    pub fn pair() -> Result<(Self, Self), SysError> {
        let words = (0..LINES).map(|_| PaddedWord::default()).collect();
        let lines = Arc::new(SharedLines { words, round: AtomicUsize::new(0), over: PaddedWord::default() });
        let side = |role| {
            let kernel =
                kernels::assemble(&Spec::PingPong { role }).expect("it has no parameters to be wrong");
            Ok(Self { kernel: Loaded::new(kernel)?, role, lines: lines.clone() })
        };
        Ok((side(Role::Even)?, side(Role::Odd)?))
    }
}

impl Rig for PingPongRig {
    /// Sets the word of the next round to 0; the other side must not run.
    fn warm(&mut self) {
        if self.role == Role::Even {
            self.lines.round.fetch_add(1, Ordering::AcqRel);
            self.lines.word().store(0, Ordering::Release);
            self.lines.over.0.store(0, Ordering::Release);
        }
    }

    /// Ticks per hand-over: half a round trip.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let from = tsc::now();
        // SAFETY: both words are kept alive by the lines and are only ever used as atomics; the
        // kernel uses plain 8-byte loads and stores, which are atomic on x86-64.
        unsafe {
            self.kernel.call(
                self.lines.word().as_ptr().cast(),
                loops,
                self.lines.over.0.as_ptr(),
                std::ptr::null_mut(),
            );
        }
        vec![(tsc::end().0 - from) as f64 / (2 * loops) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        ROUND_TRIP_GUESS_TICKS
    }

    fn release(&mut self) {
        self.lines.over.0.store(1, Ordering::Release);
    }
}

impl Drop for PingPongRig {
    /// The other side does not wait for one that is gone, whatever ended it.
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_finish_and_a_lone_one_is_let_go() {
        let (mut even, mut odd) = PingPongRig::pair().unwrap();
        even.warm();
        odd.warm();
        let lines = even.lines.clone();
        let (mut even, mut odd) = std::thread::scope(|s| {
            let even = s.spawn(move || {
                even.run(100);
                even
            });
            let odd = s.spawn(move || {
                odd.run(100);
                odd
            });
            (even.join().unwrap(), odd.join().unwrap())
        });
        assert_eq!(lines.word().load(Ordering::Relaxed), 200);
        even.release();
        odd.run(1_000_000_000);
        even.warm();
        odd.release();
        even.run(1_000_000_000);
    }
}

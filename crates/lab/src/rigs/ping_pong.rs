//! Two rigs that hand one cache line to and fro.

use super::Rig;
use crate::arena::{Arena, PageKind, Placement};
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

/// Bytes from a word that is handed over to the next: as far as padded words.
const WORD_PITCH: usize = size_of::<PaddedWord>();

/// Some caches keep track of a line's owner at a place that depends on its address, so some lines
/// are handed over faster than others: each round uses another line.
const LINES: usize = 64;

#[derive(Debug)]
struct SharedLines {
    /// Holds the words that are handed over, one per round, padded.
    words: Arena,
    round: AtomicUsize,
    /// Not 0: the round is over.
    over: PaddedWord,
}

impl SharedLines {
    #[expect(clippy::cast_ptr_alignment, reason = "a page begins there, and the pitch is whole words")]
    fn word(&self) -> &AtomicU64 {
        let place = WORD_PITCH * (self.round.load(Ordering::Acquire) % LINES);
        // SAFETY: the arena has `LINES` padded words, begins at a page's start, lives as long as
        // this, and is only ever used as atomics once it is shared.
        unsafe { &*self.words.base().add(place).cast::<AtomicU64>() }
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
    /// Both sides: the one that begins, and the other. The lines lie where the placement says.
    pub fn pair(placement: &Placement) -> Result<(Self, Self), SysError> {
        let size = units::Bytes((LINES * WORD_PITCH) as u64);
        let words = Arena::placed(size, PageKind::Small, placement)?;
        let lines = Arc::new(SharedLines { words, round: AtomicUsize::new(0), over: PaddedWord::default() });
        let side = |role| {
            let kernel =
                kernels::assemble(&Spec::PingPong { role }).expect("it has no parameters to be wrong");
            Ok(Self { kernel: Loaded::new(kernel)?, role, lines: lines.clone() })
        };
        Ok((side(Role::Even)?, side(Role::Odd)?))
    }

    /// The node on which all of the lines lie, as the kernel says; none where they lie on several,
    /// or where it does not say.
    pub fn home(&self) -> Option<u32> {
        match self.lines.words.node_census(LINES).ok()?[..] {
            [(node, _)] => u32::try_from(node).ok(),
            _ => None,
        }
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
        let (mut even, mut odd) = PingPongRig::pair(&Placement::FirstTouch).unwrap();
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

//! Two rigs that hand one cache line to and fro.

use super::Rig;
use crate::code::Loaded;
use crate::sys::SysError;
use crate::tsc;
use kernels::{Role, Spec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Alone on its line, and on the neighbour that some prefetchers fetch with it.
#[derive(Debug, Default)]
#[repr(align(256))]
struct Alone(AtomicU64);

/// Where a line's turn is kept track of depends on its address, so that hand-overs of one line are faster than of
/// another: each game is about another line.
const LINES: usize = 64;

#[derive(Debug)]
struct Table {
    /// The words that are handed over, one a game.
    balls: Vec<Alone>,
    game: AtomicUsize,
    /// Not 0: the game is over.
    over: Alone,
}

impl Table {
    fn ball(&self) -> &AtomicU64 {
        &self.balls[self.game.load(Ordering::Acquire) % LINES].0
    }
}

/// One side; the other must run at the same time on another CPU, or this one waits until it is released.
#[derive(Debug)]
pub struct PingPongRig {
    kernel: Loaded,
    role: Role,
    table: Arc<Table>,
}

/// What a round trip may take, for the first choice of a piece.
const GUESS: f64 = 600.0;

impl PingPongRig {
    /// Both sides of a game: the one that begins, and the other.
    pub fn pair() -> Result<(Self, Self), SysError> {
        let balls = (0..LINES).map(|_| Alone::default()).collect();
        let table = Arc::new(Table { balls, game: AtomicUsize::new(0), over: Alone::default() });
        let side = |role| {
            let kernel =
                kernels::assemble(&Spec::PingPong { role }).expect("it has no parameters to be wrong");
            Ok(Self { kernel: Loaded::new(kernel)?, role, table: table.clone() })
        };
        Ok((side(Role::Even)?, side(Role::Odd)?))
    }
}

impl Rig for PingPongRig {
    /// Lays the ball down for a new game; the other side must not be playing.
    fn warm(&mut self) {
        if self.role == Role::Even {
            self.table.game.fetch_add(1, Ordering::AcqRel);
            self.table.ball().store(0, Ordering::Release);
            self.table.over.0.store(0, Ordering::Release);
        }
    }

    /// Ticks per hand-over: half a round trip.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let from = tsc::now();
        // SAFETY: both words are kept alive by the table and are only ever used as atomics; the kernel uses plain
        // 8-byte loads and stores, which are atomic on x86-64.
        unsafe {
            self.kernel.call(
                self.table.ball().as_ptr().cast(),
                loops,
                self.table.over.0.as_ptr(),
                std::ptr::null_mut(),
            );
        }
        vec![(tsc::end().0 - from) as f64 / (2 * loops) as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        GUESS
    }

    fn release(&mut self) {
        self.table.over.0.store(1, Ordering::Release);
    }
}

impl Drop for PingPongRig {
    /// Nobody waits for a side that is gone, whatever ended it.
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
        let table = even.table.clone();
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
        assert_eq!(table.ball().load(Ordering::Relaxed), 200);
        even.release();
        odd.run(1_000_000_000);
        even.warm();
        odd.release();
        even.run(1_000_000_000);
    }
}

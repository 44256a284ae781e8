//! How far the time stamp counters of two CPUs are apart, measured as networks do: ask for the
//! time, and compare the answer with the middle between question and answer.

use crate::tsc;
use std::sync::atomic::{AtomicU64, Ordering};

const COMPARISONS: u64 = 200;

/// The other counter less ours, in ticks, and how wrong that may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Skew {
    pub offset: f64,
    pub doubt: f64,
}

impl Skew {
    /// What the two surely differ by.
    pub(super) fn proven(&self) -> f64 {
        (self.offset.abs() - self.doubt).max(0.0)
    }

    /// What they may differ by.
    pub(super) fn bound(&self) -> f64 {
        self.offset.abs() + self.doubt
    }

    pub(super) fn wider(self, other: Self) -> Self {
        if other.bound() > self.bound() { other } else { self }
    }
}

/// One side asks, the other answers, from two CPUs.
#[derive(Debug)]
pub(super) struct Exchange {
    turn: AtomicU64,
    stamp: AtomicU64,
    patience: u64,
}

impl Exchange {
    pub(super) fn new(patience: u64) -> Self {
        Self { turn: AtomicU64::new(0), stamp: AtomicU64::new(0), patience }
    }

    /// The narrowest of many comparisons. `None` if the other side does not answer.
    pub(super) fn ask(&self) -> Option<Skew> {
        let mut best: Option<Skew> = None;
        for round in 0..COMPARISONS {
            let asked = tsc::now();
            self.turn.store(2 * round + 1, Ordering::Release);
            self.wait_for(2 * round + 2)?;
            let answered = tsc::now();
            let there = self.stamp.load(Ordering::Acquire);
            let skew = compare(asked, there, answered);
            if best.is_none_or(|b| skew.doubt < b.doubt) {
                best = Some(skew);
            }
        }
        best
    }

    pub(super) fn answer(&self) {
        for round in 0..COMPARISONS {
            if self.wait_for(2 * round + 1).is_none() {
                return;
            }
            self.stamp.store(tsc::now(), Ordering::Release);
            self.turn.store(2 * round + 2, Ordering::Release);
        }
    }

    fn wait_for(&self, turn: u64) -> Option<()> {
        let give_up = tsc::now() + self.patience;
        while self.turn.load(Ordering::Acquire) != turn {
            if tsc::now() > give_up {
                return None;
            }
            std::hint::spin_loop();
        }
        Some(())
    }
}

fn compare(asked: u64, there: u64, answered: u64) -> Skew {
    let doubt = (answered.wrapping_sub(asked) as i64) as f64 / 2.0;
    Skew { offset: (there.wrapping_sub(asked) as i64) as f64 - doubt, doubt: doubt.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_beyond_the_doubt_are_proven() {
        let same = compare(1000, 1100, 1200);
        assert_eq!((same.offset, same.proven(), same.bound()), (0.0, 0.0, 100.0));
        let ahead = compare(1000, 6100, 1200);
        assert_eq!((ahead.offset, ahead.proven()), (5000.0, 4900.0));
        let behind = compare(10_000, 1100, 10_200);
        assert_eq!(behind.proven(), 8900.0);
        assert_eq!(same.wider(behind), behind);
    }

    #[test]
    fn two_threads_of_one_machine_agree() {
        let exchange = Exchange::new(u64::MAX / 4);
        let skew = std::thread::scope(|s| {
            s.spawn(|| exchange.answer());
            exchange.ask()
        });
        assert_eq!(skew.unwrap().proven(), 0.0);
        assert_eq!(Exchange::new(1000).ask(), None, "no other side");
    }
}

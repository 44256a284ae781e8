//! Where the members of a crew wait for each other before a block: the last to arrive sets the time
//! at which it begins.

use crate::tsc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The time is not set yet.
const UNDECIDED: u64 = 0;
/// A member waited too long for the others.
const CALLED_OFF: u64 = u64::MAX;

/// Ticks from setting the time to the time: several times what reading the core clock takes.
const LEAD_TICKS: u64 = 300_000;

#[derive(Debug)]
pub(super) struct StartBarrier {
    of: usize,
    present: AtomicUsize,
    begin: AtomicU64,
    ticks: u64,
    patience: u64,
}

/// The stretch of time in which pieces count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedSpan {
    pub begin: u64,
    pub end: u64,
}

impl StartBarrier {
    pub(super) fn new(of: usize, ticks: u64, patience: u64) -> Self {
        Self { of, present: AtomicUsize::new(0), begin: AtomicU64::new(UNDECIDED), ticks, patience }
    }

    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Waits until all members are here. `None` if one of them does not come.
    pub(super) fn arrive(&self) -> Option<CountedSpan> {
        if self.present.fetch_add(1, Ordering::AcqRel) + 1 == self.of {
            // Every member reads its clock, and then runs for a while before it counts: so the
            // beginning finds caches, queues and clocks as they are in the middle.
            let lead = self.ticks / 8 + LEAD_TICKS;
            let begin = tsc::now() + lead;
            let _ = self.begin.compare_exchange(UNDECIDED, begin, Ordering::AcqRel, Ordering::Acquire);
        }
        let give_up = tsc::now() + self.patience;
        loop {
            match self.begin.load(Ordering::Acquire) {
                UNDECIDED if tsc::now() > give_up => {
                    let _ = self.begin.compare_exchange(
                        UNDECIDED,
                        CALLED_OFF,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    );
                }
                UNDECIDED => std::hint::spin_loop(),
                CALLED_OFF => return None,
                begin => return Some(CountedSpan { begin, end: begin + self.ticks }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_the_same_window() {
        let barrier = StartBarrier::new(3, 1000, u64::MAX / 4);
        let spans: Vec<Option<CountedSpan>> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..3).map(|_| s.spawn(|| barrier.arrive())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let first = spans[0].unwrap();
        assert_eq!(first.end - first.begin, 1000);
        assert!(spans.iter().all(|w| *w == Some(first)));
    }

    #[test]
    fn a_missing_member_calls_it_off_for_all() {
        let barrier = StartBarrier::new(2, 1000, 1000);
        assert_eq!(barrier.arrive(), None);
        assert_eq!(barrier.arrive(), None, "the late one must not run alone");
    }
}

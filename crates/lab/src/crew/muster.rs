//! Where a crew's members meet before a block: the last to arrive names the time.

use crate::tsc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Nobody has named the time yet.
const OPEN: u64 = 0;
/// Somebody waited too long for the others.
const OFF: u64 = u64::MAX;

/// Several times what taking the clock's pulse lasts, in ticks.
const LEAD: u64 = 300_000;

#[derive(Debug)]
pub(super) struct Muster {
    of: usize,
    present: AtomicUsize,
    begin: AtomicU64,
    ticks: u64,
    patience: u64,
}

/// The stretch of time in which pieces count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub begin: u64,
    pub end: u64,
}

impl Muster {
    pub(super) fn new(of: usize, ticks: u64, patience: u64) -> Self {
        Self { of, present: AtomicUsize::new(0), begin: AtomicU64::new(OPEN), ticks, patience }
    }

    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Waits until all are here. `None` if somebody does not come.
    pub(super) fn arrive(&self) -> Option<Window> {
        if self.present.fetch_add(1, Ordering::AcqRel) + 1 == self.of {
            // Everybody looks at the clock, and then runs for a while before it counts: so the beginning finds caches,
            // queues and clocks as they are in the middle.
            let lead = self.ticks / 8 + LEAD;
            let begin = tsc::now() + lead;
            let _ = self.begin.compare_exchange(OPEN, begin, Ordering::AcqRel, Ordering::Acquire);
        }
        let give_up = tsc::now() + self.patience;
        loop {
            match self.begin.load(Ordering::Acquire) {
                OPEN if tsc::now() > give_up => {
                    let _ = self.begin.compare_exchange(OPEN, OFF, Ordering::AcqRel, Ordering::Acquire);
                }
                OPEN => std::hint::spin_loop(),
                OFF => return None,
                begin => return Some(Window { begin, end: begin + self.ticks }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_the_same_window() {
        let muster = Muster::new(3, 1000, u64::MAX / 4);
        let windows: Vec<Option<Window>> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..3).map(|_| s.spawn(|| muster.arrive())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let first = windows[0].unwrap();
        assert_eq!(first.end - first.begin, 1000);
        assert!(windows.iter().all(|w| *w == Some(first)));
    }

    #[test]
    fn a_missing_member_calls_it_off_for_all() {
        let muster = Muster::new(2, 1000, 1000);
        assert_eq!(muster.arrive(), None);
        assert_eq!(muster.arrive(), None, "the late one must not run alone");
    }
}

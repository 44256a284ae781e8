//! What happened aboard in the last second.

use super::snapshot::Snapshot;
use std::collections::VecDeque;

/// What is called recent: at five snapshots a second, the last second.
const RECENT_SNAPSHOTS: usize = 5;

/// The last snapshots: how many guests ran, and how many boardings there had been in all.
#[derive(Debug, Default)]
pub struct Recent {
    snapshots: VecDeque<(u32, u64)>,
}

/// Of the last second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecentFigures {
    /// That ran, on average.
    pub guests: f64,
    pub boardings: u64,
}

impl Recent {
    pub fn add(&mut self, now: &Snapshot) {
        if self.snapshots.len() == RECENT_SNAPSHOTS {
            self.snapshots.pop_front();
        }
        let boardings = now.scavengers.iter().map(|scavenger| scavenger.boardings).sum();
        self.snapshots.push_back((now.guests_running(), boardings));
    }

    /// `None` after the first snapshot.
    pub fn figures(&self) -> Option<RecentFigures> {
        let (first, last) = (self.snapshots.front()?, self.snapshots.back()?);
        let guests: u32 = self.snapshots.iter().map(|(guests, _)| guests).sum();
        let count = self.snapshots.len();
        (count > 1).then(|| RecentFigures {
            guests: f64::from(guests) / count as f64,
            boardings: last.1.saturating_sub(first.1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ScavengerNow, ThreadPace};
    use super::*;

    #[test]
    fn recent_is_the_last_second() {
        let mut recent = Recent::default();
        for guests in [9, 9, 1, 2, 3, 4, 5] {
            let thread = ThreadPace { guests, ring: 9, with_guests: true, slower: None };
            let scavenger = ScavengerNow { boardings: guests.into(), ..ScavengerNow::default() };
            let threads = vec![thread];
            recent.add(&Snapshot { threads, scavengers: vec![scavenger], ..Snapshot::default() });
        }
        assert_eq!(recent.figures(), Some(RecentFigures { guests: 3.0, boardings: 4 }));
    }
}

//! Where a scavenger left its twins: the places that sent it home most often.
//!
//! A table of few rows in the control page. A place that finds none free among those that it may
//! have takes that of the rarest one there, and its count with it, so that no place that is met
//! often is missed. Threads of several primaries may count at once: one count may be lost,
//! which does not show among thousands.

use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::LeaveRow;

/// Rows that a place may have.
const TRIED: usize = 8;

pub(crate) fn count(rows: &[LeaveRow], place: u64) {
    let first = (place >> 1 ^ place >> 9) as usize;
    let mut rarest: Option<&LeaveRow> = None;
    for at in first..first + TRIED {
        let row = &rows[at % rows.len()];
        let there = match row.place.compare_exchange(0, place, Relaxed, Relaxed) {
            Ok(_) => place,
            Err(there) => there,
        };
        if there == place {
            row.leaves.store(row.leaves.load(Relaxed) + 1, Relaxed);
            return;
        }
        if rarest.is_none_or(|it| row.leaves.load(Relaxed) < it.leaves.load(Relaxed)) {
            rarest = Some(row);
        }
    }
    if let Some(row) = rarest {
        row.place.store(place, Relaxed);
        row.leaves.store(row.leaves.load(Relaxed) + 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn rows(count: usize) -> Vec<LeaveRow> {
        (0..count).map(|_| LeaveRow { place: AtomicU64::new(0), leaves: AtomicU64::new(0) }).collect()
    }

    fn of(rows: &[LeaveRow], place: u64) -> u64 {
        let its = rows.iter().filter(|row| row.place.load(Relaxed) == place);
        its.map(|row| row.leaves.load(Relaxed)).sum()
    }

    #[test]
    fn each_place_has_its_count() {
        let rows = rows(64);
        for place in [0x1000, 0x1002, 0x1000, 0x5550_1234, 0x1000] {
            count(&rows, place);
        }
        assert_eq!([0x1000, 0x1002, 0x5550_1234, 0x9999].map(|place| of(&rows, place)), [3, 1, 1, 0]);
    }

    #[test]
    fn a_frequent_place_is_found_among_many_rare_ones() {
        let rows = rows(16);
        for round in 0..1000 {
            count(&rows, 0x40_0000 + 64 * round);
            count(&rows, 0x1234);
        }
        assert!(of(&rows, 0x1234) >= 1000, "an upper end: {}", of(&rows, 0x1234));
        let most = rows.iter().max_by_key(|row| row.leaves.load(Relaxed)).unwrap();
        assert_eq!(most.place.load(Relaxed), 0x1234);
    }
}

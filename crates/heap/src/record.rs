//! An allocation or its end, written into a ring, and the rate at which that happens.
//!
//! The thread that completes a stretch of records looks at the rate. Over time, stretches may not
//! be shorter than the budget allows, and while the reader is not there the ring must not fill up:
//! if one of both is about to happen, half of the chosen pages go, or more. Where most records are
//! of large allocations, these begin at a larger size.
//!
//! Times: an allocation is dated after it was made, an end before it happens. So of one piece of
//! memory, the end of one use comes before the beginning of the next, in whatever threads.

use crate::calls::Path;
use crate::keys::KEYS;
use crate::layout::{CREDIT, CREDIT_UNIT, LEAST_THRESHOLD, Region, SLOTS, STRETCH, is_chosen, kind};
use crate::stack::{self, Caller};
use crate::sys;
use crate::table::TABLE;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// One record, as it is told.
#[derive(Clone, Copy, Default)]
pub(crate) struct Record {
    pub(crate) kind: u64,
    pub(crate) ticks: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) return_address: u64,
    pub(crate) key: u64,
    pub(crate) is_kept: bool,
}

/// Memory was allocated.
pub(crate) fn allocated(region: &Region, process: u32, address: u64, size: u64, caller: &Caller) {
    let mostly = &region.header().read_mostly;
    let threshold = mostly.threshold.load(Relaxed);
    let is_large = size >= mostly.large_from.load(Relaxed);
    let first = is_chosen(address, threshold);
    let forced = is_large || !first && is_chosen(address + size.saturating_sub(1), threshold) && size < 4096;
    let is_kept = forced && TABLE.insert(address);
    if !is_kept && !first {
        return;
    }
    let (ticks, key) = (sys::ticks(), told(region, process, caller));
    let return_address = caller.return_address;
    let record = Record { kind: kind::ALLOCATED, ticks, address, size, return_address, key, is_kept };
    write(region, process, &record, !first);
}

/// The key of the calls that led here; their stack is told of, too, if it is new.
fn told(region: &Region, process: u32, caller: &Caller) -> u64 {
    let depth = sys::thread_pointer().wrapping_sub(caller.stack_pointer());
    let (key, is_new) = KEYS.of(&Path::of(caller), depth);
    if is_new && stack::copy(region, process, key, caller) {
        KEYS.insert(key);
    }
    key
}

/// The program mapped memory that no file has. Small areas are buffers, and left out where large
/// allocations are.
pub(crate) fn mapped(region: &Region, process: u32, address: u64, size: u64, caller: &Caller) {
    if size < region.header().read_mostly.large_from.load(Relaxed) {
        return;
    }
    let (ticks, key) = (sys::ticks(), told(region, process, caller));
    let return_address = caller.return_address;
    let record =
        Record { kind: kind::MAPPED, ticks, address, size, return_address, key, ..Record::default() };
    write(region, process, &record, true);
}

/// A range was unmapped at `ticks`, or is a file's now.
pub(crate) fn unmapped(region: &Region, process: u32, address: u64, size: u64, ticks: u64) {
    if size < region.header().read_mostly.large_from.load(Relaxed) {
        return;
    }
    write(region, process, &Record { kind: kind::UNMAPPED, ticks, address, size, ..Record::default() }, true);
}

/// Memory ends now, or did at `ticks`.
pub(crate) fn freed(region: &Region, process: u32, address: u64, ticks: u64) {
    let first = is_chosen(address, region.header().read_mostly.threshold.load(Relaxed));
    if TABLE.remove(address) || first {
        write(region, process, &Record { kind: kind::FREED, ticks, address, ..Record::default() }, !first);
    }
}

/// Writes a record into the ring of this thread. Another one may interrupt it anywhere: in a signal
/// handler, or since the process is killed.
pub(crate) fn write(region: &Region, process: u32, record: &Record, forced: bool) {
    let pointer = sys::thread_pointer();
    // Threads' pointers are far apart, by the size of their stacks.
    let ring = (((pointer >> 6) as u32).wrapping_mul(0x9e37_79b1)) >> 16;
    let head = region.head(ring);
    if forced {
        head.rate.forced.fetch_add(1, Relaxed);
    }
    let Some(number) = put(region, ring, process, record) else { return };
    if number % STRETCH == 0 {
        if let Some(threshold) = keep_to_budget(region, ring, record.ticks) {
            let lowered = Record {
                kind: kind::LOWERED,
                ticks: record.ticks,
                address: u64::from(threshold),
                ..Record::default()
            };
            put(region, ring, process, &lowered);
        }
    }
}

/// The number of the slot that was written; none if the ring is full.
fn put(region: &Region, ring: u32, process: u32, record: &Record) -> Option<u64> {
    let head = region.head(ring);
    let has_room = |number: u64| {
        (number.wrapping_sub(head.reader.tail.load(Acquire)) < SLOTS).then(|| number.wrapping_add(1))
    };
    let Ok(number) = head.head.fetch_update(Relaxed, Relaxed, has_room) else {
        region.header().shared.lost.fetch_add(1, Relaxed);
        return None;
    };
    let slot = region.slot(ring, number);
    slot.ticks.store(record.ticks, Relaxed);
    slot.kind.store(record.kind | u64::from(process) << 32, Relaxed);
    slot.address.store(record.address, Relaxed);
    slot.size.store(record.size, Relaxed);
    slot.return_address.store(record.return_address, Relaxed);
    slot.key.store(record.key, Relaxed);
    slot.is_kept.store(u64::from(record.is_kept), Relaxed);
    slot.sequence.store(number.wrapping_add(1), Release);
    Some(number)
}

/// Chooses fewer pages, or larger allocations, if the last stretch came too fast; the new threshold
/// if it is another one.
fn keep_to_budget(region: &Region, ring: u32, now: u64) -> Option<u32> {
    let head = region.head(ring);
    let rate = &head.rate;
    let began = rate.stretch_began.swap(now, Relaxed);
    let forced = rate.forced.swap(0, Relaxed);
    if began == 0 {
        rate.credit.store(CREDIT * CREDIT_UNIT, Relaxed);
        return None;
    }
    let least = region.header().least_ticks.load(Relaxed).max(1);
    let lasted = now.saturating_sub(began).saturating_mul(CREDIT_UNIT as u64) / least;
    let earned = lasted.min((CREDIT * CREDIT_UNIT) as u64) as i64 - CREDIT_UNIT;
    let credit = (rate.credit.load(Relaxed) + earned).clamp(-CREDIT_UNIT, CREDIT * CREDIT_UNIT);
    rate.credit.store(credit, Relaxed);
    let waiting = head.head.load(Relaxed).wrapping_sub(head.reader.tail.load(Relaxed));
    // A fuller ring has less time left.
    let shift = match 8 * waiting / SLOTS {
        0..=3 if credit >= 0 => return None,
        0..=6 => 1,
        _ => 3,
    };
    let mostly = &region.header().read_mostly;
    if forced > STRETCH / 2 {
        let from = mostly.large_from.load(Relaxed);
        mostly.large_from.fetch_max(from.saturating_mul(4), Relaxed);
        return None;
    }
    let threshold = mostly.threshold.load(Relaxed);
    let lower = (threshold >> shift).max(LEAST_THRESHOLD);
    if lower >= threshold {
        return None;
    }
    mostly.threshold.fetch_min(lower, Relaxed);
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::region;

    fn caller() -> Caller {
        Caller { rbx: 0, rbp: 0, r12: 0, r13: 0, r14: 0, r15: 0, result: 0, return_address: 0x40_1000 }
    }

    #[test]
    fn an_allocation_and_its_end_are_told() {
        let region = region(1);
        allocated(&region, 7, 0x5000, 24, &caller());
        freed(&region, 7, 0x5000, 5);
        let (one, two) = (region.slot(0, 0), region.slot(0, 1));
        assert_eq!((one.sequence.load(Acquire), two.sequence.load(Acquire)), (1, 2));
        assert_eq!(one.kind.load(Relaxed), kind::ALLOCATED | 7 << 32);
        assert_eq!((one.address.load(Relaxed), one.size.load(Relaxed)), (0x5000, 24));
        assert_eq!((two.kind.load(Relaxed) as u32, two.ticks.load(Relaxed)), (kind::FREED as u32, 5));
        assert_eq!(region.head(0).head.load(Relaxed), 2);
    }

    #[test]
    fn only_chosen_pages_and_large_ones_are_told() {
        let region = region(1);
        region.header().read_mostly.threshold.store(0, Relaxed);
        let written = || region.head(0).head.load(Relaxed);
        allocated(&region, 7, 0x7000_5000, 24, &caller());
        freed(&region, 7, 0x7000_5000, 5);
        assert_eq!(written(), 0);
        allocated(&region, 7, 0x7000_5000, 1 << 20, &caller());
        freed(&region, 7, 0x7000_5000, 5);
        assert_eq!(written(), 2);
        freed(&region, 7, 0x7000_5000, 6);
        assert_eq!(written(), 2, "it ended before");
    }

    #[test]
    fn areas_are_told_but_for_small_ones() {
        let region = region(1);
        mapped(&region, 7, 0x7000_0000, 1 << 20, &caller());
        unmapped(&region, 7, 0x7000_0000, 1 << 20, 9);
        let (one, two) = (region.slot(0, 0), region.slot(0, 1));
        assert_eq!((one.kind.load(Relaxed) as u32, one.size.load(Relaxed)), (kind::MAPPED as u32, 1 << 20));
        assert_eq!((two.kind.load(Relaxed) as u32, two.ticks.load(Relaxed)), (kind::UNMAPPED as u32, 9));
        region.header().read_mostly.large_from.store(u64::MAX, Relaxed);
        mapped(&region, 7, 0x7000_0000, 1 << 20, &caller());
        assert_eq!(region.head(0).head.load(Relaxed), 2, "nothing is recorded");
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let region = region(1);
        region.header().read_mostly.threshold.store(LEAST_THRESHOLD, Relaxed);
        for _ in 0..SLOTS + 10 {
            write(&region, 1, &Record { kind: kind::FREED, ticks: 1, ..Record::default() }, false);
        }
        assert_eq!(region.header().shared.lost.load(Relaxed), 10);
        assert_eq!(region.slot(0, 0).sequence.load(Relaxed), 1, "nothing was overwritten");
    }

    #[test]
    fn the_share_of_pages_falls_to_what_the_budget_allows() {
        let region = region(1);
        region.header().least_ticks.store(STRETCH * 1000, Relaxed);
        let threshold = || region.header().read_mostly.threshold.load(Relaxed);
        let mut ticks = 1;
        let mut stretch = |each: u64, is_read: bool| {
            for _ in 0..STRETCH {
                ticks += each;
                write(&region, 1, &Record { kind: kind::FREED, ticks, ..Record::default() }, false);
                let head = region.head(0);
                if is_read {
                    head.reader.tail.store(head.head.load(Relaxed), Relaxed);
                }
            }
        };
        for _ in 0..50 {
            stretch(1000, true);
        }
        assert_eq!(threshold(), u32::MAX, "within the budget");
        for _ in 0..CREDIT {
            stretch(1, true);
        }
        assert_eq!(threshold(), u32::MAX, "a burst");
        for _ in 0..3 {
            stretch(1, true);
        }
        assert!(threshold() < u32::MAX / 3 && threshold() > u32::MAX / 20, "{}", threshold());
        for _ in 0..12 {
            stretch(1, false);
        }
        assert!(threshold() < u32::MAX >> 10, "the ring fills up: {}", threshold());
        for _ in 0..20 {
            stretch(1, true);
        }
        assert_eq!(threshold(), LEAST_THRESHOLD);
    }
}

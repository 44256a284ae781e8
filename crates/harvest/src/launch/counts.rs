//! What the runtime counted, read from the control page: the primary's pace with guests and
//! without, its absences, and the outcomes of its sites. `report/paces.rs` makes figures of it.

use super::page::Page;
use runtime_abi::control::{self, AreaRow, Control, SiteRow, Slowdown, bucket_end};
use std::mem::offset_of;
use std::time::Duration;

/// A thread of the primary, and its guests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadPace {
    pub guests: u32,
    /// How many guests it may have now.
    pub ring: u32,
    /// Its guests run in its stalls; else it is timed alone for a moment.
    pub with_guests: bool,
    /// How much slower it was with guests, when that was measured last.
    pub slower: Option<f64>,
}

impl ThreadPace {
    pub(super) fn all(page: &Page) -> Vec<Self> {
        (0..control::AREAS)
            .map(|i| offset_of!(Control, area) + i * size_of::<AreaRow>())
            .filter(|row| page.u32(row + offset_of!(AreaRow, tid)) != 0)
            .map(|row| Self {
                guests: page.u32(row + offset_of!(AreaRow, guests)),
                ring: page.u32(row + offset_of!(AreaRow, ring)),
                with_guests: page.u32(row + offset_of!(AreaRow, aboard)) != 0,
                slower: (page.u32(row + offset_of!(AreaRow, known)) != 0)
                    .then(|| f64::from(page.u32(row + offset_of!(AreaRow, slower))) / 1e6),
            })
            .collect()
    }
}

/// The outcomes of one of the primary's yields, timed while the primary was alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteOutcomes {
    /// Where it goes on behind the yield, as the file has it.
    pub resume: u64,
    pub outcomes: u64,
    /// Of them, how many were hits: the next yield came too soon for a miss.
    pub soon: u64,
    /// How often it was switched off for that, and for how long in all.
    pub offs: u64,
    pub off: Duration,
}

impl SiteOutcomes {
    /// Of all yields that were timed, with addresses relative to one of the primary's modules;
    /// those of other modules match none of its yields. None if the module is not loaded.
    pub(super) fn of(page: &Page, module: usize) -> Option<Vec<Self>> {
        let bias = page.bias(module)?;
        let all = (0..control::SITES)
            .map(|i| offset_of!(Control, site) + i * size_of::<SiteRow>())
            .map(|row| Self {
                resume: page.u64(row + offset_of!(SiteRow, resume)),
                outcomes: page.u64(row + offset_of!(SiteRow, outcomes)),
                soon: page.u64(row + offset_of!(SiteRow, soon)),
                offs: page.u64(row + offset_of!(SiteRow, offs)),
                off: Duration::from_nanos(page.u64(row + offset_of!(SiteRow, off_ns))),
            })
            .filter(|seen| seen.outcomes > 0)
            .map(|seen| Self { resume: seen.resume.wrapping_sub(bias), ..seen })
            .collect();
        Some(all)
    }
}

/// All threads together, so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paces {
    /// Time for which they were watched, in nanoseconds; and the part of it with guests.
    pub watched: f64,
    pub with_guests: f64,
    /// Of it, lost to guests; and the uncertainty of that, as the pace without guests is known from
    /// few samples.
    pub lost: f64,
    pub doubt: f64,
    /// Time that the primary's threads lent to scavengers at home, in nanoseconds: watched, and no
    /// part of what was lost.
    pub lent: f64,
    /// Sums over phases with guests: of T², T·L, L², where T is a phase's time and L what was lost
    /// of it.
    pub squares: [f64; 3],
    pub phases: u64,
    pub samples: u64,
    /// Of them, those with too few yields for a comparison.
    pub bounded: u64,
    /// Histogram of the absences that were timed: upper end in nanoseconds, and count; ascending,
    /// no count is 0.
    pub absences: Vec<(f64, u64)>,
    pub longest_ns: f64,
}

impl Paces {
    pub(super) fn read(page: &Page) -> Self {
        let sum = |offset: usize| page.f64(offset_of!(Control, slowdown) + offset);
        let count = |offset: usize| page.u64(offset_of!(Control, slowdown) + offset);
        let ticks = page.u64(offset_of!(Control, clock_ticks)) as f64;
        let ns = page.u64(offset_of!(Control, clock_ns)) as f64;
        let in_ns = |length: u64| length as f64 * ns / ticks.max(1.0);
        let absences = (0..control::BUCKETS)
            .map(|bucket| (bucket, page.u64(offset_of!(Control, absences) + 8 * bucket)))
            .filter(|(_, count)| *count > 0)
            .map(|(bucket, count)| (in_ns(bucket_end(bucket)), count))
            .collect();
        Self {
            watched: sum(offset_of!(Slowdown, watched)),
            with_guests: sum(offset_of!(Slowdown, with_guests)),
            lost: sum(offset_of!(Slowdown, lost)),
            doubt: sum(offset_of!(Slowdown, doubt)),
            lent: sum(offset_of!(Slowdown, lent)),
            squares: [0, 1, 2].map(|i| sum(offset_of!(Slowdown, squares) + 8 * i)),
            phases: count(offset_of!(Slowdown, phases)),
            samples: count(offset_of!(Slowdown, samples)),
            bounded: count(offset_of!(Slowdown, bounded)),
            absences,
            longest_ns: in_ns(page.u64(offset_of!(Control, longest_absence))),
        }
    }
}

//! What the supervisor found out about the primary's pace with guests and without, and about its
//! absences.

use super::page::Page;
use runtime_abi::control::{self, AreaRow, Control, SiteRow, Slowdown, bucket_end};
use std::mem::offset_of;
use std::time::Duration;
use units::Estimate;

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

/// What was seen at one of the primary's yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// Where it goes on behind the yield, as the file has it.
    pub resume: u64,
    pub visits: u64,
    /// Of them, how often the next yield came too soon for a miss.
    pub soon: u64,
    /// How often it was switched off for that, and for how long in all.
    pub offs: u64,
    pub off: Duration,
}

impl Visits {
    /// All that were seen, by addresses of one of the primary's modules: those of others are none
    /// of its addresses. None where it is not loaded.
    pub(super) fn of(page: &Page, module: usize) -> Option<Vec<Self>> {
        let bias = page.bias(module)?;
        let all = (0..control::SITES)
            .map(|i| offset_of!(Control, site) + i * size_of::<SiteRow>())
            .map(|row| Self {
                resume: page.u64(row + offset_of!(SiteRow, resume)),
                visits: page.u64(row + offset_of!(SiteRow, visits)),
                soon: page.u64(row + offset_of!(SiteRow, soon)),
                offs: page.u64(row + offset_of!(SiteRow, offs)),
                off: Duration::from_nanos(page.u64(row + offset_of!(SiteRow, off_ns))),
            })
            .filter(|seen| seen.visits > 0)
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
    /// Sums over spells with guests: of T², T·L, L², where T is a spell's time and L what was lost
    /// of it.
    pub squares: [f64; 3],
    pub spells: u64,
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
            squares: [0, 1, 2].map(|i| sum(offset_of!(Slowdown, squares) + 8 * i)),
            spells: count(offset_of!(Slowdown, spells)),
            samples: count(offset_of!(Slowdown, samples)),
            bounded: count(offset_of!(Slowdown, bounded)),
            absences,
            longest_ns: in_ns(page.u64(offset_of!(Control, longest_absence))),
        }
    }

    /// Time with guests.
    pub fn time_with_guests(&self) -> Duration {
        Duration::from_secs_f64((self.with_guests / 1e9).max(0.0))
    }

    /// By how much the primary became slower: what it lost, to what it had left.
    pub fn slowdown(&self) -> Result<Estimate, &'static str> {
        if self.watched <= 0.0 {
            return Err("its pace was not watched");
        }
        if self.samples == 0 {
            return if self.with_guests <= 0.0 {
                Ok(Estimate::exact(0.0))
            } else {
                Err("it ended before its pace with guests was measured")
            };
        }
        if self.bounded == self.samples {
            return Err(
                "not enough yields to compare its pace with guests and without, or it slept too often",
            );
        }
        let [squares, linear, quadratic] = self.squares;
        let mean = self.lost / self.with_guests.max(1.0);
        let scatter = (quadratic - 2.0 * mean * linear + mean * mean * squares).max(0.0);
        let n = self.spells as f64;
        let error = if n > 1.0 {
            1.96 * (scatter * n / (n - 1.0)).sqrt()
        } else {
            self.with_guests // one spell says nothing of its scatter
        };
        let slower = |lost: f64| lost / (self.watched - lost).max(self.watched * 1e-3);
        let half = error + self.doubt.abs();
        Ok(Estimate::new(slower(self.lost), slower(self.lost - half), slower(self.lost + half)))
    }

    /// The length that such a share of the absences does not reach, in nanoseconds: that of the
    /// bucket's end, since no more is known. None where too few were timed to tell.
    pub fn absence(&self, share: f64) -> Option<f64> {
        let all: u64 = self.absences.iter().map(|(_, count)| count).sum();
        if (all as f64) * (1.0 - share) < 5.0 {
            return None;
        }
        let mut below = 0;
        self.absences.iter().find_map(|(length, count)| {
            below += count;
            (below as f64 >= share * all as f64).then_some(*length)
        })
    }

    pub fn absences_timed(&self) -> u64 {
        self.absences.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spells of a millisecond each with these losses.
    fn of(losses: &[f64], alone: f64) -> Paces {
        let mut paces = Paces { watched: alone, ..Paces::default() };
        for loss in losses {
            let t = 1e6;
            paces.watched += t;
            paces.with_guests += t;
            paces.lost += t * loss;
            for (sum, value) in paces.squares.iter_mut().zip([1.0, *loss, loss * loss]) {
                *sum += t * t * value;
            }
            paces.samples += 1;
            paces.spells += 1;
        }
        paces
    }

    #[test]
    fn what_was_lost_makes_slower_what_was_left() {
        let even = of(&[0.2; 10], 0.0).slowdown().unwrap();
        assert!((even.value - 0.25).abs() < 1e-9 && even.hi - even.lo < 1e-6, "{even:?}");
        let half_alone = of(&[0.2; 10], 1e7).slowdown().unwrap();
        assert!((half_alone.value - 2.0 / 18.0).abs() < 1e-9);
        let scattered = of(&[0.0, 0.4, 0.0, 0.4, 0.2, 0.2], 0.0).slowdown().unwrap();
        assert!(scattered.lo < 0.2 && scattered.hi > 0.3, "{scattered:?}");
    }

    #[test]
    fn what_was_not_seen_is_not_told() {
        assert!(of(&[], 0.0).slowdown().is_err());
        assert_eq!(of(&[], 1.0).slowdown(), Ok(Estimate::exact(0.0)));
        let mut rare = of(&[0.1; 3], 0.0);
        rare.bounded = 3;
        assert!(rare.slowdown().is_err());
    }

    #[test]
    fn shares_of_absences_are_told_where_there_are_enough() {
        let paces = Paces { absences: vec![(100.0, 900), (200.0, 90), (400.0, 10)], ..Paces::default() };
        assert_eq!(
            [0.5, 0.95, 0.99, 0.999].map(|share| paces.absence(share)),
            [Some(100.0), Some(200.0), Some(200.0), None]
        );
    }
}

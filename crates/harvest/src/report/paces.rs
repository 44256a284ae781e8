//! Figures from what a run counted: by how much the primary became slower, and how long it was
//! absent.

use crate::launch::Paces;
use std::time::Duration;
use units::Estimate;

impl Paces {
    /// Time with guests.
    pub fn time_with_guests(&self) -> Duration {
        Duration::from_secs_f64((self.with_guests / 1e9).max(0.0))
    }

    /// By how much the primary became slower: what it lost, to what it had left.
    pub fn slowdown(&self) -> Result<Estimate, &'static str> {
        if self.watched <= 0.0 {
            return Err("its pace was not measured");
        }
        let slower = |lost: f64| {
            let lost = lost + self.lent;
            lost / (self.watched - lost).max(self.watched * 1e-3)
        };
        if self.samples == 0 {
            return if self.with_guests <= 0.0 {
                Ok(Estimate::exact(slower(0.0)))
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
        let n = self.phases as f64;
        let error = if n > 1.0 {
            1.96 * (scatter * n / (n - 1.0)).sqrt()
        } else {
            self.with_guests // one phase says nothing of its scatter
        };
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

    /// Phases of a millisecond each with these losses.
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
            paces.phases += 1;
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

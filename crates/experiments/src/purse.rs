//! The time that an experiment may take, shared among what it measures. Pure.
//!
//! A noisy machine voids blocks, and those are taken again; how many, nobody knows before. So each measurement has its part,
//! what one of them leaves another may use, and all of them together may overdraw by a share that is known before.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Purse {
    budget: Duration,
    /// Of the budget, beyond it.
    overdraft: f64,
    /// Seconds that earlier measurements left of their parts; negative where they took more.
    left: f64,
}

impl Purse {
    /// It may be overdrawn by as much again.
    pub(crate) fn of(budget: Duration) -> Self {
        Self { budget, overdraft: 1.0, left: 0.0 }
    }

    /// Lets it be overdrawn by this share of the budget, no more.
    pub(crate) fn overdrawn_by(&mut self, share: f64) {
        self.overdraft = share;
    }

    /// What a measurement with this share of the budget may take: as a rule, and at most where it lacks blocks by then.
    pub(crate) fn part(&self, share: f64) -> (Duration, Duration) {
        let time = self.budget.mul_f64(share);
        let beyond = self.budget.as_secs_f64() * self.overdraft + self.left;
        (time, time + Duration::from_secs_f64(beyond.clamp(0.0, time.as_secs_f64())))
    }

    /// A measurement with this share took so long.
    pub(crate) fn took(&mut self, share: f64, elapsed: Duration) {
        self.left += self.budget.as_secs_f64() * share - elapsed.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(part: (Duration, Duration)) -> (f64, f64) {
        (part.0.as_secs_f64(), part.1.as_secs_f64())
    }

    #[test]
    fn what_one_leaves_another_may_use() {
        let mut purse = Purse::of(Duration::from_secs(10));
        assert_eq!(seconds(purse.part(0.5)), (5.0, 10.0));
        purse.overdrawn_by(0.1);
        assert_eq!(seconds(purse.part(0.5)), (5.0, 6.0));
        purse.took(0.5, Duration::from_secs(3));
        assert_eq!(seconds(purse.part(0.5)), (5.0, 8.0));
    }

    #[test]
    fn all_together_overdraw_by_no_more_than_they_may() {
        for overdraft in [0.0, 0.1, 1.0] {
            let mut purse = Purse::of(Duration::from_secs(8));
            purse.overdrawn_by(overdraft);
            let mut total = 0.0;
            for share in [0.3, 0.3, 0.12, 0.2] {
                let most = purse.part(share).1;
                purse.took(share, most);
                total += most.as_secs_f64();
            }
            assert!(total <= 8.0 * (0.92 + overdraft) + 1e-9, "{total}");
        }
    }
}

//! The time that an experiment may take, shared among its measurements. Pure.
//!
//! A noisy machine voids blocks, and voided blocks are repeated; how many is not known before. So
//! each measurement has a share of the budget, a measurement may use what an earlier one left
//! unspent, and all together may overdraw the budget by a share that is known before.
//!
//! ```text
//! budget 10 s, overdraft 0.1:   measurement with share 0.5 → 5 s, at most 6 s
//!                               an earlier one left 2 s    → 5 s, at most 8 s
//! ```

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBudget {
    budget: Duration,
    /// How much beyond the budget may be spent, as a share of it.
    overdraft: f64,
    /// What earlier measurements left of their shares; negative where they took more.
    unspent_seconds: f64,
}

/// How long one measurement may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allotment {
    /// As a rule.
    pub time: Duration,
    /// At most, where settings lack the least number of blocks by then.
    pub most: Duration,
}

impl TimeBudget {
    /// A budget that may be overdrawn by as much again.
    pub(crate) fn of(budget: Duration) -> Self {
        Self { budget, overdraft: 1.0, unspent_seconds: 0.0 }
    }

    /// Lets the budget be overdrawn by this share of it, no more.
    pub(crate) fn limit_overdraft(&mut self, share: f64) {
        self.overdraft = share;
    }

    /// What a measurement with this share of the budget may take.
    pub(crate) fn allotment(&self, share: f64) -> Allotment {
        let time = self.budget.mul_f64(share);
        let beyond = self.budget.as_secs_f64() * self.overdraft + self.unspent_seconds;
        Allotment { time, most: time + Duration::from_secs_f64(beyond.clamp(0.0, time.as_secs_f64())) }
    }

    /// A measurement with this share took this long.
    pub(crate) fn spend(&mut self, share: f64, elapsed: Duration) {
        self.unspent_seconds += self.budget.as_secs_f64() * share - elapsed.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(allotment: Allotment) -> (f64, f64) {
        (allotment.time.as_secs_f64(), allotment.most.as_secs_f64())
    }

    #[test]
    fn what_one_leaves_another_may_use() {
        let mut budget = TimeBudget::of(Duration::from_secs(10));
        assert_eq!(seconds(budget.allotment(0.5)), (5.0, 10.0));
        budget.limit_overdraft(0.1);
        assert_eq!(seconds(budget.allotment(0.5)), (5.0, 6.0));
        budget.spend(0.5, Duration::from_secs(3));
        assert_eq!(seconds(budget.allotment(0.5)), (5.0, 8.0));
    }

    #[test]
    fn all_together_overdraw_by_no_more_than_they_may() {
        for overdraft in [0.0, 0.1, 1.0] {
            let mut budget = TimeBudget::of(Duration::from_secs(8));
            budget.limit_overdraft(overdraft);
            let mut total = 0.0;
            for share in [0.3, 0.3, 0.12, 0.2] {
                let most = budget.allotment(share).most;
                budget.spend(share, most);
                total += most.as_secs_f64();
            }
            assert!(total <= 8.0 * (0.92 + overdraft) + 1e-9, "{total}");
        }
    }
}

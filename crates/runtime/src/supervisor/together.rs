//! Programs that run together, with no primary: whether a carrier's thread gets more done with its
//! guests than if the kernel shared its processor out among them.
//!
//! What guests' turns are worth, gauges say ([`super::gauges`]). Over the processor time that the
//! carrier's thread took for them that is 1 where nothing is gained or lost. Where it is too
//! little, twice in a row, all go home for a while, which doubles each time: there they take turns
//! ([`super::turns_apart`]).

use crate::layout::area::{Area, kind};
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::gauges;
use crate::supervisor::processes::Processes;
use crate::supervisor::setbacks::Setbacks;
use core::sync::atomic::Ordering::Relaxed;

/// The time between two judgements.
const EVERY_NS: u64 = 40_000_000;
/// Each judgement takes this much processor time at least.
const LEAST_NS: u64 = 20_000_000;
/// Gauges make turns dearer than they are: one is timed with all switches between its misses, which
/// overlap when it runs alone, and in caches that the others have used. Maps told to do 1.45 times
/// the work did 1.07, so less than this is a loss.
const GAIN: f64 = 1.3;
/// Less than this is a loss that shows at once.
const CLEAR_LOSS: f64 = 0.8;

/// What is known of one carrier's thread. Pure: times in, whether its programs run apart out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Together {
    judged_at: u64,
    /// Its processor time when it was judged last.
    ran: u64,
    /// They are apart while it pauses.
    setbacks: Setbacks,
}

impl Together {
    fn is_apart(&self, now: u64) -> bool {
        self.setbacks.pauses(now)
    }

    fn is_due(&self, now: u64, ran: u64) -> bool {
        now.saturating_sub(self.judged_at) >= EVERY_NS && ran.saturating_sub(self.ran) >= LEAST_NS
    }

    /// Since the last judgement turns were worth this; `None`: not all of them have a price. They
    /// get one while they run apart.
    fn judge(&mut self, now: u64, ran: u64, worth_ns: Option<f64>) {
        let took = ran.saturating_sub(self.ran) as f64;
        let first = self.judged_at == 0;
        (self.judged_at, self.ran) = (now, ran);
        if first {
            return;
        }
        match worth_ns {
            Some(worth) if worth >= GAIN * took => self.setbacks.went_well(now),
            Some(worth) if worth < CLEAR_LOSS * took => self.setbacks.begin(now),
            _ => {
                self.setbacks.went_badly(now);
            }
        }
        if self.is_apart(now) {
            self.judged_at = 0;
        }
    }
}

impl Supervisor {
    /// Whether the programs of a carrier's thread run apart for now.
    pub(crate) fn run_apart(&mut self, area: &'static Area, slot: usize) -> bool {
        let Some(it) = self.together.as_ref().map(|all| all[slot]) else { return false };
        if it.is_apart(self.now) {
            // The mean of all its threads.
            let threads = u64::from(self.page.areas.load(Relaxed).max(1));
            page::add(&self.page.apart_ns, self.now.saturating_sub(self.looked_at) / threads);
            self.wake_at = self.wake_at.min(it.setbacks.until);
            self.apart += 1;
            return true;
        }
        let Some(ran) = Processes::cpu_time(area).map(|time| time.ns) else { return false };
        if !it.is_due(self.now, ran) {
            return false;
        }
        let here = core::ptr::from_ref(area).cast_mut();
        let mut worth = Some(0.0);
        for home in self.areas(kind::HOME).filter(|home| home.own().host.load(Relaxed) == here) {
            let its = gauges::price(home.own(), area, self.switch_ticks());
            worth = worth.zip(its).map(|(all, its)| all + its);
        }
        let worth = worth.filter(|_| self.clock.rate > 0.0).map(|ticks| ticks / self.clock.rate);
        if let Some(all) = self.together.as_mut() {
            all[slot].judge(self.now, ran, worth);
            return all[slot].is_apart(self.now);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::setbacks::PAUSE_NS;

    const WINDOW: u64 = EVERY_NS;

    /// Judged in windows of so much worth, from `now` on. Whether they are apart at the end.
    fn judged(it: &mut Together, now: &mut u64, worth: &[f64]) -> bool {
        for share in worth {
            *now += WINDOW;
            let ran = *now;
            assert!(it.is_due(*now, ran));
            it.judge(*now, ran, Some(share * WINDOW as f64));
        }
        it.is_apart(*now)
    }

    #[test]
    fn losses_in_a_row_run_programs_apart_each_time_for_longer() {
        let (mut it, mut now) = (Together::default(), WINDOW);
        assert!(!judged(&mut it, &mut now, &[0.1, 1.4, 1.2, 1.5, 1.2]));
        assert!(judged(&mut it, &mut now, &[0.9]));
        assert_eq!(it.setbacks.until, now + PAUSE_NS);
        now = it.setbacks.until;
        // The first judgement behind it is of a time that was partly apart.
        assert!(judged(&mut it, &mut now, &[0.0, 0.9, 0.9]));
        assert_eq!(it.setbacks.until, now + 2 * PAUSE_NS);
        now = it.setbacks.until;
        assert!(!judged(&mut it, &mut now, &[1.5; 60]));
        assert!(judged(&mut it, &mut now, &[0.5]), "it shows at once");
        assert_eq!(it.setbacks.until, now + PAUSE_NS);
    }

    #[test]
    fn programs_without_a_price_run_apart_and_short_runs_are_not_judged() {
        let (mut it, mut now) = (Together::default(), WINDOW);
        judged(&mut it, &mut now, &[1.0]);
        assert!(!it.is_due(now + 2 * WINDOW, now + LEAST_NS - 1));
        for apart in [false, true] {
            now += WINDOW;
            it.judge(now, now, None);
            assert_eq!(it.is_apart(now), apart);
        }
    }
}

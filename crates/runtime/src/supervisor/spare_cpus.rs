//! Scavengers at home come first where a CPU is idle that they may use: there they run as if alone.
//! Guests come aboard where their threads at home have to share, and one goes home at a time where
//! a CPU has nothing to do. `--stay-aboard` leaves this out.

use crate::layout::area::{Area, kind};
use crate::layout::context::state;
use crate::supervisor::figures::{CPU_IDLE_NS, NEXT_FOR_CPU_NS};
use crate::supervisor::{RoundCensus, Supervisor};
use crate::switching::ring;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use runtime_abi::control::trip;

/// What the supervisor knows of CPUs without a thread of the primary. Pure.
#[derive(Clone, Copy, Default)]
pub(crate) struct SpareCpus {
    /// More threads at home had work in the last round than there are such CPUs.
    are_short: bool,
    /// Since when there is one without work; and when a guest went home for one last.
    idle_since: Option<u64>,
    sent_home_at: u64,
}

impl SpareCpus {
    /// In this round `at_work` threads at home have work, for `cpus`. Returns whether a guest is to
    /// go home.
    fn follow(&mut self, now: u64, cpus: u32, at_work: u32) -> bool {
        self.are_short = at_work > cpus;
        if at_work >= cpus {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert(now);
        let goes = now.saturating_sub(since) >= CPU_IDLE_NS
            && now.saturating_sub(self.sent_home_at) >= NEXT_FOR_CPU_NS;
        if goes {
            (self.idle_since, self.sent_home_at) = (None, now);
        }
        goes
    }
}

impl Supervisor {
    /// Whether a thread at home, which starves there or not, has a CPU of its own.
    pub(crate) fn has_cpu_at_home(&self, starves: bool) -> bool {
        self.page.stay_aboard == 0
            && self.processes.has_cpus_to_spare()
            && !starves
            && !self.spare_cpus.are_short
    }

    /// Sends a guest home for a CPU that is idle.
    pub(crate) fn follow_spare_cpus(&mut self, census: &RoundCensus) {
        let cpus = self.processes.spare_cpus().count();
        if self.page.stay_aboard != 0 || !self.spare_cpus.follow(self.now, cpus, census.at_work) {
            return;
        }
        let aboard = |home: &&Area| {
            home.own().state.load(Acquire) == state::ABOARD && home.own().recall.load(Relaxed) == 0
        };
        // The one that was aboard for the longest time.
        let longest = self.areas(kind::HOME).filter(aboard).min_by_key(|home| home.own().since.load(Relaxed));
        if let Some(home) = longest {
            home.own().recall.store(trip::FREE as u32, Relaxed);
            // SAFETY: areas are never unmapped.
            if let Some(host) = unsafe { home.own().host.load(Relaxed).as_ref() } {
                ring::hook(host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guest_at_a_time_goes_home_for_an_idle_cpu() {
        let mut it = SpareCpus::default();
        let from = 5_000_000_000;
        let mut live = |cpus, at_work, from: u64, ms: u64| {
            (0..ms).filter(|ms| it.follow(from + ms * 1_000_000, cpus, at_work)).count()
        };
        assert_eq!(live(2, 2, from, 3000), 0, "all have work");
        assert_eq!(live(2, 1, from + 3_000_000_000, 19), 0, "not for long");
        assert_eq!(live(2, 1, from + 3_019_000_000, 2500), 3);
        assert!(!it.are_short);
        it.follow(from + 9_000_000_000, 2, 3);
        assert!(it.are_short);
        assert!(!it.follow(from + 9_000_000_000, 0, 0), "there is none");
    }
}

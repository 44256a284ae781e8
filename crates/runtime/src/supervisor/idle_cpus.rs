//! Idle processors: whether a guest would get on faster on one than it does aboard.
//!
//! Aboard a primary that seldom yields, or sleeps, or hardly waits for memory, a guest may do
//! nothing for as long as it is there, while a processor that its own thread may use is idle. What
//! its turns aboard are worth, gauges say ([`super::gauges`]). Where that is less than a good part
//! of what the idle processor offers, twice in a row, it goes home and is not boarded for a while,
//! which doubles each time; less if others need that processor before.

use crate::layout::area::Area;
use crate::supervisor::Supervisor;
use crate::supervisor::gauges;
use crate::supervisor::setbacks::Setbacks;
use crate::switching::ring;
use crate::sys::cpus::Cpus;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::trip;

/// A judgement is of this much time aboard.
const WINDOW_NS: u64 = 20_000_000;
/// Aboard is good enough where a guest gets on at this share of the pace that it would have there:
/// it leaves the processor to others.
const GOOD_ENOUGH: f64 = 0.75;
/// How many processors are idle is a mean of the last moments.
const MEAN_OF_NS: f64 = 100_000_000.0;
/// A part of a processor below which none is idle,
const LEAST_IDLE: f64 = 0.25;
/// and by how much homes must want more than there is before one gives way.
const WANTED: f64 = 0.5;

/// How many processors without a thread of the primary have no work, in the mean of the last
/// moments; below zero: there is more work at home than processors.
#[derive(Clone, Copy, Default)]
pub(crate) struct IdleCpus(f64);

impl IdleCpus {
    /// For the last `passed` nanoseconds there were this many, and homes with work.
    pub(crate) fn follow(&mut self, passed: u64, spare: u32, homes_with_work: u32) {
        let now = f64::from(spare) - f64::from(homes_with_work);
        self.0 += (passed as f64 / MEAN_OF_NS).min(1.0) * (now - self.0);
    }

    /// The part of one that a further thread would get.
    fn offer(self) -> Option<f64> {
        Some(self.0.min(1.0)).filter(|part| *part >= LEAST_IDLE)
    }

    fn are_wanted(self) -> bool {
        self.0 < -WANTED
    }
}

/// What is known of one guest. Pure: times in, whether it is to stay at home out.
#[derive(Clone, Copy, Default)]
pub(crate) struct StayAtHome {
    /// The thread that this is about.
    tid: i32,
    /// How long it was aboard since it was judged last.
    aboard_ns: u64,
    /// It stays at home while it pauses.
    setbacks: Setbacks,
    /// Nothing is judged before: it went home for a processor that others had.
    misled_until: u64,
}

impl StayAtHome {
    fn stays(&self, now: u64) -> bool {
        self.setbacks.pauses(now)
    }

    /// At home it has work and hardly gets a processor.
    fn starves(&mut self, now: u64) {
        if self.stays(now) {
            (self.setbacks.until, self.misled_until) = (0, now + self.setbacks.pause_ns);
        }
    }

    /// Its time aboard was worth this much alone, where an idle processor offered so much of
    /// itself.
    fn judge(&mut self, now: u64, worth_ns: f64, offer: Option<f64>) {
        let aboard = core::mem::take(&mut self.aboard_ns) as f64;
        if now < self.misled_until {
            return;
        }
        if offer.is_none_or(|offer| worth_ns >= GOOD_ENOUGH * offer * aboard) {
            self.setbacks.went_well(now);
        } else {
            self.setbacks.went_badly(now);
        }
    }
}

impl Supervisor {
    /// Whether a home's thread stays on a processor that would be idle without it.
    pub(crate) fn stays_at_home(&mut self, slot: usize, home: &Area) -> bool {
        let wanted = self.idle_cpus.are_wanted();
        let Some(all) = self.stays.as_mut() else { return false };
        if home.supervisor.starves.load(Relaxed) != 0 {
            all[slot].starves(self.now);
        }
        if wanted {
            all[slot].setbacks.until = 0;
        }
        all[slot].stays(self.now)
    }

    /// A guest is aboard: sends it home if it would get on faster there.
    pub(crate) fn compare_with_idle_cpus(&mut self, slot: usize, home: &'static Area, host: &Area) {
        // Turns in busy-waits are not counted, and a carrier's guests are judged together.
        let counts = self.page.carrier == 0
            && self.clock.rate > 0.0
            && !self.busy_waiting.holds(host.supervisor.cpu.load(Relaxed));
        let (passed, switch) = (self.now.saturating_sub(self.looked_at), self.switch_ticks());
        let Some(stays) = self.stays.as_mut().filter(|_| counts) else { return };
        let its = &mut stays[slot];
        let tid = home.tid.load(Relaxed);
        if its.tid != tid {
            *its = StayAtHome { tid, ..StayAtHome::default() };
            home.gauge_notes().take_worth(0.0);
        }
        its.aboard_ns += passed;
        if its.aboard_ns < WINDOW_NS || home.own().recall.load(Relaxed) != 0 {
            return;
        }
        gauges::price(home.own(), host, switch);
        // As long as no turn was timed, each may be as long as it may be.
        let longest = self.page.max_absence_ns as f64 * self.clock.rate;
        let worth_ns = home.gauge_notes().take_worth(longest) / self.clock.rate;
        let may_use = self.may_use.as_ref().map_or(&Cpus::NONE, |all| &all[slot]);
        let offer = self.idle_cpus.offer().filter(|_| self.processes.spare_cpus().meets(may_use));
        its.judge(self.now, worth_ns, offer);
        if its.stays(self.now) {
            home.own().recall.store(trip::FREE as u32, Relaxed);
            ring::hook(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::setbacks::PAUSE_NS;

    fn judged(it: &mut StayAtHome, now: &mut u64, shares: &[f64], offer: Option<f64>) -> bool {
        for share in shares {
            *now += WINDOW_NS;
            it.aboard_ns = WINDOW_NS;
            it.judge(*now, share * WINDOW_NS as f64, offer);
        }
        it.stays(*now)
    }

    #[test]
    fn who_gets_on_badly_twice_in_a_row_stays_at_home_longer_each_time() {
        let (mut it, mut now) = (StayAtHome::default(), 0);
        assert!(!judged(&mut it, &mut now, &[0.1, 0.9, 0.1], Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.1], Some(1.0)));
        assert_eq!(it.setbacks.until, now + PAUSE_NS);
        now = it.setbacks.until;
        assert!(judged(&mut it, &mut now, &[0.1, 0.1], Some(1.0)));
        assert_eq!(it.setbacks.until, now + 2 * PAUSE_NS);
        now = it.setbacks.until;
        let long = vec![0.9; (3 * PAUSE_NS / WINDOW_NS) as usize];
        assert!(!judged(&mut it, &mut now, &long, Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.0, 0.0], Some(1.0)));
        assert_eq!(it.setbacks.until, now + PAUSE_NS);
    }

    #[test]
    fn a_part_of_a_processor_is_held_against_a_part_of_the_pace() {
        let (mut it, mut now) = (StayAtHome::default(), 0);
        assert!(!judged(&mut it, &mut now, &[0.3; 9], Some(0.3)));
        assert!(!judged(&mut it, &mut now, &[0.0; 9], None));
        assert!(judged(&mut it, &mut now, &[0.3; 2], Some(0.5)));
    }

    #[test]
    fn who_starves_at_home_is_not_sent_there_again_for_as_long() {
        let (mut it, mut now) = (StayAtHome::default(), 0);
        assert!(judged(&mut it, &mut now, &[0.1, 0.1], Some(1.0)));
        it.starves(now);
        assert!(!it.stays(now));
        let short = vec![0.1; (PAUSE_NS / WINDOW_NS) as usize - 1];
        assert!(!judged(&mut it, &mut now, &short, Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.1, 0.1], Some(1.0)));
        assert_eq!(it.setbacks.until - now, 2 * PAUSE_NS, "longer, as ever");
    }

    #[test]
    fn what_is_idle_is_what_the_last_moments_were() {
        let mut idle = IdleCpus::default();
        let mut follow = |times: usize, spare, work| {
            (0..times).for_each(|_| idle.follow(10_000_000, spare, work));
            (idle.offer().is_some(), idle.are_wanted())
        };
        assert_eq!(follow(1, 1, 0), (false, false));
        assert_eq!(follow(40, 1, 0), (true, false));
        assert_eq!(follow(40, 1, 1), (false, false));
        assert_eq!(follow(40, 1, 3), (false, true));
    }
}

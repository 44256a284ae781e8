//! Idle processors: whether a guest would get on faster on one than it does aboard.
//!
//! Aboard a primary that seldom yields, or sleeps, or hardly waits for memory, a guest may do
//! nothing for as long as it is there, while a processor that its own thread may use is idle: all
//! the time, or, where it is the primary's own, whenever that sleeps, as a server does between two
//! requests. What its turns aboard are worth, gauges say ([`super::gauges`]). Where that is less
//! than a good part of what the idle processor offers, twice in a row, it goes home and is not
//! boarded for a while, which doubles each time; less if others need that processor before, or have
//! it. Beside a server once is enough after the first time: a trial makes it fall behind.

use crate::counting::count::GUESTS;
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
/// A turn takes this many ticks for each cycle of its quantum at most.
const SLOWEST: f64 = 3.0;
/// How many processors are idle is a mean of this time.
const MEAN_OF_NS: f64 = 40_000_000.0;
/// How much of its own a server leaves idle is a mean of a longer time: when it is behind with its
/// answers it has no idle time, and would have less with a guest aboard.
const MEAN_OF_GAPS_NS: f64 = 400_000_000.0;
/// With guests aboard it is not seen how much that would be without them, only estimated.
const MEAN_OF_GUESSED_GAPS_NS: f64 = 4_000_000_000.0;
/// Below this part of a processor, none is idle.
const LEAST_IDLE: f64 = 0.25;
/// The same of one where a thread of the primary is, which it leaves idle whenever it sleeps.
const LEAST_GAP: f64 = 0.05;
/// By this much homes must want more than is idle before one gives way.
const WANTED: f64 = 0.5;
/// It stays at home for this long at first: each trial aboard takes what a server answers later, as
/// long as nobody knows how much that is.
const STAYS_NS: u64 = 4_000_000_000;
/// At home it starves where it gets less than this part of what it was offered, for this time
/// beside a server, which may be behind with its answers.
const HARDLY: f64 = 0.1;
const HARDLY_NS: u64 = 500_000_000;
/// Then it is not sent home for this long.
const MISLED_NS: u64 = 1_000_000_000;

/// A thread that sleeps for more of its time is none of a server that is awake now and then.
const ONLY_SLEEPS: f64 = 0.98;

/// Homes in a round.
#[derive(Clone, Copy)]
pub(crate) struct Homes {
    pub(crate) with_work: u32,
    /// Some are guests now.
    pub(crate) aboard: bool,
}

/// What the primary's threads do in a round.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnUse {
    /// How many processors they use, those that are awake.
    busy: f64,
    /// One of them sleeps and wakes up often.
    serves: bool,
}

/// The primary's own processors in a round.
#[derive(Clone, Copy)]
pub(crate) struct OwnCpus {
    many: u32,
    /// The part of them that it leaves idle.
    gap: f64,
    /// It sleeps and wakes up often, or would without guests.
    serves: bool,
}

/// How many processors have no work, in the mean of the last moments.
#[derive(Clone, Copy, Default)]
pub(crate) struct IdleCpus {
    /// Those without a thread of the primary, without homes that have work; below zero: there is
    /// more work at home than processors.
    spare: f64,
    /// The same with those of the primary.
    any: f64,
    /// The part of the primary's that it leaves idle.
    gap: f64,
}

impl IdleCpus {
    /// For the last `passed` nanoseconds there were this many processors without a thread of the
    /// primary, those with one, and such homes.
    pub(crate) fn follow(&mut self, passed: u64, spare: u32, its: OwnCpus, homes: Homes) {
        let mean = |is: &mut f64, now: f64, of: f64| *is += (passed as f64 / of).min(1.0) * (now - *is);
        let of = match its.serves {
            true if homes.aboard => MEAN_OF_GUESSED_GAPS_NS,
            true => MEAN_OF_GAPS_NS,
            false => MEAN_OF_NS,
        };
        mean(&mut self.gap, its.gap, of);
        let now = f64::from(spare) - f64::from(homes.with_work);
        mean(&mut self.spare, now, MEAN_OF_NS);
        mean(&mut self.any, now + f64::from(its.many), MEAN_OF_NS);
    }

    /// The part of one that a further thread would get, which may use those without a thread of the
    /// primary or not.
    fn offer(self, may_use_spare: bool) -> Option<f64> {
        let spare = Some(self.spare.min(1.0)).filter(|part| may_use_spare && *part >= LEAST_IDLE);
        spare.or(Some(self.any.min(1.0) * self.gap).filter(|part| *part >= LEAST_GAP))
    }

    fn are_wanted(self) -> bool {
        self.any < -WANTED
    }
}

/// What is known of one guest. Pure: times in, whether it is to stay at home out.
#[derive(Clone, Copy, Default)]
pub(crate) struct StayAtHome {
    /// The thread that this is about.
    tid: i32,
    /// How long it was aboard since it was judged last.
    aboard_ns: u64,
    /// And what it and others took of its host's time meanwhile.
    taken_ns: f64,
    /// It stays at home while it pauses.
    setbacks: Setbacks<STAYS_NS>,
    /// Nothing is judged before: it went home for a processor that others had.
    misled_until: u64,
    /// It went home for this part of a processor at least.
    least: f64,
    /// That processor is one that the primary is on.
    in_gaps: bool,
    /// When it was seen last; for how long it had work of the time that it stays, since that is
    /// counted, and its CPU time when that began.
    seen_at: u64,
    had_work_ns: u64,
    ran: u64,
}

impl StayAtHome {
    fn stays(&self, now: u64) -> bool {
        self.setbacks.pauses(now)
    }

    /// It is at home, and has work or not, and had this much CPU time.
    fn is_at_home(&mut self, now: u64, has_work: bool, ran: u64) {
        let passed = now.saturating_sub(core::mem::replace(&mut self.seen_at, now));
        if !self.stays(now) {
            (self.had_work_ns, self.ran) = (0, ran);
        } else if has_work {
            self.had_work_ns += passed;
        }
        if self.had_work_ns >= if self.in_gaps { HARDLY_NS } else { WINDOW_NS } {
            if (ran.saturating_sub(self.ran) as f64) < self.least * self.had_work_ns as f64 {
                (self.setbacks.until, self.misled_until) = (now, now + MISLED_NS);
            }
            (self.had_work_ns, self.ran) = (0, ran);
        }
    }

    /// Its time aboard was worth this much alone, where an idle processor offered so much of
    /// itself.
    fn judge(&mut self, now: u64, worth_ns: f64, offer: Option<f64>) {
        let aboard = core::mem::take(&mut self.aboard_ns) as f64;
        self.least = HARDLY * offer.unwrap_or(0.0);
        if now < self.misled_until {
            return;
        }
        if offer.is_none_or(|offer| worth_ns >= GOOD_ENOUGH * offer * aboard) {
            self.setbacks.went_well(now);
        } else if self.in_gaps && self.setbacks.pause_ns > 0 {
            self.setbacks.begin(now);
        } else {
            self.setbacks.went_badly(now);
        }
    }
}

impl Supervisor {
    /// The share of its time for which a thread of the primary is awake, and the part of that which
    /// its guests take if it sleeps often: without them it would sleep for as much longer.
    fn awake_share(&self, area: &Area) -> (f64, f64) {
        let slot = self.region.slot_of(area);
        let Some(pattern) = self.sleep_patterns.as_ref().map(|all| &all[slot]) else { return (1.0, 0.0) };
        let with = area.counting.obeyed() & GUESTS != 0 && area.supervisor.guests.load(Relaxed) > 0;
        let takes = with && pattern.would_sleep(self.now);
        let lost = self.paces.as_ref().filter(|_| takes).map_or(0.0, |all| all[slot].controller.last());
        (1.0 - pattern.sleep_share(), lost.min(1.0))
    }

    /// A thread of the primary, which sleeps now or not: takes note of what it uses of a processor.
    pub(crate) fn uses_cpu(&mut self, area: &Area, asleep: bool) {
        if !asleep {
            let (awake, lost) = self.awake_share(area);
            self.its_use.busy += awake * (1.0 - lost);
        }
        let Some(pattern) = self.sleep_patterns.as_ref().map(|all| &all[self.region.slot_of(area)]) else {
            return;
        };
        self.its_use.serves |= pattern.would_sleep(self.now) && pattern.sleep_share() < ONLY_SLEEPS;
    }

    /// Whether a home finds a processor that is idle now and then.
    pub(crate) fn has_cpu_for_home(&self) -> bool {
        let gap = || self.stays.is_some() && self.idle_cpus.offer(false).is_some();
        self.processes.has_cpus_to_spare() || gap()
    }

    /// Follows which processors have no work.
    pub(crate) fn follow_idle_cpus(&mut self, homes: Homes) {
        let passed = self.now.saturating_sub(self.looked_at);
        let spare = self.processes.spare_cpus();
        let many = self.processes.allowed().without(spare).count();
        let gap = (1.0 - self.its_use.busy / f64::from(many.max(1))).clamp(0.0, 1.0);
        self.idle_cpus.follow(
            passed,
            spare.count(),
            OwnCpus { many, gap, serves: self.its_use.serves },
            homes,
        );
    }

    /// Whether a home's thread, which has work or not, stays on a processor that would be idle
    /// without it.
    pub(crate) fn stays_at_home(&mut self, slot: usize, home: &Area, has_work: bool) -> bool {
        let wanted = self.idle_cpus.are_wanted();
        let Some(all) = self.stays.as_mut() else { return false };
        all[slot].is_at_home(self.now, has_work, home.supervisor.home_ran.load(Relaxed));
        if wanted {
            all[slot].setbacks.until = self.now.min(all[slot].setbacks.until);
        }
        all[slot].stays(self.now)
    }

    /// A guest is aboard: sends it home if it would get on faster there.
    pub(crate) fn compare_with_idle_cpus(&mut self, slot: usize, home: &'static Area, host: &Area) {
        // Turns in busy-waits are not counted.
        let counts = self.clock.rate > 0.0 && !self.busy_waiting.holds(host.supervisor.cpu.load(Relaxed));
        let passed = self.now.saturating_sub(self.looked_at);
        let (awake, lost) = self.awake_share(host);
        let Some(stays) = self.stays.as_mut().filter(|_| counts) else { return };
        let its = &mut stays[slot];
        let tid = home.tid.load(Relaxed);
        if its.tid != tid {
            *its = StayAtHome { tid, ..StayAtHome::default() };
            home.gauge_notes().take_worth(0.0);
        }
        its.seen_at = self.now;
        its.aboard_ns += passed;
        its.taken_ns += lost * awake * passed as f64;
        if its.aboard_ns < WINDOW_NS || home.own().recall.load(Relaxed) != 0 {
            return;
        }
        gauges::price(home.own(), host);
        // As long as no turn was timed, each may be as long as estimates of cycles are wrong.
        let longest = f64::from(home.own().quantum().load(Relaxed)) * SLOWEST;
        let longest = longest.min(self.page.max_absence_ns as f64 * self.clock.rate);
        let worth_ns = home.gauge_notes().take_worth(longest) / self.clock.rate;
        let may_use = self.may_use.as_ref().map_or(&Cpus::NONE, |all| &all[slot]);
        let may_use_spare = self.processes.spare_cpus().meets(may_use);
        let offer = self.idle_cpus.offer(may_use_spare);
        // It got on only while its host did. What its host sleeps for costs nobody anything, so
        // what it took from its host is no gain over that.
        let taken_ns = core::mem::take(&mut its.taken_ns);
        let worth_ns =
            worth_ns.min(awake * its.aboard_ns as f64) - if may_use_spare { 0.0 } else { taken_ns };
        its.in_gaps = !may_use_spare;
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

    fn its(gap: f64, serves: bool) -> OwnCpus {
        OwnCpus { many: 1, gap, serves }
    }

    fn at_work(with_work: u32) -> Homes {
        Homes { with_work, aboard: false }
    }

    fn judged(it: &mut StayAtHome, now: &mut u64, shares: &[f64], offer: Option<f64>) -> bool {
        for share in shares {
            *now += WINDOW_NS;
            it.aboard_ns = WINDOW_NS;
            it.judge(*now, share * WINDOW_NS as f64, offer);
        }
        it.stays(*now)
    }

    #[test]
    fn failures_in_a_row_stay_at_home_longer_each_time() {
        let (mut it, mut now) = (StayAtHome { in_gaps: true, ..StayAtHome::default() }, 0);
        assert!(!judged(&mut it, &mut now, &[0.1, 0.9, 0.1], Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.1], Some(1.0)));
        assert_eq!(it.setbacks.until, now + STAYS_NS);
        now = it.setbacks.until;
        assert!(judged(&mut it, &mut now, &[0.1], Some(1.0)));
        assert_eq!(it.setbacks.until, now + 2 * STAYS_NS);
        now = it.setbacks.until;
        let long = vec![0.9; (3 * STAYS_NS / WINDOW_NS) as usize];
        assert!(!judged(&mut it, &mut now, &long, Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.0, 0.0], Some(1.0)));
        assert_eq!(it.setbacks.until, now + STAYS_NS);
    }

    #[test]
    fn a_part_of_a_processor_is_held_against_a_part_of_the_pace() {
        let (mut it, mut now) = (StayAtHome { in_gaps: true, ..StayAtHome::default() }, 0);
        assert!(!judged(&mut it, &mut now, &[0.3; 9], Some(0.3)));
        assert!(!judged(&mut it, &mut now, &[0.0; 9], None));
        assert!(judged(&mut it, &mut now, &[0.3; 2], Some(0.5)));
    }

    #[test]
    fn guests_that_starve_at_home_are_not_sent_there_again_as_soon() {
        let (mut it, mut now) = (StayAtHome { in_gaps: true, ..StayAtHome::default() }, 0);
        assert!(judged(&mut it, &mut now, &[0.1, 0.1], Some(0.4)));
        (it.seen_at, it.ran) = (now, 7);
        let mut ran = 7;
        for (share, stays) in [(0.05, true), (0.03, false)] {
            // It waits for input now and then.
            for has_work in [false, true, false, true] {
                now += HARDLY_NS / 2;
                ran += u64::from(has_work) * (share * HARDLY_NS as f64 / 2.0) as u64;
                it.is_at_home(now, has_work, ran);
            }
            assert_eq!(it.stays(now), stays);
        }
        let short = vec![0.1; (MISLED_NS / WINDOW_NS) as usize - 1];
        assert!(!judged(&mut it, &mut now, &short, Some(1.0)));
        assert!(judged(&mut it, &mut now, &[0.1], Some(1.0)));
        assert_eq!(it.setbacks.until - now, 2 * STAYS_NS, "longer, as ever");
    }

    #[test]
    fn what_is_idle_is_what_the_last_moments_were() {
        let mut idle = IdleCpus::default();
        let mut follow = |times: usize, spare, work| {
            (0..times).for_each(|_| idle.follow(5_000_000, spare, its(0.01, false), at_work(work)));
            (idle.offer(true).is_some(), idle.are_wanted())
        };
        assert_eq!(follow(1, 1, 0), (false, false));
        assert_eq!(follow(40, 1, 0), (true, false));
        assert_eq!(follow(40, 1, 1), (false, false));
        assert_eq!(follow(40, 1, 3), (false, true));
    }

    #[test]
    fn a_primary_that_begins_to_compute_soon_offers_no_idle_cpu() {
        let mut idle = IdleCpus::default();
        let guests = Homes { aboard: true, ..at_work(0) };
        (0..40).for_each(|_| idle.follow(10_000_000, 0, its(1.0, false), guests));
        assert!(idle.offer(false).is_some());
        (0..20).for_each(|_| idle.follow(10_000_000, 0, its(0.0, false), guests));
        assert!(idle.offer(false).is_none());
    }

    #[test]
    fn what_a_primary_that_sleeps_leaves_of_its_processor_is_for_one_home() {
        let follow = |work| {
            let mut idle = IdleCpus::default();
            (0..400).for_each(|_| idle.follow(10_000_000, 0, its(0.6, true), at_work(work)));
            // What it is thought to leave with guests aboard takes longer to count.
            let guests = Homes { aboard: true, ..at_work(work) };
            (0..10).for_each(|_| idle.follow(10_000_000, 0, its(0.0, true), guests));
            (idle.offer(true).map(|part| (part * 10.0).round()), idle.are_wanted())
        };
        assert_eq!([0, 1, 2].map(follow), [(Some(6.0), false), (None, false), (None, true)]);
    }
}

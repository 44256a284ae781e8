//! The pace of each of the primary's threads: with guests and without in turns, compared, and what
//! follows for its guests.
//!
//! ```text
//!            credit               a sample                   every 5 ms
//!   Solo ------------> SoloSample ---------> GuestSample <----------------> Guests
//!    ^  ^                  | now and then         |                           |
//!    |  |                  v                      | no credit                 | 64 ms
//!    |  +--- RecoverySample <--> Recovery         |                           |
//!    +--------------------------------------------+---------------------------+
//! ```
//!
//! A guest phase begins with a sample without guests, and has a sample with guests every few
//! milliseconds; [`super::contract`] says what follows. Between two guest phases guests are aside
//! for a moment, so that caches are the primary's again when its solo pace is sampled. The thread
//! counts by itself ([`crate::counting::count`]); here is what is made of its samples. Pace is
//! ticks for a number of yields, and nothing else is compared, so a primary that does other work
//! when it has guests would mislead it.
//!
//! Of samples two means are taken: of all, and of the lower three quarters. Idle times, in which a
//! program waits without sleeping, hide in the first what it loses while it works; rare losses are
//! missing in the second. Where there may be such times the worse of both counts, else the first:
//! solo samples have a longer tail than those with guests, and the second mean would take that for
//! a loss.

mod guest_sample;

use super::cache_recovery::CacheRecovery;
use super::contract::Contract;
use super::samples::{self, PaceMean};
use super::solo_pace::SoloPace;
use crate::counting::count::{ALONE, COUNTING, GUESTS, row};
use crate::layout::area::{Area, closed};
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::figures::{
    CACHES_SETTLE_NS, CACHES_SHORT_NS, GIVE_UP_NS, GUEST_PHASE_NS, GUEST_SAMPLE_EVERY_NS, POLL_SAMPLE_NS,
    POLL_SAMPLE_SHARED_CPU_NS, POLL_THREAD_NS, RECOVERY_STEP_NS, UNBOUNDED_PHASES_FACTOR, WAIT_ABOARD_NS,
    WAIT_ABOARD_SHARED_CPU_NS,
};
use crate::switching::{loan_words, ring};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use runtime_abi::control::{AreaRow, Control};

#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Guests wait.
    Solo = 0,
    /// Guests wait, and its solo pace is sampled.
    SoloSample,
    /// With guests, and sampled.
    GuestSample,
    /// With guests.
    Guests,
    /// Guests wait until its caches have come back.
    Recovery,
    /// Guests wait, and how far its caches have come back is sampled.
    RecoverySample,
}

/// The pace of one thread, and what follows from it. Zero is one that has not begun.
pub(crate) struct ThreadPace {
    tid: i32,
    /// Ticks in a nanosecond, as the area's times were computed with.
    rate: f64,
    pub(crate) phase: Phase,
    pub(crate) contract: Contract,
    until: u64,
    seen_at: u64,
    ordered_at: u64,
    phase_began: u64,
    /// Nanoseconds with guests that are not charged yet.
    pub(crate) uncharged: f64,
    /// Of this guest phase, as far as it was sampled: nanoseconds, and the part of them that was
    /// lost.
    phase_ns: f64,
    phase_lost_ns: f64,
    pub(crate) solo: SoloPace,
    pub(crate) recovery: CacheRecovery,
    /// Nanoseconds from now on for which its caches have not come back.
    caches_short_ns: f64,
    /// Counts samples with guests, so that each guest's stays are timed in turn.
    pub(crate) turn: u32,
    /// How often single sites had been switched when its pace was last sampled.
    switched: u32,
    /// Nanoseconds that it had lent to homes, as far as they are charged.
    lent: u64,
    /// And how often.
    loans: u32,
}

impl Supervisor {
    /// Samples the pace of an area's thread, and says how many guests it may have.
    pub(crate) fn pace(&mut self, area: &'static Area, slot: usize, shown: Option<&AreaRow>) -> u32 {
        if area.closed.load(Acquire) & (closed::CANCELLED | closed::CANCELLABLE) != 0 {
            // Nothing is ordered any more; it comes to the control context once more, to be rid of
            // its guests.
            self.switches.wanted |= area.supervisor.guests.load(Relaxed) > 0 || ring::is_hooked(area);
            return 0;
        }
        let (ring, round_ns) = (self.page.ring.load(Relaxed), self.round_cost_ns());
        let (true, Some(paces)) = (self.page.watched != 0, self.paces.as_mut()) else {
            self.switches.wanted = true;
            area.loans().allowance.store(i64::MAX / 2, Relaxed);
            return ring;
        };
        if self.clock.rate <= 0.0 {
            return 0;
        }
        let pace = &mut paces[slot];
        let tid = area.tid.load(Relaxed);
        if pace.tid != tid {
            pace.begin(area, tid, self.page, self.now, ring);
        }
        if pace.rate.to_bits() != self.clock.rate.to_bits() {
            // Rarely, since the thread uses the same cache lines.
            pace.rate = self.clock.rate;
            area.orders.set_limits(self.page, pace.rate);
        }
        pace.contract.limit(ring);
        let spare = self.processes.has_cpus_to_spare();
        let switched = self.switches.changes;
        let step = SampleStep {
            spare,
            round_ns: if spare { 0.0 } else { round_ns },
            page: self.page,
            now: self.now,
            rate: self.clock.rate,
            area,
            switched,
        };
        let most = step.go(pace, self.region);
        // Where homes have a processor, their trips cost the primary nothing.
        let lends = !spare || !self.starving.is_empty();
        let spared = if lends { pace.contract.spared(area.supervisor.guests()) } else { 0.0 };
        area.loans().allowance.store(spared as i64, Relaxed);
        let waits = area.counting.obeyed() != area.orders.order.load(Relaxed)
            && area.supervisor.slept.load(Relaxed) == 0;
        self.waited_for |= waits && self.now.saturating_sub(pace.ordered_at) > GIVE_UP_NS;
        area.orders.most.store(most, Relaxed);
        self.switches.wanted |= pace.meets_guests(area);
        self.wake_at = self.wake_at.min(pace.poll_at(self.now, spare, area.supervisor.guests.load(Relaxed)));
        if let Some(row) = shown {
            row.ring.store(most, Relaxed);
            let with = area.counting.obeyed() & GUESTS != 0;
            row.aboard.store(u32::from(with), Relaxed);
        }
        most
    }

    /// What the last round took of the time of each of the primary's threads, where all are on one
    /// processor.
    fn round_cost_ns(&self) -> f64 {
        let threads = self.page.areas.load(Relaxed).max(1);
        (self.round_ns + loan_words::BESIDES_NS / 2) as f64 / f64::from(threads)
    }
}

/// One round's step in sampling one area's thread.
pub(crate) struct SampleStep {
    /// There is a CPU where no thread of the primary is.
    spare: bool,
    /// What the supervisor's last round took of the thread's CPU time.
    round_ns: f64,
    pub(crate) page: &'static Control,
    pub(crate) now: u64,
    pub(crate) rate: f64,
    pub(crate) area: &'static Area,
    /// How often single sites were switched.
    switched: u32,
}

impl ThreadPace {
    fn begin(&mut self, area: &Area, tid: i32, page: &Control, now: u64, ring: u32) {
        let contract = Contract::new(f64::from(page.max_slowdown) / 1e6, ring);
        *self = Self {
            tid,
            rate: 0.0,
            phase: Phase::Solo,
            contract,
            until: now,
            seen_at: now,
            ordered_at: now,
            phase_began: now,
            uncharged: 0.0,
            phase_ns: 0.0,
            phase_lost_ns: 0.0,
            solo: SoloPace::default(),
            recovery: CacheRecovery::begin_anew(now, contract.allows_all()),
            caches_short_ns: 0.0,
            turn: 0,
            switched: 0,
            lent: area.loans().lent.load(Relaxed),
            loans: area.loans().times.load(Relaxed),
        };
        area.orders.most.store(0, Relaxed);
    }

    /// Whether its yields shall be on: it may meet guests there, or is counted there. While guests
    /// wait for credit, or until its caches have come back, a yield without guests would only cost
    /// it what it runs ahead of its misses.
    fn meets_guests(&self, area: &Area) -> bool {
        let waits = match self.phase {
            Phase::Solo => !self.contract.allows(),
            Phase::Recovery => true,
            _ => false,
        };
        let waits = waits && !ring::is_hooked(area);
        !waits && area.supervisor.slept.load(Relaxed) == 0
    }

    /// When to poll next.
    fn poll_at(&self, now: u64, others: bool, guests: u32) -> u64 {
        let soon = if others { POLL_SAMPLE_NS } else { POLL_SAMPLE_SHARED_CPU_NS };
        match self.phase {
            // A guest that boards is seen in the same round.
            Phase::Solo if guests == 0 => u64::MAX,
            Phase::SoloSample | Phase::GuestSample | Phase::RecoverySample => now + soon,
            Phase::Solo => self.until.max(now + POLL_THREAD_NS),
            Phase::Guests | Phase::Recovery => self.until,
        }
    }
}

impl SampleStep {
    fn go(&self, pace: &mut ThreadPace, region: &'static crate::layout::region::Region) -> u32 {
        self.follow(pace, region);
        match pace.phase {
            Phase::Solo if self.now < pace.until + self.patience() || pace.contract.allows() => {
                pace.contract.ring
            }
            Phase::Solo => 0,
            _ => pace.contract.ring,
        }
    }

    /// For how long guests wait aboard for credit.
    fn patience(&self) -> u64 {
        if self.spare { WAIT_ABOARD_NS } else { WAIT_ABOARD_SHARED_CPU_NS }
    }

    /// Nanoseconds that the thread lent to homes since this was asked last.
    fn lent(&self, pace: &mut ThreadPace) -> u64 {
        let all = self.area.loans().lent.load(Relaxed);
        all.saturating_sub(core::mem::replace(&mut pace.lent, all))
    }

    /// From phase to phase.
    fn follow(&self, pace: &mut ThreadPace, region: &'static crate::layout::region::Region) {
        let area = self.area;
        let lent = self.lent(pace) as f64;
        let gone = (self.now.saturating_sub(pace.seen_at) as f64 - lent).max(0.0);
        pace.seen_at = self.now;
        let times = area.loans().times.load(Relaxed);
        let besides = f64::from(times.wrapping_sub(core::mem::replace(&mut pace.loans, times)));
        let besides = besides * loan_words::BESIDES_NS as f64;
        pace.contract.charge(lent + besides + self.round_ns, 1.0);
        page::add_number(&self.page.slowdown.lent, lent);
        page::add_number(&self.page.slowdown.lost, besides + self.round_ns);
        page::add_number(&self.page.slowdown.watched, lent);
        if core::mem::replace(&mut pace.switched, self.switched) != self.switched {
            // Yields of other sites are not comparable.
            pace.solo = SoloPace::default();
        }
        let with = area.counting.obeyed() & GUESTS != 0 && area.supervisor.guests.load(Relaxed) > 0;
        if area.supervisor.slept.load(Relaxed) == 0 {
            pace.contract.passes(gone);
            page::add_number(&self.page.slowdown.watched, gone);
            if with {
                pace.uncharged += gone;
                page::add_number(&self.page.slowdown.with_guests, gone);
            } else {
                // Its caches have not come back at once.
                let short = gone.min(pace.caches_short_ns);
                pace.caches_short_ns -= short;
                let lost = 1.0 - pace.recovery.kept();
                pace.contract.charge(short, lost);
                page::add_number(&self.page.slowdown.lost, short * lost);
            }
        }
        let order = area.orders.order.load(Relaxed);
        // Repeated, since a hook that meets a thread on its way out of the control context is lost.
        if area.counting.obeyed() != order {
            ring::hook(area);
        }
        let counted = area.counting.done() == order;
        let given_up = self.now.saturating_sub(pace.ordered_at) > GIVE_UP_NS;
        let guests = area.supervisor.guests.load(Relaxed);
        match pace.phase {
            Phase::Solo if guests > 0 && self.now >= pace.until && pace.contract.allows() => {
                self.refer(pace);
            }
            Phase::SoloSample if counted || given_up => {
                let alone = self.alone();
                if let Some(mean) = alone {
                    let ticks = mean.ticks[0];
                    let asked = pace.solo.is_slower(ticks * pace.recovery.kept())
                        && pace.recovery.ask(self.now, ticks);
                    if !asked {
                        pace.recovery.add_solo_sample(ticks);
                    }
                    if asked || pace.recovery.is_due(self.now) {
                        pace.recovery.begin(self.now);
                        return self.rest(pace);
                    }
                }
                pace.solo.add_sample(alone);
                pace.contract.choose(self.now);
                self.look(pace, region);
                pace.phase_began = self.now;
            }
            Phase::Recovery if self.now >= pace.until => {
                self.order(pace, ALONE | COUNTING);
                pace.phase = Phase::RecoverySample;
            }
            Phase::RecoverySample if counted || given_up => {
                let slept = area.supervisor.slept.load(Relaxed) != 0;
                if slept {
                    pace.recovery.put_off(self.now);
                }
                if slept || pace.recovery.add_sample(self.now, self.alone().map(|mean| mean.ticks[0])) {
                    self.leave_alone(pace);
                    // The next sample begins anew: with the caches back, and this work.
                    (pace.caches_short_ns, pace.solo) = (0.0, SoloPace::default());
                    let kept = pace.recovery.kept();
                    pace.contract.owes((1.0 - kept) * CACHES_SHORT_NS as f64);
                } else {
                    self.rest(pace);
                }
            }
            Phase::GuestSample if counted || given_up => self.looked(pace, region),
            Phase::Guests if self.now >= pace.until => {
                let factor = if pace.contract.allows_all() { UNBOUNDED_PHASES_FACTOR } else { 1 };
                if self.now.saturating_sub(pace.phase_began) > factor * GUEST_PHASE_NS {
                    self.leave_alone(pace);
                } else if guests == 0 {
                    pace.until = self.now + GUEST_SAMPLE_EVERY_NS;
                } else {
                    self.look(pace, region);
                }
            }
            _ => {}
        }
    }

    /// Orders a sample without guests.
    fn refer(&self, pace: &mut ThreadPace) {
        self.order(pace, ALONE | COUNTING);
        pace.phase = Phase::SoloSample;
    }

    /// Orders that guests wait for a while, and nothing is counted.
    fn rest(&self, pace: &mut ThreadPace) {
        self.order(pace, ALONE);
        pace.phase = Phase::Recovery;
        pace.until = self.now + RECOVERY_STEP_NS;
    }

    /// Orders a sample with guests.
    fn look(&self, pace: &mut ThreadPace, region: &'static crate::layout::region::Region) {
        self.choose_suspect(pace, region);
        self.order(pace, GUESTS | COUNTING);
        pace.phase = Phase::GuestSample;
    }

    fn order(&self, pace: &mut ThreadPace, what: u32) {
        self.area.orders.give(what);
        pace.ordered_at = self.now;
        ring::hook(self.area);
    }

    pub(crate) fn leave_alone(&self, pace: &mut ThreadPace) {
        (pace.phase_ns, pace.phase_lost_ns) = (0.0, 0.0);
        pace.caches_short_ns = CACHES_SHORT_NS as f64;
        self.order(pace, ALONE);
        pace.phase = Phase::Solo;
        pace.until = self.now + CACHES_SETTLE_NS;
    }

    /// Its pace in the solo sample.
    fn alone(&self) -> Option<PaceMean> {
        self.mean(row::PLAIN, self.area.counting.lap(false)).filter(|_| self.is_obeyed())
    }

    /// The mean of a row of samples of `lap` yields each.
    pub(crate) fn mean(&self, row: usize, lap: i32) -> Option<PaceMean> {
        samples::mean_of(self.area.samples(row), self.area.orders.absence_ticks(), lap)
    }

    pub(crate) fn is_obeyed(&self) -> bool {
        self.area.counting.obeyed() == self.area.orders.order.load(Relaxed)
    }
}

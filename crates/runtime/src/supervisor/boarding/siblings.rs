//! Where a program's threads are each other's guests: which of them run at home, and which aboard
//! another one.
//!
//! Each thread is at home in its own kernel thread, as the kernel schedules it, unless more threads
//! want to run than there are CPUs. Then the surplus is asked to park, and comes aboard those that
//! stayed. A round is:
//!
//! 1. [`Supervisor::poll_siblings`]: what each thread does. A guest that left a ring is sent home;
//!    guests and newcomers are taken from hosts that are gone, sleep, or stay outside of their
//!    twins.
//! 2. [`Supervisor::even_out`]: with fewer hosts than CPUs, a guest goes home; with more than
//!    needed, a thread is asked to park.
//! 3. [`Supervisor::seat`]: parked threads are given to hosts; one that finds no host goes home.
//!
//! No guest waits for a host without bound: whatever a host does, within [`OUTSIDE_NS`] and
//! [`PARKED_WAIT_NS`] its guests are taken from it, and a guest that comes home soon after it went
//! aboard is left at home for a time that doubles. A host that is in the midst of its twins runs
//! its guests itself; the kernel preempts it as it does any thread.
//!
//! Where that gains too little ([`crate::supervisor::siblings_gain`]), all stay at home for a
//! while. Yields are off as long as no thread is or wants to be aboard.
//!
//! To add a rule for threads that may not take part: `has_own_rules`. For those that should stay at
//! home: `may_park`.

use super::homes;
use crate::layout::area::{Area, asked, kind, lock, settled};
use crate::layout::context::{Context, state};
use crate::layout::page;
use crate::supervisor::processes::{ASLEEP, Processes, ThreadActivity};
use crate::supervisor::{PollIntervals, RoundCensus, Supervisor, wake_home};
use crate::switching::ring;
use crate::sys;
use crate::sys::cpus::Cpus;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::{SCAVENGERS, ThreadRow, trip};

/// Between two rounds while something moves: longer than without siblings, since much moves all the
/// time.
const POLL_ACTIVE_NS: u64 = 100_000;
/// The longest sleep while a parked thread waits for a host.
const POLL_PARKED_NS: u64 = 400_000;
/// The longest sleep: shorter than without siblings, since the pace of all threads depends on the
/// supervisor.
const POLL_IDLE_NS: u64 = 1_000_000;
pub(crate) const INTERVALS: PollIntervals =
    PollIntervals { active: POLL_ACTIVE_NS, parked: POLL_PARKED_NS, idle: POLL_IDLE_NS };
/// While all are to be at home, and are: all there is to see is how many they are.
pub(crate) const RESTING: PollIntervals = PollIntervals { active: 5_000_000, idle: 20_000_000, ..INTERVALS };
/// The shortest sleep for each thread, so that polling many threads takes a small part of the time.
const POLL_PER_THREAD_NS: u64 = 2_000;

/// A parked thread that no host takes goes home after this.
const PARKED_WAIT_NS: u64 = 1_000_000;
/// Guests wait this long for a host that is awake outside of its twins.
const OUTSIDE_NS: u64 = 1_000_000;
/// A thread has this long to come to the control context, for each thread that shares its CPU.
const ANSWER_NS: u64 = 4_000_000;
/// A thread that was aboard for less is left at home for a while.
const WORTH_ABOARD_NS: u64 = 2_000_000;
/// The first such while.
const LEFT_HOME_NS: u64 = 1_000_000;
/// The longest: it doubles up to this.
const LEFT_HOME_MOST_NS: u64 = 128_000_000;
/// Between two polls of a thread that ran.
const POLL_AWAKE_NS: u64 = 1_000_000;
/// Between two polls of a thread that slept.
const POLL_ASLEEP_NS: u64 = 2_000_000;
/// The most threads polled in one round.
const POLLS_PER_ROUND: u32 = 24;
/// Between two polls of whether a thread has an affinity or a scheduling policy of its own.
const POLL_RULES_NS: u64 = 50_000_000;

/// The shortest sleep between two rounds.
pub(crate) fn shortest_sleep(census: &RoundCensus) -> u64 {
    u64::from(census.threads[0]) * POLL_PER_THREAD_NS
}

/// How many threads do what.
#[derive(Clone, Copy, Debug, Default)]
struct SiblingTally {
    /// At home, not asleep as far as is known, and answering.
    awake: u32,
    /// Of those, asked to park.
    asked: u32,
    parked: u32,
    aboard: u32,
    /// Of those, wanted at home.
    recalled: u32,
    all: u32,
}

/// What a round does about the number of threads at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HomePlan {
    /// There are CPUs for this many more threads at home.
    Fetch(u32),
    /// This many threads are asked to park.
    Park(u32),
}

impl SiblingTally {
    fn runnable(&self) -> u32 {
        self.awake + self.parked + self.aboard
    }

    /// As many hosts as there are CPUs, and as many as it takes to have all other threads aboard.
    fn hosts_wanted(&self, cpus: u32, ring: u32) -> u32 {
        self.runnable().div_ceil(ring + 1).max(cpus.min(self.runnable()))
    }

    /// Brings the number of threads at home near to that of `hosts`. Pure.
    fn plan(&self, cpus: u32, ring: u32, hosts: u32) -> HomePlan {
        let busy = cpus.min(self.runnable());
        let at_home = self.awake.saturating_sub(self.asked);
        if at_home < busy {
            return HomePlan::Fetch(busy - at_home);
        }
        let waiting = self.parked + self.asked + self.aboard;
        HomePlan::Park(at_home.saturating_sub(hosts).min((hosts * ring).saturating_sub(waiting)))
    }
}

impl Supervisor {
    pub(crate) fn siblings(&mut self) -> RoundCensus {
        let mut census = RoundCensus {
            threads: [0; SCAVENGERS],
            aboard: [0; SCAVENGERS],
            parked: 0,
            guests: 0,
            at_work: 0,
            staying: 0,
            away: false,
        };
        if !self.processes.primary_lives() {
            self.close_accounts();
            return census; // all of them ended with it
        }
        let tally = self.poll_siblings();
        let rests = self.siblings_rest();
        if rests {
            page::add(&self.page.apart_ns, self.now.saturating_sub(self.looked_at));
            self.fetch(u32::MAX, &tally);
        } else {
            let hosts = tally.hosts_wanted(self.cpus(), self.page.ring.load(Relaxed));
            self.even_out(&tally, hosts);
            self.seat(hosts);
        }
        self.time_turns();
        let away = tally.parked + tally.asked + tally.aboard > 0;
        self.siblings_gain.meet = away || !rests && tally.runnable() > self.cpus();
        census.threads[0] = tally.all;
        census.aboard[0] = tally.aboard;
        census.guests = tally.aboard;
        census.parked = tally.parked as usize;
        self.page.areas.store(tally.all, Relaxed);
        census
    }

    fn cpus(&self) -> u32 {
        self.processes.allowed().count().max(1)
    }

    fn poll_siblings(&mut self) -> SiblingTally {
        let slots = self.region.slots();
        self.turn = if slots == 0 { 0 } else { (self.turn + 1) % slots };
        let mut tally = SiblingTally::default();
        let mut polls = POLLS_PER_ROUND;
        for step in 0..slots {
            let slot = (self.turn + step) % slots;
            if self.region.tid(slot) == 0 {
                continue;
            }
            let area = self.region.area(slot);
            if area.kind.load(Acquire) != kind::PRIMARY {
                continue;
            }
            tally.all += 1;
            self.number(area);
            match area.own().state.load(Acquire) {
                state::HOME => self.at_home(slot, area, &mut polls, &mut tally),
                state::PARKED => {
                    tally.parked += 1;
                    if area.supervisor.parked_at.load(Relaxed) == 0 {
                        area.supervisor.parked_at.store(self.now, Relaxed);
                        self.moved = true;
                    }
                }
                state::ABOARD => self.aboard(area, &mut tally),
                _leaving => {
                    self.came_home(area);
                    tally.awake += 1;
                }
            }
        }
        tally
    }

    /// Gives a new thread its row in the table of threads.
    fn number(&self, area: &Area) {
        if area.supervisor.number.load(Relaxed) != 0 {
            return;
        }
        let number = self.page.threads.load(Relaxed) + 1;
        self.page.threads.store(number, Relaxed);
        area.supervisor.number.store(number as u32, Relaxed);
        if let Some(row) = self.row(area) {
            row.tid.store(area.tid.load(Relaxed), Relaxed);
        }
    }

    fn row(&self, area: &Area) -> Option<&'static ThreadRow> {
        self.page.thread.get((area.supervisor.number.load(Relaxed) as usize).wrapping_sub(1))
    }

    /// A thread in its own kernel thread, with or without guests.
    fn at_home(&mut self, slot: usize, area: &'static Area, polls: &mut u32, tally: &mut SiblingTally) {
        let slept = area.supervisor.slept.load(Relaxed) == ASLEEP;
        let every = if slept { POLL_ASLEEP_NS } else { POLL_AWAKE_NS };
        if *polls > 0 && self.now.saturating_sub(area.supervisor.polled_at.load(Relaxed)) >= every {
            *polls -= 1;
            area.supervisor.polled_at.store(self.now, Relaxed);
            let tid = self.region.tid(slot);
            let seen = Processes::activity(area);
            if seen == ThreadActivity::Gone {
                // Its ring does not run any more, and it was not at work on it.
                self.strip(area);
                self.release(area, slot, tid);
                self.moved = true;
                return;
            }
            let asleep =
                if matches!(seen, ThreadActivity::Awake | ThreadActivity::Stopped) { 0 } else { ASLEEP };
            self.moved |= area.supervisor.slept.swap(asleep, Relaxed) != asleep
                && area.supervisor.guests.load(Relaxed) > 0;
            self.has_own_rules(area, tid);
        }
        let asleep = area.supervisor.slept.load(Relaxed) == ASLEEP;
        let patience = ANSWER_NS * u64::from((tally.all / self.cpus()).clamp(1, 64));
        let asked = area.supervisor.asked_at.load(Relaxed);
        if asked != 0 {
            let before = area.supervisor.asked_entries.load(Relaxed);
            let came = area.thread.control_entries.load(Acquire) != before;
            if came && area.asked.load(Relaxed) != asked::TO_PARK {
                area.supervisor.asked_at.store(0, Relaxed);
            } else if asleep || self.now.saturating_sub(asked) > patience {
                self.withdraw(area);
            } else {
                ring::hook(area); // a hook may be missed, and a request come too late
            }
        }
        if area.supervisor.guests.load(Relaxed) > 0 {
            self.watch_host(area, asleep);
        }
        let resting = area.supervisor.no_guests_after_sleep.load(Relaxed) > self.now || in_handler(area);
        if asleep || area.settled.load(Relaxed) != 0 || resting {
            return;
        }
        tally.awake += 1;
        if area.asked.load(Relaxed) == asked::TO_PARK {
            tally.asked += 1;
        } else if area.closed.load(Relaxed) != 0 && area.supervisor.guests.load(Relaxed) > 0 {
            ring::hook(area);
        }
    }

    /// A thread does not come to the control context: what was asked of it is taken back, and
    /// nothing is asked for a while.
    fn withdraw(&mut self, area: &'static Area) {
        area.supervisor.asked_at.store(0, Relaxed);
        cancel(area);
        ring::take_inbox(area, |guest| self.takes(guest));
        self.leave_alone(area);
        area.supervisor.no_guests_after_sleep.store(area.supervisor.home_until.load(Relaxed), Relaxed);
        self.moved = true;
    }

    /// Does not ask it to park for a while, which doubles each time.
    fn leave_alone(&self, area: &Area) {
        let pause = (area.supervisor.pause.load(Relaxed) * 2).clamp(LEFT_HOME_NS, LEFT_HOME_MOST_NS);
        area.supervisor.pause.store(pause, Relaxed);
        area.supervisor.home_until.store(self.now + pause, Relaxed);
    }

    /// Takes the guests of a host that is outside of its twins and stays there, or in a handler.
    fn watch_host(&mut self, area: &'static Area, asleep: bool) {
        if area.thread.outside.load(Acquire) == 0 && !in_handler(area) {
            area.supervisor.outside_since.store(0, Relaxed);
            return;
        }
        let entries = area.thread.control_entries.load(Acquire);
        let since = area.supervisor.outside_since.load(Relaxed);
        if since == 0 || area.supervisor.outside_entries.load(Relaxed) != entries {
            area.supervisor.outside_since.store(self.now, Relaxed);
            area.supervisor.outside_entries.store(entries, Relaxed);
            area.supervisor.polled_at.store(0, Relaxed); // poll now whether it sleeps
            self.moved = true;
        } else if asleep || self.now.saturating_sub(since) > OUTSIDE_NS {
            self.take_guests(area);
        } else {
            self.moved = true;
        }
    }

    /// Under the lock. A thread outside, or in a handler, comes to the control context before it
    /// runs a guest, and finds the lock taken, or an empty ring.
    fn take_guests(&mut self, area: &'static Area) {
        if area.lock.compare_exchange(lock::FREE, lock::SUPERVISOR, AcqRel, Relaxed).is_err() {
            return;
        }
        let cur = area.twin.cur.load(Acquire);
        let in_handler = cur == area.quiet().pointer() && area.signals.has_free_hands();
        if in_handler {
            ring::hook(area);
        }
        let outside = area.thread.outside.load(Acquire) != 0;
        if ring::is_hooked(area) && (outside || in_handler && area.twin.cur.load(Acquire) == cur) {
            let count = self.strip(area);
            page::add(&self.page.stolen, u64::from(count));
            area.supervisor.no_guests_after_sleep.store(self.now + PARKED_WAIT_NS, Relaxed);
            self.moved = true;
        }
        area.lock.store(lock::FREE, Release);
    }

    /// Takes all guests off a ring that its thread does not run.
    fn strip(&self, area: &'static Area) -> u32 {
        let mut count = 0;
        ring::take_all(area, |guest| {
            self.takes(guest);
            count += 1;
        });
        count
    }

    /// A guest that was taken from its host is parked again.
    fn takes(&self, guest: &Context) {
        self.account(guest);
        homes::off(guest, self.now);
        guest.state.store(state::PARKED, Release);
    }

    /// Threads with an affinity, a scheduling policy or a priority of their own run as the program
    /// said, and alone.
    fn has_own_rules(&self, area: &Area, tid: i32) {
        if self.now.saturating_sub(area.supervisor.own_rules_at.load(Relaxed)) < POLL_RULES_NS {
            return;
        }
        area.supervisor.own_rules_at.store(self.now, Relaxed);
        let usual = Cpus::of(tid) == *self.processes.allowed()
            && sys::policy(tid) == sys::policy(0)
            && sys::priority(tid) == sys::priority(0);
        if usual {
            area.settled.fetch_and(!settled::RULES, Relaxed);
        } else {
            area.settled.fetch_or(settled::RULES, Relaxed);
        }
    }

    fn aboard(&mut self, area: &'static Area, tally: &mut SiblingTally) {
        let own = area.own();
        tally.aboard += 1;
        self.recall_to_signals(area);
        if own.recall.load(Relaxed) != 0 {
            tally.recalled += 1;
            // SAFETY: areas are never unmapped.
            if let Some(host) = unsafe { own.host.load(Relaxed).as_ref() } {
                ring::hook(host);
            }
        }
    }

    /// A guest left its host's ring. Its time aboard tells whether boarding it is worth it.
    fn came_home(&mut self, area: &'static Area) {
        let own = area.own();
        let why = own.why.load(Relaxed) as usize;
        let stayed = self.now.saturating_sub(own.since.load(Relaxed));
        self.account(own);
        homes::off(own, self.now);
        if matches!(why, trip::LEAVE | trip::FAULT | trip::MODES) {
            if stayed < WORTH_ABOARD_NS {
                self.leave_alone(area);
            } else {
                area.supervisor.pause.store(0, Relaxed);
            }
        }
        self.goes_home(area, Some(why));
    }

    /// Accounts for the time aboard of a guest that leaves its host.
    fn account(&self, guest: &Context) {
        if let Some(row) = self.row(guest.home()) {
            page::add(&row.aboard_ns, self.now.saturating_sub(guest.since.load(Relaxed)));
        }
    }

    /// Accounts for the time parked, aboard or not, of a context that goes home.
    fn account_parked(&self, area: &Area) {
        let since = area.supervisor.parked_at.swap(0, Relaxed);
        let away = if since == 0 { 0 } else { self.now.saturating_sub(since) };
        page::add(&self.page.scavenger[0].parked_ns, away);
        if let Some(row) = self.row(area) {
            page::add(&row.parked_ns, away);
        }
    }

    fn close_accounts(&self) {
        for area in self.areas(kind::PRIMARY) {
            if area.own().state.load(Acquire) == state::ABOARD {
                self.account(area.own());
                homes::off(area.own(), self.now);
            }
            self.account_parked(area);
        }
    }

    fn goes_home(&mut self, area: &'static Area, why: Option<usize>) {
        self.account_parked(area);
        if let Some(why) = why.and_then(|why| self.page.scavenger[0].trips.get(why)) {
            page::add(why, 1);
        }
        area.supervisor.slept.store(0, Relaxed);
        area.supervisor.polled_at.store(self.now, Relaxed);
        area.supervisor.asked_at.store(0, Relaxed);
        wake_home(area);
        self.moved = true;
    }

    /// Brings the number of threads at home near to that of hosts that are wanted.
    fn even_out(&mut self, tally: &SiblingTally, hosts: u32) {
        let mut wanted = match tally.plan(self.cpus(), self.page.ring.load(Relaxed), hosts) {
            HomePlan::Fetch(free) => return self.fetch(free, tally),
            HomePlan::Park(wanted) => wanted,
        };
        for area in self.areas(kind::PRIMARY) {
            if wanted == 0 {
                break;
            }
            if self.may_park(area) {
                wanted -= 1;
                self.ask(area);
                area.asked.store(asked::TO_PARK, Release);
                ring::hook(area);
                self.moved = true;
            }
        }
    }

    /// There are CPUs for `free` more threads: parked ones go home, then guests.
    fn fetch(&mut self, mut free: u32, tally: &SiblingTally) {
        for area in self.areas(kind::PRIMARY) {
            if free == 0 {
                return;
            }
            if cancel(area) {
                free -= 1;
            } else if area.own().state.load(Acquire) == state::PARKED {
                self.goes_home(area, None);
                free -= 1;
            }
        }
        free = free.saturating_sub(tally.recalled);
        for area in self.areas(kind::PRIMARY) {
            let own = area.own();
            let aboard = own.state.load(Acquire) == state::ABOARD;
            if free > 0 && aboard && own.recall.load(Relaxed) == 0 {
                own.recall.store(trip::FREE as u32, Relaxed);
                // SAFETY: areas are never unmapped.
                if let Some(host) = unsafe { own.host.load(Relaxed).as_ref() } {
                    ring::hook(host);
                }
                free -= 1;
            }
        }
    }

    fn may_park(&self, area: &Area) -> bool {
        self.answers(area)
            && area.supervisor.guests.load(Relaxed) == 0
            && area.supervisor.home_until.load(Relaxed) <= self.now
            && area.thread.lent.load(Relaxed) == 0
    }

    /// At home, awake, and nothing is asked of it.
    fn answers(&self, area: &Area) -> bool {
        area.own().state.load(Acquire) == state::HOME
            && area.supervisor.slept.load(Relaxed) != ASLEEP
            && area.settled.load(Relaxed) == 0
            && area.closed.load(Relaxed) == 0
            && !in_handler(area)
            && area.supervisor.no_guests_after_sleep.load(Relaxed) <= self.now
            && area.asked.load(Relaxed) == asked::NOTHING
    }

    /// Notes when something is asked of a thread, which has [`ANSWER_NS`] to come for it.
    fn ask(&self, area: &Area) {
        area.supervisor.asked_entries.store(area.thread.control_entries.load(Acquire), Relaxed);
        area.supervisor.asked_at.store(self.now, Relaxed);
    }

    /// Boards parked threads on hosts, and sends home those that find no host.
    fn seat(&mut self, hosts: u32) {
        let has_guests = |area: &Area| area.supervisor.guests.load(Relaxed) > 0;
        let mut seated = self.areas(kind::PRIMARY).filter(|area| has_guests(area)).count() as u32;
        let ring = self.page.ring.load(Relaxed);
        for area in self.areas(kind::PRIMARY) {
            let own = area.own();
            if own.state.load(Acquire) != state::PARKED {
                continue;
            }
            if area.supervisor.parked_at.load(Relaxed) == 0 {
                area.supervisor.parked_at.store(self.now, Relaxed);
            }
            // Not every thread at home becomes a host: one without guests may be asked to park.
            let more = seated < hosts;
            let host = self
                .areas(kind::PRIMARY)
                .filter(|host| self.answers(host) && host.supervisor.guests.load(Relaxed) < ring)
                .min_by_key(|host| (has_guests(host) == more, host.supervisor.guests.load(Relaxed)));
            match host {
                Some(host) => {
                    seated += u32::from(!has_guests(host));
                    self.board(own, host);
                }
                None if self.now.saturating_sub(area.supervisor.parked_at.load(Relaxed)) > PARKED_WAIT_NS => {
                    self.goes_home(area, None);
                }
                None => {}
            }
        }
    }

    fn board(&mut self, own: &Context, host: &'static Area) {
        own.since.store(self.now, Relaxed);
        own.recall.store(0, Relaxed);
        own.host.store(core::ptr::from_ref(host).cast_mut(), Relaxed);
        own.link.store(null_mut(), Relaxed);
        own.state.store(state::ABOARD, Release);
        host.supervisor.guests.store(host.supervisor.guests.load(Relaxed) + 1, Relaxed);
        page::add(&self.page.scavenger[0].boardings, 1);
        if let Some(row) = self.row(own.home()) {
            page::add(&row.boardings, 1);
        }
        if let Some(row) = self.row(host) {
            page::add(&row.hosted, 1);
        }
        if host.supervisor.asked_at.load(Relaxed) == 0 {
            self.ask(host);
        }
        self.moved = true;
        ring::offer(host, own);
        ring::hook(host);
    }
}

/// Takes back a request to park, if the thread has not begun to. Returns whether it could.
fn cancel(area: &Area) -> bool {
    area.asked.compare_exchange(asked::TO_PARK, asked::NOTHING, AcqRel, Relaxed).is_ok()
}

/// Whether a thread runs a handler, or left one by a jump; then it meets no guests any more.
fn in_handler(area: &Area) -> bool {
    area.twin.cur.load(Acquire) == area.quiet().pointer()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that all want to run, on some CPUs: plans are carried out until nothing changes.
    /// Returns how many are at home and how many aboard.
    fn settle(threads: u32, cpus: u32, ring: u32) -> (u32, u32) {
        let mut tally = SiblingTally { awake: threads, all: threads, ..SiblingTally::default() };
        for _ in 0..100 {
            let hosts = tally.hosts_wanted(cpus, ring);
            match tally.plan(cpus, ring, hosts) {
                HomePlan::Fetch(free) => {
                    (tally.awake, tally.aboard) = (tally.awake + free, tally.aboard - free);
                }
                HomePlan::Park(wanted) => {
                    (tally.awake, tally.aboard) = (tally.awake - wanted, tally.aboard + wanted);
                }
            }
        }
        (tally.awake, tally.aboard)
    }

    #[test]
    fn no_cpu_is_without_a_host_and_no_ring_is_longer_than_allowed() {
        assert_eq!(settle(2, 4, 8), (2, 0));
        assert_eq!(settle(4, 4, 8), (4, 0));
        assert_eq!(settle(32, 4, 8), (4, 28));
        // More than fit aboard: the rest stays at home, as the kernel schedules it.
        assert_eq!(settle(100, 4, 3), (25, 75));
        // Threads end: guests come home to the free CPUs.
        let tally = SiblingTally { awake: 1, aboard: 3, all: 4, ..SiblingTally::default() };
        assert_eq!(tally.plan(4, 8, tally.hosts_wanted(4, 8)), HomePlan::Fetch(3));
    }
}

//! The scavengers' threads, round by round: guests that left are woken at home, parked contexts are
//! boarded, and further homes are asked to park while rings take more.

use crate::counting::turns;
use crate::layout::area::{Area, kind};
use crate::layout::context::{Context, state};
use crate::layout::page;
use crate::supervisor::figures::{AWAY_NS, PARKED_WAIT_NS, POLL_HOME_NS, STARVING_SHARE};
use crate::supervisor::processes::{Processes, ThreadActivity, signals_wait};
use crate::supervisor::slowdown::long_stays::Bans;
use crate::supervisor::{RoundCensus, Supervisor, wake_home};
use crate::switching::ring;
use crate::sys::cpus::Cpus;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::{SCAVENGERS, trip};

/// A context leaves its primary: accounts for its time aboard.
pub(crate) fn off(guest: &Context, now: u64) {
    let host = guest.host.swap(null_mut(), Relaxed);
    if host.is_null() {
        return;
    }
    // SAFETY: areas are never unmapped.
    let host = unsafe { &*host };
    host.supervisor.guests.store(host.supervisor.guests.load(Relaxed).saturating_sub(1), Relaxed);
    let home = guest.home();
    let row = home.scavenger();
    page::add(&row.turns, turns::take(guest, host));
    home.turn_words().is_off();
    let visited = home.loans().visited.swap(0, Relaxed);
    page::add(&row.aboard_ns, now.saturating_sub(guest.since.load(Relaxed)).saturating_sub(visited));
    page::add(&row.visited_ns, visited);
    page::add(&row.visits, home.loans().visits.swap(0, Relaxed));
}

/// Whether a signal came for a home's thread.
fn is_called(area: &Area) -> bool {
    area.switching.deferred.load(Acquire) != 0
}

impl Supervisor {
    /// Recalls a guest whose thread has a signal waiting; that is looked for every `recall_ns`.
    pub(crate) fn recall_to_signals(&self, area: &Area) {
        let own = area.own();
        let recall = self.page.recall_ns.load(Relaxed);
        let aboard = self.now.saturating_sub(own.since.load(Relaxed));
        let looked = self.now.saturating_sub(area.supervisor.polled_at.load(Relaxed));
        if recall != 0 && aboard.min(looked) > recall && own.recall.load(Relaxed) == 0 {
            area.supervisor.polled_at.store(self.now, Relaxed);
            // Only signals that the parked thread blocks. Where the kernel does not tell, it goes
            // home to see.
            if signals_wait(area).unwrap_or(true) {
                own.recall.store(trip::RECALL as u32, Relaxed);
            }
        }
    }

    /// One round over all homes; `free` more guests may be boarded.
    pub(crate) fn homes(&mut self, mut free: u32) -> RoundCensus {
        let mut census = RoundCensus {
            threads: [0; SCAVENGERS],
            aboard: [0; SCAVENGERS],
            parked: 0,
            guests: 0,
            at_work: 0,
            away: false,
        };
        self.starving = Cpus::NONE;
        let slots = self.region.slots();
        self.turn = if slots == 0 { 0 } else { (self.turn + 1) % slots };
        let mut parked = 0;
        for step in 0..slots {
            let slot = (self.turn + step) % slots;
            if self.region.tid(slot) == 0 || self.is_in_hands(slot) {
                continue;
            }
            let area = self.region.area(slot);
            match area.kind.load(Acquire) {
                kind::HOME => self.home(slot, area, &mut free, &mut parked, &mut census),
                // Its process ended before the thread it was for began.
                kind::CLAIMED
                    if !area.is_primarys() && self.processes.ended(area.row.load(Relaxed) as usize) =>
                {
                    self.release(area, slot, self.region.tid(slot));
                }
                _ => {}
            }
        }
        census.parked = parked as usize;
        self.follow_spare_cpus(&census);
        census
    }

    /// Whether a process makes this area right now or gives it back. One that was killed meanwhile
    /// is done with it.
    fn is_in_hands(&self, slot: usize) -> bool {
        let Some(pid) = self.region.holder(slot) else { return false };
        if self.processes.is_gone(page::rows(self.page), pid) {
            self.region.take_from_holder(slot, pid);
        }
        true
    }

    /// Whether a thread at home has work and hardly gets a processor for it.
    fn starves(&self, area: &'static Area) -> bool {
        let words = &area.supervisor;
        let gone = self.now.saturating_sub(words.home_ran_at.load(Relaxed));
        if gone >= POLL_HOME_NS {
            let has_work = Processes::activity(area) == ThreadActivity::Awake;
            let ran = Processes::cpu_time(area).map(|time| time.ns);
            words.home_ran_at.store(self.now, Relaxed);
            let before = words.home_ran.swap(ran.unwrap_or(0), Relaxed);
            // It was not at home all the while.
            let away = gone > AWAY_NS;
            let hardly = !away
                && ran.is_some_and(|ran| (ran.saturating_sub(before) as f64) < STARVING_SHARE * gone as f64);
            words.has_work.store(u32::from(has_work), Relaxed);
            words.starves.store(u32::from(has_work && hardly), Relaxed);
        }
        words.starves.load(Relaxed) != 0
    }

    fn home(
        &mut self,
        slot: usize,
        area: &'static Area,
        free: &mut u32,
        parked: &mut u32,
        census: &mut RoundCensus,
    ) {
        let own = area.own();
        let index = area.row.load(Relaxed) as usize;
        let row = &self.page.scavenger[index];
        if self.processes.ended(index) || self.processes.left(index) {
            census.away |= self.bury(slot, area);
            return;
        }
        if matches!(own.state.load(Acquire), state::HOME | state::PARKING)
            && self.now.saturating_sub(area.supervisor.polled_at.load(Relaxed)) > POLL_HOME_NS
        {
            area.supervisor.polled_at.store(self.now, Relaxed);
            let tid = self.region.tid(slot);
            if Processes::activity(area) == ThreadActivity::Gone {
                if !self.may_be_met(area) {
                    self.release(area, slot, tid);
                }
                return;
            }
        }
        census.threads[index] += 1;
        match own.state.load(Acquire) {
            state::HOME => {
                let starves = self.starves(area);
                let has_work = area.supervisor.has_work.load(Relaxed);
                census.at_work += has_work;
                let stays = self.has_cpu_at_home(starves);
                // It is there for what others leave of a processor, and content with that.
                if starves && !stays {
                    self.starving.add(area.supervisor.cpu.load(Relaxed));
                    self.wake_at = self.wake_at.min(self.now + POLL_HOME_NS);
                }
                let banned = stays || Bans::of(area).hold(self.now) || self.may_be_met(area);
                if *free > 0 && self.processes.primary_lives() && !banned {
                    if area.settled.load(Relaxed) == 0 {
                        ring::hook(area);
                        *free -= 1;
                    }
                } else if ring::may_park(area) {
                    census.away = true;
                }
            }
            state::PARKING => {
                census.away = true;
                *free = free.saturating_sub(1);
            }
            state::PARKED => {
                if area.supervisor.parked_at.load(Relaxed) == 0 {
                    area.supervisor.parked_at.store(self.now, Relaxed);
                    self.moved = true;
                }
                census.away = true;
                let banned = Bans::of(area).hold(self.now) || is_called(area);
                if let Some(host) = self.host(*free).filter(|_| !banned) {
                    *free -= 1;
                    own.since.store(self.now, Relaxed);
                    own.host.store(core::ptr::from_ref(host).cast_mut(), Relaxed);
                    own.state.store(state::ABOARD, Release);
                    host.supervisor.guests.store(host.supervisor.guests.load(Relaxed) + 1, Relaxed);
                    page::add(&row.boardings, 1);
                    self.moved = true;
                    ring::offer(host, own);
                    ring::hook(host);
                } else {
                    *parked += 1;
                    let waited = self.now.saturating_sub(area.supervisor.parked_at.load(Relaxed));
                    if waited > PARKED_WAIT_NS || is_called(area) || !self.processes.primary_lives() {
                        self.arrive(area, None);
                    }
                }
            }
            state::ABOARD => {
                census.away = true;
                census.guests += 1;
                census.aboard[index] += 1;
                if is_called(area) && own.recall.load(Relaxed) == 0 {
                    own.recall.store(trip::RECALL as u32, Relaxed);
                    self.moved = true;
                }
                self.recall_to_signals(area);
                let host = own.host.load(Relaxed);
                // Repeated: a hook that meets a thread on its way out of the control context is
                // lost.
                // SAFETY: areas are never unmapped.
                if let Some(host) = unsafe { host.as_ref() } {
                    if own.recall.load(Relaxed) != 0 || !host.inbox.load(Relaxed).is_null() {
                        ring::hook(host);
                    }
                }
            }
            state::VISITING | state::RETURNED => {
                // Its lender ends it.
                census.away = true;
                census.guests += 1;
                census.aboard[index] += 1;
            }
            _leaving => {
                // A visitor that was late is hooked still: without another look it would park for a
                // supervisor that has ended.
                census.away = true;
                off(own, self.now);
                let why = own.why.load(Relaxed) as usize;
                if why == trip::MODES {
                    // They seldom change back: it would go home at once each time.
                    Bans::begin(area, self.now);
                }
                self.arrive(area, Some(why));
            }
        }
    }

    /// A context is at home again, and why it left its primary.
    pub(crate) fn arrive(&mut self, area: &'static Area, why: Option<usize>) {
        let row = area.scavenger();
        if let Some(count) = why.and_then(|why| row.trips.get(why)) {
            page::add(count, 1);
        }
        let since = area.supervisor.parked_at.swap(0, Relaxed);
        page::add(&row.parked_ns, self.now.saturating_sub(since));
        wake_home(area);
        self.moved = true;
    }

    /// A home's process has ended or executed another program: takes its context out of a ring.
    /// Returns whether it is still in one.
    pub(crate) fn bury(&mut self, slot: usize, area: &'static Area) -> bool {
        let own = area.own();
        let host = own.host.load(Relaxed);
        let visits = matches!(own.state.load(Acquire), state::VISITING | state::RETURNED);
        if visits && !host.is_null() && self.processes.primary_lives() {
            return true; // its lender takes it first, and finds the recall
        }
        if own.state.load(Acquire) == state::ABOARD && !host.is_null() && self.processes.primary_lives() {
            // Its primary's thread takes it out, and it is LEAVING then.
            own.recall.store(trip::ENDED as u32, Relaxed);
            // SAFETY: areas are never unmapped.
            ring::hook(unsafe { &*host });
            return true;
        }
        off(own, self.now);
        if !self.may_be_met(area) {
            self.release(area, slot, self.region.tid(slot));
            self.moved = true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switching::ring_tests::world;

    /// A supervisor that has one scavenger, at home, and may board none.
    fn supervisor() -> (Supervisor, &'static Area) {
        let (area, guests) = world(1);
        let (region, home) = (area.region(), guests[0].home());
        let me = std::process::id() as i32;
        region.primary.store(me, Relaxed);
        home.pid.store(me, Relaxed);
        home.tid.store(me, Relaxed);
        let mut supervisor = Supervisor::new(region, &[Some(me)]);
        supervisor.now = 1_000_000_000;
        supervisor.homes(0);
        assert!(!ring::is_hooked(home));
        (supervisor, home)
    }

    #[test]
    fn a_parking_home_is_waited_for() {
        let (mut supervisor, home) = supervisor();
        assert!(!supervisor.homes(0).away);
        home.own().state.store(state::PARKING, Relaxed);
        assert!(supervisor.homes(0).away);
        home.own().state.store(state::PARKED, Relaxed);
        assert!(supervisor.homes(0).away);
    }

    #[test]
    fn a_late_visitor_is_looked_at_again_at_home() {
        let (mut supervisor, home) = supervisor();
        ring::hook(home);
        home.own().state.store(state::LEAVING, Relaxed);
        assert!(supervisor.homes(0).away);
        assert!(!supervisor.homes(0).away && !ring::is_hooked(home));
    }

    #[test]
    fn an_area_that_was_never_made_is_free_once_its_maker_is_gone() {
        let (mut supervisor, _) = supervisor();
        let region = supervisor.region;
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let [gone, lives] = [child.id() as i32, std::process::id() as i32];
        let slots = [gone, lives].map(|pid| region.hold(pid).expect("a slot"));
        // A process that has ended and was not waited for may have threads left, for all we know.
        supervisor.homes(0);
        assert_eq!(slots.map(|slot| region.holder(slot)), [Some(gone), Some(lives)]);
        child.wait().expect("its end");
        supervisor.homes(0);
        assert_eq!(slots.map(|slot| region.holder(slot)), [None, Some(lives)]);
        assert_eq!(region.tid(slots[0]), 0);
    }
}

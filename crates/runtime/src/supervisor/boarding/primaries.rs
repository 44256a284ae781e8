//! The primary's threads, round by round: which of them take guests, and how many more.

use crate::layout::area::{Area, kind, lock};
use crate::layout::context::state;
use crate::layout::page;
use crate::supervisor::figures::{
    AFTER_SLEEP_NS, BEFORE_ITS_END_NS, LONG_SLICE_WAIT_NS, POLL_RARELY_NS, POLL_THREAD_NS,
};
use crate::supervisor::processes::{ASLEEP, IN_HANDLER, Processes, STOPPED, ThreadActivity};
use crate::supervisor::{Supervisor, strip};
use crate::switching::loan_words::{LONG_SLICE_NS, SLICE_NS};
use crate::switching::{links, ring};
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::fence;
use runtime_abi::control::trip;

impl Supervisor {
    /// Polls all threads, and takes the guests of those that sleep or are gone. Returns how many
    /// more guests may be boarded.
    pub(crate) fn primaries(&mut self) -> u32 {
        if !self.processes.primary_lives() {
            for area in self.areas(kind::PRIMARY) {
                self.gone(area);
            }
            return 0;
        }
        let mut free = 0;
        let mut shown = 0;
        for area in self.areas(kind::PRIMARY) {
            if self.poll_thread(area) {
                continue;
            }
            let guests = area.supervisor.guests.load(Relaxed);
            let page = self.page;
            let row = page.area.get(shown);
            let tid = area.tid.load(Relaxed);
            if let Some(row) = row {
                if row.tid.swap(tid, Relaxed) != tid {
                    row.known.store(0, Relaxed);
                }
                row.guests.store(guests, Relaxed);
            }
            let slot = self.region.slot_of(area);
            self.look_for_filters(area);
            let takes_some = self.sleep_shares.as_ref().is_none_or(|all| all[slot].takes_guests());
            let ring = if takes_some { self.pace(area, slot, row) } else { 0 };
            if !takes_some {
                area.orders.most.store(0, Relaxed);
            }
            shown += 1;
            if self.is_awaited(area) {
                self.switches.awaited = true;
            }
            if self.takes_guests(area) {
                free += ring.saturating_sub(guests);
            } else if area.closed.load(Relaxed) != 0 && !ring::is_empty(area) {
                // Once its ring is empty it will not come to the control context again.
                ring::hook(area);
            }
            self.lend_slice(area);
            if guests > ring {
                self.send_back(area, guests - ring);
            }
        }
        self.page.areas.store(shown as u32, Relaxed);
        for row in self.page.area.iter().skip(shown) {
            row.tid.store(0, Relaxed);
        }
        free
    }

    /// Has a thread lend a slice, if homes on its processor have work and starve. Long ones, as
    /// soon as there is credit for them; shorter ones where that takes long.
    fn lend_slice(&mut self, area: &Area) {
        if !self.starving.holds(area.supervisor.cpu.load(Relaxed)) {
            return;
        }
        let waited = self.now.saturating_sub(self.slice_ends_at) > LONG_SLICE_WAIT_NS;
        let shortest = if waited { SLICE_NS } else { LONG_SLICE_NS };
        let Some(slice) = area.loans().order_slice(shortest, LONG_SLICE_NS) else { return };
        self.slice_ends_at = self.now + slice - BEFORE_ITS_END_NS;
        self.switches.awaited = true;
        ring::hook(area);
    }

    /// A thread that has forbidden itself system calls past libc makes none for others from here
    /// on.
    fn look_for_filters(&self, area: &Area) {
        let words = &area.supervisor;
        let looked = self.now.saturating_sub(words.filters_at.load(Relaxed)) < POLL_RARELY_NS;
        if looked || self.region.sandboxed.load(Relaxed) != 0 {
            return;
        }
        words.filters_at.store(self.now, Relaxed);
        let now = Processes::filters(area).map_or(0, |filters| filters + 1);
        let first = words.filters.load(Relaxed);
        if first == 0 {
            words.filters.store(now, Relaxed);
        }
        if now == 0 || first != 0 && now != first {
            self.region.sandboxed.store(1, Release);
        }
    }

    fn takes_guests(&self, area: &Area) -> bool {
        area.closed.load(Relaxed) == 0
            && area.supervisor.no_guests_after_sleep.load(Relaxed) <= self.now
            && self.comes_to_yields(area)
    }

    /// The thread to board a guest on: the one with the fewest guests.
    pub(crate) fn host(&self, free: u32) -> Option<&'static Area> {
        let ring = self.page.ring.load(Relaxed);
        if free == 0 {
            return None;
        }
        let most = |area: &Area| ring.min(area.orders.most.load(Relaxed));
        self.areas(kind::PRIMARY)
            .filter(|area| self.takes_guests(area) && area.supervisor.guests.load(Relaxed) < most(area))
            .min_by_key(|area| area.supervisor.guests.load(Relaxed))
    }

    /// Polls a thread: takes its guests if it sleeps, is stopped, or comes to no yield. Returns
    /// whether it is gone.
    fn poll_thread(&mut self, area: &'static Area) -> bool {
        if self.now.saturating_sub(area.supervisor.polled_at.load(Relaxed)) < POLL_THREAD_NS {
            return false;
        }
        area.supervisor.polled_at.store(self.now, Relaxed);
        let slot = self.region.slot_of(area);
        let tid = self.region.tid(slot);
        let seen = Processes::activity(area);
        if seen == ThreadActivity::Gone {
            self.gone(area);
            if area.supervisor.guests.load(Relaxed) == 0 {
                self.release(area, slot, tid);
            }
            return true;
        }
        let lends = area.loans().lending.load(Acquire) != 0;
        let (asleep, stopped) = (seen == ThreadActivity::Asleep && !lends, seen == ThreadActivity::Stopped);
        let (ran, guests) = (Processes::cpu_time(area), area.supervisor.guests.load(Relaxed));
        if seen == ThreadActivity::Unknown && guests > 0 {
            // It may run, so its guests leave by themselves.
            self.send_back(area, guests);
        }
        if let Some(shares) = &mut self.sleep_shares {
            shares[slot].saw(self.now, tid, asleep || stopped);
        }
        let away = match seen {
            _ if stopped => STOPPED,
            _ if asleep || seen == ThreadActivity::Unknown => ASLEEP,
            _ if area.twin.cur.load(Acquire) == area.quiet().pointer() => IN_HANDLER,
            _ => 0,
        };
        let before = area.supervisor.slept.swap(away, Relaxed);
        // A thread that waits for it to be alone (`interpose`) waits no longer than for this;
        // counters go, too.
        let wanted_alone = area.closed.load(Acquire) != 0 && !ring::is_empty(area);
        if wanted_alone && !stopped && (asleep || away != 0) {
            self.steal(area);
        }
        self.moved |= before != away;
        if asleep && area.twin.cur.load(Acquire) == area.own().pointer() {
            area.supervisor
                .sleeps_seen
                .store(area.supervisor.sleeps_seen.load(Relaxed).wrapping_add(1), Relaxed);
        }
        if away == 0 {
            self.look_for_yields(area, ran);
            return false;
        }
        area.supervisor.no_guests_after_sleep.store(self.now + AFTER_SLEEP_NS, Relaxed);
        if stopped {
            // It may be at any instruction, and go on at any time.
            self.look_for_yields(area, ran);
        } else if before != 0 && guests > 0 {
            self.steal(area);
        }
        false
    }

    /// Takes the guests of a thread that sleeps in a system call, or is long in a handler (which it
    /// may have left by a jump; then it yields no more). Under the lock, and hooked: a thread that
    /// wakes meanwhile comes to the control context before it runs a guest, and finds the lock
    /// taken.
    fn steal(&mut self, area: &'static Area) {
        if area.lock.compare_exchange(lock::FREE, lock::SUPERVISOR, AcqRel, Relaxed).is_err() {
            return;
        }
        ring::hook(area);
        // Asleep after the hook: then all its earlier stores are seen, and CUR says which context
        // it ran.
        fence(core::sync::atomic::Ordering::SeqCst);
        let asleep = Processes::activity(area) == ThreadActivity::Asleep;
        let cur = area.twin.cur.load(Acquire);
        let in_handler = cur == area.quiet().pointer() && area.signals.has_free_hands();
        if ring::is_hooked(area) && (in_handler || asleep && cur == area.own().pointer()) {
            let count = strip(area, self.now);
            page::add(&self.page.stolen, u64::from(count));
            self.moved = true;
        }
        area.lock.store(lock::FREE, Release);
    }

    /// The ring gets shorter: guests with the longest stays go first.
    fn send_back(&mut self, area: &'static Area, surplus: u32) {
        let here = core::ptr::from_ref(area).cast_mut();
        let aboard = |home: &&Area| {
            home.own().state.load(Acquire) == state::ABOARD && home.own().host.load(Relaxed) == here
        };
        let asked = self.areas(kind::HOME).filter(aboard).filter(|home| home.own().recall.load(Relaxed) != 0);
        for _ in asked.count() as u32..surplus {
            let staying = self.areas(kind::HOME).filter(aboard);
            let staying = staying.filter(|home| home.own().recall.load(Relaxed) == 0);
            let Some(home) = staying.max_by_key(|home| home.supervisor.stay.load(Relaxed)) else { break };
            home.own().recall.store(trip::ENDED as u32, Relaxed);
        }
        if !ring::is_empty(area) {
            ring::hook(area);
        }
    }

    /// The thread is gone: its guests are at their yields, but for one that it was running. Its
    /// ring may be half changed, so it is not read.
    fn gone(&mut self, area: &'static Area) {
        let here = core::ptr::from_ref(area).cast_mut();
        for home in self.areas(kind::HOME) {
            let own = home.own();
            if own.host.load(Relaxed) != here {
                continue;
            }
            match own.state.load(Acquire) {
                state::ABOARD => {}
                // The lender is gone, and its guest at home.
                state::VISITING | state::RETURNED => {
                    super::homes::off(own, self.now);
                    let stays =
                        own.state.compare_exchange(state::VISITING, state::HOME, AcqRel, Acquire).is_ok();
                    if !stays {
                        own.state.store(state::PARKED, Release);
                        self.arrive(home, Some(trip::ENDED));
                    }
                    continue;
                }
                _ => continue,
            }
            if area.twin.cur.load(Acquire) == own.pointer() {
                let row = home.scavenger();
                row.lost.store(1, Relaxed);
                sys::kill(home.pid.load(Relaxed), sys::SIGKILL);
            }
            links::alone(own);
            super::homes::off(own, self.now);
            own.state.store(state::PARKED, Release);
            self.arrive_or_wait(home, area.twin.cur.load(Acquire) == own.pointer());
        }
    }

    /// A guest of a thread that is gone goes home; one that is lost is about to be killed, and
    /// sleeps on.
    fn arrive_or_wait(&mut self, home: &'static Area, lost: bool) {
        if lost {
            home.kind.store(kind::CLAIMED, Release);
        } else {
            self.arrive(home, Some(trip::ENDED));
        }
    }
}

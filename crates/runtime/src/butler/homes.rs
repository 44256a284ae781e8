//! The butler's look at the scavengers' threads.

use super::watch::{Processes, Seen, signals_wait};
use super::{Butler, Census, send_home};
use crate::area::{Area, Context, kind, state};
use crate::{page, ring};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::{SCAVENGERS, trip};

/// How long a parked context waits for a primary before it goes home again.
const PATIENCE: u64 = 2_000_000;

/// How often it is asked whether a thread at home is still there.
const LOOK: u64 = 20_000_000;

/// A context leaves a primary: keeps the accounts.
pub(super) fn off(guest: &Context, now: u64) {
    let host = guest.host.swap(null_mut(), Relaxed);
    if host.is_null() {
        return;
    }
    // SAFETY: areas are never unmapped.
    let host = unsafe { &*host };
    host.guests.store(host.guests.load(Relaxed).saturating_sub(1), Relaxed);
    let home = guest.home();
    let row = &home.region().page().scavenger[home.row.load(Relaxed) as usize];
    page::add(&row.aboard_ns, now.saturating_sub(guest.since.load(Relaxed)));
}

impl Butler {
    /// Who is aboard is called home where a signal waits for its thread, looked for now and then.
    pub(super) fn recall_to_signals(&self, area: &Area) {
        let own = area.own();
        let recall = self.page.recall_ns.load(Relaxed);
        let aboard = self.now.saturating_sub(own.since.load(Relaxed));
        let looked = self.now.saturating_sub(area.looked_at.load(Relaxed));
        if recall != 0 && aboard.min(looked) > recall && own.recall.load(Relaxed) == 0 {
            area.looked_at.store(self.now, Relaxed);
            // Where nobody tells, it goes home to see.
            if signals_wait(area).unwrap_or(true) {
                own.recall.store(trip::RECALL as u32, Relaxed);
            }
        }
    }

    /// Wakes who came home, boards who is parked, asks others to park while there is room for them.
    pub(super) fn homes(&mut self, mut free: u32) -> Census {
        let mut census =
            Census { threads: [0; SCAVENGERS], aboard: [0; SCAVENGERS], parked: 0, guests: 0, away: false };
        let slots = self.region.slots();
        self.turn = if slots == 0 { 0 } else { (self.turn + 1) % slots };
        let mut parked = 0;
        for step in 0..slots {
            let slot = (self.turn + step) % slots;
            if self.region.tid(slot) == 0 {
                continue;
            }
            let area = self.region.area(slot);
            match area.kind.load(Acquire) {
                kind::HOME => self.home(slot, area, &mut free, &mut parked, &mut census),
                // Its process ended before the thread it was for began.
                kind::CLAIMED
                    if area.guest.load(Relaxed) == 0
                        && self.processes.ended(area.row.load(Relaxed) as usize) =>
                {
                    self.release(area, slot, self.region.tid(slot));
                }
                _ => {}
            }
        }
        census.parked = parked as usize;
        census
    }

    fn home(
        &mut self,
        slot: usize,
        area: &'static Area,
        free: &mut u32,
        parked: &mut u32,
        census: &mut Census,
    ) {
        let own = area.own();
        let index = area.row.load(Relaxed) as usize;
        let row = &self.page.scavenger[index];
        if self.processes.ended(index) || self.processes.left(index) {
            census.away |= self.bury(slot, area);
            return;
        }
        if own.state.load(Acquire) == state::HOME
            && self.now.saturating_sub(area.looked_at.load(Relaxed)) > LOOK
        {
            area.looked_at.store(self.now, Relaxed);
            let tid = self.region.tid(slot);
            if Processes::seen(area) == Seen::Gone {
                self.release(area, slot, tid);
                return;
            }
        }
        census.threads[index] += 1;
        match own.state.load(Acquire) {
            state::HOME => {
                let hooked = ring::first(area) != own.next.load(Acquire);
                let banned = area.banned_until.load(Relaxed) > self.now;
                if *free > 0 && self.processes.primary_lives() && !banned {
                    if area.settled.load(Relaxed) == 0 {
                        ring::hook(area);
                        *free -= 1;
                    }
                } else if hooked && !ring::unhook(area) {
                    census.away = true;
                }
            }
            state::PARKED => {
                if area.parked_at.load(Relaxed) == 0 {
                    area.parked_at.store(self.now, Relaxed);
                    self.moved = true;
                }
                census.away = true;
                let banned = area.banned_until.load(Relaxed) > self.now;
                if let Some(host) = self.host(*free).filter(|_| !banned) {
                    *free -= 1;
                    own.since.store(self.now, Relaxed);
                    own.host.store(core::ptr::from_ref(host).cast_mut(), Relaxed);
                    own.state.store(state::ABOARD, Release);
                    host.guests.store(host.guests.load(Relaxed) + 1, Relaxed);
                    page::add(&row.boardings, 1);
                    self.moved = true;
                    ring::offer(host, own);
                    ring::hook(host);
                } else {
                    *parked += 1;
                    let waited = self.now.saturating_sub(area.parked_at.load(Relaxed));
                    if waited > PATIENCE || !self.processes.primary_lives() {
                        self.arrive(area, None);
                    }
                }
            }
            state::ABOARD => {
                census.away = true;
                census.guests += 1;
                census.aboard[index] += 1;
                self.recall_to_signals(area);
                let host = own.host.load(Relaxed);
                // Again and again: a hook that meets a thread on its way out of the control context is lost.
                // SAFETY: areas are never unmapped.
                if let Some(host) = unsafe { host.as_ref() } {
                    if own.recall.load(Relaxed) != 0 || !host.inbox.load(Relaxed).is_null() {
                        ring::hook(host);
                    }
                }
            }
            _leaving => {
                off(own, self.now);
                self.arrive(area, Some(own.why.load(Relaxed) as usize));
            }
        }
    }

    /// A context is at home again.
    pub(super) fn arrive(&mut self, area: &'static Area, why: Option<usize>) {
        let row = &self.page.scavenger[area.row.load(Relaxed) as usize];
        if let Some(count) = why.and_then(|why| row.trips.get(why)) {
            page::add(count, 1);
        }
        let since = area.parked_at.swap(0, Relaxed);
        page::add(&row.parked_ns, self.now.saturating_sub(since));
        send_home(area);
        self.moved = true;
    }

    /// The process of a home is gone, or another program; its context must vanish from a ring, if it is in one. Whether it is.
    fn bury(&mut self, slot: usize, area: &'static Area) -> bool {
        let own = area.own();
        let host = own.host.load(Relaxed);
        if own.state.load(Acquire) == state::ABOARD && !host.is_null() && self.processes.primary_lives() {
            // Its primary's thread takes it out, and it is LEAVING then.
            own.recall.store(trip::ENDED as u32, Relaxed);
            // SAFETY: areas are never unmapped.
            ring::hook(unsafe { &*host });
            return true;
        }
        off(own, self.now);
        self.release(area, slot, self.region.tid(slot));
        self.moved = true;
        false
    }
}

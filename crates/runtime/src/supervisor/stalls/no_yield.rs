//! A primary's thread that comes to no yield for long: it runs code that it compiled itself, a
//! library, or a loop without loads; or it is stopped. Its guests stand still in its ring
//! meanwhile, so they are taken from it ([`crate::switching::redirect`]) and run at home, and it
//! gets none before it comes to a yield again.
//!
//! Whether it comes to yields is seen by what it counts anyway: the yields at which it meets a
//! context. While guests are aside it meets none. So it is hooked first, and polled once more.

use crate::counting::count;
use crate::layout::area::{Area, kind, lock};
use crate::layout::context::state;
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::figures::{
    AFTER_ELAPSED_NS, HOOK_AFTER_CPU_NS, NO_GUESTS_MOST_NS, NO_GUESTS_NS, TAKE_AFTER_CPU_NS, YIELDS_AGAIN,
};
use crate::supervisor::processes::CpuTime;
use crate::supervisor::processes::STOPPED;
use crate::switching::redirect;
use crate::switching::ring;
use crate::sys;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// What a poll found of a thread.
#[derive(Clone, Copy, Default)]
struct YieldPoll {
    /// Yields at which it met a context so far, and times it came to the control context.
    yields: u64,
    entries: u32,
    /// Its CPU time so far; 0: the kernel does not tell.
    cpu_ns: u64,
    /// Something is in its ring that it should come to a yield for.
    is_wanted: bool,
    /// At once: another thread waits for it to be alone.
    at_once: bool,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YieldVerdict {
    Nothing,
    /// To hook it, and to see whether it comes to any yield at all.
    Hook,
    /// To take its guests.
    Take,
}

/// Whether a thread comes to its yields. Pure: polls in, verdicts out. It is kept in the area.
#[derive(Clone, Copy, Default)]
struct YieldWatch {
    /// The last poll's.
    yields: u64,
    entries: u32,
    /// When it was seen to come to a yield last, or was hooked, and its CPU time then.
    since: u64,
    since_cpu_ns: u64,
    hooked: bool,
    /// How often in a row its guests were taken; 0: it came to a yield since.
    times: u32,
    /// Its entries when they were taken last, and until when it gets none.
    taken_entries: u32,
    none_until: u64,
}

impl YieldWatch {
    fn poll(&mut self, now: u64, seen: &YieldPoll) -> YieldVerdict {
        let met = seen.yields.wrapping_sub(self.yields);
        let entered = seen.entries != self.entries;
        (self.yields, self.entries) = (seen.yields, seen.entries);
        if met >= YIELDS_AGAIN {
            self.times = 0;
        }
        if !seen.is_wanted || met != 0 || entered {
            self.begin(now, seen.cpu_ns, false);
            return YieldVerdict::Nothing;
        }
        let cpu_ns = if self.hooked { TAKE_AFTER_CPU_NS } else { HOOK_AFTER_CPU_NS };
        let long = seen.is_stopped
            || seen.cpu_ns.saturating_sub(self.since_cpu_ns) >= cpu_ns
            || now.saturating_sub(self.since) >= AFTER_ELAPSED_NS;
        match (long || seen.at_once, self.hooked) {
            (false, _) => YieldVerdict::Nothing,
            (true, true) => YieldVerdict::Take,
            (true, false) => {
                self.begin(now, seen.cpu_ns, true);
                YieldVerdict::Hook
            }
        }
    }

    fn begin(&mut self, now: u64, cpu_ns: u64, hooked: bool) {
        (self.since, self.since_cpu_ns, self.hooked) = (now, cpu_ns, hooked);
    }

    /// Its guests were taken.
    fn taken(&mut self, now: u64, entries: u32) {
        self.none_until = now + (NO_GUESTS_NS << self.times.min(16)).min(NO_GUESTS_MOST_NS);
        self.times += 1;
        self.taken_entries = entries;
    }

    /// Whether it came to a yield since its guests were taken, if they ever were, and may have some
    /// again.
    fn may_have_guests(&self, now: u64, entries: u32) -> bool {
        self.times == 0 || self.taken_entries != entries && self.none_until <= now
    }

    /// Whether its guests were taken, and it has not come to a yield since.
    fn is_awaited(&self, entries: u32) -> bool {
        self.times != 0 && self.taken_entries == entries
    }

    fn of(area: &Area) -> Self {
        let words = &area.supervisor;
        Self {
            yields: words.met_yields.load(Relaxed),
            entries: words.met_entries.load(Relaxed),
            since: words.met_at.load(Relaxed),
            since_cpu_ns: words.met_ran.load(Relaxed),
            hooked: words.probed.load(Relaxed) != 0,
            times: words.no_yield_times.load(Relaxed),
            taken_entries: words.no_yield_entries.load(Relaxed),
            none_until: words.no_guests_until.load(Relaxed),
        }
    }

    fn keep(&self, area: &Area) {
        let words = &area.supervisor;
        words.met_yields.store(self.yields, Relaxed);
        words.met_entries.store(self.entries, Relaxed);
        words.met_at.store(self.since, Relaxed);
        words.met_ran.store(self.since_cpu_ns, Relaxed);
        words.probed.store(u32::from(self.hooked), Relaxed);
        words.no_yield_times.store(self.times, Relaxed);
        words.no_yield_entries.store(self.taken_entries, Relaxed);
        words.no_guests_until.store(self.none_until, Relaxed);
    }
}

impl Supervisor {
    /// A thread that is awake, or stopped, was polled: takes its guests if it comes to no yield.
    pub(crate) fn look_for_yields(&mut self, area: &'static Area, cpu: Option<CpuTime>) {
        let at_once = area.closed.load(Acquire) != 0;
        let guests = area.supervisor.guests.load(Relaxed) != 0;
        let seen = YieldPoll {
            yields: count::yields(area),
            entries: area.thread.control_entries.load(Acquire),
            cpu_ns: cpu.map_or(0, |cpu| cpu.ns),
            is_wanted: (guests || at_once) && !ring::is_empty(area),
            at_once,
            is_stopped: area.supervisor.slept.load(Relaxed) == STOPPED,
        };
        let mut watch = YieldWatch::of(area);
        let verdict = watch.poll(self.now, &seen);
        watch.keep(area);
        match verdict {
            YieldVerdict::Nothing => {}
            YieldVerdict::Hook => ring::hook(area),
            YieldVerdict::Take => {
                if self.take_back(area) {
                    let mut watch = YieldWatch::of(area);
                    watch.begin(self.now, seen.cpu_ns, false);
                    watch.keep(area);
                }
            }
        }
    }

    /// Whether a thread came to a yield since its guests were taken, if they ever were.
    pub(crate) fn comes_to_yields(&self, area: &Area) -> bool {
        YieldWatch::of(area).may_have_guests(self.now, area.thread.control_entries.load(Acquire))
    }

    /// Whether its yields shall be on, and it hooked, so that it is noticed when it comes to one.
    pub(crate) fn is_awaited(&self, area: &Area) -> bool {
        YieldWatch::of(area).is_awaited(area.thread.control_entries.load(Acquire))
            && !self.processes.all_scavengers_ended()
    }

    /// Takes all guests of a thread that runs its own context. Whether it could.
    fn take_back(&mut self, area: &'static Area) -> bool {
        if !self.has_barrier()
            || area.lock.compare_exchange(lock::FREE, lock::SUPERVISOR, AcqRel, Relaxed).is_err()
        {
            return false;
        }
        ring::hook(area);
        // Guests that have not joined the ring can be dismissed whatever the thread does.
        ring::take_inbox(area, |guest| ring::dismiss(guest, trip::NO_YIELD));
        let taken = self.redirect_all(area);
        if taken {
            ring::take_all(area, |guest| {
                let home = guest.home();
                home.supervisor.redirected_tid.store(area.tid.load(Relaxed), Relaxed);
                home.supervisor.redirected_entries.store(area.thread.control_entries.load(Acquire), Relaxed);
                home.supervisor.redirected_sleeps.store(area.supervisor.sleeps_seen.load(Relaxed), Relaxed);
                home.supervisor.redirected_by.store(core::ptr::from_ref(area).cast_mut(), Relaxed);
                page::add(&self.page.stolen, 1);
                ring::dismiss(guest, trip::NO_YIELD);
            });
            let mut watch = YieldWatch::of(area);
            watch.taken(self.now, area.thread.control_entries.load(Acquire));
            watch.keep(area);
        }
        area.lock.store(lock::FREE, Release);
        self.moved = true;
        taken
    }

    /// Makes all other contexts of the ring lead back to the thread's own, if no other context
    /// runs; else leaves them as they were. Under the lock, hooked. Returns whether it did.
    fn redirect_all(&self, area: &'static Area) -> bool {
        let here = core::ptr::from_ref(area).cast_mut();
        let counters = [area.front(), area.back()];
        let guests = || {
            let aboard = |home: &&Area| {
                let own = home.own();
                own.state.load(Acquire) == state::ABOARD && own.host.load(Relaxed) == here
            };
            self.areas(kind::HOME).filter(aboard).map(Area::own)
        };
        let all_redirected = |mut redirect: &mut dyn FnMut(&crate::layout::context::Context) -> bool| {
            let counters = counters.into_iter().all(&mut redirect);
            counters && guests().all(&mut redirect)
        };
        let redirected = all_redirected(&mut redirect::redirect)
            && sys::pass_barrier()
            && area.twin.cur.load(Acquire) == area.own().pointer()
            && ring::is_hooked(area)
            // A context that ran when it was redirected has stored its RIP since.
            && all_redirected(&mut redirect::is_redirected);
        if !redirected {
            // Also those that left meanwhile.
            let left = self.areas(kind::HOME).map(Area::own).filter(|own| own.host.load(Relaxed) == here);
            left.chain(counters).for_each(redirect::straighten);
        }
        redirected
    }

    /// Whether the thread that a home's context was taken from may still meet it. If not, it leads
    /// on again.
    pub(crate) fn may_be_met(&self, home: &Area) -> bool {
        // SAFETY: areas are never unmapped.
        let Some(host) = (unsafe { home.supervisor.redirected_by.load(Relaxed).as_ref() }) else {
            return false;
        };
        let is_there = self.processes.primary_lives()
            && host.kind.load(Acquire) == kind::PRIMARY
            && host.tid.load(Acquire) == home.supervisor.redirected_tid.load(Relaxed);
        if is_there
            && host.thread.control_entries.load(Acquire) == home.supervisor.redirected_entries.load(Relaxed)
            && host.supervisor.sleeps_seen.load(Relaxed) == home.supervisor.redirected_sleeps.load(Relaxed)
        {
            return true; // it is hooked still
        }
        redirect::straighten(home.own());
        home.supervisor.redirected_by.store(null_mut(), Relaxed);
        false
    }

    /// Asked for when it is needed first: the kernel takes its time for it.
    fn has_barrier(&mut self) -> bool {
        *self.barrier.get_or_insert_with(sys::prepare_barrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::context::Context;
    use crate::switching::labels;
    use crate::switching::ring_tests::{board, world};

    /// A supervisor, a primary's thread that runs its own code, and two guests in its ring.
    fn world_of_two() -> (Supervisor, &'static Area, Vec<&'static Context>) {
        let (area, guests) = world(2);
        let region = area.region();
        let me = std::process::id() as i32;
        region.primary.store(me, Relaxed);
        let mut supervisor = Supervisor::new(region, &[Some(me)]);
        supervisor.now = 1_000_000_000;
        for guest in &guests {
            guest.home().pid.store(me, Relaxed);
            guest.home().tid.store(me, Relaxed);
            aboard(area, guest);
        }
        area.supervisor.guests.store(2, Relaxed);
        ring::control(area);
        (supervisor, area, guests)
    }

    fn aboard(area: &'static Area, guest: &'static Context) {
        guest.rip.store(0x1000 + guest.pointer() as u64, Relaxed);
        guest.host.store(core::ptr::from_ref(area).cast_mut(), Relaxed);
        board(area, guest, ring::modes());
    }

    fn leads_on(guest: &Context) -> bool {
        guest.rip.load(Relaxed) == 0x1000 + guest.pointer() as u64
    }

    #[test]
    fn guests_of_a_thread_that_comes_to_no_yield_go_home_and_lead_back_until_it_has() {
        let (mut supervisor, area, guests) = world_of_two();
        assert!(supervisor.take_back(area));
        assert!(ring::is_hooked(area) && ring::first(area) == area.own().pointer());
        for guest in &guests {
            assert_eq!(
                (guest.state.load(Relaxed), guest.why.load(Relaxed)),
                (state::LEAVING, trip::NO_YIELD as u32)
            );
            // What the thread finds if it was on its way there, and what home finds.
            assert_eq!(guest.rip.load(Relaxed), labels::back_address() as u64);
            assert_eq!(redirect::goes_on(guest), 0x1000 + guest.pointer() as u64);
        }
        // They run at home, and stay there, however many the rings take.
        for _ in 0..3 {
            supervisor.homes(2);
            assert!(guests.iter().all(|guest| guest.state.load(Relaxed) == state::HOME));
            assert!(guests.iter().all(|guest| !ring::is_hooked(guest.home())));
        }
        assert!(!supervisor.comes_to_yields(area) && supervisor.is_awaited(area));
        // At its next yield.
        assert_eq!(ring::control(area), area.own().pointer());
        assert!(!supervisor.comes_to_yields(area), "not at once");
        supervisor.now += NO_GUESTS_NS;
        assert!(supervisor.comes_to_yields(area) && !supervisor.is_awaited(area));
        supervisor.homes(2);
        assert!(guests.iter().all(|guest| leads_on(guest) && ring::is_hooked(guest.home())));
    }

    #[test]
    fn while_it_runs_a_guest_all_is_as_it_was() {
        let (mut supervisor, area, guests) = world_of_two();
        area.twin.cur.store(guests[1].pointer(), Relaxed);
        assert!(!supervisor.take_back(area));
        assert!(guests.iter().all(|guest| leads_on(guest) && guest.state.load(Relaxed) == state::ABOARD));
        assert_eq!(area.lock.load(Relaxed), lock::FREE);
        assert!(supervisor.comes_to_yields(area));
        // Counters too: none was linked here, so they led nowhere.
        assert!([area.front(), area.back()].iter().all(|counter| counter.rip.load(Relaxed) == 0));
    }

    #[test]
    fn a_context_captured_whole_is_not_redirected_and_no_guest_is_taken() {
        let (mut supervisor, area, guests) = world_of_two();
        guests[0].rip.store(labels::restore_address() as u64, Relaxed);
        assert!(!supervisor.take_back(area));
        assert_eq!(guests[0].rip.load(Relaxed), labels::restore_address() as u64);
        assert!(leads_on(guests[1]));
        assert!(guests.iter().all(|guest| guest.state.load(Relaxed) == state::ABOARD));
    }

    #[test]
    fn an_offered_guest_goes_home_and_is_met_nowhere() {
        let (mut supervisor, area, guests) = world_of_two();
        // One is in the ring, and runs; the other one is offered.
        ring::take_out(area, guests[1]);
        aboard(area, guests[1]);
        area.twin.cur.store(guests[0].pointer(), Relaxed);
        assert!(!supervisor.take_back(area));
        assert_eq!(guests[1].state.load(Relaxed), state::LEAVING);
        assert!(leads_on(guests[1]) && !supervisor.may_be_met(guests[1].home()));
        assert_eq!(guests[0].state.load(Relaxed), state::ABOARD);
    }

    #[test]
    fn the_slot_of_one_that_is_gone_is_kept_while_it_may_be_met() {
        let (mut supervisor, area, guests) = world_of_two();
        assert!(supervisor.take_back(area));
        // Its process ends before it is home.
        let home = guests[0].home();
        assert!(!supervisor.bury(supervisor.region.slot_of(home), home));
        assert_eq!(home.kind.load(Relaxed), kind::HOME);
        // It was seen asleep, so it is on its way to no context.
        area.supervisor.sleeps_seen.store(1, Relaxed);
        supervisor.bury(supervisor.region.slot_of(home), home);
        assert_eq!(home.kind.load(Relaxed), kind::FREE);
    }

    /// A thread that is polled every millisecond for some seconds, and which share of the time it
    /// comes to yields; `on` says when. Returns how long it had guests while it came to none, in
    /// milliseconds, and how often they were taken.
    fn live(seconds: u64, on: impl Fn(u64) -> bool) -> (u64, u32) {
        let (mut watch, mut seen) = (YieldWatch::default(), YieldPoll { cpu_ns: 1, ..YieldPoll::default() });
        let (mut guests, mut idle, mut taken) = (true, 0, 0);
        for ms in 1..=seconds * 1000 {
            let now = ms * 1_000_000;
            seen.cpu_ns += 1_000_000;
            if on(ms) {
                (seen.yields, seen.entries) = (seen.yields + 1000, seen.entries + 1);
            }
            seen.is_wanted = guests;
            idle += u64::from(guests && !on(ms));
            if watch.poll(now, &seen) == YieldVerdict::Take {
                watch.taken(now, seen.entries);
                (guests, taken) = (false, taken + 1);
            }
            guests |= watch.may_have_guests(now, seen.entries);
        }
        (idle, taken)
    }

    #[test]
    fn guests_stand_still_for_a_bounded_time_only() {
        assert_eq!(live(5, |_| true), (0, 0));
        let (idle, taken) = live(5, |_| false);
        assert!(taken == 1 && (24..27).contains(&idle), "{idle} {taken}");
        // Yields for half a second, none for half a second.
        let (idle, taken) = live(10, |ms| ms / 500 % 2 == 0);
        assert!(taken == 10 && idle < 10 * 27, "{idle} {taken}");
        // A pause in its yields that is no longer than a slice of a processor.
        assert_eq!(live(5, |ms| ms % 20 == 0).1, 0);
    }

    #[test]
    fn a_stopped_thread_loses_its_guests_at_once_and_elapsed_time_counts_without_cpu_time() {
        let seen = |is_stopped| YieldPoll { is_wanted: true, is_stopped, ..YieldPoll::default() };
        let mut watch = YieldWatch { since: 1, ..YieldWatch::default() };
        assert_eq!(watch.poll(2, &seen(true)), YieldVerdict::Hook);
        assert_eq!(watch.poll(3, &seen(true)), YieldVerdict::Take);
        let mut watch = YieldWatch { since: 1, ..YieldWatch::default() };
        assert_eq!(watch.poll(AFTER_ELAPSED_NS, &seen(false)), YieldVerdict::Nothing);
        assert_eq!(watch.poll(AFTER_ELAPSED_NS + 1, &seen(false)), YieldVerdict::Hook);
        assert_eq!(watch.poll(2 * AFTER_ELAPSED_NS + 1, &seen(false)), YieldVerdict::Take);
    }

    #[test]
    fn it_is_hooked_first_and_looked_at_again() {
        let (mut supervisor, area, guests) = world_of_two();
        let ran = |ns| Some(CpuTime { ns, ..CpuTime::default() });
        let mut at = 0;
        let mut look = |supervisor: &mut Supervisor, more: u64| {
            at += more;
            supervisor.now += more;
            supervisor.look_for_yields(area, ran(at));
        };
        look(&mut supervisor, 1);
        look(&mut supervisor, HOOK_AFTER_CPU_NS - 1);
        assert!(!ring::is_hooked(area), "not for long");
        look(&mut supervisor, 1);
        assert!(ring::is_hooked(area));
        // It comes to the control context, and to no yield that is counted.
        ring::control(area);
        look(&mut supervisor, TAKE_AFTER_CPU_NS);
        assert!(guests.iter().all(|guest| guest.state.load(Relaxed) == state::ABOARD));
        // Now it does not.
        look(&mut supervisor, HOOK_AFTER_CPU_NS);
        look(&mut supervisor, TAKE_AFTER_CPU_NS);
        assert!(guests.iter().all(|guest| guest.state.load(Relaxed) == state::LEAVING));
        // As soon as it comes to many, it has guests for as long as others.
        assert_eq!(area.supervisor.no_yield_times.load(Relaxed), 1);
        area.twin.passes.store(area.twin.passes.load(Relaxed) - YIELDS_AGAIN as i64, Relaxed);
        look(&mut supervisor, 1);
        assert_eq!(area.supervisor.no_yield_times.load(Relaxed), 0);
    }
}

//! The supervisor: a process in the harvested address space that runs nothing but this. It starts
//! the scavengers, boards parked contexts, wakes the homes of guests that left, and takes guests
//! from primaries that sleep or are gone.
//!
//! It polls: nothing on a primary's thread makes a system call to tell it anything. A round looks,
//! decides and acts:
//!
//! ```text
//!   look     clock, processes            which live, how fast the time stamp counter goes
//!   decide   boarding::primaries         per thread: asleep? at yields (stalls)? pace (slowdown)
//!   and act  boarding::homes             per scavenger thread: board, wake, park
//!            sites                       switch yields on and off
//!            cleanup                     unmap what ended scavengers left
//!   sleep    until something may be due, POLL_ACTIVE_NS to POLL_IDLE_NS, or until the bell rings
//! ```
//!
//! To add a policy: a struct with its state and a pure core in the room of its subject, its place
//! in a round, and a reason in `runtime_abi::control::trip` if it sends guests home.

pub(crate) mod area_words;
mod boarding;
mod cleanup;
mod clock;
pub(crate) mod figures;
mod processes;
mod sites;
mod slowdown;
mod spare_cpus;
mod stalls;

use crate::exec::start;
use crate::layout::area::Area;
use crate::layout::context::state;
use crate::layout::page;
use crate::layout::region::Region;
use crate::supervisor::figures::{
    POLL_ACTIVE_NS, POLL_DOUBLINGS, POLL_IDLE_NS, POLL_SHARED_CPU_NS, POLL_UNPAID_MOST_NS, ROUNDS_MEAN,
    ROUNDS_PART, ROUNDS_PER_DOUBLING,
};
use crate::switching::ring;
use crate::sys;
use crate::sys::cpus::Cpus;
use boarding::homes;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use processes::Processes;
use runtime_abi::control::{Control, SCAVENGERS, SUPERVISOR_NAME, life, stage};
use sites::switches;
use slowdown::{sampler, sleep};

/// Bytes of the supervisor's stack.
const STACK: usize = 1 << 17;

/// How long the supervisor sleeps between two rounds, in nanoseconds: while something moves, and at
/// most.
#[derive(Clone, Copy)]
pub(crate) struct PollIntervals {
    pub(crate) active: u64,
    pub(crate) parked: u64,
    pub(crate) idle: u64,
}

impl PollIntervals {
    const DEFAULT: Self = Self { active: POLL_ACTIVE_NS, parked: POLL_SHARED_CPU_NS, idle: POLL_IDLE_NS };

    /// Where a round takes the primary's time.
    const SHARED_CPU: Self = Self { active: POLL_SHARED_CPU_NS, ..Self::DEFAULT };

    /// The sleep after this many rounds in which nothing moved, where a parked context waits or
    /// not.
    fn after(self, quiet_rounds: u32, parked: bool) -> u64 {
        let longest = if parked { self.parked } else { self.idle };
        (self.active << (quiet_rounds / ROUNDS_PER_DOUBLING).min(POLL_DOUBLINGS)).min(longest)
    }
}

/// Starts it, from the primary.
pub(crate) fn start(region: &'static Region) -> Result<(), i32> {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_STACK;
    // SAFETY: a new mapping.
    let stack = unsafe { sys::mmap(0, STACK, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0) }?;
    // SAFETY: a stack of its own, never unmapped; the supervisor uses no libc.
    let pid = unsafe { start::process(stack + STACK, serve, core::ptr::from_ref(region) as usize) };
    if pid < 0 {
        return Err(-pid as i32);
    }
    region.supervisor.store(pid as i32, Relaxed);
    region.page().supervisor.store(pid as i32, Release);
    Ok(())
}

extern "C" fn serve(region: usize) -> ! {
    // SAFETY: the region, passed by `start`.
    let region: &'static Region = unsafe { &*(region as *const Region) };
    let page = region.page();
    sys::set_signal_mask(u64::MAX);
    sys::set_name(SUPERVISOR_NAME);
    if start::launcher_gone(page) {
        sys::exit_group(127);
    }
    let mut pids = [None; SCAVENGERS];
    for (index, pid) in pids.iter_mut().enumerate().take(page::rows(page).len()) {
        *pid = start::scavenger(region, index);
    }
    // Its descriptors and directory are copies of the primary's, which would keep pipes open and
    // directories busy.
    sys::close_from(0);
    sys::chdir(c"/");
    // It has two descriptors for each thread. Scavengers, started before this, keep the primary's
    // limit.
    let most = i32::try_from(sys::open_many()).unwrap_or(i32::MAX);
    region.kept_descriptors.store(most.saturating_sub(processes::SPARE), Relaxed);
    Supervisor::new(region, &pids).run();
    sys::exit_group(0)
}

pub(crate) struct Supervisor {
    region: &'static Region,
    page: &'static Control,
    processes: Processes,
    now: u64,
    /// The launcher is gone: all guests leave the primary, which goes on alone.
    orphaned: bool,
    /// Something moved in this round.
    moved: bool,
    quiet_rounds: u32,
    /// The slot at which the next round begins, so that all contexts get their turn.
    turn: usize,
    clock: clock::Clock,
    /// By slot. `None`: no memory for it; then no guest comes aboard where pace is to be kept.
    paces: Option<&'static mut [sampler::ThreadPace; crate::layout::region::SLOTS]>,
    /// By slot. `None`: no memory for it; then threads take guests however much they sleep.
    sleep_shares: Option<&'static mut [sleep::SleepShare; crate::layout::region::SLOTS]>,
    spare_cpus: spare_cpus::SpareCpus,
    /// The CPU time that the supervisor has had, and what the last round took of it.
    own_cpu_ns: u64,
    round_ns: u64,
    /// And what the last ones took in the mean.
    mean_round_ns: u64,
    /// Processors on which threads at home have work and hardly get to it.
    starving: Cpus,
    /// When the next round is due at the latest.
    wake_at: u64,
    switches: switches::YieldSwitches,
    /// When sites are judged next.
    judge_at: u64,
    /// When a slice that was ordered last is nearly over.
    slice_ends_at: u64,
    /// A thread of the primary has not come to a yield for long, though it was hooked.
    waited_for: bool,
    cleanup: cleanup::Cleanup,
    /// Whether all processors can be made to pass a barrier; `None`: not asked yet.
    barrier: Option<bool>,
}

/// A table with an entry for each area, zero at first.
///
/// # Safety
///
/// Zero must be a value of `T`.
unsafe fn table<T>() -> Option<&'static mut [T; crate::layout::region::SLOTS]> {
    // SAFETY: the caller's.
    Some(unsafe { &mut sys::zeroed(1).ok()?[0] })
}

/// What a round counted, for the live view.
#[derive(Clone, Copy)]
pub(crate) struct RoundCensus {
    threads: [u32; SCAVENGERS],
    aboard: [u32; SCAVENGERS],
    parked: usize,
    guests: u32,
    /// Threads at home that have work.
    at_work: u32,
    /// A context is aboard, parked, or about to park.
    away: bool,
}

impl Supervisor {
    fn new(region: &'static Region, scavengers: &[Option<i32>]) -> Self {
        let page = region.page();
        let mut processes = Processes::new(region.primary.load(Relaxed));
        for (index, pid) in scavengers.iter().enumerate() {
            processes.add(index, *pid);
        }
        let now = sys::now_ns();
        // SAFETY: zero is a value of each: a pace and a share of sleep that have not begun.
        let (paces, sleep_shares) = unsafe { (if page.watched == 0 { None } else { table() }, table()) };
        Self {
            region,
            page,
            processes,
            now,
            orphaned: false,
            moved: false,
            quiet_rounds: 0,
            turn: 0,
            clock: clock::Clock::new(),
            paces,
            sleep_shares,
            spare_cpus: spare_cpus::SpareCpus::default(),
            own_cpu_ns: sys::own_cpu_ns(),
            round_ns: 0,
            mean_round_ns: 0,
            starving: Cpus::NONE,
            wake_at: 0,
            switches: switches::YieldSwitches::new(page),
            judge_at: 0,
            slice_ends_at: 0,
            waited_for: false,
            cleanup: cleanup::Cleanup::NONE,
            barrier: None,
        }
    }

    fn run(&mut self) {
        sys::ask_for_short_turns();
        loop {
            self.region.round.fetch_add(1, SeqCst);
            let bell = self.region.bell();
            self.now = sys::now_ns();
            let own = sys::own_cpu_ns();
            self.round_ns = own.saturating_sub(core::mem::replace(&mut self.own_cpu_ns, own));
            self.mean_round_ns += self.round_ns / ROUNDS_MEAN;
            self.mean_round_ns -= self.mean_round_ns / ROUNDS_MEAN;
            self.moved = false;
            self.wake_at = u64::MAX;
            self.waited_for = false;
            self.switches.awaited = false;
            self.switches.wanted = self.page.watched == 0;
            self.clock.follow(self.page, self.now);
            self.processes.poll(self.region.supervisor.load(Relaxed), page::rows(self.page), self.now);
            self.end_with_launcher();
            self.scavengers_ended();
            let free = self.primaries();
            let census = self.homes(free);
            if self.processes.primary_lives() {
                let guests = census.away || census.parked > 0;
                self.switches.follow(guests, self.processes.has_cpus_to_spare(), self.now);
                self.judge_sites();
                self.wake_at = self.wake_at.min(self.switches.poll_at());
            }
            self.clean_up();
            self.show(&census);
            let alone = self.orphaned && self.processes.all_scavengers_ended();
            let done = !self.processes.primary_lives() || alone;
            if done && !census.away {
                if self.processes.primary_lives() {
                    self.switches.leave();
                }
                self.page.stage.store(stage::ALL_HOME, Release);
                return;
            }
            self.region.round.fetch_add(1, SeqCst);
            self.sleep(&census, bell);
        }
    }

    fn sleep(&mut self, census: &RoundCensus, bell: u32) {
        self.quiet_rounds = if self.moved { 0 } else { self.quiet_rounds.saturating_add(1) };
        let shared = self.page.watched != 0 && !self.processes.has_cpus_to_spare();
        let intervals = if shared { PollIntervals::SHARED_CPU } else { PollIntervals::DEFAULT };
        let sleep = intervals.after(self.quiet_rounds, census.parked > 0);
        let until_due = self.wake_at.saturating_sub(self.now).max(intervals.active);
        let rarely = if shared && census.guests == 0 { self.until_paid() } else { 0 };
        let (sleep, until_due) = (sleep.max(rarely), until_due.max(rarely));
        let sleep = sleep.min(until_due);
        // While the primary still sleeps for a slice, so that its yields are off when it wakes.
        let until_slice_ends = self.slice_ends_at.saturating_sub(self.now);
        let sleep = if until_slice_ends > 0 { sleep.min(until_slice_ends) } else { sleep };
        self.processes.keep_off_primaries(self.region, self.page, self.now);
        self.region.sleep_to_bell(bell, sleep);
    }

    /// The sleep after which another round is paid for by a small part of what the primary may
    /// lose: the rest is for those at home.
    fn until_paid(&self) -> u64 {
        let share = ROUNDS_PART * f64::from(self.page.max_slowdown) / 1e6;
        ((self.mean_round_ns as f64 / share.max(1e-6)) as u64).min(POLL_UNPAID_MOST_NS)
    }

    /// Scavengers end with their launcher, but not while they are aboard: their contexts leave the
    /// rings first.
    fn end_with_launcher(&mut self) {
        if self.orphaned || !start::launcher_gone(self.page) {
            return;
        }
        self.orphaned = true;
        for (index, row) in page::rows(self.page).iter().enumerate() {
            if !self.processes.ended(index) {
                sys::kill(row.pid.load(Relaxed), sys::SIGKILL);
            }
        }
    }

    fn scavengers_ended(&mut self) {
        for (index, row) in page::rows(self.page).iter().enumerate() {
            if row.life.load(Relaxed) != life::ENDED && self.processes.ended(index) {
                if row.life.load(Relaxed) != life::FAILED {
                    row.life.store(life::ENDED, Relaxed);
                }
                self.moved = true;
            }
        }
    }

    fn show(&self, census: &RoundCensus) {
        page::add(&self.page.rounds, 1);
        for (index, row) in page::rows(self.page).iter().enumerate() {
            row.threads.store(census.threads[index], Relaxed);
            row.aboard.store(census.aboard[index], Relaxed);
        }
    }

    /// Gives back an area whose thread is gone.
    fn release(&self, area: &Area, slot: usize, tid: i32) {
        Processes::forget(area);
        self.region.release(slot, tid);
    }

    /// All areas of one kind.
    fn areas(&self, wanted: u32) -> impl Iterator<Item = &'static Area> + use<> {
        let region = self.region;
        (0..region.slots())
            .filter(move |slot| region.tid(*slot) != 0)
            .map(move |slot| region.area(slot))
            .filter(move |area| area.kind.load(Acquire) == wanted)
    }
}

/// Wakes a home thread: its context is its own again.
fn wake_home(area: &Area) {
    let own = area.own();
    own.recall.store(0, Relaxed);
    own.state.store(state::HOME, Release);
    sys::futex_wake(&own.state);
}

/// Takes all guests off a ring that its thread does not run, and marks them parked. Under the
/// area's lock.
fn strip(area: &'static Area, now: u64) -> u32 {
    let mut count = 0;
    ring::take_all(area, |guest| {
        homes::off(guest, now);
        guest.state.store(state::PARKED, Release);
        count += 1;
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_sleeps_longer_the_longer_nothing_moves() {
        let after = |rounds| PollIntervals::DEFAULT.after(rounds, false);
        assert_eq!((after(0), after(7), after(8), after(16)), (50_000, 50_000, 100_000, 200_000));
        assert_eq!((after(1000), after(u32::MAX)), (POLL_IDLE_NS, POLL_IDLE_NS));
        assert_eq!(PollIntervals::DEFAULT.after(1000, true), POLL_SHARED_CPU_NS);
    }
}

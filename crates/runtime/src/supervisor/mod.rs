//! The supervisor: a process in the harvested address space that runs nothing but this. It starts the scavengers, gives
//! parked contexts to primaries, wakes those that come home, takes guests from primaries that sleep or are gone.
//!
//! It looks around every now and then: nobody on a primary's thread makes a system call to tell it anything. A round is
//! [`primaries`], then [`homes`]; where threads are each other's guests it is [`siblings`]. [`processes`] is what it knows of
//! processes and threads. [`switches`] switches the primary's yields on while somebody is there for them, [`sites`] those off that do
//! not pay. [`sampler`] compares a primary's pace with guests and without ([`idle_server_sampler`], [`idle_server`]: of one that sleeps often), and [`controller`] says what follows;
//! What a scavenger leaves behind when it ends is its [`cleanup`], unless there are [`vfork_children`].
//! [`long_stays`] are guests that stay for too long, [`no_yield`] is a primary that comes to no yield.
//!
//! To add a policy: a reason in `runtime_abi::control::trip` if it sends guests home, and its place in a round.

mod boarding;
mod cleanup;
mod clock;
mod processes;
mod sites;
mod slowdown;
mod stalls;

use crate::exec::start;
use crate::layout::area::{Area, state};
use crate::layout::page;
use crate::layout::region::Region;
use crate::switching::ring;
use crate::sys;
use crate::sys::cpus::Cpus;
use boarding::{homes, siblings};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use processes::Processes;
use runtime_abi::control::{Control, SCAVENGERS, life, stage};
use sites::switches;
use slowdown::{idle_server, sampler};

const STACK: usize = 1 << 17;
/// Between two rounds: while something moves, at most while a parked context waits, and at most. It grows with the time for
/// which nothing has moved, so nobody waits for more than a small part of the time that it went without the supervisor.
const NAP: [u64; 3] = [50_000, 400_000, 5_000_000];

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
    sys::set_name(c"gleaner-butler");
    if start::launcher_gone(page) {
        sys::exit_group(127);
    }
    let mut pids = [None; SCAVENGERS];
    for (index, pid) in pids.iter_mut().enumerate().take(page::rows(page).len()) {
        *pid = start::scavenger(region, index);
    }
    // What it has open and where it stands is the primary's, and would keep pipes from ending and directories busy.
    sys::close_from(0);
    sys::chdir(c"/");
    // It has two for each thread. Who was started before goes on with the primary's limit.
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
    /// The launcher is gone: everybody is to leave the primary, which goes on alone.
    orphaned: bool,
    /// Something moved in this round.
    moved: bool,
    quiet_rounds: u32,
    /// Where the next round begins to look for contexts, so that all get their turn.
    turn: usize,
    clock: clock::Clock,
    /// By slot; none if there is no memory for it: then nobody comes aboard where pace is to be watched.
    paces: Option<&'static mut [sampler::Pace; crate::layout::region::SLOTS]>,
    /// By slot; none if there is no memory for it: then whoever sleeps is asleep.
    naps: Option<&'static mut [idle_server::Naps; crate::layout::region::SLOTS]>,
    /// Processors where a thread of the primary waits by turning round.
    turning: Cpus,
    /// Processors where a thread of the primary waits for its turn, others being there.
    crowded: Cpus,
    /// By slot, of homes: the processors that its thread may use, none if that is not known; none at all if there is no memory for it.
    may_use: Option<&'static mut [Cpus; crate::layout::region::SLOTS]>,
    /// When somebody's pace is to be looked at again.
    wake_at: u64,
    switches: switches::Switches,
    /// When sites are judged again.
    judge_at: u64,
    /// A thread of the primary has not come to a yield for long, though it is wanted there.
    waited_for: bool,
    estates: cleanup::Estates,
    /// Whether processors can be made to pass a barrier; none: that was not asked yet.
    barrier: Option<bool>,
}

/// Something of each area, zero at first.
///
/// # Safety
///
/// Zero is a value of it.
unsafe fn table<T>() -> Option<&'static mut [T; crate::layout::region::SLOTS]> {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let size = size_of::<[T; crate::layout::region::SLOTS]>();
    // SAFETY: a new mapping, of zeroes; nobody else knows it.
    unsafe {
        let at = sys::mmap(0, size, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0).ok()?;
        Some(&mut *(at as *mut [T; crate::layout::region::SLOTS]))
    }
}

/// What a round found, for the live view.
#[derive(Clone, Copy)]
pub(crate) struct Census {
    threads: [u32; SCAVENGERS],
    aboard: [u32; SCAVENGERS],
    parked: usize,
    guests: u32,
    /// Somebody may still park, or is away.
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
        // SAFETY: zero is a pace, and are naps, that have not begun, and no processors.
        let (paces, naps, may_use) =
            unsafe { (if page.watched == 0 { None } else { table() }, table(), table()) };
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
            naps,
            turning: Cpus::NONE,
            crowded: Cpus::NONE,
            may_use,
            wake_at: 0,
            switches: switches::Switches::new(page),
            judge_at: 0,
            waited_for: false,
            estates: cleanup::Estates::NONE,
            barrier: None,
        }
    }

    fn run(&mut self) {
        loop {
            self.region.round.fetch_add(1, SeqCst);
            let bell = self.region.bell();
            self.now = sys::now_ns();
            self.moved = false;
            self.wake_at = u64::MAX;
            self.waited_for = false;
            self.switches.awaited = false;
            self.turning = Cpus::NONE;
            self.crowded = Cpus::NONE;
            self.switches.wanted = self.page.watched == 0;
            self.clock.follow(self.page, self.now);
            self.processes.look(self.region.supervisor.load(Relaxed), page::rows(self.page), self.now);
            self.end_with_launcher();
            self.scavengers_ended();
            let census = if self.region.siblings.load(Relaxed) != 0 {
                self.siblings()
            } else {
                let free = self.primaries();
                self.homes(free)
            };
            if self.processes.primary_lives() {
                let somebody = census.away || census.parked > 0;
                self.switches.follow(somebody, self.processes.has_cpus_to_spare(), self.now);
                self.judge_sites();
                self.wake_at = self.wake_at.min(self.switches.look_at());
            }
            self.settle_estates();
            self.show(&census);
            // Siblings have nobody else to wake them, whoever started them.
            let alone = self.region.siblings.load(Relaxed) == 0
                && self.orphaned
                && self.processes.all_scavengers_ended();
            let done = !self.processes.primary_lives() || alone;
            if done && !census.away {
                if self.processes.primary_lives() {
                    self.switches.leave();
                }
                self.page.stage.store(stage::ALL_HOME, Release);
                return;
            }
            self.region.round.fetch_add(1, SeqCst);
            self.nap(&census, bell);
        }
    }

    fn nap(&mut self, census: &Census, bell: u32) {
        self.quiet_rounds = if self.moved { 0 } else { self.quiet_rounds.saturating_add(1) };
        let [shortest, waiting, longest] =
            if self.region.siblings.load(Relaxed) != 0 { siblings::NAP } else { NAP };
        let longest = if census.parked > 0 { waiting } else { longest };
        let nap = (shortest << (self.quiet_rounds / 8).min(8)).min(longest);
        // Thousands of siblings take their time to be looked through.
        let nap = nap.min(self.wake_at.saturating_sub(self.now).max(shortest)).max(siblings::pace(census));
        self.processes.keep_off_primaries(self.region, self.page, self.now);
        self.region.sleep_to_bell(bell, nap);
    }

    /// Scavengers end with their launcher, but not in the midst of the primary: their contexts are taken out of rings first.
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

    fn show(&self, census: &Census) {
        page::add(&self.page.rounds, 1);
        let siblings = usize::from(self.region.siblings.load(Relaxed) != 0);
        let rows = &self.page.scavenger[..page::rows(self.page).len().max(siblings)];
        for (index, row) in rows.iter().enumerate() {
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

/// Wakes a home thread, whose context is its own again.
fn send_home(area: &Area) {
    let own = area.own();
    own.recall.store(0, Relaxed);
    own.state.store(state::HOME, Release);
    sys::futex_wake(&own.state);
}

/// Takes everybody off a ring that its thread does not run, and calls them parked. Under the area's lock.
fn strip(area: &'static Area, now: u64) -> u32 {
    let mut count = 0;
    ring::take_all(area, |guest| {
        homes::off(guest, now);
        guest.state.store(state::PARKED, Release);
        count += 1;
    });
    count
}

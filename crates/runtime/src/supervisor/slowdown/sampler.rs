//! The pace of each of the primary's threads: alone and with guests in turns, compared, and what follows for its guests.
//!
//! A spell with guests begins with a look at the pace without them, and is looked at every few milliseconds; [`super::controller`] says
//! what follows. Between them guests are aside for a moment, so that caches are the primary's again when it is looked at alone.
//! The thread counts by itself ([`crate::counting::count`]); here is what is made of its samples. Pace is ticks for so many yields: that
//! is all that is compared, so a primary that does other work when it has guests would mislead it.
//!
//! A primary that spends a good part of its time waiting by turning round has its guests there, and nowhere else: there they cost it
//! little. So they are aside in their spells, its other yields are switched off (if all threads are like that), and its pace is that of its
//! works between waits ([`crate::counting::busy_waits`]). What matters there is how long answers take: a load that is served slower by a share, by one
//! that waits a share `i` of its time, takes longer by that share over `i`.
//!
//! Of one that sleeps often and shortly, pace is the processor's time for so many yields ([`super::idle_server`]), and so are credit and charge.
//!
//! Of samples, two means are taken: of all, and of the lower three quarters. Idle times, in which a program waits without sleeping,
//! hide in the first what it loses while it works; rare losses are missing in the second. Where there may be such times the worse of both
//! counts, else the first: samples alone have a longer tail than with guests, and the second would take that for a loss.

use super::cache_recovery::{self, Rest};
use super::controller::{Law, Verdict};
use super::idle_server::{Naps, Window, Work};
use super::long_stays::are_too_long;
use super::samples::Mean;
use super::solo_pace::Reference;
use crate::counting::busy_waits;
use crate::counting::count::{self, ALONE, COUNTING, GUESTS, NAPS, NUMBER, SPINS, WAITS, row};
use crate::layout::area::{Area, closed};
use crate::layout::page;
use crate::supervisor::Supervisor;
use crate::supervisor::processes::{Processes, Seen};
use crate::switching::ring;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::{AreaRow, Control, trip};

/// Until caches are the primary's again, or nearly.
const SETTLE: u64 = 300_000;
/// Most time for a stage of counting, and after which it is given up.
const STAGE: u64 = 250_000;
const GIVE_UP: [u64; 2] = [4_000_000, 48_000_000];
/// Between two looks at the pace with guests, and without.
const LOOK: [u64; 2] = [1_000_000, 5_000_000];
const SPELL: [u64; 2] = [64_000_000, 128_000_000];
/// So many times as long where guests may cost what they like.
const IDLY: u64 = 4;
/// Guests that wait for longer than this do so at home; and those of a primary that waits by turning round, which are soon wanted again.
const PATIENCE: [u64; 2] = [5_000_000, 200_000_000];
/// Most doubt about a share that was lost: where paces differ by much more, the program has come to other work.
pub(crate) const MOST_DOUBT: f64 = 0.25;
/// Share of its time waiting by turning round from which on a primary has its guests only there.
const IDLE: f64 = 0.1;
/// Most that such a primary may seem to gain by guests.
const GAIN: f64 = 0.05;
/// How soon it is looked again whether it does: at first, and at most.
const TRY: [u64; 2] = [50_000_000, 2_000_000_000];
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Guests wait.
    Alone = 0,
    /// It is alone, and counted.
    Reference,
    /// With guests, and counted.
    Look,
    /// With guests.
    Guests,
    /// Guests wait until it has its caches again, and it is counted then.
    Rest,
    RestLook,
}

/// Zero is one that has not begun.
pub(crate) struct Pace {
    tid: i32,
    /// Ticks in a nanosecond, as the area's times have them.
    rate: f64,
    pub(crate) phase: Phase,
    pub(crate) law: Law,
    /// What it was before the primary was looked at as one that waits.
    law_before: Law,
    until: u64,
    seen_at: u64,
    ordered_at: u64,
    spell_began: u64,
    /// With guests, and not yet charged for, in nanoseconds.
    pub(crate) uncharged: f64,
    /// Of this spell, as far as it was looked at: its time, and what was lost of it.
    spell: [f64; 2],
    /// Alone.
    pub(crate) reference: Reference,
    pub(crate) rest: Rest,
    /// For how long from now on it has not its caches again.
    tail: f64,
    /// It waits by turning round, and has its guests only there; for which share of its time.
    spins: bool,
    /// That was found a moment ago, or that it does no more.
    turned_over: bool,
    turned_at: u64,
    try_for: u64,
    idle: f64,
    pub(crate) turn: u32,
    /// It sleeps often and shortly; what it ran up to now, so far as that is accounted for.
    naps: bool,
    pub(crate) ran: u64,
    pub(crate) window: Window,
    /// What it did in the last window.
    pub(crate) work: Option<Work>,
    /// How often sites were switched one by one before what is known of it.
    switched: u32,
}

impl Supervisor {
    /// Looks after the pace of an area, and says how many guests it may have.
    pub(crate) fn pace(&mut self, area: &'static Area, slot: usize, shown: Option<&AreaRow>) -> u32 {
        if area.closed.load(Acquire) & (closed::CANCELLED | closed::CANCELLABLE) != 0 {
            // Nothing is ordered any more; it only comes by once more, to be rid of all who are there.
            self.switches.wanted |= area.guests.load(Relaxed) > 0 || ring::is_hooked(area);
            return 0;
        }
        let ring = self.page.ring.load(Relaxed);
        let (true, Some(paces)) = (self.page.watched != 0, self.paces.as_mut()) else {
            self.switches.wanted = true;
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
            // Seldom, since the thread itself uses what lies beside them.
            pace.rate = self.clock.rate;
            let ticks = |ns: u64| (ns as f64 * self.clock.rate) as u64;
            area.stage_ticks.store(ticks(STAGE), Relaxed);
            area.absence_ticks.store(ticks(self.page.max_absence_ns), Relaxed);
            area.soon_ticks.store(ticks(self.page.soon_ns), Relaxed);
        }
        pace.law.limit(ring);
        let spare = self.processes.has_cpus_to_spare();
        let naps = self.naps.as_ref().map_or_else(Naps::default, |naps| naps[slot]).often;
        let switched = self.switches.changes;
        let step =
            Step { spare, page: self.page, now: self.now, rate: self.clock.rate, area, naps, switched };
        let most = step.go(pace, self.region);
        let waits = area.obeyed.load(Acquire) != area.order.load(Relaxed) && area.slept.load(Relaxed) == 0;
        self.waited_for |= waits && self.now.saturating_sub(pace.ordered_at) > GIVE_UP[0];
        if pace.spins && area.slept.load(Relaxed) == 0 {
            self.turning.add(area.cpu.load(Relaxed));
        }
        area.most.store(most, Relaxed);
        self.switches.wanted |= pace.meets_guests(area, self.now);
        self.wake_at = self.wake_at.min(pace.look_at(self.now, spare, area.guests.load(Relaxed)));
        if let Some(row) = shown {
            row.ring.store(most, Relaxed);
            let with = area.obeyed.load(Relaxed) & (GUESTS | SPINS) != 0;
            row.aboard.store(u32::from(with), Relaxed);
        }
        most
    }
}

/// One look at one area.
pub(crate) struct Step {
    /// There is a CPU where no primary's thread is.
    spare: bool,
    pub(crate) page: &'static Control,
    pub(crate) now: u64,
    rate: f64,
    pub(crate) area: &'static Area,
    /// It sleeps often and shortly.
    naps: bool,
    /// How often sites were switched one by one.
    switched: u32,
}

impl Pace {
    fn begin(&mut self, area: &Area, tid: i32, page: &Control, now: u64, ring: u32) {
        let law = Law::new(f64::from(page.max_slowdown) / 1e6, ring);
        *self = Self {
            tid,
            rate: 0.0,
            phase: Phase::Alone,
            law,
            law_before: Law::new(0.0, 0),
            until: now,
            seen_at: now,
            ordered_at: now,
            spell_began: now,
            uncharged: 0.0,
            spell: [0.0; 2],
            reference: Reference::default(),
            rest: Rest::begin_anew(now, law.allows_all()),
            tail: 0.0,
            spins: false,
            turned_over: false,
            turned_at: 0,
            try_for: TRY[0],
            idle: 0.0,
            turn: 0,
            naps: false,
            ran: 0,
            window: Window::default(),
            work: None,
            switched: 0,
        };
        area.most.store(0, Relaxed);
    }

    /// What was counted of it is not to be compared with what is counted from now on.
    pub(crate) fn refer_anew(&mut self, now: u64) {
        self.reference = Reference::default();
        (self.rest, self.tail) = (Rest::begin_anew(now, self.law.allows_all()), 0.0);
    }

    /// It waits by turning round from now on, or no more.
    fn turn_over(&mut self, spins: bool, now: u64) {
        let in_vain = self.turned_over && !spins;
        (self.spins, self.turned_over, self.turned_at) = (spins, true, now);
        self.refer_anew(now);
        if in_vain {
            self.try_for = (2 * self.try_for).min(TRY[1]);
            self.law = self.law_before;
        } else {
            self.law_before = self.law;
            self.law.begin_anew(spins);
        }
    }

    /// Whether it is to come to its yields: guests may be there, or it is counted there. While guests wait until they may come again, a yield
    /// that finds nobody would only cost it what it runs ahead.
    fn meets_guests(&self, area: &Area, now: u64) -> bool {
        let waits = self.phase == Phase::Alone && !self.law.allows(now) && !ring::is_hooked(area);
        !self.spins && !waits && area.slept.load(Relaxed) == 0
    }

    /// When to look again.
    fn look_at(&self, now: u64, others: bool, guests: u32) -> u64 {
        let soon = if others { 100_000 } else { 300_000 };
        match self.phase {
            Phase::Reference | Phase::Look | Phase::RestLook if self.naps => self.window.look_at(now, soon),
            // Who comes is seen in the round in which it comes.
            Phase::Alone if guests == 0 => u64::MAX,
            Phase::Reference | Phase::Look if self.spins => now + 500_000,
            Phase::Reference | Phase::Look | Phase::RestLook => now + soon,
            Phase::Alone => self.until.max(now + 1_000_000),
            Phase::Guests | Phase::Rest => self.until,
        }
    }
}

impl Step {
    fn go(&self, pace: &mut Pace, region: &'static crate::layout::region::Region) -> u32 {
        self.follow(pace, region);
        match pace.phase {
            // Where there is no CPU but the one it turns round on, guests at home take slices of it that are long to whoever waits for it.
            Phase::Alone if pace.spins && (!self.spare || self.now < pace.until + PATIENCE[1]) => {
                pace.law.ring
            }
            Phase::Alone if pace.law.wants_them_home(self.now) => 0,
            Phase::Alone if self.now < pace.until + PATIENCE[0] || pace.law.allows(self.now) => pace.law.ring,
            Phase::Alone => 0,
            _ => pace.law.ring,
        }
    }

    /// From phase to phase.
    fn follow(&self, pace: &mut Pace, region: &'static crate::layout::region::Region) {
        let area = self.area;
        let mut gone = self.now.saturating_sub(pace.seen_at) as f64;
        pace.seen_at = self.now;
        let in_window = pace.naps && matches!(pace.phase, Phase::Reference | Phase::Look | Phase::RestLook);
        // First this, since what it ran is exact while it sleeps.
        let asleep = in_window && Processes::seen(area) == Seen::Asleep;
        if pace.naps {
            gone = self.ran(pace);
        }
        if pace.switched != self.switched && pace.naps {
            self.refer_to_other_sites(pace);
        }
        pace.switched = self.switched;
        let with = area.obeyed.load(Acquire) & (GUESTS | SPINS) != 0 && area.guests.load(Relaxed) > 0;
        if area.slept.load(Relaxed) == 0 {
            pace.law.passes(gone);
            add(&self.page.slowdown.watched, gone);
            if with {
                pace.uncharged += gone;
                add(&self.page.slowdown.with_guests, gone);
            } else {
                // Caches are not its own again at once.
                let short = gone.min(pace.tail);
                pace.tail -= short;
                let lost = 1.0 - pace.rest.kept();
                pace.law.charge(short, lost);
                add(&self.page.slowdown.lost, short * lost);
            }
        }
        let order = area.order.load(Relaxed);
        // Again and again, since a hook that meets a thread on its way out of the control context is lost.
        if area.obeyed.load(Acquire) != order {
            ring::hook(area);
        }
        let counted =
            if in_window { self.window_is_over(pace, asleep) } else { area.done.load(Acquire) == order };
        let given_up =
            self.now.saturating_sub(pace.ordered_at) > GIVE_UP[usize::from(pace.spins || pace.naps)];
        let guests = area.guests.load(Relaxed);
        match pace.phase {
            Phase::Alone if guests > 0 && self.now >= pace.until && pace.law.allows(self.now) => {
                self.refer(pace);
            }
            Phase::Reference if counted || given_up => {
                let spins = self.waits(pace);
                if spins != pace.spins {
                    // What is counted of it is another thing from now on.
                    pace.turn_over(spins, self.now);
                    return self.refer(pace);
                }
                pace.turned_over = false;
                pace.try_for = if spins { TRY[0] } else { pace.try_for };
                let alone = self.alone(pace);
                if let Some(mean) = alone.filter(|_| !spins) {
                    pace.rest.saw(mean.ticks[0]);
                    if pace.rest.is_due(self.now) {
                        pace.rest.begin(self.now);
                        return self.rest(pace);
                    }
                }
                pace.reference.saw(alone, pace.naps);
                let weight = if pace.reference.looks() > 1 { 0.125 } else { 1.0 };
                pace.idle += (self.idle() - pace.idle) * weight;
                self.look(pace, region);
                pace.spell_began = self.now;
            }
            Phase::Rest if self.now >= pace.until => {
                self.order(pace, ALONE | COUNTING);
                pace.phase = Phase::RestLook;
            }
            Phase::RestLook if counted || given_up => {
                let slept = area.slept.load(Relaxed) != 0;
                if slept {
                    pace.rest.put_off(self.now);
                }
                if slept || pace.rest.look(self.now, self.alone(pace).map(|mean| mean.ticks[0])) {
                    self.leave_alone(pace);
                    pace.tail = 0.0;
                    pace.law.owes((1.0 - pace.rest.kept()) * cache_recovery::TAIL as f64);
                } else {
                    self.rest(pace);
                }
            }
            Phase::Look if counted || given_up => self.looked(pace, region),
            Phase::Guests if self.now >= pace.until => {
                let idly = if pace.law.allows_all() { IDLY } else { 1 };
                if self.now.saturating_sub(pace.spell_began) > idly * SPELL[usize::from(pace.naps)] {
                    self.leave_alone(pace);
                } else if guests == 0 {
                    pace.until = self.now + LOOK[1];
                } else {
                    self.look(pace, region);
                }
            }
            _ => {}
        }
    }

    /// Whether it waits by turning round, or is to be looked at as if it did: for how much of its time it does is only told by
    /// works, since one that is behind with them turns round once between two.
    fn waits(&self, pace: &Pace) -> bool {
        let turns = || self.area.turned.load(Relaxed) != 0 && self.now > pace.turned_at + pace.try_for;
        self.is_obeyed() && if pace.spins { self.idle() > IDLE } else { turns() }
    }

    /// Orders a look without guests.
    fn refer(&self, pace: &mut Pace) {
        let naps = self.naps && !pace.spins;
        if naps != pace.naps {
            pace.naps = naps;
            pace.refer_anew(self.now);
            self.ran(pace);
        }
        self.order(pace, ALONE | COUNTING);
        pace.phase = Phase::Reference;
    }

    /// Orders that guests wait, and nothing is counted, for a while.
    fn rest(&self, pace: &mut Pace) {
        self.order(pace, ALONE);
        pace.phase = Phase::Rest;
        pace.until = self.now + cache_recovery::STEP;
    }

    /// Orders a look with guests.
    fn look(&self, pace: &mut Pace, region: &'static crate::layout::region::Region) {
        self.choose_suspect(pace, region);
        self.order(pace, if pace.spins { SPINS } else { GUESTS } | COUNTING);
        pace.phase = Phase::Look;
    }

    /// The share of time for which it waited by turning round, of that which was counted.
    fn idle(&self) -> f64 {
        let [idle, since, until] = [&self.area.idle, &self.area.idle_since, &self.area.idle_until]
            .map(|ticks| ticks.load(Relaxed) as f64);
        if until > since { (idle / (until - since)).min(1.0) } else { 0.0 }
    }

    fn order(&self, pace: &mut Pace, what: u32) {
        let what = match what & COUNTING {
            COUNTING if pace.spins => what | WAITS,
            COUNTING if pace.naps => what | NAPS,
            _ => what,
        };
        (pace.window, pace.work) = (Window::default(), None);
        let number = self.area.order.load(Relaxed) & !(NUMBER - 1);
        self.area.order.store(number.wrapping_add(NUMBER) | what, Release);
        pace.ordered_at = self.now;
        ring::hook(self.area);
    }

    pub(crate) fn leave_alone(&self, pace: &mut Pace) {
        pace.spell = [0.0; 2];
        pace.tail = if pace.spins { 0.0 } else { cache_recovery::TAIL as f64 };
        self.order(pace, ALONE);
        pace.phase = Phase::Alone;
        pace.until = self.now + SETTLE;
    }

    /// What was counted of it alone.
    fn alone(&self, pace: &Pace) -> Option<Mean> {
        if pace.naps {
            let ticks = pace.work.and_then(Work::pace)?;
            return Some(Mean { ticks: [ticks; 2], error: 0.0 });
        }
        if self.is_obeyed() { self.mean(row::PLAIN, self.lap(0)).filter(|_| self.are_enough()) } else { None }
    }

    /// Of works, few tell nothing.
    fn are_enough(&self) -> bool {
        self.area.obeyed.load(Relaxed) & WAITS == 0
            || self.area.taken.load(Relaxed) as i32 * self.lap(0) >= busy_waits::FEW
    }

    fn lap(&self, guests: usize) -> i32 {
        self.area.laps[guests].load(Relaxed)
    }

    pub(crate) fn is_obeyed(&self) -> bool {
        self.area.obeyed.load(Acquire) == self.area.order.load(Relaxed)
    }

    /// The pace with guests is counted, or could not be.
    fn looked(&self, pace: &mut Pace, region: &'static crate::layout::region::Region) {
        let area = self.area;
        pace.phase = Phase::Guests;
        pace.until = self.now + LOOK[1];
        let gone = area.slept.load(Relaxed) != 0 || area.guests.load(Relaxed) == 0;
        if gone && pace.work.is_none() {
            return; // then nobody cost anything
        }
        if pace.naps {
            let (lost, doubt, compared) = self.lost_by_work(pace);
            return self.conclude(pace, region, lost, doubt, compared);
        }
        let waited = self.now.saturating_sub(pace.ordered_at).max(1) as f64;
        // Guests that cannot be compared cost at most what they may stay, each time.
        let bound = |yields: f64| (yields * self.page.max_absence_ns as f64 / waited).min(1.0);
        let alone = area.cur.load(Acquire) == area.own().pointer();
        let few = f64::from(2 * count::FEW);
        let with = self
            .mean(row::ABOARD, self.lap(usize::from(!pace.spins)))
            .filter(|_| self.is_obeyed() && self.are_enough());
        let (lost, doubt, compared) = match (pace.reference.mean(), with) {
            (Some(own), Some(with)) => {
                let kept = if pace.spins { 1.0 } else { pace.rest.kept() };
                let lost = [0, 1].map(|i| (1.0 - kept * own.ticks[i] / with.ticks[i]).clamp(-0.5, 1.0));
                let idles = if pace.spins { 1.0 } else { own.idles() };
                (
                    lost[0] + idles * (lost[1] - lost[0]).max(0.0),
                    (own.error / with.ticks[0]).min(MOST_DOUBT),
                    true,
                )
            }
            // It did not come to a yield: it runs, or one guest does.
            (_, None) if !self.is_obeyed() => (f64::from(u8::from(!alone)), 0.0, false),
            // What it did not wait is all that guests may have cost.
            (_, None) if pace.spins => (1.0 - self.idle(), 0.0, false),
            // Yields are frequent of a sudden: alone again first.
            (None, Some(_)) => {
                pace.law.charge(pace.uncharged, 1.0);
                self.note(pace, 1.0, 0.0, false);
                return self.leave_alone(pace);
            }
            (Some(own), None) => {
                ((1.0 - own.ticks[0] * few / (waited * self.rate)).clamp(0.0, 1.0), 0.0, false)
            }
            (None, None) => (bound(few), 0.0, false),
        };
        self.conclude(pace, region, lost, doubt, compared);
    }

    /// With guests such a share was lost: what follows.
    fn conclude(
        &self,
        pace: &mut Pace,
        region: &'static crate::layout::region::Region,
        lost: f64,
        doubt: f64,
        compared: bool,
    ) {
        let area = self.area;
        // Whoever waits for what it has to do makes others wait in turn: their waits grow by the load over what is idle.
        // That guests are a gain is no credit: it was something else that held up the primary when it was looked at alone.
        let strain = if pace.spins { (lost / pace.idle.max(IDLE)).clamp(-GAIN, 1.0) } else { lost };
        pace.law.charge(pace.uncharged, strain);
        self.note(pace, lost, doubt, compared);
        let suspect = self.judge(region);
        if pace.spins && are_too_long(area.long_turns.load(Relaxed), area.all_turns.load(Relaxed)) {
            match self.guests(region).next() {
                Some(home) if area.guests.load(Relaxed) == 1 => self.ban(home, trip::STAYED),
                _ => pace.law.make_shorter(self.now),
            }
        }
        match pace.law.sample(self.now, strain) {
            Verdict::Goes => {
                // Looks at works take longer, and are all that tells.
                let soon = pace.spins || pace.naps || self.now.saturating_sub(pace.spell_began) < LOOK[1];
                pace.until = self.now + LOOK[usize::from(!soon)];
            }
            Verdict::Waits => self.leave_alone(pace),
            Verdict::Hopeless => {
                self.leave_alone(pace);
                let guests = area.guests.load(Relaxed);
                let alone = || self.guests(region).next().filter(|_| guests == 1);
                if let Some(home) = suspect.or_else(alone) {
                    self.ban(home, trip::SLOWED);
                    pace.law.try_others();
                }
            }
        }
    }

    /// Of what was not yet charged, such a share was lost.
    pub(crate) fn note(&self, pace: &mut Pace, lost: f64, doubt: f64, compared: bool) {
        let sums = &self.page.slowdown;
        let time = core::mem::take(&mut pace.uncharged);
        add(&sums.lost, time * lost);
        add(&sums.doubt, time * doubt);
        page::add(&sums.spells, u64::from(pace.spell[0] <= 0.0 && time > 0.0));
        let squares = |spell: [f64; 2]| [spell[0] * spell[0], spell[0] * spell[1], spell[1] * spell[1]];
        let before = squares(pace.spell);
        pace.spell = [pace.spell[0] + time, pace.spell[1] + time * lost];
        for (sum, (after, before)) in sums.squares.iter().zip(squares(pace.spell).into_iter().zip(before)) {
            add(sum, after - before);
        }
        page::add(&sums.samples, 1);
        page::add(&sums.bounded, u64::from(!compared));
        let tid = self.area.tid.load(Relaxed);
        if let Some(row) = self.page.area.iter().find(|row| row.tid.load(Relaxed) == tid) {
            let slower = (lost / (1.0 - lost).max(1e-3)).clamp(0.0, 1000.0);
            row.slower.store((slower * 1e6) as u32, Relaxed);
            row.known.store(1, Relaxed);
        }
    }
}

/// To a floating-point number that only the supervisor writes.
fn add(sum: &AtomicU64, value: f64) {
    sum.store((f64::from_bits(sum.load(Relaxed)) + value).to_bits(), Relaxed);
}

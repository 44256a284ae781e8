//! Threads that are each other's guests: whether they get more done so than one after the other.
//!
//! A host's thread is timed twice, one right after the other: its turns while its guests are aside,
//! and rounds with all of them. Threads of a program are taken to be alike, so
//!
//! ```text
//!            contexts in the ring x a turn alone
//!   gain  =  -----------------------------------
//!                    a round with all
//! ```
//!
//! Where misses are waited for, a round takes hardly longer than a turn; where a thread's own
//! misses overlap, or it computes, a round is as long as all turns one after the other, and
//! switches come on top. A host that leaves its twins all the time, for a library's function, takes
//! longer to hook and to unhook its ring than its guests can gain: it comes to the end of no lap.
//! Guests that leave all the time are there for moments only, and come to no trial at all: that
//! none ended for a while, although threads might have met, is told like one that went badly.
//!
//! Where little is gained twice in a row, all go home, and yields are off, for a quarter of a
//! second: meanwhile they run as the kernel schedules them. Where it is no better afterwards, they
//! pause again, for some forty times as long as it took to find that out.

use crate::counting::count::{COUNTING, GUESTS, SPINS, TURNS, row};
use crate::layout::area::{Area, kind};
use crate::layout::context::state;
use crate::layout::region::SLOTS;
use crate::supervisor::Supervisor;
use crate::supervisor::processes::ASLEEP;
use crate::supervisor::slowdown::sampler::GIVE_UP_NS;
use crate::supervisor::slowdown::samples;
use crate::switching::ring;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// The time to a trial from a host's first guest, or from a trial that went badly or had no end.
const SOON_NS: u64 = 3_000_000;
/// The same from a trial that went well.
const EVERY_NS: u64 = 100_000_000;
/// Less than this is no gain: a turn alone is timed in caches that others have used.
const GAIN: f64 = 1.2;
/// A turn alone is timed with its yields on, which take space in the core while loads overlap: as
/// long as this many switches, as three loops over the edges of graphs had it.
const PASS_SWITCHES: f64 = 3.0;
/// Of one that is hardly longer nothing is known but that it is short.
const LEAST_PART: f64 = 0.1;

/// A host whose laps end before their time this often in a trial, [`GIVE_UP_NS`], is outside every
/// hundred microseconds or more often.
const TORN_LAPS: u32 = 40;

/// So long threads may have met without a trial that told something, besides the time until the
/// next one is due.
const UNJUDGED_NS: u64 = 15_000_000;

/// A pause is this many times as long as the trial before it: trials take a fortieth of the time,
/// and lose half of that at worst.
const PAUSE_TRIALS: u64 = 40;
/// The shortest pause, which is the first, and the longest: threads that build what they chase
/// through afterwards are not to be left apart for long.
const PAUSE_NS: u64 = 250_000_000;
const PAUSE_MOST_NS: u64 = 2_000_000_000;

/// When all stay at home, since little was gained. Zero is before anything was tried.
#[derive(Clone, Copy, Default)]
struct Rests {
    /// Until when, or when the last pause ended; 0: there was none since something was gained.
    until: u64,
    failed: bool,
    /// For how long threads may have met since a trial told something, and that it told of a gain.
    unjudged_ns: u64,
    gained: bool,
}

impl Rests {
    fn pauses(self, now: u64) -> bool {
        now < self.until
    }

    fn gained(&mut self) {
        *self = Self { gained: true, ..Self::default() };
    }

    /// Threads may have met for so long, or rested. That no trial tells anything for too long is
    /// told like one that went badly.
    fn met(&mut self, now: u64, passed: u64) {
        if self.pauses(now) {
            return;
        }
        self.unjudged_ns += passed;
        if self.unjudged_ns > UNJUDGED_NS + if self.gained { EVERY_NS } else { 0 } {
            self.gained_little(now);
        }
    }

    /// Twice in a row begins a pause; after one, once is enough. Trials of other hosts that end
    /// while they pause say nothing new.
    fn gained_little(&mut self, now: u64) {
        (self.unjudged_ns, self.gained) = (0, false);
        if self.pauses(now) {
            return;
        }
        let tried = if self.until > 0 { now.saturating_sub(self.until) } else { 0 };
        if self.until > 0 || self.failed {
            self.until = now + (PAUSE_TRIALS * tried).clamp(PAUSE_NS, PAUSE_MOST_NS);
        }
        self.failed = true;
    }
}

/// What is being timed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Trial {
    #[default]
    None,
    /// Turns of the host's thread alone.
    Alone,
    /// Rounds with all guests.
    Rounds,
}

/// What is known of one host. Zero is one that has not begun.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostTrial {
    tid: i32,
    trial: Trial,
    guests: u32,
    /// When the next trial begins, or the present stage of it did.
    at: u64,
    /// Ticks of a turn alone.
    alone: f64,
}

/// What is known of all of them.
pub(crate) struct SiblingsGain {
    /// By slot. `None`: there are no siblings, or no memory for it.
    trials: Option<&'static mut [HostTrial; SLOTS]>,
    /// All stay at home while it pauses.
    rests: Rests,
    /// They may meet at their yields in this round.
    pub(crate) meet: bool,
}

impl SiblingsGain {
    pub(crate) fn new(trials: Option<&'static mut [HostTrial; SLOTS]>) -> Self {
        Self { trials, rests: Rests::default(), meet: false }
    }
}

/// How many times as much is done by `contexts` that take a round together as by one after the
/// other, of which a turn takes `alone`. Pure.
fn gain(contexts: f64, alone: f64, round: f64, switch: f64) -> f64 {
    contexts * (alone - PASS_SWITCHES * switch).max(LEAST_PART * alone) / round.max(1.0)
}

impl Supervisor {
    /// Whether all siblings stay at home for now.
    pub(crate) fn siblings_rest(&self) -> bool {
        self.siblings_gain.rests.pauses(self.now)
    }

    /// Times turns of hosts, and judges by them, or by that none came to an end.
    pub(crate) fn time_turns(&mut self) {
        if self.clock.rate <= 0.0 {
            return;
        }
        let passed = self.now.saturating_sub(self.looked_at);
        if self.siblings_gain.meet {
            self.siblings_gain.rests.met(self.now, passed);
        }
        for slot in 0..self.region.slots() {
            let tid = self.region.tid(slot);
            let area = self.region.area(slot);
            if tid != 0 && area.kind.load(Acquire) == kind::PRIMARY {
                self.time_turns_of(slot, area, tid);
            }
        }
    }

    fn time_turns_of(&mut self, slot: usize, area: &'static Area, tid: i32) {
        let (now, rests, switch) = (self.now, self.siblings_rest(), self.switch_ticks());
        let SiblingsGain { trials, rests: outcomes, .. } = &mut self.siblings_gain;
        let Some(it) = trials.as_mut().map(|all| &mut all[slot]) else { return };
        let guests = area.supervisor.guests.load(Relaxed);
        if it.tid != tid || it.trial == Trial::None && (guests == 0 || rests) {
            *it = HostTrial { tid, at: now + SOON_NS, ..HostTrial::default() };
            return;
        }
        let there = area.own().state.load(Acquire) == state::HOME
            && area.supervisor.slept.load(Relaxed) != ASLEEP
            && guests > 0;
        let counted = area.counting.done() == area.orders.order.load(Relaxed);
        match it.trial {
            Trial::None if now >= it.at && there => {
                (it.trial, it.guests, it.at) = (Trial::Alone, guests, now);
                area.orders.set_limits(self.page, self.clock.rate);
                order(area, COUNTING | TURNS);
            }
            Trial::None => self.wake_at = self.wake_at.min(it.at.max(now)),
            _ if !there || now.saturating_sub(it.at) > GIVE_UP_NS => {
                (it.trial, it.at) = (Trial::None, now + SOON_NS);
                let obeyed = area.counting.obeyed() == area.orders.order.load(Relaxed);
                if obeyed && area.counting.torn() >= TORN_LAPS {
                    outcomes.gained_little(now);
                }
                order(area, GUESTS | SPINS);
            }
            Trial::Alone if counted => {
                it.alone = ticks(area, false).unwrap_or(0.0);
                (it.trial, it.at) = (Trial::Rounds, now);
                order(area, GUESTS | SPINS | COUNTING | TURNS);
            }
            Trial::Rounds if counted => {
                let round = ticks(area, true).filter(|_| it.alone > 0.0);
                (it.trial, it.at) = (Trial::None, now + EVERY_NS);
                order(area, GUESTS | SPINS);
                let contexts = 1.0 + f64::midpoint(f64::from(it.guests), f64::from(guests));
                match round.map(|round| gain(contexts, it.alone, round, switch)) {
                    Some(gained) if gained < GAIN => {
                        outcomes.gained_little(now);
                        it.at = now + SOON_NS;
                    }
                    Some(_) => outcomes.gained(),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// Ticks of a turn, or of a round with all guests, as they were counted.
fn ticks(area: &Area, guests: bool) -> Option<f64> {
    let row = if guests { row::ABOARD } else { row::PLAIN };
    let lap = area.counting.lap(guests);
    samples::mean_of(area.samples(row), area.orders.absence_ticks(), lap).map(|mean| mean.ticks[1])
}

fn order(area: &'static Area, what: u32) {
    area.orders.give(what);
    ring::hook(area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_long_as_the_trial_before_it_is_worth() {
        let (mut it, mut now) = (Rests::default(), 5);
        let mut pauses = Vec::new();
        for trial_ns in [3_000_000, 3_000_000, 1_000_000, 20_000_000, 300_000_000, 4_000_000] {
            now += trial_ns;
            it.gained_little(now);
            pauses.push(if it.pauses(now) { (it.until - now) / 1_000_000 } else { 0 });
            let until = it.until;
            if it.pauses(now) {
                it.gained_little(now + 1);
            }
            assert_eq!(it.until, until, "another host's trial");
            now = now.max(it.until);
        }
        assert_eq!(pauses, [0, 250, 250, 800, 2000, 250]);
        it.gained();
        it.gained_little(now);
        assert!(!it.pauses(now), "once is not enough after a gain");
    }

    #[test]
    fn a_process_without_a_trial_gains_nothing() {
        let (mut it, now) = (Rests::default(), 5);
        let judged_after = |it: &mut Rests, ns| {
            it.met(now, ns);
            let not_before = it.unjudged_ns == ns;
            it.met(now, 1);
            not_before && it.unjudged_ns == 0
        };
        assert!(judged_after(&mut it, UNJUDGED_NS) && it.failed && !it.pauses(now));
        it.gained();
        assert!(judged_after(&mut it, UNJUDGED_NS + EVERY_NS) && it.failed && !it.pauses(now));
        assert!(judged_after(&mut it, UNJUDGED_NS) && it.pauses(now), "twice in a row");
    }

    #[test]
    fn chases_gain_and_what_overlaps_alone_does_not() {
        let gain = |contexts: f64, alone: f64, round: f64| super::gain(contexts, alone, round, 10.0);
        // Misses of 400 ticks.
        assert!(gain(2.0, 400.0, 420.0) > 1.7 && gain(8.0, 400.0, 8.0 * 60.0) > 6.0);
        // Edges of a graph, which take 15 ticks each, and 55 with yields that are passed by.
        assert!(gain(8.0, 55.0, 310.0) < 0.7 && gain(8.0, 30.0, 8.0 * 30.0) < 0.2);
        // Turns of a thousand ticks that end at bounds.
        assert!(gain(4.0, 1000.0, 4.0 * 1015.0) < GAIN);
    }
}

//! Guests that stay aboard longer than others, or longer than `--max-absence` allows.
//!
//! Each guest in turn has its stays timed ([`crate::counting::count`]); one whose stays are too
//! long is banned: it goes home and is not boarded for a time that doubles with each offence and is
//! forgotten with good conduct.

use super::sampler::{SampleStep, ThreadPace};
use crate::counting::count::{self, row};
use crate::layout::area::{Area, kind};
use crate::layout::context::state;
use crate::supervisor::figures::{BAN_MOST_NS, BAN_NS, FORGIVEN_AFTER_BANS, TOO_LONG};
use crate::switching::ring;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// The ban after this many offences.
fn ban_ns(times: u32) -> u64 {
    (BAN_NS << times.saturating_sub(1).min(16)).min(BAN_MOST_NS)
}

/// How many of `times` offences still count after `good` nanoseconds without one: accidents hours
/// apart do not add up.
fn not_forgiven(mut times: u32, mut good: u64) -> u32 {
    // Offences beyond those of the longest ban say nothing more.
    times = times.min((BAN_MOST_NS / BAN_NS).ilog2() + 2);
    while times > 0 && good >= FORGIVEN_AFTER_BANS * ban_ns(times) {
        good -= FORGIVEN_AFTER_BANS * ban_ns(times);
        times -= 1;
    }
    times
}

/// The offences of one guest, and until when it is banned. Pure; it is kept in the home's area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bans {
    offences: u32,
    until: u64,
}

impl Bans {
    pub(crate) fn of(home: &Area) -> Self {
        let words = &home.supervisor;
        Self { offences: words.offences.load(Relaxed), until: words.banned_until.load(Relaxed) }
    }

    fn keep(self, home: &Area) {
        home.supervisor.offences.store(self.offences, Relaxed);
        home.supervisor.banned_until.store(self.until, Relaxed);
    }

    /// Whether the guest may not be boarded now.
    pub(crate) fn hold(self, now: u64) -> bool {
        self.until > now
    }

    /// The guest is banned for a while, which doubles each time.
    pub(crate) fn begin(home: &Area, now: u64) {
        Self::of(home).after_offence(now).keep(home);
    }

    #[must_use]
    fn after_offence(self, now: u64) -> Self {
        let good = now.saturating_sub(self.until);
        let offences = not_forgiven(self.offences, good) + 1;
        Self { offences, until: now + ban_ns(offences) }
    }
}

impl SampleStep {
    /// Judges the stays of the suspect: bans it if they are too long.
    pub(crate) fn judge(&self, region: &'static crate::layout::region::Region) {
        let suspect = self.area.orders.suspect.load(Relaxed);
        let Some(home) = self.guests(region).find(|home| home.own().pointer() == suspect) else { return };
        let stays = self.area.samples(row::STAY);
        let many = stays.iter().filter(|stay| stay.load(Relaxed) != 0).count();
        let Some(mean) = self.mean(row::STAY, 1) else { return };
        home.supervisor.stay.store(mean.ticks[0] as u64, Relaxed);
        let bound = self.area.orders.absence_ticks.load(Relaxed);
        let long = stays.iter().filter(|stay| u64::from(stay.load(Relaxed)) > bound).count();
        if many >= count::SAMPLES / 4 && long >= TOO_LONG {
            self.ban(home, trip::STAYED);
        }
    }

    /// Sends a guest home, and keeps it there for a while.
    pub(crate) fn ban(&self, home: &Area, why: usize) {
        Bans::begin(home, self.now);
        home.own().recall.store(why as u32, Relaxed);
        ring::hook(self.area);
    }

    /// Chooses whose stays are timed next: a guest without a sample yet, else each in turn.
    pub(crate) fn choose_suspect(
        &self,
        pace: &mut ThreadPace,
        region: &'static crate::layout::region::Region,
    ) {
        let guests = self.area.supervisor.guests.load(Relaxed).max(1);
        pace.turn = pace.turn.wrapping_add(1);
        let new = self.guests(region).find(|home| home.supervisor.stay.load(Relaxed) == 0);
        if let Some(home) = new.or_else(|| self.guests(region).nth((pace.turn % guests) as usize)) {
            self.area.orders.suspect.store(home.own().pointer(), Release);
        }
    }

    /// The homes of the guests aboard.
    pub(crate) fn guests(
        &self,
        region: &'static crate::layout::region::Region,
    ) -> impl Iterator<Item = &'static Area> + use<> {
        let here = core::ptr::from_ref(self.area).cast_mut();
        (0..region.slots())
            .filter(move |slot| region.tid(*slot) != 0)
            .map(move |slot| region.area(slot))
            .filter(|home| home.kind.load(Acquire) == kind::HOME)
            .filter(move |home| {
                home.own().state.load(Acquire) == state::ABOARD && home.own().host.load(Relaxed) == here
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_grow_with_offences_at_once_and_single_offences_are_forgiven() {
        // The bans in milliseconds, with `good` nanoseconds between the end of one and the next
        // offence.
        let kept = |good: u64| {
            let mut bans = Bans::default();
            let mut now = 1_000_000_000;
            let lengths = std::iter::repeat_with(|| {
                bans = bans.after_offence(now);
                assert!(bans.hold(now) && !bans.hold(bans.until));
                let length = bans.until - now;
                now = bans.until + good;
                length / 1_000_000
            });
            lengths.take(9).collect::<Vec<_>>()
        };
        assert_eq!(kept(1_000_000), [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(kept(500_000_000), [100, 100, 100, 100, 100, 100, 100, 100, 100]);
        assert_eq!(not_forgiven(1000, 9_999_000_000), 7, "as many as make the longest");
        assert_eq!(not_forgiven(1000, 60_000_000_000), 0);
    }
}

//! Which level serves a load, judged by how much memory its addresses are spread over, and over how
//! much of it at a time.
//!
//! Samples show only addresses that the core waited for. If these fit into a cache, that cache
//! holds them, since the program reads them again and again; if they do not, the level behind it
//! serves most of them, unless what is read within a short time fits, and is read again (see
//! `reuse.rs`). This is a model, not a measurement: other data competes for the caches, and
//! a line that another core writes is not told. So a level is named only if the whole interval of
//! the footprint lies in it.

use crate::data::footprint::footprint_bytes;
use crate::data::reuse::{AtATime, Reuse};
use crate::probes::latency::{ASTRAY, Latency};
use records::profile::Level;
use units::{Bytes, Estimate};

/// The sizes of a core's caches, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSizes {
    pub l1: Option<Bytes>,
    pub l2: Option<Bytes>,
    pub l3: Option<Bytes>,
    /// What of L3 this machine has in any case; a guest shares it with others. All of it, if none.
    pub own_l3: Option<Bytes>,
}

/// A level with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub level: Level,
    /// Neither L1 nor L2 serves it, even where the level is not resolved.
    pub beyond_l2: bool,
    pub because: String,
    pub footprint: Option<Estimate>,
    /// What it works on at a time, where that is less, and is read again.
    pub at_a_time: Option<Estimate>,
    /// Its addresses fit into a cache of the core's own, and its lines come from farther all the
    /// same.
    pub is_farther: bool,
    /// L3 or memory serves it: it fits into the L3 that the machine shares with others, and how
    /// much of that it has is not known.
    pub is_shared: bool,
}

/// The level that serves loads of these addresses; `step` is from one to the next, if they are a
/// stream.
pub(crate) fn judge(addresses: &[u64], step: Option<i64>, caches: &CacheSizes) -> Judged {
    let judged = |level, beyond_l2, because, footprint| Judged {
        level,
        beyond_l2,
        because,
        footprint,
        at_a_time: None,
        is_farther: false,
        is_shared: false,
    };
    let Some(footprint) = footprint_bytes(addresses, step) else {
        let because = format!("only {} addresses were sampled", addresses.len());
        return judged(Level::Unresolved, false, because, None);
    };
    let (Some(l1), Some(l2)) = (caches.l1, caches.l2) else {
        let because = "the sizes of the caches are not known".to_owned();
        return judged(Level::Unresolved, false, because, Some(footprint));
    };
    let level_of = |bytes: f64| holder(bytes, l1, l2, caches.l3);
    let (least, most) = (level_of(footprint.lo), level_of(footprint.hi));
    let is_shared = most == Level::L3 && caches.own_l3.is_some_and(|own| footprint.hi > own.0 as f64);
    let beyond_l2 = matches!(least, Level::L3 | Level::Dram);
    let says = |bytes: f64| Bytes(bytes as u64);
    if least == most {
        let because = if footprint.hi.is_infinite() {
            format!("its addresses are spread over {} at least", says(footprint.lo))
        } else {
            format!("its addresses are spread over about {}", says(footprint.value))
        };
        if is_shared {
            let l3 = caches.l3.unwrap_or_default();
            let because =
                format!("{because}; {l3} of L3 are shared with others (gleaner measure tells how much)");
            let judged = judged(Level::Unresolved, true, because, Some(footprint));
            return Judged { is_shared, ..judged };
        }
        return judged(least, beyond_l2, because, Some(footprint));
    }
    let most = if footprint.hi.is_infinite() { "more".to_owned() } else { says(footprint.hi).to_string() };
    let because = format!("its addresses are spread over {} to {most}", says(footprint.lo));
    judged(Level::Unresolved, beyond_l2, because, Some(footprint))
}

/// The nearest level that holds this much.
fn holder(bytes: f64, l1: Bytes, l2: Bytes, l3: Option<Bytes>) -> Level {
    let levels = [(Level::L1, Some(l1)), (Level::L2, Some(l2)), (Level::L3, l3)];
    let holds = |size: &Option<Bytes>| size.is_some_and(|size| bytes <= size.0 as f64);
    levels.iter().find(|(_, size)| holds(size)).map_or(Level::Dram, |(level, _)| *level)
}

/// How much less than all of its addresses a load must work on at a time for that to count.
const MUCH_LESS: f64 = 0.5;

impl Judged {
    /// With what it works on at a time.
    #[must_use]
    pub(crate) fn at_a_time(self, reuse: &Reuse, caches: &CacheSizes) -> Self {
        let (Some(l1), Some(l2), Some(all)) = (caches.l1, caches.l2, self.footprint) else { return self };
        let is_less = |found: &AtATime| found.bytes.hi < MUCH_LESS * all.lo;
        let for_long = |found: &AtATime| {
            let (most, ms) = (Bytes(found.bytes.hi as u64), found.ns as f64 / 1e6);
            format!("{}, but over {most} at most within {ms:.1} ms", self.because)
        };
        match reuse {
            Reuse::Within(found) if self.level != Level::L1 && is_less(found) => {
                let [least, most] = [found.bytes.lo, found.bytes.hi].map(|it| holder(it, l1, l2, caches.l3));
                let is_own = caches.own_l3.is_none_or(|own| found.bytes.hi <= own.0 as f64);
                let is_known =
                    most == Level::L1 || found.is_settled && least == most && (most != Level::L3 || is_own);
                let level = if is_known { most } else { Level::Unresolved };
                let more = if is_known || found.is_settled { "" } else { ", or less in a shorter time" };
                let because = format!("{}{more}, where it reads most again", for_long(found));
                let beyond_l2 = found.is_settled && matches!(least, Level::L3 | Level::Dram);
                Self { level, beyond_l2, because, at_a_time: Some(found.bytes), ..self }
            }
            Reuse::Doubtful(found) if self.beyond_l2 && is_less(found) => {
                let because = format!("{}: it may read much of that again", for_long(found));
                Self { level: Level::Unresolved, beyond_l2: false, because, ..self }
            }
            _ => self,
        }
    }

    /// With what its probes saw. That a line came from memory is measured; which cache it came from
    /// otherwise is not, so that stays judged by the footprint. `threads` execute the load.
    ///
    /// Nor does it tell much that lines are near when a thread is stopped: the core fetched them
    /// ahead of a stream, or executed the load before it came to the instruction in front.
    /// Only a chain's next address is not known so early; `is_alone` tells that no other chain is
    /// in its loop, in which the core would go ahead while this one waits.
    #[must_use]
    pub(crate) fn with_probes(self, seen: Option<&Latency>, threads: usize, is_alone: bool) -> Self {
        let Some(seen) = seen else { return self };
        let share = 100.0 * seen.from_memory.value;
        let beyond = seen.time_in_memory_beyond_l2();
        let time = if self.beyond_l2 { beyond.value } else { seen.time_in_memory };
        let is_cached = self.at_a_time.is_some() || matches!(self.level, Level::L1 | Level::L2 | Level::L3);
        if is_cached && seen.from_memory.value < seen.astray {
            if self.at_a_time.is_none() {
                return self;
            }
            let because = format!("{}; {share:.0}% of {} probes went to memory", self.because, seen.probes);
            return Self { because, ..self };
        }
        if self.at_a_time.is_some() && seen.from_memory.value < 0.5 {
            let because =
                format!("{}; but {share:.0}% of {} probes went to memory", self.because, seen.probes);
            return Self { level: Level::Unresolved, beyond_l2: false, because, ..self };
        }
        if seen.time_in_memory >= 0.5 && self.level == Level::L1 && threads > 1 {
            // Lines that are read again and again do not come from memory each time.
            let because = format!(
                "{}, and yet {share:.0}% of {} probes took longer than a cache: other cores take its lines",
                self.because, seen.probes
            );
            return Self { level: Level::Dirty, beyond_l2: true, because, ..self };
        }
        // The few lines of what fits into the core's own caches are there but for when others had
        // the core, and those few probes may take most of the time.
        let is_near = matches!(self.level, Level::L1 | Level::L2);
        // As few as of a load that a cache serves tell nothing, however long they took.
        let is_seen = seen.from_memory.value >= if is_near { 0.5 } else { seen.astray };
        if time >= 0.5 && is_seen {
            let because = format!(
                "{share:.0}% of {} probes went to memory, and took {:.0}% of the time",
                seen.probes,
                100.0 * time
            );
            return Self { level: Level::Dram, beyond_l2: true, because, is_farther: is_near, ..self };
        }
        let is_l3 = seen.from_memory.value < seen.astray || beyond.hi < 0.5;
        if self.is_shared && is_alone && is_l3 {
            let because = format!("{}; {share:.0}% of {} probes went to memory", self.because, seen.probes);
            return Self { level: Level::L3, because, ..self };
        }
        if self.level == Level::Dram && is_alone && seen.from_memory.value < ASTRAY / 2.0 {
            let because = format!("{}; but {share:.0}% of {} probes went there", self.because, seen.probes);
            return Self { level: Level::Unresolved, because, ..self };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::random::Xorshift;

    const CACHES: CacheSizes = CacheSizes {
        l1: Some(Bytes(32 << 10)),
        l2: Some(Bytes(1 << 20)),
        l3: Some(Bytes(4 << 20)),
        own_l3: None,
    };

    fn drawn(samples: usize, bytes: u64) -> Vec<u64> {
        let mut random = Xorshift::new(88_172_645_463_325_252);
        (0..samples).map(|_| random.below(bytes)).collect()
    }

    #[test]
    fn the_footprint_names_the_level() {
        for (bytes, level) in
            [(8 << 10, Level::L1), (256 << 10, Level::L2), (2 << 20, Level::L3), (1 << 30, Level::Dram)]
        {
            assert_eq!(judge(&drawn(1024, bytes), None, &CACHES).level, level, "{bytes}");
        }
    }

    #[test]
    fn what_is_read_again_within_a_short_time_counts() {
        let far = judge(&drawn(1024, 1 << 30), None, &CACHES);
        let at_a_time = |kib: u64, is_settled| {
            let bytes = Estimate::exact((kib << 10) as f64);
            far.clone().at_a_time(&Reuse::Within(AtATime { bytes, ns: 400_000, is_settled }), &CACHES)
        };
        let level = |kib, is_settled| at_a_time(kib, is_settled).level;
        assert_eq!((level(16, false), level(16, true)), (Level::L1, Level::L1));
        assert_eq!((level(256, true), level(2048, true)), (Level::L2, Level::L3));
        assert_eq!(level(256, false), Level::Unresolved, "in L1 or in L2");
        assert!(at_a_time(2048, true).beyond_l2 && !at_a_time(2048, false).beyond_l2);
        assert!(at_a_time(16, true).because.contains("16 KiB at most within 0.4 ms"));
        let found = AtATime { bytes: Estimate::exact(1e6), ns: 400_000, is_settled: true };
        let doubtful = far.clone().at_a_time(&Reuse::Doubtful(found), &CACHES);
        assert_eq!((doubtful.level, doubtful.beyond_l2), (Level::Unresolved, false));
        assert_eq!(far.clone().at_a_time(&Reuse::Fresh, &CACHES), far);
        assert_eq!(far.clone().at_a_time(&Reuse::Unknown, &CACHES), far);
        let near = judge(&drawn(1024, 2 << 20), None, &CACHES);
        let same = Reuse::Within(AtATime { bytes: Estimate::exact(2e6), ns: 400_000, is_settled: true });
        assert_eq!(near.clone().at_a_time(&same, &CACHES), near, "it is all that it reads");
        let few = Latency {
            probes: 100,
            mean_ns: Estimate::exact(19.0),
            farther_ns: Estimate::exact(30.0),
            cached_ns: Estimate::exact(2.0),
            hidden_ns: 0.0,
            from_memory: Estimate::exact(0.03),
            time_in_memory: 0.7,
            astray: ASTRAY,
        };
        let with = at_a_time(16, true).with_probes(Some(&few), 2, false);
        assert_eq!(with.level, Level::L1, "each block comes from memory once: {with:?}");
        let some = Latency { from_memory: Estimate::exact(0.23), ..few };
        let with = at_a_time(16, true).with_probes(Some(&some), 1, true);
        assert_eq!((with.level, with.beyond_l2), (Level::Unresolved, false), "one says so, one so");
        let most = Latency { from_memory: Estimate::exact(0.6), ..few };
        assert_eq!(at_a_time(16, true).with_probes(Some(&most), 1, false).level, Level::Dram);
    }

    #[test]
    fn probes_tell_what_came_from_memory() {
        let seen = |time_in_memory| Latency {
            probes: 100,
            mean_ns: Estimate::exact(80.0),
            farther_ns: Estimate::exact(90.0),
            cached_ns: Estimate::exact(2.0),
            hidden_ns: 0.0,
            from_memory: Estimate::exact(if time_in_memory < 0.5 { 0.02 } else { 0.6 }),
            time_in_memory,
            astray: ASTRAY,
        };
        let with = |bytes, time, threads, is_alone| {
            judge(&drawn(1024, bytes), None, &CACHES).with_probes(Some(&seen(time)), threads, is_alone)
        };
        let level = |bytes, time, threads| with(bytes, time, threads, true).level;
        assert_eq!(level(256 << 10, 0.9, 1), Level::Dram, "what is measured counts");
        assert_eq!(level(256 << 10, 0.1, 1), Level::L2);
        let few = Latency { from_memory: Estimate::exact(0.04), ..seen(0.9) };
        let of_few = |is_alone| {
            let between = judge(&drawn(64, 1 << 30), None, &CACHES);
            let large = judge(&drawn(1024, 1 << 30), None, &CACHES);
            [between, large].map(|judged| judged.with_probes(Some(&few), 1, is_alone).level)
        };
        assert_eq!(of_few(false), [Level::Unresolved, Level::Dram], "these few may be since it was stopped");
        assert_eq!(of_few(true), [Level::Unresolved; 2]);
        assert_eq!(level(1 << 30, 0.1, 1), Level::Unresolved, "large, and yet near");
        assert_eq!(with(1 << 30, 0.1, 1, false).level, Level::Dram, "executed ahead");
        let few = Latency { from_memory: Estimate::exact(0.05), ..seen(0.9) };
        let judged = judge(&drawn(1024, 256 << 10), None, &CACHES);
        assert_eq!(judged.clone().with_probes(Some(&few), 1, true).level, Level::L2, "by chance");
        let noisy = Latency { from_memory: Estimate::exact(0.2), astray: 0.3, ..seen(0.9) };
        assert_eq!(judged.with_probes(Some(&noisy), 1, true).level, Level::L2, "as of a known load");
        assert!(with(256 << 10, 0.9, 1, true).is_farther);
        assert!(!with(1 << 30, 0.9, 1, true).is_farther);
        assert_eq!((level(64, 0.9, 2), level(64, 0.9, 1)), (Level::Dirty, Level::Dram));
    }

    #[test]
    fn what_a_guest_has_of_a_shared_cache_only_probes_tell() {
        let caches = CacheSizes { l3: Some(Bytes(64 << 20)), own_l3: Some(Bytes(4 << 20)), ..CACHES };
        let level = |bytes| judge(&drawn(1024, bytes), None, &caches).level;
        assert_eq!((level(2 << 20), level(1 << 30)), (Level::L3, Level::Dram));
        let between = judge(&drawn(1024, 32 << 20), None, &caches);
        assert!(between.level == Level::Unresolved && between.beyond_l2, "{between:?}");
        let seen = |far: f64| Latency {
            probes: 100,
            mean_ns: Estimate::exact(30.0),
            farther_ns: Estimate::exact(90.0),
            cached_ns: Estimate::exact(20.0),
            hidden_ns: 0.0,
            from_memory: Estimate::exact(far),
            time_in_memory: far,
            astray: ASTRAY,
        };
        let with = |far, is_alone| between.clone().with_probes(Some(&seen(far)), 1, is_alone).level;
        assert_eq!((with(0.02, true), with(0.8, true)), (Level::L3, Level::Dram));
        assert_eq!((with(0.02, false), with(0.8, false)), (Level::Unresolved, Level::Dram));
    }

    #[test]
    fn what_a_cache_serves_takes_longer_than_probes_see() {
        // As a core has it that fetches from L3 before it stops: those look like L1.
        let seen = |far: f64| Latency {
            probes: 100,
            mean_ns: Estimate::exact(far * 100.0 + (1.0 - far) * 2.0),
            farther_ns: Estimate::exact(90.0),
            cached_ns: Estimate::exact(2.0),
            hidden_ns: 38.0,
            from_memory: Estimate::exact(far),
            time_in_memory: far * 100.0 / (far * 100.0 + (1.0 - far) * 2.0),
            astray: ASTRAY,
        };
        let level = |bytes, far| {
            let judged = judge(&drawn(1024, bytes), None, &CACHES);
            judged.with_probes(Some(&seen(far)), 1, true).level
        };
        assert!(seen(0.2).time_in_memory > 0.9);
        assert_eq!((level(2 << 20, 0.2), level(2 << 20, 0.4)), (Level::L3, Level::Dram));
        assert_eq!(level(1 << 30, 0.2), Level::Dram, "its addresses say so");
        let caches = CacheSizes { l3: Some(Bytes(64 << 20)), own_l3: Some(Bytes(4 << 20)), ..CACHES };
        let shared = |far| {
            let judged = judge(&drawn(1024, 32 << 20), None, &caches);
            judged.with_probes(Some(&Latency { from_memory: far, ..seen(far.value) }), 1, true).level
        };
        assert_eq!(shared(Estimate::new(0.2, 0.15, 0.25)), Level::L3);
        assert_eq!(shared(Estimate::new(0.25, 0.2, 0.3)), Level::Unresolved, "nearly as long in either");
        assert_eq!(shared(Estimate::new(0.4, 0.35, 0.45)), Level::Dram);
    }

    #[test]
    fn what_may_lie_in_two_levels_stays_unresolved() {
        assert_eq!(judge(&drawn(1024, 1 << 20), None, &CACHES).level, Level::Unresolved);
        assert_eq!(judge(&drawn(64, 1 << 30), None, &CACHES).level, Level::Unresolved, "too few samples");
        assert_eq!(judge(&drawn(5, 1 << 30), None, &CACHES).footprint, None);
        assert_eq!(judge(&drawn(1024, 8 << 10), None, &CacheSizes::default()).level, Level::Unresolved);
    }
}

//! Which level serves a load, judged by how much memory its addresses are spread over.
//!
//! Samples show only addresses that the core waited for. If these fit into a cache, that cache
//! holds them, since the program reads them again and again; if they do not, the level behind it
//! serves most of them. This is a model, not a measurement: other data competes for the caches, and
//! a line that another core writes is not told. So a level is named only if the whole interval of
//! the footprint lies in it.

use crate::data::footprint::footprint_bytes;
use crate::probes::latency::{ASTRAY, Latency};
use records::profile::Level;
use units::{Bytes, Estimate};

/// The sizes of a core's caches, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSizes {
    pub l1: Option<Bytes>,
    pub l2: Option<Bytes>,
    pub l3: Option<Bytes>,
}

/// A level with the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub level: Level,
    /// Neither L1 nor L2 serves it, even where the level is not resolved.
    pub beyond_l2: bool,
    pub because: String,
    pub footprint: Option<Estimate>,
    /// Its addresses fit into a cache of the core's own, and its lines come from farther all the
    /// same.
    pub is_farther: bool,
}

/// The level that serves loads of these addresses; `step` is from one to the next, if they are a
/// stream.
pub(crate) fn judge(addresses: &[u64], step: Option<i64>, caches: &CacheSizes) -> Judged {
    let judged = |level, beyond_l2, because, footprint| Judged {
        level,
        beyond_l2,
        because,
        footprint,
        is_farther: false,
    };
    let Some(footprint) = footprint_bytes(addresses, step) else {
        let because = format!("only {} addresses were sampled", addresses.len());
        return judged(Level::Unresolved, false, because, None);
    };
    let (Some(l1), Some(l2)) = (caches.l1, caches.l2) else {
        let because = "the sizes of the caches are not known".to_owned();
        return judged(Level::Unresolved, false, because, Some(footprint));
    };
    let levels = [(Level::L1, Some(l1)), (Level::L2, Some(l2)), (Level::L3, caches.l3)];
    let level_of = |bytes: f64| {
        let holds = |size: &Option<Bytes>| size.is_some_and(|size| bytes <= size.0 as f64);
        levels.iter().find(|(_, size)| holds(size)).map_or(Level::Dram, |(level, _)| *level)
    };
    let (least, most) = (level_of(footprint.lo), level_of(footprint.hi));
    let beyond_l2 = matches!(least, Level::L3 | Level::Dram);
    let says = |bytes: f64| Bytes(bytes as u64);
    if least == most {
        let because = if footprint.hi.is_infinite() {
            format!("its addresses are spread over {} at least", says(footprint.lo))
        } else {
            format!("its addresses are spread over about {}", says(footprint.value))
        };
        return judged(least, beyond_l2, because, Some(footprint));
    }
    let most = if footprint.hi.is_infinite() { "more".to_owned() } else { says(footprint.hi).to_string() };
    let because = format!("its addresses are spread over {} to {most}", says(footprint.lo));
    judged(Level::Unresolved, beyond_l2, because, Some(footprint))
}

impl Judged {
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
        let most_time = 100.0 * seen.time_in_memory;
        if seen.from_memory.value < seen.astray && matches!(self.level, Level::L1 | Level::L2 | Level::L3) {
            return self;
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
        if seen.time_in_memory >= 0.5 && (!is_near || seen.from_memory.value >= 0.5) {
            let because = format!(
                "{share:.0}% of {} probes went to memory, and took {most_time:.0}% of the time",
                seen.probes
            );
            return Self { level: Level::Dram, beyond_l2: true, because, is_farther: is_near, ..self };
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

    const CACHES: CacheSizes =
        CacheSizes { l1: Some(Bytes(32 << 10)), l2: Some(Bytes(1 << 20)), l3: Some(Bytes(4 << 20)) };

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
    fn probes_tell_what_came_from_memory() {
        let seen = |time_in_memory| Latency {
            probes: 100,
            mean_ns: Estimate::exact(80.0),
            farther_ns: Estimate::exact(90.0),
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
    fn what_may_lie_in_two_levels_stays_unresolved() {
        assert_eq!(judge(&drawn(1024, 1 << 20), None, &CACHES).level, Level::Unresolved);
        assert_eq!(judge(&drawn(64, 1 << 30), None, &CACHES).level, Level::Unresolved, "too few samples");
        assert_eq!(judge(&drawn(5, 1 << 30), None, &CACHES).footprint, None);
        assert_eq!(judge(&drawn(1024, 8 << 10), None, &CacheSizes::default()).level, Level::Unresolved);
    }
}

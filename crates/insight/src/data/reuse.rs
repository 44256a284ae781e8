//! How much memory a load works on at a time, judged by how far its addresses move in short times.
//!
//! A program that works on one block, many times over, and then on the next one is served by a
//! cache that holds a block, however large all of its blocks together are. What it reads within a
//! short time tells that. Samples are sparse, so pairs of them are looked at, by the time between
//! both:
//!
//! ```text
//! between both    how far apart    the area
//!       0.3 ms           16 KiB      32 KiB    blocks of 8 KiB, each for 0.1 ms
//!         1 ms           60 KiB     120 KiB
//!         4 ms          200 KiB     400 KiB
//! ```
//!
//! Of two addresses drawn from an area, three of four pairs are at most half of it apart. So twice
//! the upper quartile of the distances is the area that a load keeps to for so long, and a quarter
//! of the samples may be elsewhere. What moves on evenly covers less than that.
//!
//! In that time each line of the area comes from memory once at most. Where that would take only a
//! small part of what the core waits for the load meanwhile, most of it is read again, and a cache
//! that holds the area serves it. The shortest time for which that holds tells most. Whether the
//! area is settled shows in longer times: one that grows with the time is as small as it is only
//! since nothing shorter was seen, and what is read again may lie nearer still.

use crate::data::footprint::LINE_BYTES;
use crate::data::pattern::Timed;
use units::Estimate;
use units::random::Xorshift;

/// What the times of a load's samples tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reuse {
    /// Memory serves little of it: most is read again while no more than this area is in use.
    Within(AtATime),
    /// Memory may serve a part of it that is not small, and not all of it.
    Doubtful(AtATime),
    /// Its addresses move so fast that each line may come from memory.
    Fresh,
    /// Too few of its samples are near one another.
    Unknown,
}

/// The area that a load keeps to for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AtATime {
    pub bytes: Estimate,
    pub ns: u64,
    /// It is hardly larger for twice the time, or hardly smaller for half of it.
    pub is_settled: bool,
}

/// The shortest time between two samples that counts, and how many times twice that there are.
const SHORTEST_NS: u64 = 100_000;
const TIMES: usize = 12;
/// Each sample makes pairs with some behind it, near ones and far ones: this number of pairs with
/// those between each of these numbers and twice that number behind.
const BEHIND: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const PAIRS_OF_EACH: usize = 2;
/// Samples that begin a pair; fewer tell nothing.
const LEAST_PAIRS: usize = 32;
/// Memory serves little of a load if it takes no more than this part of its stall.
const LITTLE: f64 = 0.25;
/// It may take all of it from here on: the area is an upper end, and so is the time that its lines
/// take.
const MOST: f64 = 1.5;
/// An area that grows by less than this in twice the time is settled.
const SETTLED: f64 = 1.5;

/// What the samples of a load tell. `waits` is the part of its threads' time that they wait for it
/// and for others that read the same area; a line comes from memory in `memory_ns`.
pub(crate) fn reuse(samples: &[Timed], waits: f64, memory_ns: f64) -> Reuse {
    let areas = areas(samples);
    let (mut doubtful, mut is_known) = (None, false);
    for (number, area) in areas.iter().enumerate() {
        let &Some((bytes, ns)) = area else { continue };
        let before = number.checked_sub(1).and_then(|before| areas[before]);
        let behind = areas.get(number + 1).copied().flatten();
        let is_settled = before.is_some_and(|(before, _)| bytes.value <= SETTLED * before.value)
            || behind.is_some_and(|(behind, _)| behind.value <= SETTLED * bytes.value);
        // What moves on goes over half of that: from the one address to the other.
        let lines = bytes.hi / LINE_BYTES as f64 * if is_settled { 1.0 } else { 0.5 };
        let from_memory = lines * memory_ns / (waits * ns as f64).max(1.0);
        let found = AtATime { bytes, ns, is_settled };
        if from_memory <= LITTLE {
            return Reuse::Within(found);
        }
        is_known = true;
        if from_memory < MOST {
            doubtful.get_or_insert(found);
        }
    }
    match doubtful {
        Some(found) => Reuse::Doubtful(found),
        None if is_known => Reuse::Fresh,
        None => Reuse::Unknown,
    }
}

/// The area by the time between two samples, and the mean of these times, where there are enough
/// pairs.
fn areas(samples: &[Timed]) -> [Option<(Estimate, u64)>; TIMES] {
    let mut ordered: Vec<&Timed> = samples.iter().collect();
    ordered.sort_by_key(|sample| (sample.thread, sample.time_ns));
    let mut apart: [Vec<u64>; TIMES] = Default::default();
    let mut random = Xorshift::new(0x9e37_79b9_7f4a_7c15);
    let mut between_ns = [0; TIMES];
    let mut begun = [0_usize; TIMES];
    for (at, first) in ordered.iter().enumerate() {
        let mut is_begun = [false; TIMES];
        // Drawn, since a program may do the same again and again in a time of its own.
        let draw = |behind: usize| behind + random.below(behind as u64) as usize;
        let behind = BEHIND.iter().flat_map(|behind| [*behind; PAIRS_OF_EACH]).map(draw);
        let seconds = behind.filter_map(|behind| ordered.get(at + behind));
        for second in seconds.filter(|second| second.thread == first.thread) {
            let ns = second.time_ns - first.time_ns;
            let Some(times) = (ns / SHORTEST_NS).checked_ilog2().map(|times| times as usize) else {
                continue;
            };
            let Some(distances) = apart.get_mut(times) else { continue };
            distances.push(first.address.address().abs_diff(second.address.address()));
            between_ns[times] += ns;
            is_begun[times] = true;
        }
        for (count, is_begun) in begun.iter_mut().zip(is_begun) {
            *count += usize::from(is_begun);
        }
    }
    let mut areas = [None; TIMES];
    for (times, mut distances) in apart.into_iter().enumerate() {
        let begun = begun[times];
        if begun < LEAST_PAIRS {
            continue;
        }
        distances.sort_unstable();
        // Pairs of one sample are not independent: as many count as samples begin one.
        let off = 1.96 * (0.75 * 0.25 / begun as f64).sqrt();
        let bytes = |part: f64| {
            let index = (part.clamp(0.0, 1.0) * (distances.len() - 1) as f64).round() as usize;
            // Addresses may be anything that a register held.
            2.0 * distances[index] as f64 + LINE_BYTES as f64
        };
        let area = Estimate::new(bytes(0.75), bytes(0.75 - off), bytes(0.75 + off));
        areas[times] = Some((area, between_ns[times] / distances.len() as u64));
    }
    areas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::data_address::DataAddress;

    const EACH_NS: u64 = 250_000;
    const MEMORY_NS: f64 = 100.0;
    const MIB: u64 = 1 << 20;

    /// Samples at about equal distances, of addresses by time.
    fn samples(count: u64, mut address: impl FnMut(u64, &mut Xorshift) -> u64) -> Vec<Timed> {
        let mut random = Xorshift::new(88_172_645_463_325_252);
        let mut time_ns = 0;
        (0..count)
            .map(|_| {
                time_ns += EACH_NS / 2 + random.below(EACH_NS);
                let address = DataAddress::Read(address(time_ns, &mut random));
                Timed { thread: 1, time_ns, address }
            })
            .collect()
    }

    /// Blocks, one after the other, for so long each, in no order within one.
    fn blocks(bytes: u64, each_ns: u64) -> Vec<Timed> {
        let all = 64 * MIB / bytes;
        samples(4000, |time_ns, random| time_ns / each_ns % all * bytes + random.below(bytes))
    }

    #[test]
    fn blocks_that_are_read_again_are_what_counts() {
        let Reuse::Within(found) = reuse(&blocks(8 << 10, 2_000_000), 0.8, MEMORY_NS) else { panic!() };
        assert!(found.bytes.hi <= f64::from(32 << 10) && found.is_settled, "{found:?}");
        let Reuse::Within(found) = reuse(&blocks(256 << 10, 80_000_000), 0.8, MEMORY_NS) else { panic!() };
        let kib = found.bytes.value / 1024.0;
        assert!((128.0..1024.0).contains(&kib) && found.is_settled, "{found:?}");
        // More of them than one between two samples: how small they are does not show.
        let Reuse::Within(found) = reuse(&blocks(8 << 10, 100_000), 0.95, MEMORY_NS) else { panic!() };
        assert!(found.bytes.hi < 1e6 && !found.is_settled, "{found:?}");
    }

    #[test]
    fn what_moves_fast_may_come_from_memory() {
        // 10 GB/s, over and over again.
        let stream = samples(4000, |time_ns, _| time_ns * 10 % (64 * MIB));
        match reuse(&stream, 0.8, MEMORY_NS) {
            Reuse::Within(found) | Reuse::Doubtful(found) => {
                assert!(found.bytes.hi > 48e6, "all of it: {found:?}");
            }
            other => assert_eq!(other, Reuse::Fresh),
        }
        let random = samples(4000, |_, random| random.below(1 << 30));
        assert_eq!(reuse(&random, 0.8, MEMORY_NS), Reuse::Fresh);
        let anywhere = samples(4000, |_, random| random.below(2) * (u64::MAX - 4096));
        assert_eq!(reuse(&anywhere, 0.8, MEMORY_NS), Reuse::Fresh, "registers that hold no addresses");
        // A quarter of the time, at most, is elsewhere.
        let near = |time_ns: u64| time_ns / 2_000_000 % 8192 * 8192;
        let few = samples(4000, |time_ns, random| match random.below(10) {
            0 => random.below(1 << 30),
            _ => near(time_ns) + random.below(8192),
        });
        assert!(matches!(reuse(&few, 0.8, MEMORY_NS), Reuse::Within(_)));
        let half = samples(4000, |time_ns, random| match random.below(2) {
            0 => random.below(1 << 30),
            _ => near(time_ns) + random.below(8192),
        });
        assert_eq!(reuse(&half, 0.8, MEMORY_NS), Reuse::Fresh);
    }

    #[test]
    fn between_both_nothing_is_said_for_sure() {
        // A line each 450 ns: memory may serve a third of it and more.
        let slow = samples(4000, |time_ns, _| time_ns * 64 / 450 % (1 << 30));
        assert!(matches!(reuse(&slow, 0.8, MEMORY_NS), Reuse::Doubtful(_)));
        assert_eq!(reuse(&slow[..20], 0.8, MEMORY_NS), Reuse::Unknown);
        let sparse: Vec<Timed> = blocks(8 << 10, 2_000_000)
            .into_iter()
            .map(|sample| Timed { time_ns: sample.time_ns * 10_000, ..sample })
            .collect();
        assert_eq!(reuse(&sparse, 0.8, MEMORY_NS), Reuse::Unknown);
    }
}

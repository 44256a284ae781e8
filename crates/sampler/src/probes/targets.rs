//! The loads that are worth probing, and the threads that execute them.

use super::{Armed, ThreadId};
use crate::files;
use insight::probes::{Operand, targets};
use insight::samples::{MappedId, PROBES_OF_LOAD, Place, Tally};
use std::collections::{BTreeMap, HashMap, HashSet};
use units::{Avma, FileOffset};

/// Loads are looked for when this number of samples is there, and each time that it has grown by a
/// quarter:
/// code has to be decoded for it.
const FIRST_SAMPLES: u64 = 64;
/// A place with fewer samples may be there by chance.
const LEAST_SAMPLES: u64 = 4;
/// Places with a smaller share of all samples are left out.
const LEAST_SHARE: f64 = 0.004;
/// Probes that each load has before those with most samples have more.
const ENOUGH: usize = 64;

/// A load that is worth probing.
struct Target {
    operand: Operand,
    /// Places where samples of it land.
    sampled: Vec<Place>,
    armed: usize,
}

#[derive(Default)]
pub(super) struct Targets {
    looked_at: HashSet<Place>,
    loads: BTreeMap<Place, Target>,
    next_at: u64,
}

impl Targets {
    /// Finds loads among what was sampled, if that is due.
    pub(super) fn choose(&mut self, tally: &Tally) {
        if tally.samples < self.next_at.max(FIRST_SAMPLES) {
            return;
        }
        self.next_at = tally.samples + tally.samples / 4;
        let least = ((LEAST_SHARE * tally.samples as f64) as u64).max(LEAST_SAMPLES);
        let mut new: HashMap<MappedId, Vec<FileOffset>> = HashMap::new();
        for (place, counts) in tally.places.iter().filter(|(_, counts)| counts.user >= least) {
            if self.looked_at.insert(*place) && !counts.kept.is_empty() {
                new.entry(place.what).or_default().push(place.offset);
            }
        }
        for (what, offsets) in new {
            let Some(file) = files::partly(tally.mapped(what), &[".eh_frame_hdr"]) else { continue };
            let code = |at: FileOffset, size: usize| file.read(at, size);
            for (sampled, (load, operand)) in targets(file.data(), &offsets, &code) {
                let target = self.loads.entry(Place { what, offset: load }).or_insert(Target {
                    operand,
                    sampled: Vec::new(),
                    armed: 0,
                });
                target.sampled.push(Place { what, offset: sampled });
            }
        }
    }

    /// Those that come next, each with a thread that was seen at it last.
    pub(super) fn next(&mut self, tally: &Tally, count: usize) -> Vec<Armed> {
        let samples = |target: &Target| -> u64 {
            target.sampled.iter().filter_map(|place| tally.places.get(place)).map(|counts| counts.user).sum()
        };
        let probes = |load: &Place| tally.probes.get(load).map_or(0, Vec::len);
        let mut order: Vec<(f64, Place)> = self
            .loads
            .iter()
            .filter(|(load, _)| probes(load) < PROBES_OF_LOAD)
            .map(|(load, target)| {
                // What is armed and never comes by must not keep others waiting.
                let done = probes(load).max(target.armed) as f64;
                let first = if (done as usize) < ENOUGH { 0.0 } else { 1.0 };
                (first + (done / samples(target).max(1) as f64).min(1e6) / 1e7, *load)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut armed = Vec::new();
        for (_, load) in order {
            let Some(target) = self.loads.get_mut(&load) else { continue };
            target.armed += 1;
            armed.extend(last_at(tally, &target.sampled).map(|(of, (sampled, ip))| {
                let ip = address_of(load, sampled, ip);
                Armed { of, ip, operand: target.operand }
            }));
            if armed.len() == count {
                break;
            }
        }
        armed
    }
}

/// The thread that was sampled last at one of these places, and where that was.
fn last_at(tally: &Tally, places: &[Place]) -> Option<(ThreadId, (Place, Avma))> {
    let kept = places
        .iter()
        .flat_map(|place| tally.places.get(place).into_iter().map(move |counts| (place, counts)))
        .flat_map(|(place, counts)| counts.kept.iter().map(move |kept| (*place, &kept.sample)));
    let (place, last) = kept.max_by_key(|(_, sample)| sample.time_ns)?;
    Some((ThreadId { process: last.process, thread: last.thread }, (place, last.ip?)))
}

/// Where a load is, by a place of the same function and where a thread stood there. Not by what is
/// mapped from the file: linkers put the end of one segment and the beginning of the next into one
/// page, which is mapped for both.
fn address_of(load: Place, sampled: Place, ip: Avma) -> Avma {
    Avma(ip.0.wrapping_sub(sampled.offset.0).wrapping_add(load.offset.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use insight::samples::{Mapped, Mapping, Sample};

    #[test]
    fn loads_in_a_page_of_two_segments_are_found_where_they_run() {
        let mut tally = Tally::default();
        let file = Mapped { name: b"/bin/x".to_vec(), device: (8, 1), inode: 7, area: None };
        let what = tally.id(file);
        let at = |offset| Place { what, offset: FileOffset(offset) };
        let mapping = |start: u64, end: u64, offset| Mapping {
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(offset),
            what,
            is_shared: false,
        };
        let space = &mut tally.processes.entry(1).or_default().space;
        space.map(mapping(0x10_0000, 0x10_4000, 0));
        space.map(mapping(0x10_4000, 0x10_9000, 0x3000));
        let ip = Some(Avma(0x10_4ef0));
        let sample = Sample { process: 1, thread: 2, time_ns: 3, in_kernel: false, ip, registers: None };
        tally.count(sample);
        let (of, (sampled, ip)) = last_at(&tally, &[at(0x3ef0)]).unwrap();
        assert_eq!((of.thread, sampled), (2, at(0x3ef0)));
        assert_eq!(address_of(at(0x3eed), sampled, ip), Avma(0x10_4eed));
    }
}

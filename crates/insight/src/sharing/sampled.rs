//! Lines that threads share, and data of other nodes, from loads and stores that the hardware
//! sampled.
//!
//! A load that another core's cache served, which had modified the line (perf c2c: HITM), proves
//! that the line is shared by threads that run at the same time. Whether they use the same bytes is
//! told by the addresses: those of the loads that were served so, and of all stores to the line.
//!
//! ```text
//!            thread 1   thread 2
//! byte  0     load *                *: served by a modified line of another core
//! byte  8                store      no thread's bytes are another's: false sharing
//! ```

use super::access::{InShared, Memory, line_of};
use super::gathered::By;
use super::says::FARTHER;
use super::{LEAST_SHARE, MOST_FINDINGS, MOST_LINES};
use crate::data::footprint::LINE_BYTES;
use records::profile::{Finding, FindingKind, Level, LinePart, SharedLine, Sharing};
use std::collections::{BTreeMap, BTreeSet};
use units::{Estimate, Quantity, Unit};

/// One sampled access to data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub process: u32,
    pub thread: u32,
    pub address: u64,
    pub shared: Option<InShared>,
    pub bytes: u32,
    pub writes: bool,
    /// Its part of the latency of all sampled loads; 0 of a store.
    pub weight: f64,
    pub level: Level,
    /// The number of its instruction, and of the object that it lies in.
    pub by: u32,
    pub object: Option<u32>,
}

/// What is known of code and objects.
pub(crate) struct Names<'a> {
    pub by: &'a [By],
    /// Each with where it begins if it is one of several of its name.
    pub objects: &'a [(String, u64)],
}

/// Lines and findings.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub lines: Vec<SharedLine>,
    pub findings: Vec<Finding>,
}

/// Loads of a line that modified lines of other cores served; fewer may be chance.
const LEAST_LOADS: u64 = 8;
/// Loads of one object from another node that make a finding.
const LEAST_FAR: u64 = 24;

/// The accesses of one thread at one offset.
#[derive(Clone, Debug, Default)]
struct Part {
    process: u32,
    loads: u64,
    stores: u64,
    /// Of the loads, those that a modified line served.
    dirty: u64,
    weight: f64,
    by: BTreeMap<u32, u64>,
    object: Option<u32>,
    sharing: Option<Sharing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    offset: u32,
    bytes: u32,
    thread: u32,
}

impl Place {
    fn meets(&self, other: &Self) -> bool {
        self.offset < other.offset + other.bytes && other.offset < self.offset + self.bytes
    }
}

/// A line with all accesses to it.
struct Used {
    /// The first process that was seen to use it, and where it begins there.
    seen: (u32, u64),
    parts: BTreeMap<Place, Part>,
}

struct Line {
    process: u32,
    address: u64,
    parts: BTreeMap<Place, Part>,
    sharing: Sharing,
    dirty: u64,
    /// The latency of the loads that modified lines served.
    weight: f64,
}

/// What was seen, of all the latency of the run; `all` says how many equal samples that is worth.
pub(crate) fn shared(seen: &[Seen], names: &Names<'_>, all: f64) -> Shared {
    let lines = lines(seen);
    let mut findings = Vec::new();
    for (sharing, kind) in
        [(Sharing::False, FindingKind::FalseSharing), (Sharing::True, FindingKind::TrueSharing)]
    {
        let mut objects: BTreeMap<Option<u32>, Vec<&Line>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.sharing == sharing) {
            objects.entry(line.object()).or_default().push(line);
        }
        let mut found: Vec<(f64, Finding)> = objects
            .into_iter()
            .filter_map(|(object, lines)| {
                let weight: f64 = lines.iter().map(|line| line.weight).sum();
                (weight >= LEAST_SHARE).then(|| (weight, finding(object, &lines, kind, weight, names, all)))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        findings.extend(found.into_iter().take(MOST_FINDINGS).map(|(_, finding)| finding));
    }
    findings.extend(far(seen, names, all));
    let lines = lines.iter().take(MOST_LINES).map(|line| record(line, names, all)).collect();
    Shared { lines, findings }
}

/// The lines that modified lines of other cores served often, most latency first.
fn lines(seen: &[Seen]) -> Vec<Line> {
    let mut used: BTreeMap<(Memory, u64), Used> = BTreeMap::new();
    for access in seen {
        let place = Place {
            offset: (access.address % LINE_BYTES) as u32,
            bytes: access.bytes.clamp(1, LINE_BYTES as u32),
            thread: access.thread,
        };
        let line = line_of(access.process, access.address, access.shared);
        let begins = access.address / LINE_BYTES * LINE_BYTES;
        let line = used
            .entry(line)
            .or_insert_with(|| Used { seen: (access.process, begins), parts: BTreeMap::new() });
        let part = line.parts.entry(place).or_default();
        part.process = access.process;
        let is_dirty = access.level == Level::Dirty;
        part.loads += u64::from(!access.writes || access.weight > 0.0);
        part.stores += u64::from(access.writes);
        part.dirty += u64::from(is_dirty);
        part.weight += if is_dirty { access.weight } else { 0.0 };
        *part.by.entry(access.by).or_default() += 1;
        part.object = part.object.or(access.object);
    }
    let mut found: Vec<Line> = used
        .into_values()
        .filter_map(|Used { seen, parts }| {
            let dirty: u64 = parts.values().map(|part| part.dirty).sum();
            let threads: BTreeSet<u32> = parts.keys().map(|place| place.thread).collect();
            (dirty >= LEAST_LOADS && threads.len() > 1).then(|| judged(seen, parts, dirty))
        })
        .collect();
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.address.cmp(&b.address)));
    found
}

/// Says of each part whether its bytes are another thread's, too.
fn judged((process, address): (u32, u64), mut parts: BTreeMap<Place, Part>, dirty: u64) -> Line {
    let writes: Vec<Place> =
        parts.iter().filter(|(_, part)| part.stores > 0).map(|(place, _)| *place).collect();
    // Without a store that was sampled, any other thread may be the one that writes.
    let others: Vec<Place> = if writes.is_empty() { parts.keys().copied().collect() } else { writes };
    let mut weights = [0.0; 2];
    for (place, part) in &mut parts {
        let another = |other: &&Place| other.thread != place.thread;
        if !others.iter().any(|other| another(&other)) {
            continue;
        }
        let is_same = others.iter().filter(another).any(|other| other.meets(place));
        part.sharing = Some(if is_same { Sharing::True } else { Sharing::False });
        weights[usize::from(is_same)] += part.weight;
    }
    let sharing = if weights[0] > weights[1] { Sharing::False } else { Sharing::True };
    let weight = parts.values().map(|part| part.weight).sum();
    Line { process, address, parts, sharing, dirty, weight }
}

impl Line {
    /// The object that most of its accesses are to.
    fn object(&self) -> Option<u32> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for part in self.parts.values() {
            if let Some(object) = part.object {
                *counts.entry(object).or_default() += part.loads + part.stores;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(object, _)| object)
    }
}

fn finding(
    object: Option<u32>,
    lines: &[&Line],
    kind: FindingKind,
    weight: f64,
    names: &Names<'_>,
    all: f64,
) -> Finding {
    let parts = || lines.iter().flat_map(|line| &line.parts);
    let threads: BTreeSet<u32> = parts().map(|(place, _)| place.thread).collect();
    let dirty: u64 = lines.iter().map(|line| line.dirty).sum();
    // The line to change is one that writes, if a store was sampled.
    let most = |is: fn(&Part) -> bool| {
        let mut code: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, part) in parts().filter(|(_, part)| is(part)) {
            for (by, count) in &part.by {
                *code.entry(*by).or_default() += count;
            }
        }
        code.into_iter().max_by_key(|(_, count)| *count).map(|(by, _)| &names.by[by as usize])
    };
    let place = most(|part| part.stores > 0).or_else(|| most(|part| part.dirty > 0));
    let said = match lines.len() {
        1 => "one cache line".to_owned(),
        several => format!("{several} cache lines"),
    };
    let served =
        format!("{dirty} sampled loads were served by lines that another core had modified (measured)");
    let says = if kind == FindingKind::FalseSharing {
        format!(
            "{} threads use different bytes of {said}: {served}; give each thread's part lines of its own: pad it to 64 or \
             128 bytes and align it (alignas(64)), or sum up in a local variable",
            threads.len()
        )
    } else {
        format!(
            "{} threads write and use the same bytes of {said}: {served}; padding does not help: hold it for a shorter \
             time, use one for each thread, or hand over several pieces of work at once",
            threads.len()
        )
    };
    Finding {
        kind,
        object: object.map(|object| names.objects[object as usize].0.clone()),
        function: place.and_then(|by| by.function.clone()),
        file: place.and_then(|by| by.file.clone()),
        line: place.and_then(|by| by.line),
        says,
        gain: part_of_all(weight, all, Estimate::new(1.0, 0.0, 1.0)),
    }
}

/// A part of the latency of all sampled loads, of which `saved` would be saved.
fn part_of_all(weight: f64, all: f64, saved: Estimate) -> Quantity {
    let known = units::share((weight * all).round() as u64, all.round() as u64);
    match known {
        None => Quantity::unresolved("there are too few samples"),
        Some(part) => Quantity::modelled(
            Estimate::new(
                weight * saved.value,
                part.lo.min(weight) * saved.lo,
                part.hi.max(weight) * saved.hi,
            ),
            Unit::Ratio,
        ),
    }
}

/// Objects whose data comes from another node.
fn far(seen: &[Seen], names: &Names<'_>, all: f64) -> Vec<Finding> {
    #[derive(Default)]
    struct Far {
        loads: u64,
        weight: f64,
        whole: f64,
        threads: BTreeSet<u32>,
        by: BTreeMap<u32, f64>,
    }
    let mut objects: BTreeMap<&str, Far> = BTreeMap::new();
    for access in seen.iter().filter(|access| access.weight > 0.0) {
        let Some(object) = access.object else { continue };
        let far = objects.entry(&names.objects[object as usize].0).or_default();
        far.whole += access.weight;
        if access.level == Level::Remote {
            far.loads += 1;
            far.weight += access.weight;
            far.threads.insert(access.thread);
            *far.by.entry(access.by).or_default() += access.weight;
        }
    }
    let mut found: Vec<(f64, Finding)> = objects
        .into_iter()
        .filter(|(_, far)| far.loads >= LEAST_FAR && far.weight >= LEAST_SHARE)
        .map(|(object, far)| {
            let most = far.by.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
            let place = most.map(|(by, _)| &names.by[*by as usize]);
            let finding = Finding {
                kind: FindingKind::FirstTouch,
                object: Some(object.to_owned()),
                function: place.and_then(|by| by.function.clone()),
                file: place.and_then(|by| by.file.clone()),
                line: place.and_then(|by| by.line),
                says: format!(
                    "{:.0}% of the latency of its sampled loads is of data that came from another node (measured; threads: \
                     {}): let each thread initialise the part that it uses, keep threads beside their data \
                     (numactl --cpunodebind --membind), or spread it over the nodes (numactl --interleave)",
                    100.0 * far.weight / far.whole,
                    far.threads.len()
                ),
                gain: part_of_all(far.weight, all, FARTHER),
            };
            (far.weight, finding)
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(MOST_FINDINGS).map(|(_, finding)| finding).collect()
}

fn record(line: &Line, names: &Names<'_>, all: f64) -> SharedLine {
    let no_time = || Quantity::unresolved("hardware samples of loads show latency, not time");
    let share = |weight: f64| match part_of_all(weight, all, Estimate::new(1.0, 1.0, 1.0)).estimate() {
        Some(part) => Quantity::measured(part, Unit::Ratio),
        None => Quantity::unresolved("there are too few samples"),
    };
    let name = |object: Option<u32>| object.map(|object| names.objects[object as usize].0.clone());
    let processes: BTreeSet<u32> = line.parts.values().map(|part| part.process).collect();
    let are_several = processes.len() > 1;
    let part = |(place, part): (&Place, &Part)| {
        let most = part.by.iter().max_by_key(|(_, count)| **count);
        let code = most.map(|(by, _)| names.by[*by as usize].clone()).unwrap_or_default();
        LinePart {
            offset: place.offset,
            bytes: place.bytes,
            process: are_several.then_some(part.process),
            thread: place.thread,
            sharing: part.sharing,
            reads: part.loads,
            writes: part.stores,
            stall: no_time(),
            latency_share: share(part.weight),
            object: name(part.object),
            allocation: part
                .object
                .map(|object| names.objects[object as usize].1)
                .filter(|start| *start != 0),
            function: code.function,
            file: code.file,
            line: code.line,
        }
    };
    SharedLine {
        sharing: line.sharing,
        process: line.process,
        processes: if are_several { processes.into_iter().collect() } else { Vec::new() },
        address: line.address,
        object: name(line.object()),
        stall: no_time(),
        latency_share: share(line.weight),
        parts: line.parts.iter().map(part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 0x4000;

    /// Loads and stores of a thread, by turns.
    fn by(thread: u32, offset: u64, level: Level) -> Vec<Seen> {
        let load = Seen {
            process: 1,
            thread,
            address: LINE + offset,
            shared: None,
            bytes: 8,
            writes: false,
            weight: 0.002,
            level,
            by: thread,
            object: Some(0),
        };
        let store = Seen { writes: true, weight: 0.0, level: Level::L1, ..load };
        (0..40).flat_map(|_| [load, store]).collect()
    }

    fn found(seen: &[Seen]) -> Shared {
        let code = |number: u32| By { function: Some(format!("f{number}")), ..By::default() };
        let all: Vec<By> = (0..4).map(code).collect();
        let objects = [("pool (p)".to_owned(), 0)];
        shared(seen, &Names { by: &all, objects: &objects }, 2000.0)
    }

    #[test]
    fn modified_lines_of_other_cores_are_shared_by_bytes() {
        let apart = found(&[by(1, 0, Level::Dirty), by(2, 8, Level::Dirty)].concat());
        let [finding] = &apart.findings[..] else { panic!("{apart:?}") };
        assert_eq!((finding.kind, finding.object.as_deref()), (FindingKind::FalseSharing, Some("pool (p)")));
        assert!(finding.says.contains("80 sampled loads") && finding.says.contains("alignas"), "{finding:?}");
        let gain = finding.gain.estimate().unwrap();
        assert!((gain.value - 0.16).abs() < 1e-9 && gain.hi < 0.2, "{gain:?}");
        assert_eq!((apart.lines[0].sharing, apart.lines[0].parts.len()), (Sharing::False, 2));
        let part = &apart.lines[0].parts[0];
        assert_eq!((part.reads, part.writes, part.sharing), (40, 40, Some(Sharing::False)));
        let same = found(&[by(1, 0, Level::Dirty), by(2, 4, Level::Dirty)].concat());
        assert_eq!(same.findings[0].kind, FindingKind::TrueSharing, "they overlap");
    }

    #[test]
    fn processes_meet_in_memory_that_they_share() {
        let file = |inode, process, seen: Vec<Seen>| -> Vec<Seen> {
            let shared = |seen: &Seen| Some(InShared::of((0, 1), inode, seen.address % 64));
            seen.into_iter().map(|seen| Seen { process, shared: shared(&seen), ..seen }).collect()
        };
        let of =
            |inode| [file(5, 1, by(1, 0, Level::Dirty)), file(inode, 2, by(2, 8, Level::Dirty))].concat();
        let together = found(&of(5));
        let line = &together.lines[0];
        assert_eq!((line.sharing, &line.processes[..]), (Sharing::False, &[1, 2][..]));
        assert_eq!(line.parts[1].process, Some(2));
        assert!(found(&of(6)).lines.is_empty(), "another file");
    }

    #[test]
    fn without_a_modified_line_nothing_is_shared() {
        let near = found(&[by(1, 0, Level::L1), by(2, 8, Level::L3)].concat());
        assert!(near.lines.is_empty() && near.findings.is_empty(), "{near:?}");
        let alone = found(&by(1, 0, Level::Dirty));
        assert!(alone.findings.is_empty(), "one thread that moved: {alone:?}");
        let few = found(&[by(1, 0, Level::Dirty)[..8].to_vec(), by(2, 8, Level::L1)].concat());
        assert!(few.lines.is_empty(), "{few:?}");
    }

    #[test]
    fn without_stores_the_bytes_of_others_tell() {
        let loads = |thread, offset| -> Vec<Seen> {
            by(thread, offset, Level::Dirty).into_iter().filter(|seen| !seen.writes).collect()
        };
        assert_eq!(found(&[loads(1, 0), loads(2, 8)].concat()).lines[0].sharing, Sharing::False);
        assert_eq!(found(&[loads(1, 0), loads(2, 0)].concat()).lines[0].sharing, Sharing::True);
    }

    #[test]
    fn data_of_another_node_is_named() {
        let far = found(&[by(1, 0, Level::Remote), by(2, 64, Level::Dram)].concat());
        let [finding] = &far.findings[..] else { panic!("{far:?}") };
        assert_eq!((finding.kind, finding.function.as_deref()), (FindingKind::FirstTouch, Some("f1")));
        assert!(finding.says.starts_with("50% of the latency of its sampled loads is"), "{finding:?}");
        assert!(found(&by(2, 64, Level::Dram)).findings.is_empty());
    }
}

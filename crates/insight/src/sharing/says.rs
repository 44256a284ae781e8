//! Shared lines as the record has them, and what to do about them.

use super::access::{Access, Memory, Moment};
use super::cost::{by_progress, observed, of_plain_stores, saved, split};
use super::farther::taken;
use super::first_touch::{Touched, touched};
use super::gathered::{By, Gathered};
use super::lines::{Kind, Line, Part, lines};
use super::words::{object, says_false, says_true};
use super::{LEAST_SHARE, MOST_FINDINGS, MOST_LINES};
use crate::share::measured_share;
use records::profile::{Finding, FindingKind, LinePart, SharedLine, Sharing};
use std::collections::{BTreeMap, BTreeSet};
use units::{Estimate, Quantity, Unit};

/// All that is said of sharing.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub lines: Vec<SharedLine>,
    pub findings: Vec<Finding>,
    /// The numbers, among the loads that are listed, of those that wait for lines which other
    /// threads write.
    pub dirty: Vec<usize>,
}

const NO_LATENCY: &str = "only hardware samples tell";
/// Offsets and threads of one line in the record.
const MOST_PARTS: usize = 32;
/// Fewer samples on the lines of an object are no finding.
const LEAST_SAMPLES: f64 = 24.0;
/// Samples of one line of a finding that is listed.
const LEAST_OF_TOLD: f64 = 8.0;
/// What data of another node takes longer than that of its own, as a part of its time.
pub(super) const FARTHER: Estimate = Estimate { value: 0.4, lo: 0.0, hi: 0.6 };

/// What the accesses of a run show, of which this many samples were taken.
pub(crate) fn shared(gathered: &Gathered, all: u64) -> Shared {
    let found = lines(&gathered.accesses, &gathered.by);
    let (mut findings, mut told) = (Vec::new(), BTreeSet::new());
    for (kind, is) in [(Kind::False, FindingKind::FalseSharing), (Kind::True, FindingKind::TrueSharing)] {
        let groups = by_object(&found, kind);
        let of_kind =
            groups.iter().filter_map(|lines| Some((finding(gathered, lines, kind, is, all)?, lines)));
        for (finding, lines) in of_kind.take(MOST_FINDINGS) {
            findings.push(finding);
            told.extend(lines.iter().map(|line| (line.memory, line.number)));
        }
    }
    let first = touched(&gathered.faults, &gathered.accesses);
    findings.extend(first_touch(gathered, &first, all));
    // A finding's lines are there, even if each has few samples.
    let is_listed = |line: &&Line| {
        let least = if told.contains(&(line.memory, line.number)) { LEAST_OF_TOLD } else { LEAST_SAMPLES };
        line.all() >= least
    };
    let lines = found.iter().filter(is_listed).take(MOST_LINES);
    Shared {
        lines: lines.map(|line| record(gathered, line, all)).collect(),
        findings,
        dirty: dirty(gathered, &found),
    }
}

/// The lines with stall of a kind, by the object that has most of it; most stall first.
fn by_object(found: &[Line], kind: Kind) -> Vec<Vec<&Line>> {
    let mut groups: BTreeMap<(Memory, Option<u32>), Vec<&Line>> = BTreeMap::new();
    for line in found.iter().filter(|line| line.kind == kind) {
        groups.entry((line.memory, object(line))).or_default().push(line);
    }
    let mut groups: Vec<Vec<&Line>> = groups.into_values().collect();
    let weight = |lines: &[&Line]| lines.iter().map(|line| line.weight(kind)).sum::<f64>();
    groups.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    groups
}

fn finding(gathered: &Gathered, lines: &[&Line], kind: Kind, is: FindingKind, all: u64) -> Option<Finding> {
    let weight: f64 = lines.iter().map(|line| line.weight(kind)).sum();
    if weight < LEAST_SAMPLES || weight < LEAST_SHARE * all as f64 {
        return None;
    }
    let parts: Vec<(&Line, &Part)> = lines
        .iter()
        .flat_map(|line| line.parts.iter().map(move |part| (*line, part)))
        .filter(|(_, part)| part.kind == Some(kind))
        .collect();
    let mut code: BTreeMap<u32, f64> = BTreeMap::new();
    for (_, part) in &parts {
        for (by, weight) in &part.by {
            *code.entry(*by).or_default() += weight;
        }
    }
    // The line to change is one that writes: the reader can not help it.
    let mut writers: BTreeMap<u32, f64> = BTreeMap::new();
    for (_, part) in parts.iter().filter(|(_, part)| part.writes > 0.0) {
        for (by, weight) in &part.by {
            *writers.entry(*by).or_default() += weight;
        }
    }
    let most = |code: &BTreeMap<u32, f64>| {
        code.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(by, _)| &gathered.by[*by as usize])
    };
    let place = most(&writers).or_else(|| most(&code))?;
    let objects: BTreeSet<u32> = parts.iter().filter_map(|(_, part)| part.object).collect();
    let name = object(lines[0]).map(|object| gathered.objects[object as usize].0.name.clone());
    let says = match is {
        FindingKind::FalseSharing => says_false(gathered, lines, &parts, &objects),
        _ => says_true(gathered, lines, &parts),
    };
    Some(Finding {
        kind: is,
        object: name,
        function: place.function.clone(),
        file: place.file.clone(),
        line: place.line,
        says,
        gain: gain(gathered, lines, kind, &code, weight, all),
    })
}

/// What private lines would save of the CPU time.
fn gain(
    gathered: &Gathered,
    lines: &[&Line],
    kind: Kind,
    code: &BTreeMap<u32, f64>,
    weight: f64,
    all: u64,
) -> Quantity {
    let conflicts: BTreeSet<((Memory, u64), u32, u32, u32)> = lines
        .iter()
        .flat_map(|line| line.parts.iter().map(move |part| (*line, part)))
        .filter(|(_, part)| part.kind == Some(kind))
        .map(|(line, part)| ((line.memory, line.number), part.offset, part.bytes, part.thread))
        .collect();
    let accesses: Vec<&Access> = gathered
        .accesses
        .iter()
        .filter(|access| conflicts.contains(&(access.line(), access.offset(), access.bytes, access.thread)))
        .collect();
    let units: BTreeSet<(u32, usize)> = code.keys().filter_map(|by| gathered.by[*by as usize].unit).collect();
    let moments: Vec<Moment> =
        units.iter().filter_map(|unit| gathered.moments.get(unit)).flatten().copied().collect();
    let mut sum = [0.0; 3];
    for (by, weight) in code {
        let by = &gathered.by[*by as usize];
        let saved = saved(by.each, by.locks);
        for (sum, part) in sum.iter_mut().zip([saved.value, saved.lo, saved.hi]) {
            *sum += weight * part;
        }
    }
    // The samples themselves are a count.
    let spread = 1.96 * weight.sqrt() / weight;
    let (least, most) = (sum[1] * (1.0 - spread).max(0.0), (sum[2] * (1.0 + spread)).min(all as f64));
    let hits = Estimate::new(sum[0], least, most);
    let locked = |(by, weight): (&u32, &f64)| if gathered.by[*by as usize].locks { *weight } else { 0.0 };
    let locks = code.iter().map(locked).sum::<f64>() >= 0.5 * weight;
    let split = split(&accesses, &moments);
    // The registers of several functions count different things.
    let progress = split.as_ref().filter(|_| units.len() == 1).and_then(by_progress);
    let samples = match (progress, split) {
        (Some(progress), _) => progress,
        (None, Some(split)) if !locks => of_plain_stores(split),
        (None, split) => split
            .and_then(observed)
            .map_or(hits, |observed| Estimate { hi: observed.hi.max(sum[0]), ..observed }),
    };
    let share = |samples: f64| samples / all as f64;
    Quantity::modelled(Estimate::new(share(samples.value), share(samples.lo), share(samples.hi)), Unit::Ratio)
}

fn first_touch(gathered: &Gathered, first: &[Touched], all: u64) -> Vec<Finding> {
    let finding = |touched: &Touched| {
        if touched.elsewhere < LEAST_SAMPLES || touched.elsewhere < LEAST_SHARE * all as f64 {
            return None;
        }
        let place: &By = &gathered.by[touched.by as usize];
        let share = |part: f64| (touched.elsewhere * part / all as f64).min(1.0);
        let gain = Estimate::new(share(FARTHER.value), share(FARTHER.lo), share(FARTHER.hi));
        Some(Finding {
            kind: FindingKind::FirstTouch,
            object: Some(gathered.objects[touched.object as usize].0.name.clone()),
            function: place.function.clone(),
            file: place.file.clone(),
            line: place.line,
            says: format!(
                "one thread touches nearly all of this data first, here, and {} threads use it, each its own part: on a \
                 machine with several NUMA nodes all of it lies on that thread's node (predicted); let each thread \
                 initialise the part that it uses",
                touched.users
            ),
            gain: Quantity::modelled(gain, Unit::Ratio),
        })
    };
    // One finding for one place: a loop often makes several arrays.
    let mut seen = BTreeSet::new();
    let found = first.iter().filter_map(finding);
    found
        .filter(|finding| seen.insert((finding.function.clone(), finding.line, finding.object.clone())))
        .take(MOST_FINDINGS)
        .collect()
}

/// The loads that wait mostly for parts of lines that other threads disturb.
fn dirty(gathered: &Gathered, found: &[Line]) -> Vec<usize> {
    let mut disturbed: BTreeMap<u32, f64> = BTreeMap::new();
    for part in found.iter().flat_map(|line| &line.parts) {
        if matches!(part.kind, Some(Kind::False | Kind::True)) {
            for (by, weight) in &part.by {
                *disturbed.entry(*by).or_default() += weight;
            }
        }
    }
    let is_mostly = |(by, weight): (&u32, &f64)| {
        let by = &gathered.by[*by as usize];
        by.listed.filter(|_| *weight >= 0.5 * by.samples as f64)
    };
    let mut dirty: Vec<usize> = disturbed.iter().filter_map(is_mostly).chain(taken(gathered)).collect();
    dirty.sort_unstable();
    dirty.dedup();
    dirty
}

fn record(gathered: &Gathered, line: &Line, all: u64) -> SharedLine {
    let share = |weight: f64| measured_share(weight.round() as u64, all);
    let name = |object: Option<u32>| Some(gathered.objects[object? as usize].0.name.clone());
    let mut parts: Vec<&Part> = line.parts.iter().collect();
    parts.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    parts.truncate(MOST_PARTS);
    parts.sort_by_key(|part| (part.offset, part.bytes, part.thread));
    let processes: BTreeSet<u32> = line.parts.iter().map(|part| part.process).collect();
    let are_several = processes.len() > 1;
    SharedLine {
        sharing: sharing(line.kind),
        process: line.process,
        processes: if are_several { processes.into_iter().collect() } else { Vec::new() },
        address: line.address,
        object: name(object(line)),
        stall: share(line.all()),
        latency_share: Quantity::unresolved(NO_LATENCY),
        parts: parts
            .into_iter()
            .map(|part| {
                let most = part.by.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
                let code = most.map(|(by, _)| gathered.by[*by as usize].clone()).unwrap_or_default();
                LinePart {
                    offset: part.offset,
                    bytes: part.bytes,
                    process: are_several.then_some(part.process),
                    thread: part.thread,
                    sharing: part.kind.map(sharing),
                    reads: (part.weight - part.writes).round() as u64,
                    writes: part.writes.round() as u64,
                    stall: share(part.weight),
                    latency_share: Quantity::unresolved(NO_LATENCY),
                    object: name(part.object),
                    allocation: part
                        .object
                        .map(|object| gathered.objects[object as usize].1)
                        .filter(|start| *start != 0),
                    function: code.function,
                    file: code.file,
                    line: code.line,
                }
            })
            .collect(),
    }
}

fn sharing(kind: Kind) -> Sharing {
    match kind {
        Kind::False => Sharing::False,
        Kind::True => Sharing::True,
        Kind::Latent => Sharing::Latent,
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::InShared;
    use super::*;
    use crate::data::objects::Object;

    /// Two threads that each write their own bytes of a line, `apart` bytes from one another, and a
    /// sample each 300 µs.
    fn gathered(apart: u64) -> Gathered {
        let mut gathered = Gathered::default();
        let object = Object { name: "pool (p)".to_owned(), bytes: None, which: 0, group: None };
        gathered.objects.push((object, 0));
        for number in 0..2_u32 {
            let function = Some(format!("update{number}"));
            let each = Some(Estimate::new(80.0, 40.0, 160.0));
            let (samples, listed) = (1000, Some(number as usize));
            gathered.by.push(By { function, line: Some(7), each, samples, listed, ..By::default() });
            let access = |at: u64| Access {
                process: 1,
                thread: 10 + number,
                time_ns: at * 300_000,
                address: 0x4000 + u64::from(number) * apart,
                shared: None,
                bytes: 8,
                writes: true,
                weight: 1.0,
                by: number,
                object: Some(0),
            };
            gathered.accesses.extend((0..1000).map(access));
        }
        gathered
    }

    #[test]
    fn false_sharing_is_said_with_what_helps() {
        let shared = shared(&gathered(8), 4000);
        let [finding] = &shared.findings[..] else { panic!("{shared:?}") };
        assert_eq!((finding.kind, finding.line), (FindingKind::FalseSharing, Some(7)));
        assert_eq!(finding.object.as_deref(), Some("pool (p)"));
        for words in ["2 threads", "thread 10 writes byte 0", "thread 11 writes byte 8", "alignas(64)"] {
            assert!(finding.says.contains(words), "{}", finding.says);
        }
        let gain = finding.gain.estimate().unwrap();
        assert!(gain.value > 0.45 && gain.lo > 0.3 && gain.hi < 0.6, "{gain:?}");
        assert_eq!(shared.dirty, [0, 1]);
        assert_eq!((shared.lines[0].sharing, shared.lines[0].parts.len()), (Sharing::False, 2));
        assert_eq!((shared.lines[0].parts[0].reads, shared.lines[0].parts[0].writes), (0, 1000));
    }

    /// The same, of each of these lines of 64 bytes, by an instruction of its own each.
    fn several(lines: &[u64], change: impl Fn(&mut By)) -> Gathered {
        let mut all = gathered(8);
        let accesses = std::mem::take(&mut all.accesses);
        all.by.clear();
        for (number, line) in (0_u32..).zip(lines) {
            let function = Some(format!("of_line{number}"));
            let file = Some("/src/p.c".to_owned());
            let mut by = By { function, file, line: Some(10 + number), samples: 2000, ..By::default() };
            change(&mut by);
            all.by.push(by);
            let moved =
                |access: &Access| Access { address: access.address + line * 64, by: number, ..*access };
            all.accesses.extend(accesses.iter().map(moved));
        }
        all
    }

    #[test]
    fn all_hot_lines_of_an_object_are_told() {
        let shared = shared(&several(&[0, 2, 5], |_| ()), 8000);
        let [finding] = &shared.findings[..] else { panic!("{shared:?}") };
        let named = [
            "3 cache lines of pool (p)",
            "line 0x4000 in of_line0 (p.c:10), thread 10 writes byte 0, thread 11 writes byte 8",
            "line 0x4080 in of_line1 (p.c:11), thread 10 writes byte 0, thread 11 writes byte 8",
            "line 0x4140 in of_line2 (p.c:12), thread 10",
        ];
        for words in named {
            assert!(finding.says.contains(words), "{}", finding.says);
        }
        assert_eq!(shared.lines.len(), 3);
        let many: Vec<u64> = (0..16).map(|line| 2 * line).collect();
        let says = &super::shared(&several(&many, |_| ()), 50_000).findings[0].says;
        assert!(says.contains("; and in 10 others") && says.contains("16 cache lines"), "{says}");
    }

    #[test]
    fn locks_are_named_as_such() {
        let lock = |by: &mut By| (by.locks, by.exchanges) = (true, true);
        let shared_by = |apart| {
            let mut all = gathered(apart);
            all.by.iter_mut().for_each(lock);
            let [finding] = &shared(&all, 4000).findings[..] else { panic!() };
            (finding.kind, finding.says.clone())
        };
        let (kind, says) = shared_by(8);
        assert_eq!(kind, FindingKind::FalseSharing);
        assert!(
            says.contains("different bytes") && says.contains("false sharing of locks: thread 10"),
            "{says}"
        );
        assert!(says.contains("of pool (p)") && says.contains("each lock a line of its own"), "{says}");
        let (kind, says) = shared_by(0);
        assert_eq!(kind, FindingKind::TrueSharing);
        assert!(says.contains("2 threads wait for one lock in one cache line of pool (p)"), "{says}");
        let counts = shared(&several(&[0], |by| by.locks = true), 4000);
        assert!(!counts.findings[0].says.contains("of locks"), "{counts:?}");
    }

    #[test]
    fn processes_are_named_where_they_share_memory() {
        let mut all = gathered(8);
        for access in &mut all.accesses {
            access.process = access.thread;
            access.shared = Some(InShared::of((0, 1), 9, 4096 + access.address % 64));
        }
        let shared = shared(&all, 4000);
        let [finding] = &shared.findings[..] else { panic!("{shared:?}") };
        let says = &finding.says;
        assert!(says.starts_with("2 processes use") && says.contains("process 11 writes byte 8"), "{says}");
        assert!(finding.gain.estimate().is_some_and(|gain| gain.value > 0.3), "{finding:?}");
        let line = &shared.lines[0];
        assert_eq!((&line.processes[..], line.parts[1].process), (&[10, 11][..], Some(11)));
    }

    #[test]
    fn what_is_truly_shared_or_only_near_is_told_apart() {
        let same = shared(&gathered(0), 4000);
        assert_eq!(
            same.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
            [FindingKind::TrueSharing]
        );
        let beside = shared(&gathered(64), 4000);
        assert_eq!((beside.findings.len(), beside.lines[0].sharing), (0, Sharing::Latent));
        assert!(beside.dirty.is_empty(), "{beside:?}");
        assert_eq!(shared(&gathered(8), 4_000_000).findings, [], "too little to be worth a change");
    }
}

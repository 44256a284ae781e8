//! Shared lines as the record has them, and what to do about them.

use super::access::{Access, Moment};
use super::cost::{by_progress, observed, of_plain_stores, saved, split};
use super::farther::taken;
use super::first_touch::{Touched, touched};
use super::gathered::{By, Gathered};
use super::lines::{Kind, Line, Part, lines};
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
/// Lines in the record.
const MOST_LINES: usize = 32;
/// Offsets and threads of one line in the record.
const MOST_PARTS: usize = 32;
/// Less than this share of the CPU time on the lines of an object is no finding.
const LEAST_SHARE: f64 = 0.01;
/// Nor are fewer samples.
const LEAST_SAMPLES: f64 = 24.0;
/// Findings of one kind.
const MOST_FINDINGS: usize = 4;
/// What data of another node takes longer than that of its own, as a part of its time.
pub(super) const FARTHER: Estimate = Estimate { value: 0.4, lo: 0.0, hi: 0.6 };

/// What the accesses of a run show, of which this many samples were taken.
pub(crate) fn shared(gathered: &Gathered, all: u64) -> Shared {
    let found = lines(&gathered.accesses);
    let mut findings = Vec::new();
    for (kind, is) in [(Kind::False, FindingKind::FalseSharing), (Kind::True, FindingKind::TrueSharing)] {
        let mut of_kind: Vec<Finding> = by_object(&found, kind)
            .iter()
            .filter_map(|lines| finding(gathered, lines, kind, is, all))
            .collect();
        of_kind.truncate(MOST_FINDINGS);
        findings.extend(of_kind);
    }
    let first = touched(&gathered.faults, &gathered.accesses);
    findings.extend(first_touch(gathered, &first, all));
    let lines = found.iter().filter(|line| line.all() >= LEAST_SAMPLES).take(MOST_LINES);
    Shared {
        lines: lines.map(|line| record(gathered, line, all)).collect(),
        findings,
        dirty: dirty(gathered, &found),
    }
}

/// The lines with stall of a kind, by the object that has most of it; most stall first.
fn by_object(found: &[Line], kind: Kind) -> Vec<Vec<&Line>> {
    let mut groups: BTreeMap<(u32, Option<u32>), Vec<&Line>> = BTreeMap::new();
    for line in found.iter().filter(|line| line.kind == kind) {
        groups.entry((line.process, object(line))).or_default().push(line);
    }
    let mut groups: Vec<Vec<&Line>> = groups.into_values().collect();
    let weight = |lines: &[&Line]| lines.iter().map(|line| line.weight(kind)).sum::<f64>();
    groups.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    groups
}

/// The object that has most of a line's stall.
fn object(line: &Line) -> Option<u32> {
    let mut objects: BTreeMap<u32, f64> = BTreeMap::new();
    for part in &line.parts {
        if let Some(object) = part.object {
            *objects.entry(object).or_default() += part.weight;
        }
    }
    objects.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(object, _)| object)
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
        _ => says_true(lines, &parts),
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
    let conflicts: BTreeSet<(u32, u64, u32, u32)> = lines
        .iter()
        .flat_map(|line| line.parts.iter().map(move |part| (*line, part)))
        .filter(|(_, part)| part.kind == Some(kind))
        .map(|(line, part)| (line.process, line.address + u64::from(part.offset), part.bytes, part.thread))
        .collect();
    let accesses: Vec<&Access> = gathered
        .accesses
        .iter()
        .filter(|access| conflicts.contains(&(access.process, access.address, access.bytes, access.thread)))
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

/// Offsets that a finding names.
const OFFSETS_NAMED: usize = 4;

fn says_false(
    gathered: &Gathered,
    lines: &[&Line],
    parts: &[(&Line, &Part)],
    objects: &BTreeSet<u32>,
) -> String {
    let worst = lines[0];
    let mut named: BTreeMap<u32, (BTreeSet<u32>, f64, bool)> = BTreeMap::new();
    for part in worst.parts.iter().filter(|part| part.kind == Some(Kind::False)) {
        let (threads, weight, writes) = named.entry(part.offset).or_default();
        threads.insert(part.thread);
        *weight += part.weight;
        *writes |= part.writes > 0.0;
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1));
    let left_out = named.len().saturating_sub(OFFSETS_NAMED);
    // Each thread is named at least once.
    let mut shown: Vec<(u32, u32, bool)> = Vec::new();
    for (offset, (threads, _, writes)) in &named {
        let thread = *threads.first().expect("a part has a thread");
        let is_new = shown.iter().all(|(_, other, _)| *other != thread);
        if shown.len() + 1 < OFFSETS_NAMED || (is_new && shown.len() < 2 * OFFSETS_NAMED) {
            shown.push((*offset, thread, *writes));
        }
    }
    shown.sort_unstable();
    let list: Vec<String> = shown
        .iter()
        .map(|(offset, thread, writes)| {
            format!("thread {thread} {} byte {offset}", if *writes { "writes" } else { "reads" })
        })
        .collect();
    let more = if left_out > 0 { ", …" } else { "" };
    let help = if objects.len() > 1 {
        "allocate what each thread uses in lines of its own (aligned_alloc(64, …), sizes rounded up to 64 or 128 bytes)"
    } else {
        "give each thread's part lines of its own: pad it to 64 or 128 bytes and align it (alignas(64)), or sum up in a local variable"
    };
    let object = object(worst)
        .map_or(String::new(), |object| format!(" of {}", gathered.objects[object as usize].0.name));
    format!(
        "{} use different bytes of {}{object} at the same time (false sharing: {}{more}): {help}",
        threads(parts),
        count(lines.len()),
        list.join(", "),
    )
}

fn says_true(lines: &[&Line], parts: &[(&Line, &Part)]) -> String {
    format!(
        "{} write and use the same bytes of {} at the same time (true sharing, as of locks, queues and counts of \
         references): padding does not help; hold it for a shorter time, use one for each thread, or hand over several \
         pieces of work at once",
        threads(parts),
        count(lines.len()),
    )
}

fn threads(parts: &[(&Line, &Part)]) -> String {
    let threads: BTreeSet<u32> = parts.iter().map(|(_, part)| part.thread).collect();
    format!("{} threads", threads.len())
}

fn count(lines: usize) -> String {
    if lines == 1 { "one cache line".to_owned() } else { format!("{lines} cache lines") }
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
    SharedLine {
        sharing: sharing(line.kind),
        process: line.process,
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

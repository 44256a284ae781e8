//! What a finding of sharing says: who uses which lines of what, and what would help.

use super::access::Memory;
use super::gathered::Gathered;
use super::lines::{Kind, Line, Part};
use std::collections::{BTreeMap, BTreeSet};

/// The object that has most of a line's stall.
pub(super) fn object(line: &Line) -> Option<u32> {
    let mut objects: BTreeMap<u32, f64> = BTreeMap::new();
    for part in &line.parts {
        if let Some(object) = part.object {
            *objects.entry(object).or_default() += part.weight;
        }
    }
    objects.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(object, _)| object)
}

/// Offsets of a line that a finding names, and lines.
const OFFSETS_NAMED: usize = 4;
const LINES_NAMED: usize = 6;
/// Lines with less than this part of a finding's stall are only counted, but for the first ones.
const WORTH_NAMING: f64 = 0.05;

pub(super) fn says_false(
    gathered: &Gathered,
    lines: &[&Line],
    parts: &[(&Line, &Part)],
    objects: &BTreeSet<u32>,
) -> String {
    let are_locks = are_locks(gathered, parts);
    let help = match (objects.len() > 1, are_locks) {
        (true, _) => {
            "allocate what each thread uses in lines of its own (aligned_alloc(64, …), sizes rounded up to 64 or 128 bytes)"
        }
        (false, true) => {
            "give each lock a line of its own: pad it to 64 or 128 bytes and align it (alignas(64)), or keep it with the \
             data that it guards"
        }
        (false, false) => {
            "give each thread's part lines of its own: pad it to 64 or 128 bytes and align it (alignas(64)), or sum up in a local variable"
        }
    };
    let object = object(lines[0])
        .map_or(String::new(), |object| format!(" of {}", gathered.objects[object as usize].0.name));
    let users = Users::of(parts);
    format!(
        "{users} use different bytes of {}{object} at the same time (false sharing{}: {}): {help}",
        count(lines.len()),
        if are_locks { " of locks" } else { "" },
        each_line(lines, Kind::False, |line| {
            let uses = uses_of(line, users.are_processes());
            if lines.len() == 1 {
                uses
            } else {
                format!("line {:#x}{}, {uses}", line.address, place(gathered, line))
            }
        }),
    )
}

/// What is said of each line with much of the stall, most of it first.
fn each_line(lines: &[&Line], kind: Kind, says: impl Fn(&Line) -> String) -> String {
    let all: f64 = lines.iter().map(|line| line.weight(kind)).sum();
    let mut ordered: Vec<&Line> = lines.to_vec();
    ordered.sort_by(|a, b| b.weight(kind).total_cmp(&a.weight(kind)));
    let is_worth = |(number, line): &(usize, &Line)| {
        *number < LINES_NAMED / 2 || line.weight(kind) >= WORTH_NAMING * all
    };
    let worth = ordered.iter().copied().enumerate().filter(is_worth).take(LINES_NAMED);
    let named: Vec<String> = worth.map(|(_, line)| says(line)).collect();
    match lines.len() - named.len() {
        0 => named.join("; "),
        1 => format!("{}; and in another one", named.join("; ")),
        more => format!("{}; and in {more} others", named.join("; ")),
    }
}

/// The code that waits for a line most, by its function, file and line.
fn place(gathered: &Gathered, line: &Line) -> String {
    let mut code: BTreeMap<u32, f64> = BTreeMap::new();
    for (by, weight) in line.parts.iter().flat_map(|part| &part.by) {
        *code.entry(*by).or_default() += weight;
    }
    let most = code.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some(by) = most.map(|(by, _)| &gathered.by[*by as usize]) else { return String::new() };
    let file = by.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    match (&by.function, file, by.line) {
        (Some(function), Some(file), Some(line)) => format!(" in {function} ({file}:{line})"),
        (Some(function), ..) => format!(" in {function}"),
        _ => String::new(),
    }
}

/// Who uses the bytes at one offset of a line.
#[derive(Default)]
struct AtOffset {
    /// With their processes.
    threads: BTreeSet<(u32, u32)>,
    weight: f64,
    is_written: bool,
}

/// Which thread uses which bytes of a line that is shared falsely: each is named at least once.
fn uses_of(line: &Line, are_processes: bool) -> String {
    let mut named: BTreeMap<u32, AtOffset> = BTreeMap::new();
    for part in line.parts.iter().filter(|part| part.kind == Some(Kind::False)) {
        let at = named.entry(part.offset).or_default();
        at.threads.insert((part.process, part.thread));
        at.weight += part.weight;
        at.is_written |= part.writes > 0.0;
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by(|(_, a), (_, b)| b.weight.total_cmp(&a.weight));
    let is_cut = named.len() > OFFSETS_NAMED;
    let mut shown: Vec<(u32, (u32, u32), bool)> = Vec::new();
    for (offset, AtOffset { threads, is_written, .. }) in &named {
        // Of several threads at one offset, one that is not named yet.
        let new = threads.iter().find(|thread| shown.iter().all(|(_, other, _)| other != *thread));
        let thread = *new.or(threads.first()).expect("a part has a thread");
        if shown.len() + 1 < OFFSETS_NAMED || (new.is_some() && shown.len() < 2 * OFFSETS_NAMED) {
            shown.push((*offset, thread, *is_written));
        }
    }
    shown.sort_unstable();
    let says = |(offset, (process, thread), writes): &(u32, (u32, u32), bool)| {
        let user = if are_processes { format!("process {process}") } else { format!("thread {thread}") };
        format!("{user} {} byte {offset}", if *writes { "writes" } else { "reads" })
    };
    let list: Vec<String> = shown.iter().map(says).collect();
    format!("{}{}", list.join(", "), if is_cut { ", …" } else { "" })
}

pub(super) fn says_true(gathered: &Gathered, lines: &[&Line], parts: &[(&Line, &Part)]) -> String {
    let users = Users::of(parts);
    if are_locks(gathered, parts) {
        let object = object(lines[0])
            .map_or(String::new(), |object| format!(" of {}", gathered.objects[object as usize].0.name));
        let words: BTreeSet<(Memory, u64, u32)> = parts
            .iter()
            .filter(|(line, part)| exchanged(gathered, line) & part.mask() != 0)
            .map(|(line, part)| (line.memory, line.number, part.offset))
            .collect();
        let locks = if words.len() == 1 { "one lock".to_owned() } else { format!("{} locks", words.len()) };
        return format!(
            "{users} wait for {locks} in {}{object} at the same time (true sharing: the same locks; {}): padding does not \
             help; hold it for a shorter time, or use several locks",
            count(lines.len()),
            each_line(lines, Kind::True, |line| {
                let exchanged = exchanged(gathered, line);
                let is_lock = |part: &&Part| part.kind == Some(Kind::True) && exchanged & part.mask() != 0;
                let offsets: BTreeSet<u32> =
                    line.parts.iter().filter(is_lock).map(|part| part.offset).collect();
                let offsets: Vec<String> = offsets.iter().take(OFFSETS_NAMED).map(u32::to_string).collect();
                format!("line {:#x}{}, byte {}", line.address, place(gathered, line), offsets.join(", "))
            }),
        );
    }
    let named = match lines.len() {
        1 => String::new(),
        _ => {
            each_line(lines, Kind::True, |line| format!("line {:#x}{}", line.address, place(gathered, line)))
        }
    };
    format!(
        "{users} write and use the same bytes of {} at the same time (true sharing, as of locks, queues and counts of \
         references{}): padding does not help; hold it for a shorter time, use one for each thread, or hand over several \
         pieces of work at once",
        count(lines.len()),
        if named.is_empty() { named } else { format!(": {named}") },
    )
}

/// The bytes of a line that instructions exchange, as is done to take a lock.
fn exchanged(gathered: &Gathered, line: &Line) -> u64 {
    let exchanges = |part: &&Part| part.by.keys().any(|by| gathered.by[*by as usize].exchanges);
    line.parts.iter().filter(exchanges).fold(0, |all, part| all | part.mask())
}

/// Whether most of this stall is at words that are exchanged: what spins on a lock reads it, too.
fn are_locks(gathered: &Gathered, parts: &[(&Line, &Part)]) -> bool {
    let of_locks = |(line, part): &&(&Line, &Part)| exchanged(gathered, line) & part.mask() != 0;
    let weight: f64 = parts.iter().map(|(_, part)| part.weight).sum();
    parts.iter().filter(of_locks).map(|(_, part)| part.weight).sum::<f64>() >= 0.5 * weight
}

/// Who uses shared lines, in words.
struct Users {
    threads: usize,
    processes: usize,
}

impl Users {
    fn of(parts: &[(&Line, &Part)]) -> Self {
        let threads: BTreeSet<u32> = parts.iter().map(|(_, part)| part.thread).collect();
        let processes: BTreeSet<u32> = parts.iter().map(|(_, part)| part.process).collect();
        Self { threads: threads.len(), processes: processes.len() }
    }

    /// Each thread is of another process.
    fn are_processes(&self) -> bool {
        self.processes > 1 && self.processes == self.threads
    }
}

impl std::fmt::Display for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.processes {
            0 | 1 => write!(f, "{} threads", self.threads),
            processes if self.are_processes() => write!(f, "{processes} processes"),
            processes => write!(f, "{} threads of {processes} processes", self.threads),
        }
    }
}

fn count(lines: usize) -> String {
    if lines == 1 { "one cache line".to_owned() } else { format!("{lines} cache lines") }
}

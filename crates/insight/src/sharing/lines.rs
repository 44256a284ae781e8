//! Accesses by line, offset and thread, and what kind of sharing they are.
//!
//! - false sharing: a thread uses bytes of a line that no other uses, while another one writes
//!   elsewhere in it, or it writes and the other one uses the rest;
//! - true sharing: threads use the same bytes at the same time, and one of them writes these;
//! - of atomic words side by side, as in a pool of locks, of which threads choose one and another:
//!   what other threads do to the line mostly, to the same word or to other words;
//! - latent: threads write to neighbouring lines: another alignment, or a processor that fetches
//!   lines in pairs, makes false sharing of it;
//! - nothing: no writer, one thread, or threads that take turns.

use super::access::{Access, Memory};
use super::gathered::By;
use super::together::together;
use crate::data::footprint::LINE_BYTES;
use std::collections::BTreeMap;

/// What threads do to one another on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    False,
    True,
    Latent,
}

/// Accesses of one thread at one offset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub offset: u32,
    pub bytes: u32,
    pub process: u32,
    pub thread: u32,
    pub samples: u64,
    pub weight: f64,
    /// Of that, by instructions that write there.
    pub writes: f64,
    pub kind: Option<Kind>,
    /// The code behind it, with its weight, and the object there.
    pub by: BTreeMap<u32, f64>,
    pub object: Option<u32>,
}

impl Part {
    /// Its bytes, one bit each.
    pub(super) fn mask(&self) -> u64 {
        let bytes = self.bytes.min(LINE_BYTES as u32 - self.offset);
        (u64::MAX >> (64 - bytes.clamp(1, 64))) << self.offset
    }
}

/// A line that several threads share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub memory: Memory,
    /// Its number there.
    pub number: u64,
    /// A process that uses it, and where it begins in that.
    pub process: u32,
    pub address: u64,
    pub kind: Kind,
    /// By offset and thread.
    pub parts: Vec<Part>,
}

impl Line {
    /// The samples of stall of one kind.
    pub(super) fn weight(&self, kind: Kind) -> f64 {
        self.parts.iter().filter(|part| part.kind == Some(kind)).map(|part| part.weight).sum()
    }

    pub(super) fn all(&self) -> f64 {
        self.parts.iter().map(|part| part.weight).sum()
    }
}

/// Fewer samples at an offset do not tell that no other thread uses it.
const LEAST_PRIVATE: u64 = 8;

/// A line before it is judged.
#[derive(Default)]
struct Used {
    parts: BTreeMap<(u32, u32, u32), Part>,
    times: BTreeMap<u32, Vec<u64>>,
    /// As the first process sees it.
    seen: (u32, u64),
}

/// The lines that threads share, most stall first.
pub(super) fn lines(accesses: &[Access], code: &[By]) -> Vec<Line> {
    let mut used: BTreeMap<(Memory, u64), Used> = BTreeMap::new();
    for access in accesses {
        let line = used.entry(access.line()).or_default();
        line.count(access);
    }
    for line in used.values_mut() {
        for times in line.times.values_mut() {
            times.sort_unstable();
        }
    }
    let mut found: Vec<Line> = Vec::new();
    for (&(memory, number), line) in &used {
        let mut parts: Vec<Part> = line.parts.values().cloned().collect();
        line.judge(&mut parts, code);
        let weight = |kind| -> f64 {
            parts.iter().filter(|part| part.kind == Some(kind)).map(|part| part.weight).sum()
        };
        let kind = match (weight(Kind::False), weight(Kind::True)) {
            (apart, same) if apart > same => Kind::False,
            (_, same) if same > 0.0 => Kind::True,
            _ => {
                let next = used.get(&(memory, number + 1)).filter(|next| line.is_beside(next));
                let Some(next) = next else { continue };
                parts.extend(
                    next.parts
                        .values()
                        .cloned()
                        .map(|part| Part { offset: part.offset + LINE_BYTES as u32, ..part }),
                );
                for part in &mut parts {
                    part.kind = Some(Kind::Latent);
                }
                Kind::Latent
            }
        };
        let (process, address) = line.seen;
        found.push(Line { memory, number, process, address, kind, parts });
    }
    found.sort_by(|a, b| b.all().total_cmp(&a.all()).then(a.address.cmp(&b.address)));
    found
}

impl Used {
    fn count(&mut self, access: &Access) {
        let offset = access.offset();
        if self.parts.is_empty() {
            self.seen = (access.process, access.address - u64::from(offset));
        }
        let part = self.parts.entry((offset, access.bytes, access.thread)).or_insert_with(|| Part {
            offset,
            bytes: access.bytes,
            process: access.process,
            thread: access.thread,
            samples: 0,
            weight: 0.0,
            writes: 0.0,
            kind: None,
            by: BTreeMap::new(),
            object: access.object,
        });
        part.samples += 1;
        part.weight += access.weight;
        part.writes += if access.writes { access.weight } else { 0.0 };
        *part.by.entry(access.by).or_default() += access.weight;
        self.times.entry(access.thread).or_default().push(access.time_ns);
    }

    /// Says of each part how its thread shares it.
    fn judge(&self, parts: &mut [Part], code: &[By]) {
        let mut meet: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        for (&a, times) in &self.times {
            for (&b, others) in self.times.range(a + 1..) {
                let is_together = together(times, others);
                meet.insert((a, b), is_together);
                meet.insert((b, a), is_together);
            }
        }
        let before = parts.to_vec();
        let chosen = chosen_words(&before, code);
        for part in parts {
            let others = || {
                before.iter().filter(|other| meet.get(&(part.thread, other.thread)).copied().unwrap_or(false))
            };
            let conflicts = |other: &Part| part.writes > 0.0 || other.writes > 0.0;
            let same = |other: &Part| other.mask() & part.mask() != 0;
            let samples = |is_same: bool| -> u64 {
                let of = others().filter(|other| conflicts(other) && same(other) == is_same);
                of.map(|other| other.samples).sum()
            };
            let (at_same, apart) = (samples(true), samples(false));
            let is_chosen = chosen & part.mask() != 0 && at_same + apart >= 2 * LEAST_PRIVATE;
            part.kind = if is_chosen {
                Some(if at_same < apart { Kind::False } else { Kind::True })
            } else if others().any(|other| same(other) && conflicts(other)) {
                Some(Kind::True)
            } else if others().any(|other| !same(other) && conflicts(other)) && part.is_private(&before) {
                Some(Kind::False)
            } else {
                None
            };
        }
    }

    /// Whether a thread writes to this line, and another one at the same time to the next one.
    fn is_beside(&self, next: &Self) -> bool {
        let writer = |line: &Self| {
            let written = line.parts.values().filter(|part| part.writes > 0.0);
            let thread = written.map(|part| part.thread).next()?;
            let samples: u64 = line.parts.values().map(|part| part.samples).sum();
            let is_its_own = line.parts.values().all(|part| part.thread == thread);
            (is_its_own && samples >= LEAST_PRIVATE).then_some(thread)
        };
        match (writer(self), writer(next)) {
            (Some(a), Some(b)) if a != b => together(&self.times[&a], &next.times[&b]),
            _ => false,
        }
    }
}

/// The bytes of atomic words that an instruction chooses among: one that comes to several of them.
/// Such words are used one at a time. Fields of one structure are not: a thread that takes its lock
/// uses them all.
fn chosen_words(parts: &[Part], code: &[By]) -> u64 {
    let mut words: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for part in parts {
        for by in part.by.keys().filter(|by| code.get(**by as usize).is_some_and(|by| by.locks)) {
            words.entry(*by).or_default().push(part.mask());
        }
    }
    let are_several = |masks: &&Vec<u64>| masks.iter().any(|mask| mask & masks[0] == 0);
    words.values().filter(are_several).flatten().fold(0, |all, mask| all | mask)
}

impl Part {
    /// Whether its bytes were seen often enough to be one thread's.
    fn is_private(&self, all: &[Self]) -> bool {
        let at = all.iter().filter(|other| other.thread == self.thread && other.mask() & self.mask() != 0);
        at.map(|part| part.samples).sum::<u64>() >= LEAST_PRIVATE
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::InShared;
    use super::*;

    const LINE: u64 = 0x4000;

    /// Accesses of a thread, one each 300 µs while it runs.
    fn by(thread: u32, address: u64, writes: bool, runs: impl Fn(u64) -> bool) -> Vec<Access> {
        let access = |at: u64| Access {
            process: 1,
            thread,
            time_ns: at * 300_000 + u64::from(thread) * 1000,
            address,
            shared: None,
            bytes: 8,
            writes,
            weight: 2.0,
            by: thread,
            object: None,
        };
        (0..2000).filter(|&at| runs(at)).map(access).collect()
    }

    fn kinds(accesses: &[Vec<Access>]) -> Vec<Kind> {
        lines(&accesses.concat(), &[]).iter().map(|line| line.kind).collect()
    }

    const ALWAYS: fn(u64) -> bool = |_| true;

    #[test]
    fn different_bytes_of_a_line_are_shared_falsely() {
        let own = by(1, LINE, true, ALWAYS);
        assert_eq!(kinds(&[own.clone(), by(2, LINE + 8, true, ALWAYS)]), [Kind::False]);
        assert_eq!(
            kinds(&[own.clone(), by(2, LINE + 8, false, ALWAYS)]),
            [Kind::False],
            "one writer is enough"
        );
        assert_eq!(kinds(&[own.clone(), by(2, LINE + 4, true, ALWAYS)]), [Kind::True], "these overlap");
        assert_eq!(kinds(&[own.clone(), by(2, LINE, false, ALWAYS)]), [Kind::True]);
        assert_eq!(kinds(&[own.clone(), by(2, LINE + 64, true, ALWAYS)]), [Kind::Latent]);
        assert_eq!(kinds(&[own, by(2, LINE + 128, true, ALWAYS)]), []);
    }

    #[test]
    fn what_does_not_conflict_is_not_shared() {
        let reads = by(1, LINE, false, ALWAYS);
        assert_eq!(kinds(&[reads.clone(), by(2, LINE, false, ALWAYS)]), [], "only read");
        assert_eq!(kinds(&[by(1, LINE, true, ALWAYS), by(1, LINE + 8, true, ALWAYS)]), [], "one thread's");
        let (early, late) = (|at| at < 1000, |at| at >= 1000);
        assert_eq!(kinds(&[by(1, LINE, true, early), by(2, LINE + 8, true, late)]), [], "handed over");
        let (odd, even) = (|at| at / 50 % 2 == 1, |at| at / 50 % 2 == 0);
        assert_eq!(kinds(&[by(1, LINE, true, odd), by(2, LINE + 8, true, even)]), [], "barriers");
        let mut other = by(2, LINE + 8, true, ALWAYS);
        for access in &mut other {
            access.process = 2;
        }
        assert_eq!(kinds(&[by(1, LINE, true, ALWAYS), other]), [], "another process");
    }

    #[test]
    fn processes_meet_in_memory_that_they_share() {
        let file = |inode, page: u64, accesses: Vec<Access>, process, at: u64| -> Vec<Access> {
            let shared = |access: &Access| {
                let offset = page * 4096 + access.address % 4096;
                Some(InShared::of((0, 1), inode, offset))
            };
            let moved = |access: Access| Access {
                process,
                shared: shared(&access),
                address: at + access.address % 4096,
                ..access
            };
            accesses.into_iter().map(moved).collect()
        };
        let own = || by(1, LINE, true, ALWAYS);
        let other = |by_bytes: u64| by(2, LINE + by_bytes, true, ALWAYS);
        let first = || file(7, 3, own(), 1, 0x7000);
        let found = lines(&[first(), file(7, 3, other(8), 2, 0x9000)].concat(), &[]);
        assert_eq!((found[0].kind, found.len()), (Kind::False, 1), "wherever it is mapped");
        assert_eq!((found[0].process, found[0].address), (1, 0x7000));
        assert_eq!(found[0].parts.iter().map(|part| part.process).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(kinds(&[first(), file(7, 3, other(0), 2, 0x9000)]), [Kind::True]);
        assert_eq!(kinds(&[first(), file(8, 3, other(8), 2, 0x7000)]), [], "another file");
        assert_eq!(kinds(&[first(), file(7, 4, other(8), 2, 0x7000)]), [], "another page");
    }

    #[test]
    fn of_words_that_are_chosen_the_others_disturb() {
        let code = |locks| vec![By { locks, ..By::default() }; 4];
        // Each thread takes any of the locks of the line, by one instruction.
        let any = |thread: u32, words: u64| -> Vec<Access> {
            let mut accesses = by(thread, LINE, true, ALWAYS);
            for (at, access) in (0..).zip(&mut accesses) {
                access.address = LINE + (at * 7 + u64::from(thread)) % words * 8;
                access.by = 0;
            }
            accesses
        };
        let kind = |words, locks| {
            let found = lines(&[any(1, words), any(2, words)].concat(), &code(locks));
            found.iter().map(|line| line.kind).collect::<Vec<_>>()
        };
        assert_eq!(kind(8, true), [Kind::False], "seven of eight times it is another lock");
        assert_eq!(kind(1, true), [Kind::True], "there is but one");
        assert_eq!(kind(8, false), [Kind::True], "what is copied, say");
        // A lock and what it guards, each by an instruction of its own.
        let guarded = |thread: u32| -> Vec<Access> {
            let mut accesses = by(thread, LINE, true, ALWAYS);
            for (at, access) in (0..4).cycle().zip(&mut accesses) {
                access.address = LINE + u64::from(at) * 8;
                access.by = at;
            }
            accesses
        };
        let found = lines(&[guarded(1), guarded(2)].concat(), &code(true));
        assert_eq!(found[0].kind, Kind::True);
    }

    #[test]
    fn a_lock_and_its_data_are_shared_truly() {
        let lock = [by(1, LINE, true, ALWAYS), by(2, LINE, true, ALWAYS)].concat();
        // Only one thread was seen at the count, a few times: that is chance.
        let count = by(1, LINE + 16, true, |at| at < 3);
        let found = lines(&[lock, count].concat(), &[]);
        assert_eq!(found[0].kind, Kind::True);
        assert_eq!(found[0].parts.last().unwrap().kind, None);
        assert_eq!((found[0].weight(Kind::True), found[0].all()), (8000.0, 8006.0));
    }

    #[test]
    fn masks_stay_within_the_line() {
        let part = |offset, bytes| {
            let access = Access { address: LINE + offset, bytes, ..by(1, LINE, true, ALWAYS)[0] };
            let mut used = Used::default();
            used.count(&access);
            used.parts.into_values().next().unwrap().mask()
        };
        assert_eq!((part(0, 8), part(8, 4)), (0xff, 0xf00));
        assert_eq!((part(60, 8), part(0, 64), part(3, 0)), (0xf << 60, u64::MAX, 8));
    }
}

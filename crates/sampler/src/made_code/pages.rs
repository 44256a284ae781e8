//! The bytes of code that no file has, read from the process right after it was sampled.
//!
//! Such code is written over while the program runs, so bytes count for a span of time only:
//!
//! ```text
//!   sample a    read    sample b    read    sample c    read
//! ──────────────┼───────────────────┼───────────────────┼────▶ time
//!               same bytes in both: b is in them        other bytes: c is in neither,
//!                                                       unless those around it are the same
//! ```
//!
//! `a` came before the first reading. It is taken to be in what was read then, a tenth of a
//! second later at most; if the bytes around it are others at the second reading, they may
//! have been others at the sample as well, and it is in doubt. What is in doubt has no version
//! and is not decoded. A sample behind the last reading of a process that has ended since is
//! taken to be in that.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub(crate) const PAGE: u64 = 4096;
/// Pages of what was sampled are read with these on both sides: functions are longer than a page.
const BESIDE: u64 = 4;
/// Contents that are kept: 32 MiB.
const MOST_CONTENTS: usize = 8192;
/// Pages that are read in a second, and at a time: less than a hundredth of a CPU.
const READ_A_SECOND: f64 = 4000.0;
const READ_AT_A_TIME: f64 = 1000.0;
/// What a program runs in its last moments is in the bytes that were read right before these.
const LAST_ROUND_NS: u64 = 200_000_000;
/// Bytes in front of a sampled instruction and behind it that tell whether it is still there.
const IN_FRONT: u64 = 64;
const BEHIND: u64 = 32;

/// What was in a page for a time.
#[derive(Debug)]
pub(crate) struct Content {
    pub bytes: Box<[u8]>,
    /// Of its first and its last reading.
    pub first_ns: u64,
    pub last_ns: u64,
}

#[derive(Debug, Default)]
struct Page {
    /// One after the other; their versions are their numbers from 1 on.
    contents: Vec<Content>,
    /// When it was last read, or could not be.
    read_ns: u64,
    /// The process has ended, so it cannot be read any more.
    is_gone: bool,
    /// Addresses that were sampled before the first reading.
    early: Vec<u64>,
}

/// Pages of code of all processes.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    memory: HashMap<u32, Option<File>>,
    pages: HashMap<(u32, u64), Page>,
    kept: usize,
    /// This round of readings.
    now_ns: u64,
    may_read: f64,
    /// A page was read for the first time in this round.
    is_busy: bool,
    /// Process, address and version of samples that may have been in other bytes.
    doubtful: HashSet<(u32, u64, u32)>,
}

impl Pages {
    /// Begins a round: each page is read once in it.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        let passed_s = now_ns.saturating_sub(self.now_ns) as f64 / 1e9;
        self.may_read = (self.may_read + READ_A_SECOND * passed_s).min(READ_AT_A_TIME);
        self.now_ns = now_ns;
        self.is_busy = false;
    }

    /// Whether code was sampled in this round that was not there before: the sooner it is read
    /// again, the less is in doubt.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// The process has executed another program, or ended.
    pub(crate) fn forget(&mut self, process: u32) {
        self.memory.remove(&process);
    }

    /// The version of the page that a sample of this time is in; 0 if that is not known.
    pub(crate) fn version(&mut self, process: u32, address: u64, time_ns: u64) -> u32 {
        let number = address / PAGE;
        self.read(process, number, false);
        for beside in number.saturating_sub(BESIDE)..=number + BESIDE {
            self.read(process, beside, true);
        }
        let Some(page) = self.pages.get_mut(&(process, number)) else { return 0 };
        let Some((last, before)) = page.contents.split_last() else { return 0 };
        let version = before.len() as u32 + 1;
        if last.first_ns <= time_ns && time_ns <= last.last_ns {
            return version;
        }
        if time_ns > last.last_ns {
            return if page.is_gone && time_ns - last.last_ns <= LAST_ROUND_NS { version } else { 0 };
        }
        match before.last() {
            None => {
                if !page.early.contains(&address) {
                    page.early.push(address);
                }
                version
            }
            Some(before) if before.last_ns <= time_ns => {
                if is_same_around(address, &before.bytes, &last.bytes) { version } else { 0 }
            }
            Some(_) => {
                let holds = |content: &Content| content.first_ns <= time_ns && time_ns <= content.last_ns;
                page.contents.iter().position(holds).map_or(0, |index| index as u32 + 1)
            }
        }
    }

    /// Reads a page, unless it was in this round; those beside sampled ones are read once.
    fn read(&mut self, process: u32, number: u64, beside: bool) {
        let is_read = |page: &Page| page.read_ns == self.now_ns || beside && !page.contents.is_empty();
        if self.pages.get(&(process, number)).is_some_and(is_read) || self.may_read < 1.0 {
            return;
        }
        self.may_read -= 1.0;
        let memory =
            self.memory.entry(process).or_insert_with(|| File::open(format!("/proc/{process}/mem")).ok());
        let page = self.pages.entry((process, number)).or_default();
        page.read_ns = self.now_ns;
        let mut bytes = vec![0; PAGE as usize];
        let read = memory.as_ref().map(|memory| memory.read_exact_at(&mut bytes, number * PAGE));
        page.is_gone = !matches!(read, Some(Ok(())));
        if page.is_gone {
            return;
        }
        let now_ns = crate::perf::open::now_ns();
        if let Some(last) = page.contents.last_mut().filter(|last| *last.bytes == *bytes) {
            last.last_ns = now_ns;
            page.early.clear();
            return;
        }
        if self.kept == MOST_CONTENTS {
            return;
        }
        self.kept += 1;
        self.is_busy |= page.contents.is_empty() && !beside;
        if let Some(last) = page.contents.last() {
            let doubtful = page.early.drain(..).filter(|at| !is_same_around(*at, &last.bytes, &bytes));
            self.doubtful.extend(doubtful.map(|address| (process, address, 1)));
        }
        page.contents.push(Content { bytes: bytes.into(), first_ns: now_ns, last_ns: now_ns });
    }

    /// The bytes in which a sample of this version was, if that is beyond doubt, with those of the
    /// pages beside it at the same time: the address of the first byte, and all from there on.
    pub(crate) fn around(&self, process: u32, address: u64, version: u32) -> Option<(u64, Vec<u8>)> {
        if self.doubtful.contains(&(process, address, version)) {
            return None;
        }
        let number = address / PAGE;
        let page = self.pages.get(&(process, number))?;
        let own = page.contents.get((version as usize).checked_sub(1)?)?;
        let beside = |number: u64| -> Option<&Content> {
            let contents = &self.pages.get(&(process, number))?.contents;
            contents.iter().rev().find(|content| content.first_ns <= own.last_ns).or(contents.first())
        };
        let before = (1..=MOST_BESIDE).map_while(|back| beside(number.checked_sub(back)?));
        let before: Vec<&Content> = before.collect();
        let start = (number - before.len() as u64) * PAGE;
        let behind = (1..=MOST_BESIDE).map_while(|on| beside(number + on));
        let all = before.into_iter().rev().chain([own]).chain(behind);
        Some((start, all.flat_map(|content| content.bytes.iter().copied()).collect()))
    }
}

/// A longer function is known in part.
const MOST_BESIDE: u64 = 64;

/// Whether these two contents of a page are the same around an address in it.
fn is_same_around(address: u64, one: &[u8], other: &[u8]) -> bool {
    let at = address % PAGE;
    let (from, to) = (at.saturating_sub(IN_FRONT) as usize, (at + BEHIND).min(PAGE) as usize);
    one[from..to] == other[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::open::now_ns;

    /// Memory of this process, to be written over while it is read.
    fn page() -> (Vec<u8>, u64) {
        let memory = vec![0x90; 3 * PAGE as usize];
        let at = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        (memory, at)
    }

    fn write(memory: &mut [u8], at: u64, byte: u8) {
        let index = at - memory.as_ptr() as u64;
        memory[index as usize] = byte;
        std::hint::black_box(memory);
    }

    fn round(pages: &mut Pages, address: u64, time_ns: u64) -> u32 {
        pages.begin(now_ns());
        pages.version(std::process::id(), address, time_ns)
    }

    #[test]
    fn bytes_count_for_their_span_of_time() {
        let own = std::process::id();
        let (mut memory, at) = page();
        let mut pages = Pages { may_read: READ_AT_A_TIME, ..Pages::default() };
        assert_eq!(round(&mut pages, at + 0x200, now_ns()), 1, "before its first reading");
        assert!(pages.is_busy());
        let between = now_ns();
        assert_eq!(round(&mut pages, at + 0x200, between), 1);
        assert!(!pages.is_busy());
        write(&mut memory, at + 0x210, 0xcc);
        let between_others = now_ns();
        assert_eq!(round(&mut pages, at + 0x200, between_others), 0, "it may have been the one or the other");
        assert_eq!(pages.version(own, at + 0x800, between_others), 2, "the same around it in both");
        assert_eq!(pages.version(own, at + 0x200, between), 1, "a time before");
        assert_eq!(round(&mut pages, at + 0x200, now_ns() - 1), 2);
        let (start, bytes) = pages.around(own, at + 0x200, 1).unwrap();
        assert_eq!(bytes[(at + 0x210 - start) as usize], 0x90);
        let (start, bytes) = pages.around(own, at + 0x200, 2).unwrap();
        assert_eq!(bytes[(at + 0x210 - start) as usize], 0xcc);
        assert!(bytes.len() as u64 >= 2 * PAGE, "{}", bytes.len());
    }

    #[test]
    fn what_changes_after_its_first_reading_is_in_doubt() {
        let own = std::process::id();
        let (mut memory, at) = page();
        let mut pages = Pages { may_read: READ_AT_A_TIME, ..Pages::default() };
        let before = now_ns();
        for address in [at + 0x200, at + 0x900] {
            assert_eq!(pages.version(own, address, before), 1);
        }
        write(&mut memory, at + 0x1f8, 0xcc);
        assert_eq!(round(&mut pages, at + 0x900, now_ns()), 2);
        assert!(pages.around(own, at + 0x200, 1).is_none());
        assert!(pages.around(own, at + 0x900, 1).is_some());
    }

    #[test]
    fn what_cannot_be_read_has_no_version() {
        let mut pages = Pages::default();
        assert_eq!(pages.version(std::process::id(), 0x10, now_ns()), 0, "nothing may be read yet");
        pages.may_read = READ_AT_A_TIME;
        assert_eq!(pages.version(std::process::id(), 0x10, now_ns()), 0);
        assert_eq!(pages.version(u32::MAX, 0x5000_0010, now_ns()), 0);
        assert!(pages.around(std::process::id(), 0x10, 1).is_none());
    }
}

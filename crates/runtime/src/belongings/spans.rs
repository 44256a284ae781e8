//! Where the files of a scavenger lie that were mapped when its program began: itself, its loader, its libraries. They stay where they are
//! as long as it lives.

use super::maps::{self, File, Line};
use super::{PAGE, memory};
use crate::area::Area;
use crate::exec::elf::{self, FileHeader, ProgramHeader};
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Most of them that are noted.
const MOST: usize = 508;

/// Addresses that belong to one file.
#[repr(C)]
#[derive(Default)]
struct Span {
    start: AtomicU64,
    /// 0: not known, and nothing of it is anybody's.
    end: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
    /// What lies there without a file is its, too.
    whole: AtomicU32,
}

impl Span {
    fn of(&self, line: &Line) -> Option<(usize, usize)> {
        let (start, end) = (self.start.load(Relaxed) as usize, self.end.load(Acquire) as usize);
        let (from, to) = (start.max(line.start), end.min(line.end));
        let file = File { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        let same = file.inode != 0 && file == line.file;
        let its = same || self.whole.load(Relaxed) != 0 && line.file.inode == 0 && !line.special;
        (from < to && its).then_some((from, to))
    }
}

/// In memory that is the scavenger's, and marked.
#[repr(C)]
pub(crate) struct Spans {
    count: AtomicU32,
    all: [Span; MOST],
}

const SIZE: usize = size_of::<Spans>().next_multiple_of(PAGE);

impl Spans {
    fn push(&self) -> Option<&Span> {
        let at = self.count.fetch_add(1, AcqRel) as usize;
        self.all.get(at)
    }

    fn each(&self) -> impl Iterator<Item = &Span> {
        self.all.iter().take(self.count.load(Acquire) as usize)
    }

    /// The part of a mapping that is known for the scavenger's: all of it is asked for by asking again behind what was answered.
    pub(crate) fn part(&self, line: &Line) -> Option<(usize, usize)> {
        self.each().find_map(|span| span.of(line))
    }

    /// Where it lies itself.
    pub(crate) fn range(&self) -> (usize, usize) {
        let start = core::ptr::from_ref(self) as usize;
        (start, start + SIZE)
    }
}

fn of(area: &Area) -> Option<&'static Spans> {
    // SAFETY: set once, to memory that stays until all areas of the scavenger are given back.
    unsafe { area.belongings().spans.load(Acquire).as_ref() }
}

pub(super) fn begin(area: &Area) {
    let protection = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: a new mapping, of zeroes, which are values of atomics.
    if let Ok(at) = unsafe { memory(area, 0, SIZE, protection, 0) } {
        area.belongings().spans.store(at as *mut Spans, Release);
    }
}

/// Our loader has mapped a file from here to there.
pub(crate) fn note(area: &Area, (start, end): (usize, usize)) {
    let Some(span) = of(area).and_then(Spans::push) else { return };
    span.start.store(start as u64, Relaxed);
    maps::each(|line| {
        if line.holds(start) && line.file.inode != 0 {
            span.device.store(line.file.device, Relaxed);
            span.inode.store(line.file.inode, Relaxed);
            span.end.store(end as u64, Release);
        }
    });
}

/// The program's loader has mapped libraries, each with its first segment at an address that `each` shows. They are not unloaded.
pub(crate) fn note_libraries(area: &Area, each: impl Fn(&mut dyn FnMut(usize))) {
    let Some(spans) = of(area) else { return };
    let known = spans.count.load(Acquire) as usize;
    each(&mut |at| {
        let is_one = at != 0 && spans.each().all(|span| span.start.load(Relaxed) != at as u64);
        if let Some(span) = is_one.then(|| spans.push()).flatten() {
            span.start.store(at as u64, Relaxed);
        }
    });
    let new = || spans.each().skip(known);
    maps::each(|line| {
        let begins = |span: &&Span| span.start.load(Relaxed) == line.start as u64;
        if line.readable
            && line.offset == 0
            && line.file.inode != 0
            && let Some(span) = new().find(begins)
        {
            // SAFETY: memory that may be read, of a library that the loader mapped.
            if let Some(size) = unsafe { size_at(line) } {
                span.device.store(line.file.device, Relaxed);
                span.inode.store(line.file.inode, Relaxed);
                span.whole.store(1, Relaxed);
                span.end.store((line.start + size) as u64, Release);
            }
        }
    });
}

/// Whether both addresses lie in one library that is noted.
pub(super) fn share_a_file(area: &Area, one: usize, other: usize) -> bool {
    let holds = |span: &Span, address: usize| {
        (span.start.load(Relaxed)..span.end.load(Acquire)).contains(&(address as u64))
    };
    of(area).is_some_and(|spans| spans.each().any(|span| holds(span, one) && holds(span, other)))
}

/// How many addresses the library has that begins with this mapping, as its headers tell.
///
/// # Safety
/// It must be there, and not change.
unsafe fn size_at(line: &Line) -> Option<usize> {
    let space = line.end - line.start;
    // SAFETY: a page at least, of which any bytes are numbers.
    let file = unsafe { &*(line.start as *const FileHeader) };
    let count = file.headers as usize;
    let end = (file.headers_at as usize).checked_add(count * size_of::<ProgramHeader>())?;
    if !file.is_loadable() || end > space || file.headers_at % 8 != 0 {
        return None;
    }
    // SAFETY: inside the mapping, as was asked.
    let headers = unsafe {
        core::slice::from_raw_parts((line.start + file.headers_at as usize) as *const ProgramHeader, count)
    };
    let span = elf::span(headers)?;
    (span.first == 0).then_some(span.end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64, inode: u64, whole: u32) -> Span {
        Span {
            start: start.into(),
            end: end.into(),
            device: 7.into(),
            inode: inode.into(),
            whole: whole.into(),
        }
    }

    fn line(start: usize, end: usize, inode: u64) -> Line {
        let device = if inode == 0 { 0 } else { 7 };
        Line { start, end, file: File { device, inode }, ..Line::default() }
    }

    #[test]
    fn only_what_is_the_files_is_its() {
        let file = span(0x2000, 0x6000, 5, 0);
        assert_eq!(file.of(&line(0x1000, 0x3000, 5)), Some((0x2000, 0x3000)));
        assert_eq!(file.of(&line(0x5000, 0x9000, 5)), Some((0x5000, 0x6000)));
        for other in [
            line(0x3000, 0x4000, 6),
            line(0x3000, 0x4000, 0),
            line(0x6000, 0x7000, 5),
            line(0x1000, 0x2000, 5),
        ] {
            assert_eq!(file.of(&other), None);
        }
        let whole = span(0x2000, 0x6000, 5, 1);
        assert_eq!(whole.of(&line(0x3000, 0x9000, 0)), Some((0x3000, 0x6000)));
        assert_eq!(whole.of(&Line { special: true, ..line(0x3000, 0x4000, 0) }), None);
        assert_eq!(whole.of(&line(0x3000, 0x4000, 6)), None);
        assert_eq!(span(0x2000, 0, 5, 1).of(&line(0x3000, 0x4000, 5)), None, "its end is not known");
    }

    #[test]
    fn a_library_tells_its_size() {
        // This test's own file is such a one.
        let code = only_what_is_the_files_is_its as *const () as usize;
        let mut first = None;
        let mut found = None;
        maps::each(|line| {
            if line.offset == 0 && line.file.inode != 0 {
                first = Some(*line);
            }
            if line.holds(code) {
                found = first;
            }
        });
        let line = found.expect("a mapping of the file's beginning");
        // SAFETY: the file's first page.
        let size = unsafe { size_at(&line) }.expect("headers");
        assert!((line.start..line.start + size).contains(&code));
    }
}

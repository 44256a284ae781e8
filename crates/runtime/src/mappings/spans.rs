//! Where the files of a scavenger lie: itself, its loader, its libraries, what it maps.
//!
//! What it unmaps is taken out of the list before it does, so what other processes map there
//! afterwards is never taken for its own. For that its calls have to be seen ([`super::hook`]):
//! those of its loader for libraries, and all of them for what it maps itself. And the kernel has
//! to tell the same file there as was noted.

use crate::exec::elf::{self, FileHeader, ProgramHeader};
use crate::layout::area::Area;
use crate::mappings::maps::{self, FileId, MapsLine};
use crate::mappings::{PAGE, memory, seen};
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Most of them that are noted.
const MOST: usize = 2040;

/// What is known of a span.
mod kind {
    /// Nothing is there.
    pub(super) const FREE: u32 = 0;
    /// Of one file, wherever in it.
    pub(super) const FILE: u32 = 1;
    /// The same; it may be unloaded.
    pub(super) const LIBRARY: u32 = 2;
    /// Of one file, at an offset.
    pub(super) const MAPPED: u32 = 3;
}

/// Addresses that belong to one file.
#[repr(C)]
#[derive(Default)]
struct FileSpan {
    start: AtomicU64,
    /// 0: not known, and nothing of it is the scavenger's.
    end: AtomicU64,
    device: AtomicU64,
    /// 0: any of that device, which is that of shared memory without a name.
    inode: AtomicU64,
    /// Offset in the file less the address.
    shift: AtomicU64,
    kind: AtomicU32,
}

impl FileSpan {
    fn range(&self) -> (usize, usize) {
        (self.start.load(Relaxed) as usize, self.end.load(Acquire) as usize)
    }

    fn holds(&self, address: usize) -> bool {
        let (start, end) = self.range();
        (start..end).contains(&address)
    }

    fn file(&self) -> FileId {
        FileId { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) }
    }

    /// The part of a mapping that is known for the scavenger's, from an address on.
    fn part(&self, line: &MapsLine, from: usize, seen: u32) -> Option<(usize, usize)> {
        let (start, end) = self.range();
        let (start, end) = (start.max(line.start).max(from), end.min(line.end));
        let file = self.file();
        let its = match self.kind.load(Relaxed) {
            kind::FILE => file == line.file,
            kind::LIBRARY => seen & seen::LOADER_UNMAPS != 0 && file == line.file,
            // Not every file system tells the same device of it everywhere.
            kind::MAPPED => {
                let same = match file.inode {
                    0 => file.device == line.file.device,
                    inode => inode == line.file.inode,
                };
                seen == seen::ALL
                    && same
                    && self.shift.load(Relaxed) == line.offset.wrapping_sub(line.start as u64)
            }
            _ => false,
        };
        (start < end && line.file.inode != 0 && its).then_some((start, end))
    }

    fn set(&self, (start, end): (usize, usize), file: FileId, shift: u64, kind: u32) {
        self.start.store(start as u64, Relaxed);
        self.device.store(file.device, Relaxed);
        self.inode.store(file.inode, Relaxed);
        self.shift.store(shift, Relaxed);
        self.kind.store(kind, Relaxed);
        self.end.store(end as u64, Release);
    }
}

/// In memory that is the scavenger's, and marked.
#[repr(C)]
pub(crate) struct FileSpans {
    count: AtomicU32,
    /// Held by the thread that changes it.
    lock: AtomicU32,
    /// A thread could not change it, so it tells nothing any more.
    spoiled: AtomicU32,
    all: [FileSpan; MOST],
}

const SIZE: usize = size_of::<FileSpans>().next_multiple_of(PAGE);

impl FileSpans {
    /// Space for one more.
    fn push(&self) -> Option<&FileSpan> {
        let free = |span: &&FileSpan| span.kind.load(Relaxed) == kind::FREE && span.end.load(Relaxed) == 0;
        self.each().find(free).or_else(|| self.all.get(self.count.fetch_add(1, AcqRel) as usize))
    }

    /// Not for two at a time. A handler may find the lock held by the code that it interrupted, and
    /// a forked child by a thread that is not there: then nothing is known any more.
    fn change(&self, change: impl FnOnce()) {
        const LOOKS: u32 = 1000;
        if self.spoiled.load(Relaxed) != 0 {
            return;
        }
        for _ in 0..LOOKS {
            if self.lock.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
                change();
                self.lock.store(0, Release);
                return;
            }
            sys::sched_yield();
        }
        self.spoiled.store(1, Release);
    }

    fn each(&self) -> impl Iterator<Item = &FileSpan> {
        self.all.iter().take(self.count.load(Acquire) as usize)
    }

    /// The first part of a mapping that is known for the scavenger's, from an address on, where
    /// these calls were seen.
    pub(crate) fn part(&self, line: &MapsLine, from: usize, seen: u32) -> Option<(usize, usize)> {
        let parts = self.each().filter_map(|span| span.part(line, from, seen));
        parts.min().filter(|_| self.spoiled.load(Acquire) == 0)
    }

    /// Where the list itself lies.
    pub(crate) fn range(&self) -> (usize, usize) {
        let start = core::ptr::from_ref(self) as usize;
        (start, start + SIZE)
    }
}

fn of(area: &Area) -> Option<&'static FileSpans> {
    // SAFETY: set once, to memory that stays until all areas of the scavenger are given back.
    unsafe { area.mappings().spans.load(Acquire).as_ref() }
}

pub(super) fn begin(area: &Area) {
    let protection = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: a new mapping, of zeroes, which are values of atomics.
    if let Ok(at) = unsafe { memory(area, 0, SIZE, protection, 0) } {
        area.mappings().spans.store(at as *mut FileSpans, Release);
    }
}

/// Our loader has mapped a file from here to there.
pub(crate) fn note(area: &Area, (start, end): (usize, usize)) {
    let Some(span) = of(area).and_then(FileSpans::push) else { return };
    maps::each(|line| {
        if line.holds(start) && line.file.inode != 0 {
            span.set((start, end), line.file, 0, kind::FILE);
        }
    });
}

/// The program has something of this file here, from this offset on.
pub(super) fn mapped(area: &Area, at: usize, size: usize, file: FileId, offset: u64) {
    let Some(spans) = of(area) else { return };
    let Some(end) = at.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE)) else { return };
    if file == FileId::default() {
        return;
    }
    spans.change(|| {
        if let Some(span) = spans.push() {
            span.set((at, end), file, offset.wrapping_sub(at as u64), kind::MAPPED);
        }
    });
}

/// Something was unmapped or moved, and it is not known what.
pub(super) fn spoil(area: &Area) {
    if let Some(spans) = of(area) {
        spans.spoiled.store(1, Release);
    }
}

/// The program is about to unmap what is here, or to map something else there.
pub(super) fn forget(area: &Area, at: usize, size: usize) {
    let Some(spans) = of(area) else { return };
    let Some(until) = at.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE)) else { return };
    let is_hit = |span: &&FileSpan| {
        let (start, end) = span.range();
        start < until && at < end
    };
    if !spans.each().any(|span| is_hit(&span)) {
        return;
    }
    spans.change(|| {
        for span in spans.each().filter(is_hit) {
            let (start, end) = span.range();
            let (file, shift, kind) = (span.file(), span.shift.load(Relaxed), span.kind.load(Relaxed));
            span.end.store(0, Release);
            span.kind.store(kind::FREE, Release);
            for left in [(start, at), (until, end)] {
                if left.0 < left.1
                    && let Some(span) = spans.push()
                {
                    span.set(left, file, shift, kind);
                }
            }
        }
    });
}

/// The program's loader has mapped libraries, each with its first segment at an address that `each`
/// shows.
pub(crate) fn note_libraries(area: &Area, each: impl Fn(&mut dyn FnMut(usize))) {
    let Some(spans) = of(area) else { return };
    each(&mut |at| {
        let is_known = |span: &FileSpan| {
            span.start.load(Relaxed) == at as u64 && span.kind.load(Relaxed) != kind::MAPPED
        };
        if at != 0
            && !spans.each().any(is_known)
            && let Some(span) = spans.push()
        {
            span.start.store(at as u64, Relaxed);
            span.kind.store(kind::LIBRARY, Relaxed);
        }
    });
    maps::each(|line| {
        let begins =
            |span: &&FileSpan| span.kind.load(Relaxed) == kind::LIBRARY && span.range() == (line.start, 0);
        if line.readable
            && line.offset == 0
            && line.file.inode != 0
            && let Some(span) = spans.each().find(begins)
        {
            // SAFETY: memory that may be read, of a library that the loader mapped.
            if let Some(size) = unsafe { size_at(line) } {
                span.set((line.start, line.start + size), line.file, 0, kind::LIBRARY);
            }
        }
    });
}

/// Whether both addresses lie in one library that is noted, or in the loader.
pub(super) fn share_a_file(area: &Area, one: usize, other: usize) -> bool {
    of(area).is_some_and(|spans| {
        spans
            .each()
            .any(|span| span.kind.load(Relaxed) != kind::MAPPED && span.holds(one) && span.holds(other))
    })
}

/// The inode of the file that is noted for an address; 0: none is.
pub(super) fn inode_at(area: &Area, address: usize) -> u64 {
    let spans = of(area);
    let span = spans.and_then(|spans| spans.each().find(|span| span.holds(address)));
    span.map_or(0, |span| span.file().inode)
}

/// Whether it lies in what our loader mapped: where no program is, the program's loader.
pub(super) fn is_loaders(area: &Area, address: usize) -> bool {
    of(area).is_some_and(|spans| {
        spans.each().any(|span| span.kind.load(Relaxed) == kind::FILE && span.holds(address))
    })
}

/// How many addresses the library has that begins with this mapping, as its headers tell.
///
/// # Safety
/// It must be there, and not change.
unsafe fn size_at(line: &MapsLine) -> Option<usize> {
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

    fn span(start: usize, end: usize, kind: u32) -> FileSpan {
        let span = FileSpan::default();
        span.set((start, end), FileId { device: 7, inode: 5 }, 0x1000, kind);
        span
    }

    fn line(start: usize, end: usize, inode: u64) -> MapsLine {
        let device = if inode == 0 { 0 } else { 7 };
        let offset = start as u64 + 0x1000;
        MapsLine { start, end, offset, file: FileId { device, inode }, ..MapsLine::default() }
    }

    #[test]
    fn only_what_is_the_files_is_its() {
        let others = [
            line(0x3000, 0x4000, 6),
            line(0x3000, 0x4000, 0),
            line(0x6000, 0x7000, 5),
            line(0x1000, 0x2000, 5),
        ];
        for (kind, needed) in
            [(kind::FILE, 0), (kind::LIBRARY, seen::LOADER_UNMAPS), (kind::MAPPED, seen::ALL)]
        {
            let span = span(0x2000, 0x6000, kind);
            let part = |line: &MapsLine| span.part(line, 0, needed);
            assert_eq!(part(&line(0x1000, 0x3000, 5)), Some((0x2000, 0x3000)));
            assert_eq!(part(&line(0x5000, 0x9000, 5)), Some((0x5000, 0x6000)));
            assert!(others.iter().all(|other| part(other).is_none()));
            assert_eq!(span.part(&line(0x1000, 0x9000, 5), 0x3000, needed), Some((0x3000, 0x6000)));
            let unseen = span.part(&line(0x3000, 0x4000, 5), 0, needed & !seen::LOADER_UNMAPS);
            assert_eq!(unseen.is_some(), kind == kind::FILE);
        }
        let mapped = span(0x2000, 0x6000, kind::MAPPED);
        assert_eq!(mapped.part(&MapsLine { offset: 0, ..line(0x3000, 0x4000, 5) }, 0, seen::ALL), None);
        let shared = FileSpan::default();
        shared.set((0x2000, 0x6000), FileId { device: 7, inode: 0 }, 0x1000, kind::MAPPED);
        assert_eq!(shared.part(&line(0x3000, 0x4000, 9), 0, seen::ALL), Some((0x3000, 0x4000)));
        assert_eq!(span(0x2000, 0, kind::FILE).part(&line(0x3000, 0x4000, 5), 0, seen::ALL), None, "no end");
        assert_eq!(FileSpan::default().part(&line(0, 0x4000, 0), 0, seen::ALL), None);
    }

    #[test]
    fn what_is_unmapped_is_forgotten() {
        let (area, guests) = crate::switching::ring_tests::world(1);
        let home = guests[0].home();
        assert!(core::ptr::eq(home.region(), area.region()));
        let list = Box::leak(vec![0_u64; SIZE / 8].into_boxed_slice());
        home.mappings().spans.store(list.as_mut_ptr().cast(), Relaxed);
        let spans = of(home).unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let inode = sys::fstat(std::os::fd::AsRawFd::as_raw_fd(&file)).unwrap().inode;
        let file = FileId { device: 0, inode };
        let left = || {
            let used = spans.each().filter(|span| span.kind.load(Relaxed) == kind::MAPPED);
            let mut all: Vec<_> = used.map(FileSpan::range).collect();
            all.sort_unstable();
            all
        };
        mapped(home, 0x10000, 0x7800, file, 0x1000);
        assert_eq!(left(), [(0x10000, 0x18000)]);
        forget(home, 0x20000, 0x1000);
        forget(home, 0x8000, 0x8000);
        assert_eq!(left(), [(0x10000, 0x18000)]);
        forget(home, 0x12000, 0x1800);
        assert_eq!(left(), [(0x10000, 0x12000), (0x14000, 0x18000)]);
        forget(home, 0x11000, 0x4000);
        assert_eq!(left(), [(0x10000, 0x11000), (0x15000, 0x18000)]);
        let told = |start: usize, end, offset| {
            let line =
                MapsLine { start, end, offset, file: FileId { device: 1, inode }, ..MapsLine::default() };
            spans.part(&line, 0, seen::ALL)
        };
        assert_eq!(told(0x16000, 0x17000, 0x7000), Some((0x16000, 0x17000)));
        assert_eq!(told(0x12000, 0x13000, 0x3000), None);
        mapped(home, 0x30000, 0x1000, file, 0);
        assert_eq!(spans.each().count(), 3, "what was given back is used again");
        forget(home, 0, 0x40000);
        assert_eq!(left(), []);
        // So is what it began with, if it unmaps that.
        let library = spans.push().unwrap();
        library.set((0x50000, 0x58000), FileId { device: 1, inode }, 0, kind::LIBRARY);
        forget(home, 0x52000, 0x1000);
        assert_eq!(told(0x50000, 0x58000, 0), Some((0x50000, 0x52000)));
        assert_eq!(told(0x52000, 0x53000, 0), None);
        assert_eq!(told(0x53000, 0x58000, 0), Some((0x53000, 0x58000)));
        // Held by a thread that does not go on.
        mapped(home, 0x10000, 0x1000, file, 0x1000);
        spans.lock.store(1, Relaxed);
        forget(home, 0x10000, 0x1000);
        assert_eq!(told(0x10000, 0x11000, 0x1000), None);
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

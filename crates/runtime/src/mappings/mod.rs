//! What a scavenger has mapped, so that it can be unmapped once the scavenger has ended.
//!
//! In an address space that several processes share, the kernel keeps no note of which process
//! asked for a mapping. But of a mapping of a file it tells file and offset (`/proc/PID/maps`),
//! wherever it is moved to and however it is cut. And a `MAP_PRIVATE` mapping of `/dev/zero` *is*
//! anonymous memory: large pages, `mremap`, `madvise`, `mprotect`. So a scavenger's anonymous
//! memory is mapped of that file, at an offset that no other process uses: the owner's number, and
//! the address, so that neighbours of one owner become one mapping as those without a file do.
//!
//! - [`call`] is `mmap` with such a mark. [`hook`] puts it in the place of libc's and of the
//!   loader's own; for a program that has no loader, the filter traps the call ([`crate::exec`]).
//! - What is mapped of other files is noted in [`spans`], where all that it maps and unmaps is
//!   seen.
//! - [`maps`] reads what the kernel tells; the supervisor unmaps it (`supervisor::cleanup`).
//!
//! Where there is no `/dev/zero`, or the program closes the descriptor, anonymous memory is mapped
//! as the program asks, and stays.

pub(crate) mod hook;
pub(crate) mod maps;
mod near;
pub(crate) mod spans;

use crate::layout::area::Area;
use crate::sys;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use maps::{FileId, MapsLine};
use spans::FileSpans;

pub(crate) const PAGE: usize = 4096;

/// The low bits of the offset are the address, which has at most this many.
const ADDRESS: u32 = 56;

const TYPE: usize = 0xf;
const MAP_LOCKED: usize = 0x2000;
const MAP_POPULATE: usize = 0x8000;
/// What means something else, or nothing, with a file: `MAP_GROWSDOWN`, `MAP_HUGETLB`,
/// `MAP_UNINITIALIZED`.
const NOT_OF_A_FILE: usize = 0x100 | 0x40000 | 0x4000000;

/// The libraries whose calls are seen; bits.
pub(crate) mod seen {
    pub(crate) const LOADER_MAPS: u32 = 1;
    pub(crate) const LOADER_UNMAPS: u32 = 2;
    pub(crate) const LIBC: u32 = 4;
    pub(crate) const ALL: u32 = 7;
    /// Those of libc's that make threads: each has an area before any code of its own runs.
    pub(crate) const CLONES: u32 = 8;
}

/// The mappings of one scavenger.
#[repr(C)]
pub(crate) struct ScavengerMappings {
    /// The descriptor of `/dev/zero` in its process, plus one. 0: none, so nothing is marked.
    zero: AtomicI32,
    /// That file, as [`maps`] tells it.
    device: AtomicU64,
    inode: AtomicU64,
    /// The device of shared memory without a name.
    shared: AtomicU64,
    /// The inode of the libc whose calls are seen.
    libc: AtomicU64,
    /// One of the states in [`seen`].
    seen: AtomicU32,
    pub(crate) spans: AtomicPtr<FileSpans>,
    /// Where its program lies if it is linked to be there, and has no loader; else 0.
    pub(crate) fixed: [AtomicU64; 2],
}

impl ScavengerMappings {
    /// The descriptor, if it still is what it was: it is the program's to close.
    fn zero(&self) -> Option<usize> {
        const KIND: u64 = 0o170000;
        const CHARACTERS: u64 = 0o020000;
        const ZERO: u64 = 1 << 8 | 5;
        let fd = usize::try_from(self.zero.load(Relaxed)).ok()?.checked_sub(1)?;
        let stat = sys::fstat(fd as i32)?;
        (stat.mode & KIND == CHARACTERS && stat.device == ZERO).then_some(fd)
    }

    /// From here on all calls that these make are seen.
    pub(crate) fn sees(&self, whose: u32) {
        self.seen.fetch_or(whose, Relaxed);
    }

    pub(crate) fn seen(&self) -> u32 {
        self.seen.load(Relaxed)
    }

    pub(crate) fn has_seen(&self, whose: u32) -> bool {
        self.seen.load(Relaxed) & whose == whose
    }

    /// Whether any of its memory can be told from that of other processes.
    pub(crate) fn are_marked(&self) -> bool {
        self.inode.load(Acquire) != 0
    }

    fn file(&self) -> FileId {
        FileId { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) }
    }

    /// Whether it is a piece that the owner with this row marked.
    pub(crate) fn marks(&self, row: u32, line: &MapsLine) -> bool {
        line.file == self.file() && line.offset >> ADDRESS == mark(row, 0) >> ADDRESS
    }
}

impl Area {
    /// The mappings of the scavenger whose thread has this area.
    pub(crate) fn mappings(&self) -> &'static ScavengerMappings {
        &self.region().scavenger_mappings[self.row.load(Relaxed) as usize]
    }
}

/// The offset of what this owner has at this address.
fn mark(row: u32, at: usize) -> u64 {
    (u64::from(row) + 1) << ADDRESS | at as u64
}

/// From here on what the calling process maps is marked, if that is possible. It has no descriptors
/// yet but the standard ones.
pub(crate) fn begin(area: &Area) {
    let own = area.mappings();
    let row = area.row.load(Relaxed);
    let fd = sys::open(c"/dev/zero", sys::O_RDWR | sys::O_CLOEXEC);
    if fd < 0 {
        return;
    }
    let high = sys::keep_aside(fd as i32);
    sys::close(fd as i32);
    if high < 0 {
        return;
    }
    own.zero.store(high as i32 + 1, Relaxed);
    if !is_told(own, row) {
        own.zero.store(0, Relaxed);
        sys::close(high as i32);
        return;
    }
    spans::begin(area);
}

/// Whether the kernel tells such a mapping by its offset. One that may not be executed may be no
/// other memory, as where `/dev` is mounted with `noexec`.
fn is_told(own: &ScavengerMappings, row: u32) -> bool {
    let Some(fd) = own.zero() else { return false };
    let offset = mark(row, 0);
    // SAFETY: a new mapping, which only this function knows of.
    unsafe {
        let protection = sys::PROT_READ | sys::PROT_EXEC;
        let Ok(at) = sys::mmap(0, PAGE, protection, sys::MAP_PRIVATE, fd as i32, offset) else {
            return false;
        };
        let shared = sys::mmap(0, PAGE, sys::PROT_READ, sys::MAP_SHARED | sys::MAP_ANONYMOUS, -1, 0);
        maps::each(|line| {
            if line.holds(at) && line.offset == offset {
                own.device.store(line.file.device, Relaxed);
                own.inode.store(line.file.inode, Release);
            }
            if shared.is_ok_and(|at| line.holds(at)) && line.file.inode != 0 {
                own.shared.store(line.file.device, Relaxed);
            }
        });
        sys::munmap(at, PAGE);
        if let Ok(at) = shared {
            sys::munmap(at, PAGE);
        }
    }
    own.are_marked()
}

/// A scavenger is about to make a system call that may unmap something.
pub(crate) fn before(area: &Area, number: usize, arguments: [usize; 6]) {
    const MREMAP_FIXED: usize = 2;
    const SHM_REMAP: usize = 0o40000;
    let [at, size, third, flags, fifth, _] = arguments;
    match number {
        sys::nr::MMAP if is_given(flags) => spans::forget(area, at, size),
        sys::nr::MUNMAP => spans::forget(area, at, size),
        sys::nr::MREMAP => {
            spans::forget(area, at, size);
            if flags & MREMAP_FIXED != 0 {
                spans::forget(area, fifth, third);
            }
        }
        sys::nr::SHMAT if third & SHM_REMAP != 0 => spans::spoil(area),
        _ => {}
    }
}

/// Whether a mapping replaces what is there.
fn is_given(flags: usize) -> bool {
    flags & (sys::MAP_FIXED | sys::MAP_FIXED_NOREPLACE) == sys::MAP_FIXED
}

/// One of the system calls `mmap`, `munmap`, `mremap` and `shmat` of a scavenger.
///
/// # Safety
/// As the system call.
pub(crate) unsafe fn call(area: &Area, number: usize, arguments: [usize; 6]) -> isize {
    let [at, size, third, flags, fd, offset] = arguments;
    before(area, number, arguments);
    // SAFETY: the caller's.
    let result = unsafe {
        if number == sys::nr::MMAP { map(area, arguments) } else { sys::syscall(number, arguments) }
    };
    let own = area.mappings();
    let Ok(place) = sys::address(result) else { return result };
    if !own.has_seen(seen::ALL) {
        return result;
    }
    match number {
        sys::nr::MREMAP if place != at => {
            // Memory that was not touched yet gets a new offset with its new place: the address,
            // and no owner.
            spans::mapped(area, place, third, own.file(), place as u64);
        }
        sys::nr::MMAP if flags & sys::MAP_ANONYMOUS == 0 => {
            if let Some(stat) = sys::fstat(fd as i32) {
                // Another one in a namespace of its own (`dlmopen`) makes calls that are not seen.
                if stat.inode == own.libc.load(Relaxed) && third & sys::PROT_EXEC != 0 {
                    spans::spoil(area);
                }
                spans::mapped(area, place, size, FileId { device: 0, inode: stat.inode }, offset as u64);
            }
        }
        sys::nr::MMAP if flags & TYPE != sys::MAP_PRIVATE => {
            // The kernel tells it as a file, which is not known without asking.
            let file = FileId { device: own.shared.load(Relaxed), inode: 0 };
            spans::mapped(area, place, size, file, 0);
        }
        _ => {}
    }
    result
}

/// `mmap`: anonymous memory is marked as the scavenger's.
///
/// # Safety
/// As the system call.
unsafe fn map(area: &Area, arguments: [usize; 6]) -> isize {
    let [at, size, protection, flags, _, offset] = arguments;
    // SAFETY: the caller's.
    let call = |arguments| unsafe { sys::syscall(sys::nr::MMAP, arguments) };
    let private = flags & (TYPE | sys::MAP_ANONYMOUS) == sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    let plain = private && flags & NOT_OF_A_FILE == 0 && at % PAGE == 0 && offset % PAGE == 0;
    let own = area.mappings();
    let Some(zero) = own.zero().filter(|_| plain) else {
        return call(arguments);
    };
    let none = usize::MAX;
    let fixed = flags & !sys::MAP_FIXED_NOREPLACE | sys::MAP_FIXED;
    let place = if is_given(flags) {
        at
    } else {
        // The kernel chooses first, and judges: the mark holds the address, and what replaces
        // something is hardly counted.
        match call([at, size, protection, flags & !(MAP_LOCKED | MAP_POPULATE), none, 0]) {
            place if place >= 0 => place as usize,
            refused => return refused,
        }
    };
    let marked = call([
        place,
        size,
        protection,
        fixed & !sys::MAP_ANONYMOUS,
        zero,
        mark(area.row.load(Relaxed), place) as usize,
    ]);
    // Another thread of the program may have given its number to another file meanwhile.
    if marked >= 0 && own.zero() == Some(zero) {
        return marked;
    }
    let plain = call([place, size, protection, fixed, none, 0]);
    if plain < 0 && !is_given(flags) {
        // SAFETY: just mapped, and not used yet.
        unsafe { sys::munmap(place, size) };
    }
    plain
}

/// New anonymous memory of a scavenger, for the runtime.
///
/// # Safety
/// As [`sys::mmap`].
pub(crate) unsafe fn memory(
    area: &Area,
    at: usize,
    size: usize,
    protection: usize,
    flags: usize,
) -> Result<usize, i32> {
    let flags = flags | sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    // SAFETY: the caller's.
    sys::address(unsafe { map(area, [at, size, protection, flags, usize::MAX, 0]) })
}

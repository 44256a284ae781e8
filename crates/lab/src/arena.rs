//! Memory for measuring: mapped at once, touched at once, and its pages *verified*, since asking
//! for large pages and getting them are two things.

use crate::pin::Pinned;
use crate::rng::Rng;
use crate::sys::{self, SysError};
use std::sync::atomic::{AtomicU64, Ordering};
use units::Bytes;

/// Kinds of pages that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// The base page of the machine (4 KiB on x86), transparent huge pages kept off.
    Small,
    /// Base pages cut from transparent huge ones: small translations, but of memory that lies
    /// together, in few blocks as large as a huge page. Ordinary small pages lie all over the
    /// memory, and walking to them takes translations too.
    Cut,
    /// Transparent huge pages.
    Transparent,
    /// Reserved 2 MiB pages.
    Huge2M,
    /// Reserved 1 GiB pages.
    Huge1G,
}

impl PageKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "4K",
            Self::Cut => "4K-cut",
            Self::Transparent => "thp",
            Self::Huge2M => "2M",
            Self::Huge1G => "1G",
        }
    }

    pub fn page_size(self) -> u64 {
        match self {
            Self::Small | Self::Cut => BASE_PAGE as u64,
            Self::Transparent | Self::Huge2M => HUGE_PAGE as u64,
            Self::Huge1G => 1 << 30,
        }
    }
}

/// What arenas take now, and the most that they took since it was last asked for: for saying what a
/// measurement needed.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static MOST_TAKEN: AtomicU64 = AtomicU64::new(0);

/// The most that all arenas together took at any time since the last call.
pub fn most_since_asked() -> Bytes {
    Bytes(MOST_TAKEN.swap(TAKEN.load(Ordering::Relaxed), Ordering::Relaxed))
}

/// Where an arena may begin: where a huge page may, and in small pages too. A buffer of
/// translations picks a set by bits of the address, and pages that begin at a round one are spread
/// evenly over its sets.
const ALIGNMENT: usize = HUGE_PAGE;
const BASE_PAGE: usize = 4096;
/// A transparent huge page.
const HUGE_PAGE: usize = 2 << 20;

/// What the kernel really gave, as smaps tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagesGiven {
    pub asked: PageKind,
    pub resident: Bytes,
    /// Bytes that lie in pages of the asked kind (for `Small`: outside huge pages; for `Cut`: that
    /// did lie in huge ones).
    pub as_asked: Bytes,
}

impl PagesGiven {
    /// Share of the memory that has the asked kind of page.
    pub fn share(&self) -> f64 {
        if self.resident.0 == 0 { 0.0 } else { self.as_asked.0 as f64 / self.resident.0 as f64 }
    }
}

/// Where the memory of an arena shall lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the first touch puts it.
    #[default]
    FirstTouch,
    /// On these NUMA nodes only.
    Bind(Vec<u32>),
    /// Page by page over these NUMA nodes.
    Interleave(Vec<u32>),
    /// Each page is touched first by a thread on one of these CPUs, drawn at random: where memory
    /// lies when the program that fills it does not care.
    TouchedBy { cpus: Vec<usize>, seed: u64 },
}

/// A mapping, resident and writable, at an address aligned to 2 MiB, and to its page size.
#[derive(Debug)]
pub struct Arena {
    map: *mut libc::c_void,
    map_len: usize,
    base: *mut u8,
    len: usize,
    pub given: PagesGiven,
}

// SAFETY: an arena is plain memory; the rigs that own it decide what may write to it while others
// read.
unsafe impl Send for Arena {}
// SAFETY: as above: shared access through `&Arena` hands out addresses only.
unsafe impl Sync for Arena {}

impl Arena {
    pub fn new(size: Bytes, kind: PageKind) -> Result<Self, SysError> {
        Self::placed(size, kind, &Placement::FirstTouch)
    }

    pub fn placed(size: Bytes, kind: PageKind, placement: &Placement) -> Result<Self, SysError> {
        let page = kind.page_size() as usize;
        let len = (size.0 as usize).max(1).next_multiple_of(page);
        let what = || format!("mapping {} of {} memory", Bytes(len as u64), kind.name());
        let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let slack = match kind {
            PageKind::Huge2M => {
                flags |= libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
                0
            }
            PageKind::Huge1G => {
                flags |= libc::MAP_HUGETLB | libc::MAP_HUGE_1GB;
                0
            }
            PageKind::Small | PageKind::Cut | PageKind::Transparent => {
                flags |= libc::MAP_NORESERVE;
                ALIGNMENT
            }
        };
        let map_len = len + slack;
        if matches!(kind, PageKind::Small | PageKind::Cut | PageKind::Transparent)
            && available().is_some_and(|free| len as u64 > free)
        {
            // Kernels that overcommit would grant it, and then kill this process or another one
            // while it is filled.
            return Err(SysError { what: what(), why: std::io::ErrorKind::OutOfMemory.into() });
        }
        // SAFETY: a fresh anonymous mapping; the pointer arithmetic stays inside it (slack covers
        // the alignment).
        let (map, base) = unsafe {
            let map =
                libc::mmap(std::ptr::null_mut(), map_len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if map == libc::MAP_FAILED {
                return Err(sys::failed(what()));
            }
            let skip = map.cast::<u8>().align_offset(slack.max(1));
            (map, map.cast::<u8>().add(skip))
        };
        let taken = TAKEN.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        MOST_TAKEN.fetch_max(taken, Ordering::Relaxed);
        let mut arena = Self {
            map,
            map_len,
            base,
            len,
            given: PagesGiven { asked: kind, resident: Bytes(0), as_asked: Bytes(0) },
        };
        let advice = match kind {
            PageKind::Small => Some(libc::MADV_NOHUGEPAGE),
            PageKind::Transparent | PageKind::Cut => Some(libc::MADV_HUGEPAGE),
            PageKind::Huge2M | PageKind::Huge1G => None,
        };
        if let Some(advice) = advice {
            // Kernels without THP refuse the advice; what was given is looked up below in any case.
            // SAFETY: advises on our own mapping.
            unsafe {
                libc::madvise(arena.base.cast(), arena.len, advice);
            }
        }
        arena.place(placement)?;
        match placement {
            Placement::TouchedBy { cpus, seed } => arena.touch_by_turns(cpus, *seed)?,
            _ => populate(arena.base, arena.len)?,
        }
        arena.given = arena.verify(kind);
        if kind == PageKind::Cut {
            arena.cut()?;
        }
        Ok(arena)
    }

    /// Has the kernel map each huge page as small ones, which stay where they are: protecting a
    /// part of one differently makes it do so, and it does not go back by itself where huge pages
    /// are advised against.
    fn cut(&mut self) -> Result<(), SysError> {
        let blocks = self.verify(PageKind::Transparent).as_asked;
        for offset in (0..self.len).step_by(HUGE_PAGE) {
            for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
                // SAFETY: a page of our own mapping, which is not used yet and is writable again
                // afterwards.
                if unsafe { libc::mprotect(self.base.add(offset).cast(), BASE_PAGE, protection) } != 0 {
                    return Err(sys::failed("cutting huge pages into small ones".to_owned()));
                }
            }
        }
        // SAFETY: advises on our own mapping.
        unsafe {
            libc::madvise(self.base.cast(), self.len, libc::MADV_NOHUGEPAGE);
        }
        let small = self.verify(PageKind::Small);
        self.given = PagesGiven { as_asked: small.as_asked.min(blocks), ..self.given };
        Ok(())
    }

    /// Gives back the page at this offset; a later read finds zeroes, after a fault.
    pub(crate) fn drop_page(&mut self, offset: usize) {
        assert!(offset % BASE_PAGE == 0 && offset < self.len, "no page of this arena");
        // SAFETY: a page of our own private mapping, borrowed mutably; it stays mapped, as zeroes.
        unsafe {
            libc::madvise(self.base.add(offset).cast(), BASE_PAGE, libc::MADV_DONTNEED);
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The arena as plain words, for filling it.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the mapping is `len` bytes of initialised, page-aligned memory, borrowed mutably
        // here.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.len / 8) }
    }

    /// NUMA nodes of a sample of pages, as the kernel says (`move_pages` without moving): pages per
    /// node.
    pub fn node_census(&self, samples: usize) -> Result<Vec<(i32, usize)>, SysError> {
        let step = (self.len / samples.max(1)).next_multiple_of(4096).max(4096);
        let pages: Vec<*const u8> =
            (0..self.len).step_by(step).map(|offset| self.base.wrapping_add(offset).cast_const()).collect();
        let mut status = vec![0i32; pages.len()];
        // SAFETY: both vectors have `pages.len()` elements; a null `nodes` only queries.
        let done = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                pages.len(),
                pages.as_ptr(),
                std::ptr::null::<i32>(),
                status.as_mut_ptr(),
                0,
            )
        };
        if done != 0 {
            return Err(sys::failed("asking where pages lie"));
        }
        let mut census = std::collections::BTreeMap::new();
        for node in status {
            *census.entry(node).or_insert(0) += 1;
        }
        Ok(census.into_iter().collect())
    }

    fn place(&self, placement: &Placement) -> Result<(), SysError> {
        const MPOL_BIND: libc::c_int = 2;
        const MPOL_INTERLEAVE: libc::c_int = 3;
        let (mode, nodes) = match placement {
            Placement::FirstTouch | Placement::TouchedBy { .. } => return Ok(()),
            Placement::Bind(nodes) => (MPOL_BIND, nodes),
            Placement::Interleave(nodes) => (MPOL_INTERLEAVE, nodes),
        };
        let mut mask = [0u64; 16];
        for &node in nodes {
            if let Some(word) = mask.get_mut(node as usize / 64) {
                *word |= 1 << (node % 64);
            }
        }
        // SAFETY: the mask has 1024 bits, as the last-but-one argument says (the kernel wants one
        // more).
        let done =
            unsafe { libc::syscall(libc::SYS_mbind, self.base, self.len, mode, mask.as_ptr(), 1025, 0) };
        if done == 0 { Ok(()) } else { Err(sys::failed(format!("placing memory on nodes {nodes:?}"))) }
    }

    /// One thread a CPU, each touching the pages that the draw gives it.
    fn touch_by_turns(&self, cpus: &[usize], seed: u64) -> Result<(), SysError> {
        let page = self.given.asked.page_size() as usize;
        let mut rng = Rng::new(seed);
        let drawn: Vec<usize> =
            (0..self.len / page).map(|_| rng.below(cpus.len().max(1) as u64) as usize).collect();
        for (turn, &cpu) in cpus.iter().enumerate() {
            let touch = || -> Result<(), SysError> {
                let _pinned = Pinned::to(cpu)?;
                let mut mine = drawn.iter().enumerate().filter(|(_, toucher)| **toucher == turn);
                mine.try_for_each(|(i, _)| populate(self.base.wrapping_add(i * page), page))
            };
            std::thread::scope(|s| {
                sys::spawn_scoped(s, touch)?.join().expect("touching memory does not panic")
            })?;
        }
        if cpus.is_empty() { populate(self.base, self.len) } else { Ok(()) }
    }

    fn verify(&self, kind: PageKind) -> PagesGiven {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = self.base as u64;
        pages_given(&smaps, start, start + self.len as u64, kind)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.len as u64, Ordering::Relaxed);
        // SAFETY: mapped by `placed` with this length; rigs keep the arena alive by `Arc` while
        // they use it.
        unsafe {
            libc::munmap(self.map, self.map_len);
        }
    }
}

/// Touches every page for writing, so that no fault happens while something is timed. `base` and
/// `len` lie in a mapping that the caller owns.
fn populate(base: *mut u8, len: usize) -> Result<(), SysError> {
    // SAFETY: populates our own mapping. Unlike touching, it reports a lack of memory (or of
    // reserved huge pages) as an error instead of killing the process.
    let done = unsafe { libc::madvise(base.cast(), len, libc::MADV_POPULATE_WRITE) };
    if done == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EINVAL) {
        return Err(SysError { what: format!("filling {} of memory", Bytes(len as u64)), why: error });
    }
    // Kernels before 5.14 do not know the advice.
    for offset in (0..len).step_by(4096) {
        // SAFETY: inside the mapping.
        unsafe {
            base.add(offset).write_volatile(0);
        }
    }
    Ok(())
}

/// Memory that can be had without pushing out others, as the kernel estimates it.
fn available() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// Reads smaps for the areas that cover `start..end`. Areas may be split or merged with neighbours
/// by the kernel, so counts are capped at the size asked about.
fn pages_given(smaps: &str, start: u64, end: u64, asked: PageKind) -> PagesGiven {
    let (mut resident, mut transparent, mut hugetlb) = (0, 0, 0);
    let mut inside = false;
    let mut kernel_page = 4096;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some((lo, hi)) = first.split_once('-') {
            if let (Ok(lo), Ok(hi)) = (u64::from_str_radix(lo, 16), u64::from_str_radix(hi, 16)) {
                inside = lo < end && hi > start;
                continue;
            }
        }
        if !inside {
            continue;
        }
        let bytes = words.next().and_then(|w| w.parse::<u64>().ok()).unwrap_or(0) << 10;
        match first {
            "KernelPageSize:" => kernel_page = bytes,
            "Rss:" => resident += bytes,
            "AnonHugePages:" => transparent += bytes,
            "Private_Hugetlb:" if kernel_page == asked.page_size() => hugetlb += bytes,
            _ => {}
        }
    }
    let size = end - start;
    let (resident, as_asked) = match asked {
        PageKind::Small | PageKind::Cut => (resident, resident.saturating_sub(transparent)),
        PageKind::Transparent => (resident, transparent),
        // Huge pages of the reserved kind do not count as resident.
        PageKind::Huge2M | PageKind::Huge1G => (hugetlb, hugetlb),
    };
    PagesGiven { asked, resident: Bytes(resident.min(size)), as_asked: Bytes(as_asked.min(size)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
KernelPageSize:        4 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000800000 rw-p 00000000 00:0f 99 /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
Private_Hugetlb:    4096 kB
";

    #[test]
    fn smaps_is_believed_not_the_request() {
        let half = pages_given(SMAPS, 0x7f00_0000_0000, 0x7f00_0040_0000, PageKind::Transparent);
        assert_eq!(half.share(), 0.5);
        let small = pages_given(SMAPS, 0x7f00_0000_0000, 0x7f00_0040_0000, PageKind::Small);
        assert_eq!(small.as_asked, Bytes::mib(2));
        let huge = pages_given(SMAPS, 0x7f00_0040_0000, 0x7f00_0080_0000, PageKind::Huge2M);
        assert_eq!(huge.share(), 1.0);
        assert_eq!(pages_given("garbage\n\n-\n", 0, 4096, PageKind::Small).share(), 0.0);
    }

    #[test]
    fn small_pages_are_small() {
        let arena = Arena::new(Bytes::mib(4), PageKind::Small).unwrap();
        assert_eq!(arena.given.share(), 1.0);
        assert_eq!(arena.base() as usize % 4096, 0);
        let census = arena.node_census(16);
        if let Ok(census) = census {
            assert!(census.iter().all(|(node, _)| *node >= 0), "{census:?}");
        }
    }

    #[test]
    fn transparent_pages_are_aligned_and_counted() {
        let mut arena = Arena::new(Bytes::mib(4), PageKind::Transparent).unwrap();
        assert_eq!(arena.base() as usize % (2 << 20), 0);
        assert!(arena.given.as_asked <= Bytes::mib(4));
        arena.words_mut()[0] = 7;
        assert_eq!(arena.words_mut().len(), 4 << 17);
    }

    #[test]
    fn cut_pages_are_small_and_writable() {
        let mut arena = Arena::new(Bytes::mib(8), PageKind::Cut).unwrap();
        // What the kernel had in huge pages now lies in small ones; where it had none, nothing is
        // claimed.
        assert_eq!(arena.verify(PageKind::Transparent).as_asked, Bytes(0));
        assert!(arena.given.as_asked <= arena.given.resident && arena.given.resident == Bytes::mib(8));
        for word in arena.words_mut().iter_mut().step_by(512) {
            *word = 7;
        }
        arena.drop_page(4096);
        assert_eq!(arena.words_mut().iter().step_by(512).filter(|w| **w == 7).count(), 2047);
    }

    #[test]
    fn pages_touched_by_turns_are_all_there() {
        let cpus = crate::pin::allowed().unwrap();
        let placement = Placement::TouchedBy { cpus, seed: 3 };
        let arena = Arena::placed(Bytes::mib(4), PageKind::Small, &placement).unwrap();
        assert_eq!(arena.given.resident, Bytes::mib(4));
        let nowhere = Placement::TouchedBy { cpus: vec![100_000], seed: 3 };
        assert!(Arena::placed(Bytes::mib(1), PageKind::Small, &nowhere).is_err());
    }

    #[test]
    fn too_much_memory_is_an_error_not_a_death() {
        let error = Arena::new(Bytes(1 << 46), PageKind::Small).unwrap_err();
        assert!(error.to_string().contains("mapping"), "{error}");
    }
}

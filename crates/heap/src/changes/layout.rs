//! The page that the library and the trial of a change share, as a file: words of eight bytes, of
//! which the first part asks and the last one counts.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The environment variable that names the file.
pub const VARIABLE: &str = "GLEANER_CHANGE";
/// "GLCHANGE", and the version of this layout with it.
pub const MAGIC: u64 = 0x474c_4348_414e_0002;
pub const WORDS: usize = 512;
pub const SITES: usize = 16;
/// CPUs and nodes beyond these are not told.
pub const CPUS: usize = 1024;

/// What is asked for.
pub(crate) mod asked {
    pub(crate) const MAGIC: usize = 0;
    /// What sites get: a power of two; 0 for nothing else than usual.
    pub(crate) const ALIGNMENT: usize = 1;
    pub(crate) const SITE_COUNT: usize = 2;
    /// Mappings up to this size lie on huge pages; 0 for none.
    pub(crate) const HUGE_UP_TO: usize = 3;
    /// A bit for each node over which memory is spread; 0 for no such wish.
    pub(crate) const NODES: usize = 4;
    pub(crate) const HAS_CPUS: usize = 5;
    /// Code lies on huge pages.
    pub(crate) const MOVES_CODE: usize = 6;
    pub(crate) const CPUS: usize = 8;
    /// Four words each: see `Call`.
    pub(crate) const SITES: usize = 64;
}

/// What was done, by all processes. Counts end at `MOST`, so that threads do not disturb one
/// another by counting.
pub(crate) mod done {
    pub(crate) const PROCESSES: usize = 256;
    pub(crate) const ALIGNED: usize = 264;
    pub(crate) const MAPPED: usize = 272;
    pub(crate) const MAPPED_BYTES: usize = 273;
    pub(crate) const PLACED: usize = 280;
    pub(crate) const MOVED: usize = 288;
}
/// Counts end here.
pub const MOST: u64 = 1024;

/// A place in a file, as the library finds it again in a process: the hash of the file's name and
/// the offset of the instruction behind a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    pub file: u64,
    pub offset: u64,
}

impl Call {
    /// `name` is the file's name without its directory.
    pub fn new(name: &[u8], offset: u64) -> Self {
        Self { file: name.iter().fold(NO_NAME, |hash, &byte| with_byte(hash, byte)), offset }
    }
}

/// The hash of an empty name (FNV-1a).
pub(crate) const NO_NAME: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) fn with_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// An allocation site: the call of the allocating function, and the program's own call further out
/// that led there; both are the same where nothing lies between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub inner: Call,
    pub outer: Call,
}

/// What a run is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// What these sites allocate begins at a multiple of this and ends at one; 0 for none.
    pub alignment: u64,
    /// At most [`SITES`]; more are left out.
    pub sites: [Site; SITES],
    pub site_count: usize,
    pub huge_up_to: u64,
    pub moves_code: bool,
    pub nodes: u64,
    /// A bit for each CPU that threads may use, if not all.
    pub cpus: Option<[u64; CPUS / 64]>,
}

impl Asked {
    /// The page as words.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[asked::MAGIC] = MAGIC;
        words[asked::ALIGNMENT] = self.alignment;
        words[asked::SITE_COUNT] = self.site_count.min(SITES) as u64;
        words[asked::HUGE_UP_TO] = self.huge_up_to;
        words[asked::MOVES_CODE] = u64::from(self.moves_code);
        words[asked::NODES] = self.nodes;
        words[asked::HAS_CPUS] = u64::from(self.cpus.is_some());
        words[asked::CPUS..][..CPUS / 64].copy_from_slice(&self.cpus.unwrap_or_default());
        for (to, site) in words[asked::SITES..].chunks_exact_mut(4).zip(&self.sites[..self.site_count]) {
            to.copy_from_slice(&[site.inner.file, site.inner.offset, site.outer.file, site.outer.offset]);
        }
        words
    }
}

/// What runs have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Processes that the library came into.
    pub processes: u64,
    /// Allocations that were aligned; up to [`MOST`].
    pub aligned: u64,
    /// Mappings on huge pages; up to [`MOST`], and all of their bytes.
    pub mapped: u64,
    pub mapped_bytes: u64,
    /// Processes whose threads or memory were placed.
    pub placed: u64,
    /// Pieces of code that were moved to huge pages.
    pub moved: u64,
}

impl Done {
    /// Read from the page.
    pub fn of(words: &[u64; WORDS]) -> Self {
        Self {
            processes: words[done::PROCESSES],
            aligned: words[done::ALIGNED],
            mapped: words[done::MAPPED],
            mapped_bytes: words[done::MAPPED_BYTES],
            placed: words[done::PLACED],
            moved: words[done::MOVED],
        }
    }
}

/// The page as processes have it.
pub(crate) type Page = [AtomicU64; WORDS];

/// Counts, up to the end of counts.
pub(crate) fn count(page: &Page, word: usize) {
    if page[word].load(Relaxed) < MOST {
        page[word].fetch_add(1, Relaxed);
    }
}

const _: () = assert!(asked::SITES + 4 * SITES <= done::PROCESSES && asked::CPUS + CPUS / 64 <= asked::SITES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_stands_in_its_words() {
        let call = |offset| Call::new(b"p", offset);
        let mut asked = Asked { alignment: 64, site_count: 2, nodes: 3, ..Asked::default() };
        asked.sites[1] = Site { inner: call(5), outer: call(9) };
        let words = asked.words();
        assert_eq!((words[0], words[1], words[2], words[4]), (MAGIC, 64, 2, 3));
        assert_eq!(words[asked::SITES + 4..][..4], [call(0).file, 5, call(0).file, 9]);
        assert_eq!(words[asked::HAS_CPUS], 0);
        assert_ne!(call(1).file, Call::new(b"q", 1).file);
    }

    #[test]
    fn counts_end() {
        let page: Page = [const { AtomicU64::new(0) }; WORDS];
        (0..2 * MOST).for_each(|_| count(&page, done::ALIGNED));
        let words = page.each_ref().map(|word| word.load(Relaxed));
        assert_eq!(Done::of(&words), Done { aligned: MOST, ..Done::default() });
    }
}

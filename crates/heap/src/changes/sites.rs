//! Allocation sites as addresses in this process. They are looked up when the process begins, and
//! again now and then while one is missing: its file may be loaded later.
//!
//! A site is a call far out, behind a wrapper or `operator new`: its return address lies on the
//! stack. What is found there may be left over from an earlier call. Then an allocation is aligned
//! that need not be, which costs some memory and nothing else.

use super::layout::{Page, SITES, asked};
use super::mappings::Mapping;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Return addresses of the inner and the outer call; 0 where not known.
pub(crate) struct Addresses {
    known: [[AtomicU64; 2]; SITES],
    count: AtomicU32,
    missing: AtomicU32,
    /// Allocations while some were missing.
    waited: AtomicU32,
}

/// Words of a stack in which the outer call is looked for: it is a few frames away.
const WORDS: usize = 96;
const PAGE: u64 = 4096;
/// The first time that missing sites are looked for again, in allocations.
const AGAIN: u32 = 256;

impl Addresses {
    pub(crate) const fn new() -> Self {
        Self {
            known: [const { [const { AtomicU64::new(0) }; 2] }; SITES],
            count: AtomicU32::new(0),
            missing: AtomicU32::new(0),
            waited: AtomicU32::new(0),
        }
    }

    /// Finds the calls that lie in this mapping.
    pub(crate) fn look(&self, page: &Page, mapping: &Mapping) {
        for (site, known) in self.known.iter().enumerate().take(count(page)) {
            for (call, known) in known.iter().enumerate() {
                let word = asked::SITES + 4 * site + 2 * call;
                let (file, offset) = (page[word].load(Relaxed), page[word + 1].load(Relaxed));
                let at = offset.wrapping_sub(mapping.offset);
                // The call itself lies in it; the next instruction may be behind its end.
                if file == mapping.file && at > 0 && at <= mapping.end - mapping.start {
                    known.store(mapping.start + at, Release);
                }
            }
        }
    }

    /// All mappings were looked at.
    pub(crate) fn looked(&self, page: &Page) {
        let count = count(page);
        let is_missing = |known: &&[AtomicU64; 2]| known.iter().any(|address| address.load(Relaxed) == 0);
        self.missing.store(self.known[..count].iter().filter(is_missing).count() as u32, Relaxed);
        self.count.store(count as u32, Release);
    }

    /// Whether it is time to look again.
    pub(crate) fn is_time(&self) -> bool {
        self.missing.load(Relaxed) > 0 && {
            let waited = self.waited.fetch_add(1, Relaxed).wrapping_add(1);
            waited >= AGAIN && waited.is_power_of_two()
        }
    }

    /// Whether a call with this return address and the stack pointer behind it is one of a site.
    ///
    /// # Safety
    /// `stack` is a thread's stack pointer.
    pub(crate) unsafe fn has(&self, return_address: u64, stack: u64) -> bool {
        let sites = &self.known[..self.count.load(Acquire) as usize];
        sites.iter().any(|[inner, outer]| {
            let outer = outer.load(Relaxed);
            // SAFETY: the caller's.
            inner.load(Relaxed) == return_address
                && (outer == return_address || outer != 0 && unsafe { holds(stack, outer) })
        })
    }
}

fn count(page: &Page) -> usize {
    (page[asked::SITE_COUNT].load(Relaxed) as usize).min(SITES)
}

/// Whether a return address is on the stack, near: in the same page, which is there, or in the next
/// one if that is there too.
///
/// # Safety
/// `stack` is a thread's stack pointer.
unsafe fn holds(stack: u64, address: u64) -> bool {
    let first = stack.next_multiple_of(8);
    let mut end = first + 8 * WORDS as u64;
    let next_page = (first / PAGE + 1) * PAGE;
    if end > next_page && !crate::sys::may_read(next_page) {
        end = next_page;
    }
    // SAFETY: mapped, see above, and aligned; what is there may change, so each word is read once.
    (first..end).step_by(8).any(|at| unsafe { (at as *const u64).read_volatile() } == address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::layout::{Asked, Call, Site, WORDS as PAGE_WORDS};

    fn page(sites: &[Site]) -> Page {
        let mut asked = Asked { alignment: 64, site_count: sites.len(), ..Asked::default() };
        asked.sites[..sites.len()].copy_from_slice(sites);
        let words = asked.words();
        core::array::from_fn::<_, PAGE_WORDS, _>(|word| AtomicU64::new(words[word]))
    }

    #[test]
    fn calls_become_addresses() {
        let (inner, outer) = (Call::new(b"lib.so", 0x1234), Call::new(b"p", 0x2000));
        let page = page(&[Site { inner, outer }]);
        let addresses = Addresses::new();
        let mapping =
            |file, start, offset| Mapping { start, end: start + 0x1000, offset, file, is_code: true };
        let stack = [7_u64, 0x40_1000, 9];
        // SAFETY: a stack pointer.
        let has = |of: u64| unsafe { addresses.has(of, stack.as_ptr() as u64) };
        addresses.look(&page, &mapping(inner.file, 0x7000_0000, 0x1000));
        addresses.looked(&page);
        assert!(!has(0x7000_0234), "its outer call is not known");
        assert_eq!((0..2 * AGAIN).filter(|_| addresses.is_time()).count(), 2);
        // At the end of a mapping: the call is in it, the instruction behind it is not.
        addresses.look(&page, &mapping(outer.file, 0x40_0000, 0x1000));
        addresses.look(&page, &mapping(inner.file, 0x5000_0000, 0x9000));
        addresses.looked(&page);
        assert!(has(0x7000_0234) && !has(0x7000_0235) && !addresses.is_time());
        let elsewhere = [7_u64; 200];
        // SAFETY: a stack pointer.
        assert!(!unsafe { addresses.has(0x7000_0234, elsewhere.as_ptr() as u64) });
    }

    #[test]
    fn a_call_of_the_program_itself_needs_no_stack() {
        let call = Call::new(b"p", 0x1010);
        let page = page(&[Site { inner: call, outer: call }]);
        let addresses = Addresses::new();
        addresses.look(
            &page,
            &Mapping { start: 0x1000, end: 0x2000, offset: 0x1000, file: call.file, is_code: true },
        );
        addresses.looked(&page);
        // SAFETY: the stack is not looked at.
        assert!(unsafe { addresses.has(0x1010, 8) && !addresses.has(0x1011, 8) });
    }
}

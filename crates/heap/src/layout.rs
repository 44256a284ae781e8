//! The memory that profiled processes share with the profiler, which makes it:
//!
//! ```text
//! header      how much of everything; which pages are chosen; what was lost
//! heads       of each ring: how far it is written and read
//! slots       of each ring: records of 64 bytes
//! stacks      buffers: the stack of an allocation whose calls are not known yet
//! probes      the loads that are probed now
//! clock       what the clock tells (`clock/layout.rs`), if there is one
//! ```
//!
//! A thread writes into the ring that its thread pointer chooses. All processes use the same rings:
//! a forked child needs nothing new, and a program that closes all files loses nothing. Any process
//! may be killed in the midst of a write. So a slot counts only once its sequence number says so,
//! and the reader passes over one that stays unfinished while others behind it are done.

use crate::clock::layout::Clock;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// `GLEANER_HEAP` names the file of the shared memory.
pub const VARIABLE: &str = "GLEANER_HEAP";
/// What the link of that file under `/proc` begins with: another process's file is not opened.
pub const MEMORY_NAME: &str = "gleaner-heap";

/// "GLHEAP" and the version of this layout.
pub const MAGIC: u64 = 0x474c_4845_4150_0003;

pub const SLOTS: u64 = 64 << 10;
/// As many as a program that begins comes to between two readings.
pub const STACKS: u32 = 512;
pub const STACK_BYTES: usize = 8 << 10;
pub const MOST_RINGS: u32 = 4;
/// The rate is looked at each time this number of records was written to a ring.
pub const STRETCH: u64 = 1024;
/// Stretches that a ring may write at any rate, before it must keep to the budget: programs begin
/// with a burst of allocations.
pub const CREDIT: i64 = 8;
/// The unit of credit: parts of a stretch.
pub const CREDIT_UNIT: i64 = 256;

/// Allocations of this size and more are recorded in any case, at first.
pub const LARGE_FROM: u64 = 4096;
/// The lowest threshold: one page of 4096 is chosen.
pub const LEAST_THRESHOLD: u32 = 1 << 20;

const HASH_ONE: u32 = 0x9e37_79b1;
const HASH_TWO: u32 = 0x85eb_ca6b;

/// The hash of an address's page; `interpose.rs` has the same in assembly.
pub fn page_hash(address: u64) -> u32 {
    let page = ((address >> 12) as u32).wrapping_mul(HASH_ONE);
    (page ^ (page >> 15)).wrapping_mul(HASH_TWO)
}

/// Whether the page of an address is chosen.
pub fn is_chosen(address: u64, threshold: u32) -> bool {
    page_hash(address) < threshold
}

/// The share of pages that is chosen.
pub fn share(threshold: u32) -> f64 {
    if threshold == u32::MAX { 1.0 } else { f64::from(threshold) / f64::from(u32::MAX) }
}

/// The constants of the hash, for assembly.
pub(crate) const HASH: (u32, u32) = (HASH_ONE, HASH_TWO);

#[repr(C, align(64))]
pub struct Header {
    pub magic: AtomicU64,
    pub rings: AtomicU32,
    /// 1 if there is a clock.
    pub has_clock: AtomicU32,
    /// The budget: ticks of the time stamp counter that a stretch of records must last at least, on
    /// average.
    pub least_ticks: AtomicU64,
    pub read_mostly: ReadMostly,
    pub shared: Shared,
}

/// Read at every allocation, seldom written: it has its cache line for itself.
#[repr(C, align(64))]
pub struct ReadMostly {
    pub threshold: AtomicU32,
    pub large_from: AtomicU64,
}

#[repr(C, align(64))]
pub struct Shared {
    /// Records that found no space.
    pub lost: AtomicU64,
    /// Where the search for a free buffer begins.
    pub next_stack: AtomicU32,
}

#[repr(C, align(64))]
pub struct RingHead {
    /// Slots that were given to writers.
    pub head: AtomicU64,
    pub reader: Reader,
    pub rate: Rate,
}

#[repr(C, align(64))]
pub struct Reader {
    /// Slots that were read.
    pub tail: AtomicU64,
}

#[repr(C, align(64))]
pub struct Rate {
    /// When the stretch began that is being written.
    pub stretch_began: AtomicU64,
    /// What is left of the credit, in parts of a stretch.
    pub credit: AtomicI64,
    /// Records of it that are not due to a chosen page.
    pub forced: AtomicU64,
}

/// What a record tells.
pub mod kind {
    /// Memory was allocated: address, size, return address, key.
    pub const ALLOCATED: u64 = 1;
    /// Memory ends: address.
    pub const FREED: u64 = 2;
    /// Fewer pages are chosen: `address` is the threshold.
    pub const LOWERED: u64 = 3;
    /// A process began: `address` is 1 if its calls of `malloc` come to this library, else 0.
    pub const BEGAN: u64 = 4;
    /// Memory was mapped that no file has: as `ALLOCATED`.
    pub const MAPPED: u64 = 6;
    /// A range holds no such memory any more: address, size.
    pub const UNMAPPED: u64 = 7;
    /// A load was probed: the address that it reads; `size` holds ticks, see `probe.rs`; the load
    /// itself stands in `return_address`, and the thread in `key`.
    pub const PROBED: u64 = 5;
}

/// One record. `sequence` is written last.
#[repr(C, align(64))]
pub struct Slot {
    /// The number of this record in its ring, counted from one.
    pub sequence: AtomicU64,
    pub ticks: AtomicU64,
    /// The kind, and the process in the upper half.
    pub kind: AtomicU64,
    pub address: AtomicU64,
    pub size: AtomicU64,
    pub return_address: AtomicU64,
    /// Stands for the calls that led here, see `keys.rs`.
    pub key: AtomicU64,
    /// 1 if the end of it is told even when its page is no longer chosen.
    pub is_kept: AtomicU64,
}

/// States of a buffer.
pub mod state {
    pub const FREE: u32 = 0;
    pub const WRITTEN: u32 = 1;
    pub const READY: u32 = 2;
}

/// Registers and stack of an allocation.
#[repr(C, align(64))]
pub struct Stack {
    pub state: AtomicU32,
    pub process: AtomicU32,
    pub key: AtomicU64,
    /// The return address of the allocating function, and the registers that its caller finds.
    pub ip: AtomicU64,
    pub sp: AtomicU64,
    /// RBX, RBP, R12 to R15.
    pub kept: [AtomicU64; 6],
    /// Bytes of the stack that are there, from `sp` on.
    pub length: AtomicU64,
    pub words: [AtomicU64; STACK_BYTES / 8],
}

/// Loads that are probed at a time: as many as the processor has breakpoints.
pub const PROBES: u32 = 4;

/// In `Probe::registers`: no register; the address of the load itself.
pub const NO_REGISTER: u8 = 16;
pub const OWN_ADDRESS: u8 = 17;

/// A load that is probed, and how its address is made up: base + index · scale + displacement.
#[repr(C, align(64))]
pub struct Probe {
    /// Where it stands in the process; 0: nothing is probed here. Written last.
    pub ip: AtomicU64,
    pub process: AtomicU32,
    pub thread: AtomicU32,
    /// From the lowest byte on: base, index (the numbers that instructions have for them), scale,
    /// and whether it is relative to the thread pointer.
    pub registers: AtomicU32,
    pub displacement: AtomicU64,
    /// Whether it is read, and timed.
    pub is_timed: AtomicU32,
}

const _: () = assert!(size_of::<Header>() == 192 && size_of::<RingHead>() == 192 && size_of::<Slot>() == 64);
const _: () = assert!(size_of::<Stack>() % 64 == 0);

const HEADS_AT: usize = size_of::<Header>();

fn slots_at(rings: u32) -> usize {
    HEADS_AT + rings as usize * size_of::<RingHead>()
}

fn stacks_at(rings: u32) -> usize {
    slots_at(rings) + rings as usize * SLOTS as usize * size_of::<Slot>()
}

fn probes_at(rings: u32) -> usize {
    stacks_at(rings) + STACKS as usize * size_of::<Stack>()
}

fn clock_at(rings: u32) -> usize {
    probes_at(rings) + PROBES as usize * size_of::<Probe>()
}

/// Bytes of the shared memory with this number of rings, with a clock or without.
pub fn region_bytes(rings: u32, has_clock: bool) -> usize {
    clock_at(rings) + if has_clock { size_of::<Clock>() } else { 0 }
}

/// The shared memory, wherever it is mapped. All of it is atomics, so that no process can break
/// another's rules, whatever it writes.
#[derive(Clone, Copy)]
pub struct Region {
    at: *const u8,
    rings: u32,
    has_clock: bool,
}

// SAFETY: everything in it is an atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// # Safety
    /// `at` is aligned to 64 bytes, and `region_bytes(rings, has_clock)` bytes are mapped there for
    /// as long as this value and copies of it are used.
    pub const unsafe fn new(at: *const u8, rings: u32, has_clock: bool) -> Self {
        Self { at, rings, has_clock }
    }

    pub fn rings(self) -> u32 {
        self.rings
    }

    pub fn header(&self) -> &Header {
        // SAFETY: the region begins with it, see `new`.
        unsafe { &*self.at.cast() }
    }

    /// The head of a ring; `ring` is taken modulo their number, a power of two.
    pub fn head(&self, ring: u32) -> &RingHead {
        // SAFETY: in bounds by the mask, see `new`.
        unsafe { &*self.at.add(HEADS_AT).cast::<RingHead>().add((ring & (self.rings - 1)) as usize) }
    }

    /// A slot of a ring, by its number since the beginning.
    pub fn slot(&self, ring: u32, number: u64) -> &Slot {
        let ring = u64::from(ring & (self.rings - 1));
        // SAFETY: as above.
        unsafe {
            &*self.at.add(slots_at(self.rings)).cast::<Slot>().add((ring * SLOTS + number % SLOTS) as usize)
        }
    }

    pub fn stack(&self, number: u32) -> &Stack {
        // SAFETY: as above.
        unsafe { &*self.at.add(stacks_at(self.rings)).cast::<Stack>().add((number % STACKS) as usize) }
    }

    pub fn probe(&self, number: u32) -> &Probe {
        // SAFETY: as above.
        unsafe { &*self.at.add(probes_at(self.rings)).cast::<Probe>().add((number % PROBES) as usize) }
    }

    pub fn clock(&self) -> Option<&Clock> {
        // SAFETY: as above.
        self.has_clock.then(|| unsafe { &*self.at.add(clock_at(self.rings)).cast() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Relaxed;

    /// A region for tests; it is never given back.
    pub(crate) fn region(rings: u32) -> Region {
        let words = vec![[0_u64; 8]; region_bytes(rings, true) / 64 + 1].leak();
        let at = words.as_ptr().cast::<u8>();
        // SAFETY: leaked memory, aligned below.
        let region = unsafe { Region::new(at.add(at.align_offset(64)), rings, true) };
        region.header().magic.store(MAGIC, Relaxed);
        region.header().rings.store(rings, Relaxed);
        region.header().read_mostly.threshold.store(u32::MAX, Relaxed);
        region.header().read_mostly.large_from.store(LARGE_FROM, Relaxed);
        region
    }

    #[test]
    fn chosen_pages_are_a_fair_share() {
        for shift in [1, 4, 8] {
            let threshold = u32::MAX >> shift;
            for stride in [1_u64, 2, 16, 33, 512] {
                let chosen = (0..1 << 16)
                    .filter(|n| is_chosen(0x7f12_3456_7000 + 4096 * n * stride, threshold))
                    .count();
                let expected = f64::from(1 << 16) * share(threshold);
                let off = (chosen as f64 - expected).abs() / expected.sqrt();
                assert!(off < 6.0, "1/{}: stride {stride}: {chosen}", 1 << shift);
            }
        }
    }

    #[test]
    fn addresses_of_a_page_are_chosen_together() {
        assert!((0..4096).all(|n| page_hash(0x5555_5555_5000 + n) == page_hash(0x5555_5555_5000)));
        assert!(is_chosen(0x1234_5000, u32::MAX) && !is_chosen(0x1234_5000, 0));
    }

    #[test]
    fn all_parts_lie_in_the_region() {
        let region = region(4);
        let base = region.at as usize;
        let last = core::ptr::from_ref(region.probe(PROBES - 1)) as usize + size_of::<Probe>();
        assert_eq!(last - base, region_bytes(4, false));
        let stack = core::ptr::from_ref(region.stack(STACKS - 1)) as usize + size_of::<Stack>();
        assert_eq!(stack, core::ptr::from_ref(region.probe(0)) as usize);
        let clock = core::ptr::from_ref(region.clock().unwrap()) as usize;
        assert_eq!((clock, clock + size_of::<Clock>()), (last, base + region_bytes(4, true)));
        let slot = core::ptr::from_ref(region.slot(3, SLOTS - 1)) as usize + size_of::<Slot>();
        assert_eq!(slot, core::ptr::from_ref(region.stack(0)) as usize);
    }
}

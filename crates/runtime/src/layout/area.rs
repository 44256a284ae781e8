//! The area of a kernel thread: what inserted code knows of it, and what the runtime keeps behind.
//!
//! A thread's *slot* is its area with all that belongs to it and is rarely used:
//!
//! ```text
//! 0x0000  Area                      0x1000  XSAVE image of a captured context
//! 0x0400  control context           0x4000  slow stack: the runtime's code between two yields
//! 0x0500  quiet context             0x8000  signal stack
//! 0x0600  front and back counters   0x10000 end
//! 0x0800  frame: registers of a
//!         captured context
//! 0x0a00  samples
//! 0x0e00  LoanWords
//! 0x0e80  TurnWords
//! ```
//!
//! An area's words lie in parts, by which side writes them. The type of a part is in the room of
//! its owner, and only that room can write its fields:
//!
//! ```text
//! 0x000  TwinWords     inserted code       0x108  SignalWords       signals
//! 0x048  SwitchWords   switching           0x1c0  CountingWords     counting
//! 0x068  (shared)      thread, supervisor  0x280  OrderWords        supervisor (thread reads)
//! 0x0a8  ThreadWords   the thread          0x2c0  SupervisorWords   supervisor
//! ```
//!
//! The context that inserted code uses lies elsewhere, in a dense table
//! ([`crate::layout::region`]): a ring's contexts are touched in turn all the time, and at a stride
//! of 64 KiB they would share one set of each cache.
//!
//! To add a field: to the part of the side that writes it; its doc says when.

use super::context::Context;
use crate::counting::area_words::{CountingWords, ROWS, SAMPLES as SAMPLE_COUNT};
use crate::counting::turn_words::TurnWords;
use crate::signals::area_words::SignalWords;
use crate::signals::frame::SignalStack;
use crate::supervisor::area_words::{OrderWords, SupervisorWords};
use crate::switching::loan_words::LoanWords;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use runtime_abi::control::ScavengerRow;
use runtime_abi::{area, context};

pub(crate) const SLOT: usize = 0x10000;
const CONTROL: usize = 0x400 + context::BEFORE;
const QUIET: usize = 0x500 + context::BEFORE;
const FRONT: usize = 0x600 + context::BEFORE;
const BACK: usize = 0x700 + context::BEFORE;
pub(crate) const FRAME: usize = 0x800;
const SAMPLES: usize = 0xa00;
const LOANS: usize = 0xe00;
const TURN_WORDS: usize = 0xe80;
pub(crate) const XSAVE: usize = 0x1000;
pub(crate) const XSAVE_SIZE: usize = 0x3000;
pub(crate) const SLOW_STACK_TOP: usize = 0x8000;
pub(crate) const SIGNAL_STACK: usize = 0x8000;
pub(crate) const SIGNAL_STACK_SIZE: usize = 0x8000;

/// What an area is used for.
pub(crate) mod kind {
    pub(crate) const FREE: u32 = 0;
    /// Taken, and not yet in order.
    pub(crate) const CLAIMED: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    pub(crate) const HOME: u32 = 3;
}

/// Why a thread wants no guests. Bits.
pub(crate) mod closed {
    /// It is about to fork, or has: a child has no supervisor.
    pub(crate) const FORKS: u32 = 1;
    /// Its process is about to end.
    pub(crate) const ENDS: u32 = 2;
    /// It is being cancelled, and may be so at any moment.
    pub(crate) const CANCELLABLE: u32 = 4;
    /// It is being cancelled. Written by the thread that cancels it.
    pub(crate) const CANCELLED: u32 = 8;
}

/// Why a thread of a scavenger stays at home. Bits.
pub(crate) mod settled {
    /// It cannot be parked safely, or is not what it seems.
    pub(crate) const FOR_GOOD: u32 = 1;
    /// It may be cancelled at any moment. Also of a primary's threads, which go on having guests.
    pub(crate) const CANCELLABLE: u32 = 2;
}

/// Which side works on the ring of a primary's area.
pub(crate) mod lock {
    pub(crate) const FREE: u32 = 0;
    pub(crate) const SUPERVISOR: u32 = 1;
    pub(crate) const THREAD: u32 = 2;
}

/// The area of one kernel thread. Its parts are split by which side writes them: see each part's
/// type.
#[repr(C)]
pub(crate) struct Area {
    pub(crate) twin: TwinWords,
    pub(crate) switching: SwitchWords,
    // Set when the area is made; kind and tid again when its thread begins and ends.
    pub(crate) region: AtomicPtr<crate::layout::region::Region>,
    pub(crate) control: AtomicPtr<Context>,
    /// Stands in for the own context where no switching may happen: in signal handlers.
    pub(crate) quiet: AtomicPtr<Context>,
    /// See [`kind`].
    pub(crate) kind: AtomicU32,
    pub(crate) pid: AtomicI32,
    pub(crate) tid: AtomicI32,
    /// Of a home: its scavenger's row of the control page. Of a primary's area: the thread's
    /// number.
    pub(crate) row: AtomicU32,
    // Written by thread and supervisor, in turn or by compare-and-swap.
    /// See [`lock`].
    pub(crate) lock: AtomicU32,
    /// Contexts that are to join the ring. The supervisor pushes, the thread takes all.
    pub(crate) inbox: AtomicPtr<Context>,
    /// The thread wants no (more) guests, see [`closed`].
    pub(crate) closed: AtomicU32,
    /// Never parked, see [`settled`].
    pub(crate) settled: AtomicU32,
    pub(crate) thread: ThreadWords,
    pub(crate) signals: SignalWords,
    pub(crate) counting: CountingWords,
    /// The supervisor's words begin a pair of cache lines, since cores fetch such pairs at once.
    padding: [u8; 0x40],
    pub(crate) orders: OrderWords,
    pub(crate) supervisor: SupervisorWords,
}

/// What inserted code knows of an area (`runtime_abi::area`). Written by inserted code and the
/// thread.
#[repr(C)]
pub(crate) struct TwinWords {
    pub(crate) this: AtomicPtr<Area>,
    pub(crate) cur: AtomicPtr<Context>,
    pub(crate) scratch: [AtomicU64; 3],
    pub(crate) budget: AtomicI32,
    pub(crate) guest: AtomicU8,
    /// The area of a primary's thread. Constant.
    primary: AtomicU8,
    padding: [u8; 2],
    pub(crate) leave: AtomicU64,
    pub(crate) own: AtomicPtr<Context>,
    pub(crate) passes: AtomicI64,
}

/// What the assembly in `switching::switch` knows besides. The thread's.
#[repr(C)]
pub(crate) struct SwitchWords {
    pub(crate) slow_stack: AtomicU64,
    /// Where the context that is being restored goes on.
    pub(crate) resume: AtomicU64,
    /// A signal came while the runtime was at work; it is delivered at the end. A home's also where
    /// its thread sleeps parked.
    pub(crate) deferred: AtomicU32,
    /// Whether XSAVEC is there.
    pub(crate) compact: AtomicU32,
    pub(crate) xsave_mask: AtomicU64,
}

/// The thread's own.
#[repr(C)]
pub(crate) struct ThreadWords {
    /// Times the thread came to the control context.
    pub(crate) control_entries: AtomicU32,
    /// First and last of the guests that are aboard and take no part for now. Under the lock.
    pub(crate) aside: AtomicPtr<Context>,
    pub(crate) aside_last: AtomicPtr<Context>,
    /// The signal mask under which its thread parked, and of a home the one under which it goes on.
    pub(crate) parked_mask: AtomicU64,
    /// Home: the signals that its process has handlers of ours for; null: not known. Its process's.
    pub(crate) wrapped: AtomicPtr<AtomicU64>,
    /// Home: it sleeps, parked, and lets signals in, in code between these addresses; zero: it does
    /// not.
    pub(crate) sleeps: [AtomicU64; 2],
    /// Home: the code between these addresses, on the way to where it parks and back, runs on the
    /// program's stack, and a signal finds the program at its yield there. Constant; of the
    /// instance of the runtime that made the area, as the way there is.
    pub(crate) parks: [AtomicU64; 2],
    /// What a thread that is being made will run, and with which argument. Its creator's, then its
    /// own.
    pub(crate) start: [AtomicU64; 2],
    /// A child by `vfork` runs on it, while its thread waits.
    pub(crate) lent: AtomicU32,
}

/// Registers of a context that was captured whole.
#[repr(C)]
pub(crate) struct Frame {
    /// By number, as instructions number them.
    pub(crate) general: [AtomicU64; 16],
    pub(crate) rip: AtomicU64,
    pub(crate) flags: AtomicU64,
    pub(crate) scratch: [AtomicU64; 3],
    /// What the context's RIP was before it was captured: it may have been in the midst of a yield.
    pub(crate) yield_rip: AtomicU64,
}

macro_rules! at {
    ($($field:ident).+ == $offset:expr) => {
        const _: () = assert!(core::mem::offset_of!(Area, $($field).+) == $offset as usize);
    };
}
at!(twin.this == area::SELF);
at!(twin.cur == area::CUR);
at!(twin.scratch == area::SCRATCH[0]);
at!(twin.budget == area::BUDGET);
at!(twin.guest == area::GUEST);
at!(twin.leave == area::LEAVE);
at!(twin.own == area::OWN);
at!(twin.passes == area::PASSES);
at!(switching == area::RUNTIME);
at!(region == 0x68);
at!(thread == 0xa8);
at!(signals == 0x108);
// Each side's words begin a cache line of their own.
at!(counting == 0x1c0);
at!(orders == 0x280);
at!(supervisor == 0x2c0);
const _: () = assert!(size_of::<Area>() <= 0x400);
const _: () = assert!(FRAME + size_of::<Frame>() <= SAMPLES);
const _: () = assert!(SAMPLES + 4 * SAMPLE_COUNT * ROWS <= LOANS);
const _: () = assert!(LOANS + size_of::<LoanWords>() <= TURN_WORDS);
const _: () = assert!(TURN_WORDS + size_of::<TurnWords>() <= XSAVE);

/// The `n`th pointer's target, where pointers are set once before anyone can see them.
macro_rules! follow {
    ($pointer:expr) => {
        // SAFETY: areas and contexts live in the region, which is never unmapped, and the pointer
        // was set when the area was made.
        unsafe { &*$pointer.load(core::sync::atomic::Ordering::Acquire) }
    };
}
pub(crate) use follow;

impl Area {
    /// Whether it is of a primary's thread, and not a scavenger's home.
    pub(crate) fn is_primarys(&self) -> bool {
        self.twin.primary.load(Ordering::Relaxed) != 0
    }

    pub(super) fn set_primarys(&self, primary: bool) {
        self.twin.primary.store(u8::from(primary), Ordering::Relaxed);
        self.twin.guest.store(u8::from(primary), Ordering::Relaxed);
    }

    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    pub(crate) fn own(&self) -> &'static Context {
        follow!(self.twin.own)
    }

    pub(crate) fn control(&self) -> &'static Context {
        follow!(self.control)
    }

    pub(crate) fn quiet(&self) -> &'static Context {
        follow!(self.quiet)
    }

    pub(crate) fn region(&self) -> &'static crate::layout::region::Region {
        follow!(self.region)
    }

    /// Of the scavenger whose thread has it.
    pub(crate) fn scavenger(&self) -> &'static ScavengerRow {
        &self.region().page().scavenger[self.row.load(Ordering::Relaxed) as usize]
    }

    pub(crate) fn frame(&self) -> &Frame {
        // SAFETY: it lies in the same slot, and holds atomics only.
        unsafe { &*((self.address() + FRAME) as *const Frame) }
    }

    /// The slot's signal stack, as the kernel is told.
    pub(crate) fn signal_stack(&self) -> SignalStack {
        let pointer = (self.address() + SIGNAL_STACK) as u64;
        SignalStack { pointer, flags: 0, padding: 0, size: SIGNAL_STACK_SIZE as u64 }
    }

    /// What its thread lends to homes, and of a home what is lent to it.
    pub(crate) fn loans(&self) -> &LoanWords {
        // SAFETY: it lies in the same slot, and holds atomics only.
        unsafe { &*((self.address() + LOANS) as *const LoanWords) }
    }

    /// How often its ring went round, or its context was in one that did.
    pub(crate) fn turn_words(&self) -> &TurnWords {
        // SAFETY: it lies in the same slot, and holds atomics only.
        unsafe { &*((self.address() + TURN_WORDS) as *const TurnWords) }
    }

    /// Counters that are linked into the ring while something is counted: before guests, and behind
    /// them.
    pub(crate) fn front(&self) -> &'static Context {
        // SAFETY: it lies in the same slot, which is never unmapped, and is made of atomics.
        unsafe { &*((self.address() + FRONT) as *const Context) }
    }

    pub(crate) fn back(&self) -> &'static Context {
        // SAFETY: as above.
        unsafe { &*((self.address() + BACK) as *const Context) }
    }

    /// Whether a context is one of these counters.
    pub(crate) fn is_counter(&self, context: *mut Context) -> bool {
        context == self.front().pointer() || context == self.back().pointer()
    }

    /// What was counted, by stage.
    pub(crate) fn samples(&self, row: usize) -> &[AtomicU32; SAMPLE_COUNT] {
        // SAFETY: it lies in the same slot, and holds atomics only.
        let all = unsafe { &*((self.address() + SAMPLES) as *const [[AtomicU32; SAMPLE_COUNT]; ROWS]) };
        &all[row % ROWS]
    }

    /// Where the slot's control and quiet contexts are.
    pub(crate) fn inner_contexts(&self) -> (*mut Context, *mut Context) {
        ((self.address() + CONTROL) as *mut Context, (self.address() + QUIET) as *mut Context)
    }
}

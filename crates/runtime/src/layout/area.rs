//! Areas and contexts as the runtime sees them: what inserted code knows of them, and what is ours
//! behind it.
//!
//! A thread's *slot* is its area with all that belongs to it and is cold:
//!
//! ```text
//! 0x0000  Area                      0x1000  XSAVE image of a captured context
//! 0x0400  control context           0x4000  slow stack: the runtime's code between two yields
//! 0x0500  quiet context             0x8000  signal stack
//! 0x0600  front and back counters   0x10000 end
//! 0x0800  frame: registers of a
//!         captured context
//! 0x0a00  samples
//! 0x0d00  counter of turns
//! ```
//!
//! The context that inserted code uses lies elsewhere, in a dense table
//! ([`crate::layout::region`]): a ring's contexts are touched in turn all the time, and at a stride
//! of 64 KiB they would share one set of each cache.
//!
//! To add a field: its doc says who writes it, and when.

use crate::mappings::Belongings;
use crate::signals::frame::{SS_DISABLE, SignalInfo, SignalStack};
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
const TURNS: usize = 0xd00 + context::BEFORE;
pub(crate) const XSAVE: usize = 0x1000;
pub(crate) const XSAVE_SIZE: usize = 0x3000;
pub(crate) const SLOW_STACK_TOP: usize = 0x8000;
pub(crate) const SIGNAL_STACK: usize = 0x8000;
pub(crate) const SIGNAL_STACK_SIZE: usize = 0x8000;

/// What a context is up to. The home thread sleeps on it (futex) in all but [`state::HOME`] and
/// [`state::PARKING`].
pub(crate) mod state {
    /// Its own kernel thread runs it. Written by the supervisor, which ends the sleep, or by the
    /// thread, which does not begin to.
    pub(crate) const HOME: u32 = 0;
    /// Saved at a yield, its home thread asleep; the supervisor's to give away. Written by the home
    /// thread, or by the supervisor when it takes a guest from a primary.
    pub(crate) const PARKED: u32 = 1;
    /// In the inbox of a primary's area, or in its ring. Written by the supervisor.
    pub(crate) const ABOARD: u32 = 2;
    /// Taken out of the ring and saved; the supervisor is to wake its home thread. Written by the
    /// primary's thread.
    pub(crate) const LEAVING: u32 = 3;
    /// About to be saved. Written by the home thread before it takes the supervisor's hook off, so
    /// that at any moment either the hook or this tells that it may sleep for the supervisor to
    /// wake it.
    pub(crate) const PARKING: u32 = 4;
}

/// Whose an area is.
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
    /// A sibling that may be cancelled at any moment.
    pub(crate) const CANCELLABLE: u32 = 4;
    /// It is being cancelled. Written by who does that.
    pub(crate) const CANCELLED: u32 = 8;
}

/// What the supervisor asks of a sibling's thread, to be read at its next visit to the control
/// context.
pub(crate) mod asked {
    /// Nothing. Only now may it be given guests. Also written by the thread, when it is home again.
    pub(crate) const NOTHING: u32 = 0;
    /// To give its context away. The supervisor takes it back by compare-and-swap.
    pub(crate) const TO_PARK: u32 = 1;
    /// It does so. Written by the thread, by compare-and-swap.
    pub(crate) const PARKING: u32 = 2;
}

/// Why a thread of a scavenger, or a sibling, stays at home. Bits.
pub(crate) mod settled {
    /// It cannot be parked safely, or is not what it seems.
    pub(crate) const FOR_GOOD: u32 = 1;
    /// It may be cancelled at any moment. Also of a primary's threads, which go on having guests.
    pub(crate) const CANCELLABLE: u32 = 2;
    /// As long as it has an affinity, a scheduling policy or a priority of its own. The
    /// supervisor's, of siblings.
    pub(crate) const RULES: u32 = 4;
}

/// Who works on the ring of a primary's area.
pub(crate) mod lock {
    pub(crate) const FREE: u32 = 0;
    pub(crate) const SUPERVISOR: u32 = 1;
    pub(crate) const THREAD: u32 = 2;
    /// A guest that fetches itself home, in the supervisor's place
    /// ([`crate::switching::supervisor_lost`]).
    pub(crate) const SIBLING: u32 = 3;
}

const _: () = assert!(core::mem::offset_of!(Context, state) == 64);

/// A context from its address on. In front of it lie its register slots, behind it its vector
/// slots.
#[repr(C)]
pub(crate) struct Context {
    /// In a ring: the next one. Written by the thread that runs the ring; of an area's own context
    /// also by the supervisor, by compare-and-swap.
    pub(crate) next: AtomicPtr<Context>,
    pub(crate) rip: AtomicU64,
    pub(crate) rsp: AtomicU64,
    /// Written when its thread starts.
    pub(crate) fs: AtomicU64,
    pub(crate) flags: AtomicU64,
    /// Of an area's own context: whom it goes on with while it waits by turning round. Written as
    /// `next`, by [`crate::switching::ring`] and [`crate::counting::count`].
    pub(crate) spin: AtomicPtr<Context>,
    /// In a ring: the one before. Written as `next`, but never by the supervisor's hook.
    pub(crate) prev: AtomicPtr<Context>,
    /// The area of its thread; of a control or quiet context too. Written once.
    pub(crate) home: AtomicPtr<Area>,
    // What is in front of this is one cache line, which stays with the core that runs the ring; the
    // supervisor looks at what follows.
    pub(crate) state: AtomicU32,
    /// Why it is [`state::LEAVING`], an index of [`runtime_abi::control::trip`].
    pub(crate) why: AtomicU32,
    /// The next one in the same inbox. Itself, where a ring has taken it in; a sibling's is none
    /// before it is offered to one.
    pub(crate) link: AtomicPtr<Context>,
    /// MXCSR in the low half, x87 control word above. Written by the home thread when it parks.
    pub(crate) modes: AtomicU64,
    /// The supervisor wants it home.
    pub(crate) recall: AtomicU32,
    pub(crate) reserved: u32,
    /// When it last changed its state. The supervisor's.
    pub(crate) since: AtomicU64,
    /// The primary's area it is aboard. The supervisor's.
    pub(crate) host: AtomicPtr<Area>,
    /// Where it goes on while its RIP leads back ([`crate::switching::redirect`]), and what RIP is
    /// then: at home, that is another instance's. The supervisor's.
    pub(crate) straight: AtomicU64,
    pub(crate) back: AtomicU64,
}

/// Bytes of a context in the table: a multiple of a cache line, an even number of them, so that
/// contexts spread over sets.
pub(crate) const CONTEXT_STRIDE: usize = 0x980;
const _: () = assert!(CONTEXT_STRIDE >= context::BEFORE + context::BEHIND && CONTEXT_STRIDE % 128 == 0);

#[repr(C)]
pub(crate) struct Area {
    // As inserted code knows it.
    pub(crate) this: AtomicPtr<Area>,
    pub(crate) cur: AtomicPtr<Context>,
    pub(crate) scratch: [AtomicU64; 3],
    pub(crate) budget: AtomicI32,
    pub(crate) guest: AtomicU8,
    pub(crate) padding: [u8; 3],
    pub(crate) leave: AtomicU64,
    pub(crate) own: AtomicPtr<Context>,
    /// The thread's.
    pub(crate) passes: AtomicI64,
    // As the assembly in `switch` knows it.
    pub(crate) slow_stack: AtomicU64,
    pub(crate) resume: AtomicU64,
    /// A signal came while the runtime was at work; it is delivered at the end.
    pub(crate) deferred: AtomicU32,
    /// Whether XSAVEC is there.
    pub(crate) compact: AtomicU32,
    pub(crate) xsave_mask: AtomicU64,
    // The runtime's.
    pub(crate) region: AtomicPtr<crate::layout::region::Region>,
    pub(crate) control: AtomicPtr<Context>,
    /// Stands in for the own context where no switching may happen: in signal handlers.
    pub(crate) quiet: AtomicPtr<Context>,
    /// Contexts that are to join the ring. The supervisor pushes, the thread takes all.
    pub(crate) inbox: AtomicPtr<Context>,
    /// See [`lock`].
    pub(crate) lock: AtomicU32,
    /// See [`kind`].
    pub(crate) kind: AtomicU32,
    pub(crate) pid: AtomicI32,
    pub(crate) tid: AtomicI32,
    /// Whose home it is, as a row of the control page; of a primary's area: which thread it is, by
    /// number.
    pub(crate) row: AtomicU32,
    /// Guests in inbox and ring. The supervisor's.
    pub(crate) guests: AtomicU32,
    /// The thread wants no (more) guests, see [`closed`].
    pub(crate) closed: AtomicU32,
    /// Never parked, see [`settled`].
    pub(crate) settled: AtomicU32,
    /// Descriptor of its `/proc/…/stat`, plus one, in the supervisor's process.
    pub(crate) stat_fd: AtomicI32,
    /// The same of its `/proc/…/schedstat`.
    pub(crate) ran_fd: AtomicI32,
    /// The processor its thread was seen on last. The supervisor's.
    pub(crate) cpu: AtomicU32,
    /// Its thread may also be a guest of others of its process. Constant.
    pub(crate) sibling: AtomicU32,
    /// Sibling: it left its twins while it had guests, and comes to the control context before it
    /// runs one again. So they may be taken away, under the lock. Set by the thread as it leaves
    /// ([`crate::switching::switch`]), or finds the lock taken; cleared by it under the lock.
    pub(crate) outside: AtomicU32,
    /// Sibling: see [`asked`].
    pub(crate) asked: AtomicU32,
    /// Times the thread came to the control context. The thread's.
    pub(crate) visits: AtomicU32,
    /// The flags of a sibling that leaves its twins, for a moment.
    pub(crate) kept: AtomicU64,
    /// From here to `own_rules_at` the supervisor's, of siblings. What `visits` was when it was
    /// asked for something, and when that was.
    pub(crate) asked_visit: AtomicU32,
    /// What `visits` was when it was first seen outside, and when that was.
    pub(crate) outside_visit: AtomicU32,
    /// Its row in the table of threads, plus one.
    pub(crate) number: AtomicU32,
    pub(crate) asked_at: AtomicU64,
    pub(crate) outside_since: AtomicU64,
    /// Until when it is not asked to park, and for how long it was left alone last.
    pub(crate) home_until: AtomicU64,
    pub(crate) pause: AtomicU64,
    /// When it was last looked whether it has an affinity or a scheduling policy of its own.
    pub(crate) own_rules_at: AtomicU64,
    /// Until when its thread is not asked to take guests, since it slept. The supervisor's.
    pub(crate) rest_until: AtomicU64,
    /// When the supervisor last looked what its thread does, and whether it was away then (see
    /// [`crate::supervisor`]).
    pub(crate) looked_at: AtomicU64,
    pub(crate) slept: AtomicU32,
    /// How often it was seen asleep at no yield. The supervisor's, as what follows: see `unmet`
    /// there.
    pub(crate) sleeps_seen: AtomicU32,
    /// Its yields and visits as they were when it was seen to come to one last, when that was, and
    /// what it had run by then.
    pub(crate) met_yields: AtomicU64,
    pub(crate) met_at: AtomicU64,
    pub(crate) met_ran: AtomicU64,
    pub(crate) met_visits: AtomicU32,
    /// It was hooked since then, to see whether it comes to any yield at all.
    pub(crate) probed: AtomicU32,
    /// It came to none, and its guests were taken: how often in a row; zero: it came to one since.
    /// Until when it gets none.
    pub(crate) unmet: AtomicU32,
    pub(crate) unmet_visits: AtomicU32,
    pub(crate) unmet_until: AtomicU64,
    /// Home: the primary's area that its context may still be met in, and which thread's it was, at
    /// which visit and sleep.
    pub(crate) bent_by: AtomicPtr<Area>,
    pub(crate) bent_tid: AtomicI32,
    pub(crate) bent_visits: AtomicU32,
    pub(crate) bent_sleeps: AtomicU32,
    pub(crate) reserved: u32,
    /// Home: when its thread was seen parked.
    pub(crate) parked_at: AtomicU64,
    /// The signal mask under which its thread parked, and of a home the one under which it goes on.
    /// The thread's.
    pub(crate) parked_mask: AtomicU64,
    /// Home: which signals its process has handlers of ours for; none: not known. Its process's.
    pub(crate) wrapped: AtomicPtr<AtomicU64>,
    /// Home: it sleeps, parked, and lets signals in, in code from here to there; zero: it does not.
    /// The thread's.
    pub(crate) sleeps: [AtomicU64; 2],
    /// Home: the code from here to there, on the way to where it parks and back, runs on the
    /// program's stack, and a signal finds the program at its yield there. Constant; of the
    /// instance of the runtime that made the area, as the way there is.
    pub(crate) parks: [AtomicU64; 2],
    /// What a thread that is being made will run, and with which argument. Its creator's, then its
    /// own.
    pub(crate) start: [AtomicU64; 2],
    /// The signal stack that the program asked for: pointer, flags, size. The thread's, as all that
    /// follow.
    pub(crate) asked_stack: [AtomicU64; 3],
    /// Faults that the program has blocked; in the kernel they are not.
    pub(crate) blocked_faults: AtomicU64,
    /// While a handler of the program's runs: what it interrupted has no guest in its hands, so its
    /// guests may be taken away.
    pub(crate) free_hands: AtomicU32,
    /// The runtime lets a signal in although it is at work: the program is at its yield.
    pub(crate) at_yield: AtomicU32,
    /// A child by `vfork` runs on it, while its thread waits.
    pub(crate) lent: AtomicU32,
    /// See [`crate::counting::count`]: what the supervisor orders; what of it the thread has taken
    /// note of and what it has done.
    pub(crate) order: AtomicU32,
    pub(crate) obeyed: AtomicU32,
    pub(crate) done: AtomicU32,
    /// What is counted now, how many samples of it there are, and yields until the next. The
    /// thread's.
    pub(crate) stage: AtomicU32,
    pub(crate) taken: AtomicU32,
    pub(crate) count: AtomicI32,
    /// Yields in a lap without guests, and with them. The thread's.
    pub(crate) laps: [AtomicI32; 2],
    /// What `passes` was set to last, and how many yields it met before that. The thread's.
    pub(crate) passes_were: AtomicI64,
    pub(crate) met: AtomicU64,
    /// It may not read the time stamp counter, so no times are counted. The thread's.
    pub(crate) no_clock: AtomicU32,
    /// Ticks: when the stage began, when counting went on last, when the primary went away.
    pub(crate) stage_began: AtomicU64,
    pub(crate) resumed: AtomicU64,
    pub(crate) away: AtomicU64,
    /// Where it yielded last.
    pub(crate) visited: AtomicU64,
    /// Most ticks for a stage, and most for an absence; so few that nothing was missed. The
    /// supervisor's.
    pub(crate) stage_ticks: AtomicU64,
    pub(crate) absence_ticks: AtomicU64,
    pub(crate) soon_ticks: AtomicU64,
    /// While something is counted: when it last turned round in a wait, and what `passes` and
    /// `count` were then. The thread's.
    pub(crate) turned: AtomicU64,
    pub(crate) turned_passes: AtomicI64,
    pub(crate) turned_count: AtomicI32,
    /// Of what it does between its waits ([`crate::counting::busy_waits`]): ticks of the present
    /// lap; the shortest turn; how long a work takes, about.
    pub(crate) lap_ticks: AtomicU64,
    pub(crate) shortest_turn: AtomicU64,
    pub(crate) usual_work: AtomicU64,
    /// Turns that took longer than an absence may.
    pub(crate) long_turns: AtomicU32,
    /// Of so many.
    pub(crate) all_turns: AtomicU32,
    /// Ticks that it waited by turning round, of those since counting began; when that was, and up
    /// to when. The thread's.
    pub(crate) idle: AtomicU64,
    pub(crate) idle_since: AtomicU64,
    pub(crate) idle_until: AtomicU64,
    /// The guest whose stays are to be timed. The supervisor's.
    pub(crate) suspect: AtomicPtr<Context>,
    /// First and last of the guests that are aboard and take no part for now. The thread's, under
    /// the lock.
    pub(crate) aside: AtomicPtr<Context>,
    pub(crate) aside_last: AtomicPtr<Context>,
    /// Most guests it may have, as its pace says. The supervisor's.
    pub(crate) most: AtomicU32,
    /// Home: how often in a row it had to go, until when it is not taken aboard again. The
    /// supervisor's.
    pub(crate) offences: AtomicU32,
    pub(crate) banned_until: AtomicU64,
    /// Home: ticks that it stays aboard at a time, as measured last. The supervisor's.
    pub(crate) stay: AtomicU64,
    /// A signal that was put off, and the mask under which it came.
    put_off_mask: AtomicU64,
    put_off_info: [AtomicU32; 32],
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
    ($structure:ident . $field:ident == $offset:expr) => {
        const _: () = assert!(core::mem::offset_of!($structure, $field) == $offset as usize);
    };
}
at!(Area.this == area::SELF);
at!(Area.cur == area::CUR);
at!(Area.scratch == area::SCRATCH[0]);
at!(Area.budget == area::BUDGET);
at!(Area.guest == area::GUEST);
at!(Area.leave == area::LEAVE);
at!(Area.own == area::OWN);
at!(Area.passes == area::PASSES);
at!(Area.slow_stack == area::RUNTIME);
at!(Context.next == context::NEXT);
at!(Context.rip == context::RIP);
at!(Context.rsp == context::RSP);
at!(Context.fs == context::FS);
at!(Context.flags == context::FLAGS);
at!(Context.spin == context::SPIN);
at!(Context.prev == context::RUNTIME);
const _: () = assert!(size_of::<Context>() <= context::vector(0) as usize && size_of::<Area>() <= 0x400);
const _: () = assert!(FRAME + size_of::<Frame>() <= SAMPLES);
const _: () = assert!(
    SAMPLES + 4 * crate::counting::count::SAMPLES * crate::counting::count::ROWS <= TURNS - context::BEFORE
);
const _: () = assert!(TURNS + size_of::<Context>() <= XSAVE);

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
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    pub(crate) fn own(&self) -> &'static Context {
        follow!(self.own)
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

    pub(crate) fn belongings(&self) -> &'static Belongings {
        &self.region().belongings[self.row.load(Ordering::Relaxed) as usize]
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

    /// The signal stack that the program asked for.
    pub(crate) fn program_stack(&self) -> SignalStack {
        let [pointer, flags, size] = [0, 1, 2].map(|i| self.asked_stack[i].load(Ordering::Relaxed));
        if size == 0 {
            SignalStack::NONE
        } else {
            SignalStack { pointer, flags: flags as i32, padding: 0, size }
        }
    }

    pub(crate) fn ask_stack(&self, stack: &SignalStack) {
        let gone = stack.flags & SS_DISABLE != 0;
        let words = [stack.pointer, stack.flags as u64, if gone { 0 } else { stack.size }];
        for (to, from) in self.asked_stack.iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Keeps a signal until the runtime is done.
    pub(crate) fn put_off(&self, info: &SignalInfo, mask: u64) {
        let words = [info.signal as u32, info.errno as u32, info.code as u32];
        for (to, from) in self.put_off_info.iter().zip(words.into_iter().chain(info.rest)) {
            to.store(from, Ordering::Relaxed);
        }
        self.put_off_mask.store(mask, Ordering::Relaxed);
        self.deferred.store(1, Ordering::Release);
    }

    pub(crate) fn what_was_put_off(&self) -> (SignalInfo, u64) {
        let word = |i: usize| self.put_off_info[i].load(Ordering::Relaxed);
        let info = SignalInfo {
            signal: word(0) as i32,
            errno: word(1) as i32,
            code: word(2) as i32,
            rest: core::array::from_fn(|i| word(3 + i)),
        };
        (info, self.put_off_mask.load(Ordering::Relaxed))
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

    /// Stands in front of guests while something is counted, where it waits by turning round.
    pub(crate) fn turns(&self) -> &'static Context {
        // SAFETY: as above.
        unsafe { &*((self.address() + TURNS) as *const Context) }
    }

    /// What was counted, by stage.
    pub(crate) fn samples(&self, row: usize) -> &[AtomicU32; crate::counting::count::SAMPLES] {
        // SAFETY: it lies in the same slot, and holds atomics only.
        let all = unsafe {
            &*((self.address() + SAMPLES)
                as *const [[AtomicU32; crate::counting::count::SAMPLES]; crate::counting::count::ROWS])
        };
        &all[row % crate::counting::count::ROWS]
    }

    /// Where the slot's control and quiet contexts are.
    pub(crate) fn inner_contexts(&self) -> (*mut Context, *mut Context) {
        ((self.address() + CONTROL) as *mut Context, (self.address() + QUIET) as *mut Context)
    }
}

impl Context {
    pub(crate) fn pointer(&self) -> *mut Context {
        core::ptr::from_ref(self).cast_mut()
    }

    pub(crate) fn home(&self) -> &'static Area {
        follow!(self.home)
    }
}

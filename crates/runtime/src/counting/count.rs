//! Counting on a primary's thread, in guest phases and solo phases: by this the supervisor knows
//! how much slower guests make a primary.
//!
//! A thread's *order* says whether its guests take part. Where they do not, they are *aside*:
//! aboard, but out of the ring. An order may ask for counting too. Then *counters* are linked into
//! the ring: contexts like a guest's, whose code is here.
//!
//! ```text
//!   own ─► front ─► guest 1 ─► guest 2 ─► back ─► own
//!          notes when the primary goes away       sees every yield of the primary, takes the time
//! ```
//!
//! Nothing is counted while none is linked, and yields are as they were.
//!
//! | stage | guests | one sample is |
//! |---|---|---|
//! | [`PLAIN`] | no | ticks of a *lap* of yields; the primary passes by all but the last |
//! | [`SITE`] | no | whether the next yield came too soon for a miss |
//! | [`ABOARD`] | yes | ticks of a lap with all guests |
//! | [`ABSENCE`] | yes | how long the primary is away |
//! | [`STAY`] | yes | how long one guest stays |
//!
//! A switch at each yield of a lap would cost the primary what it runs ahead of its misses. A lap
//! is as long as a part of a stage is, for this program at this time.
//!
//! All of it happens on the primary's thread, between two yields, under the lock where the ring
//! changes. To add a stage: a number, its counters in [`link`], its sample in [`counted`], its
//! place in [`after`].

use crate::counting::absences::tell_absence;
pub(crate) use crate::counting::area_words::{FEW, ROWS, SAMPLES, row};
pub(crate) use crate::counting::order::{ALONE, COUNTING, GUESTS};
use crate::counting::turns;
pub(crate) use crate::counting::turns::yields;
use crate::layout::area::{Area, lock};
use crate::layout::context::Context;
use crate::signals::frame::Registers;
use crate::switching::links;
use core::arch::global_asm;
use core::arch::x86_64::_rdtsc;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::{Control, SITES, site_rows};
use runtime_abi::{area as a, context as c};

/// The most yields in a lap.
const MANY: i32 = 4096;

/// Stages.
const NOTHING: u32 = 0;
const PLAIN: u32 = 1;
const ABOARD: u32 = 2;
const ABSENCE: u32 = 3;
const STAY: u32 = 4;
const SITE: u32 = 5;

/// Laps in a stage without guests, about.
const SOLO_LAPS: u64 = 32;
/// Laps in a stage with guests at least, of as many yields as without if that leaves this many.
const GUEST_LAPS: u64 = 8;

/// The stage behind this one.
fn after(stage: u32, order: u32) -> u32 {
    match stage {
        NOTHING if order & GUESTS == 0 => PLAIN,
        NOTHING => ABOARD,
        PLAIN => SITE,
        ABOARD => ABSENCE,
        ABSENCE => STAY,
        _ => NOTHING,
    }
}

fn row_of(stage: u32) -> usize {
    match stage {
        ABSENCE => row::ABSENCE,
        STAY => row::STAY,
        _ => row::PLAIN,
    }
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 has a time stamp counter; a thread that may not read it gets zero from
    // [`pass_over_clock`].
    unsafe { _rdtsc() }
}

/// A thread may be forbidden to read the time stamp counter (by strict seccomp, by `PR_SET_TSC`),
/// and to ask takes a system call, which may be forbidden too. So the runtime tries, and comes here
/// when it faults. Returns whether the fault is of that kind.
pub(crate) fn pass_over_clock(area: &Area, registers: &mut Registers) -> bool {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    // SAFETY: the thread was in the runtime's code, of which this is some.
    if unsafe { *(registers.rip as *const [u8; 2]) } != RDTSC {
        return false;
    }
    area.counting.no_clock.store(1, Relaxed);
    (registers.rax, registers.rdx) = (0, 0);
    registers.rip += RDTSC.len() as u64;
    true
}

fn is_linked(counter: &Context) -> bool {
    counter.next.load(Relaxed) != counter.pointer()
}

/// Sets how many yields the primary passes by, less one, and adds up those that met a context. The
/// thread's.
fn pass(area: &Area, many: i64) {
    area.counting.met.store(yields(area), Relaxed);
    area.counting.passes_were.store(many, Relaxed);
    area.twin.passes.store(many, Release);
}

/// Takes the counters out. Under the lock.
fn unlink(area: &Area) {
    pass(area, -1);
    for counter in [area.front(), area.back()] {
        if is_linked(counter) {
            links::take_out(area, counter);
        }
    }
}

/// Makes the ring as if nothing were counted and no guest were aside. The thread's, hooked, under
/// the lock.
pub(crate) fn gather(area: &Area) {
    unlink(area);
    let first = area.thread.aside.swap(null_mut(), Relaxed);
    if !first.is_null() {
        area.control().next.store(first, Release);
        area.own().prev.store(area.thread.aside_last.load(Relaxed), Relaxed);
        turns::aside(area, false);
    }
}

/// Makes the ring as the supervisor ordered it. The thread's, hooked, under the lock, behind
/// [`gather`].
pub(crate) fn arrange(area: &Area) {
    let own = area.own();
    let order = area.orders.order();
    let first = area.control().next.load(Acquire);
    if order & GUESTS == 0 && first != own.pointer() {
        area.thread.aside.store(first, Relaxed);
        turns::aside(area, true);
        area.thread.aside_last.store(own.prev.load(Relaxed), Relaxed);
        area.control().next.store(own.pointer(), Release);
        own.prev.store(own.pointer(), Relaxed);
    }
    if area.counting.obeyed.load(Relaxed) != order {
        area.counting.stage.store(NOTHING, Relaxed);
        if order & COUNTING != 0 {
            for sample in (0..ROWS).flat_map(|row| area.samples(row)) {
                sample.store(0, Relaxed);
            }
            begin(area, after(NOTHING, order));
        }
        area.counting.obeyed.store(order, Release);
    }
    if area.closed.load(Acquire) != 0 {
        // It shall come here no more, nor to a counter.
        area.counting.stage.store(NOTHING, Relaxed);
    }
    link(area);
}

fn begin(area: &Area, stage: u32) {
    match stage {
        PLAIN => area.counting.laps[0].store(FEW, Relaxed),
        ABOARD => area.counting.laps[1].store(FEW, Relaxed),
        _ => {}
    }
    area.counting.stage.store(stage, Relaxed);
    area.counting.taken.store(0, Relaxed);
    area.counting.stage_began.store(ticks(), Relaxed);
}

/// Puts in the counters of the present stage, if there is one. Under the lock.
fn link(area: &Area) {
    let (front, back) = (area.front(), area.back());
    let code = |counter: &Context, at: unsafe extern "C" fn()| {
        counter.rip.store(at as *const () as u64, Relaxed);
    };
    match area.counting.stage.load(Relaxed) {
        NOTHING => return,
        _ if area.counting.no_clock.load(Relaxed) != 0 => return finish(area),
        PLAIN | SITE => {
            code(
                back,
                if area.counting.stage.load(Relaxed) == SITE { gleaner_site_timed } else { gleaner_timed },
            );
            links::append(area, back);
        }
        ABSENCE => {
            if links::first(area) == area.own().pointer() {
                return finish(area);
            }
            code(front, gleaner_away);
            links::insert(area, front, links::first(area));
            code(back, gleaner_timed);
            links::append(area, back);
        }
        STAY => {
            let suspect = area.orders.suspect();
            if !links::holds(area, suspect) {
                return finish(area);
            }
            code(front, gleaner_away);
            links::insert(area, front, suspect);
            // SAFETY: contexts of a ring are alive.
            let behind = unsafe { &*suspect }.next.load(Relaxed);
            code(back, gleaner_timed);
            links::insert(area, back, behind);
        }
        _ => {
            code(back, gleaner_count);
            links::append(area, back);
        }
    }
    // The branch predictor learns first: a lap that did not begin behind a resumption is no sample.
    area.counting.resumed.store(0, Relaxed);
    area.counting.away.store(0, Relaxed);
    start_lap(area);
}

/// Sets after how many yields the counter ends the lap.
fn start_lap(area: &Area) {
    match area.counting.stage.load(Relaxed) {
        PLAIN => pass(area, i64::from(area.counting.laps[0].load(Relaxed)) - 1),
        _ => area.counting.count.store(area.counting.laps[1].load(Relaxed), Relaxed),
    }
}

/// After a first lap of `ticks`: whether laps get longer, so that it was no sample.
fn lengthen(area: &Area, stage: u32, ticks: u64) -> bool {
    let (which, laps, most) = match stage {
        PLAIN => (0, SOLO_LAPS, MANY),
        ABOARD => (1, GUEST_LAPS, area.counting.laps[0].load(Relaxed)),
        _ => return false,
    };
    let lap = area.counting.laps[which].load(Relaxed);
    let part = area.orders.stage_ticks() / laps;
    let wanted = (part.saturating_mul(lap as u64) / ticks.max(1)).min(most as u64) as i32;
    // Near enough is a sample.
    let longer = wanted > lap + lap / 2;
    if longer {
        area.counting.laps[which].store(wanted, Relaxed);
    }
    longer
}

fn finish(area: &Area) {
    area.counting.stage.store(NOTHING, Relaxed);
    area.counting.done.store(area.counting.obeyed.load(Relaxed), Release);
}

/// A counter was reached at tick `now`. Returns the context to go on with.
pub(crate) extern "C" fn counted(area: &'static Area, now: u64) -> *mut Context {
    let stage = area.counting.stage.load(Relaxed);
    let next = area.back().next.load(Relaxed);
    let since =
        if matches!(stage, ABSENCE | STAY | SITE) { &area.counting.away } else { &area.counting.resumed }
            .load(Relaxed);
    let mut taken = area.counting.taken.load(Relaxed) as usize;
    let timed = area.counting.no_clock.load(Relaxed) == 0;
    let gone = now.saturating_sub(since);
    let longer = timed && since != 0 && taken == 0 && lengthen(area, stage, gone);
    if timed && since != 0 && taken < SAMPLES && !longer {
        taken += 1;
        area.counting.taken.store(taken as u32, Relaxed);
        let page = area.region().page();
        if stage == SITE {
            count_outcome(page, area.counting.last_yield.load(Relaxed), gone < area.orders.soon_ticks());
        } else {
            let sample = u32::try_from(gone).unwrap_or(u32::MAX).max(1);
            area.samples(row_of(stage))[taken - 1].store(sample, Relaxed);
        }
        if stage == ABSENCE {
            tell_absence(page, gone);
        }
    }
    let spent = now.saturating_sub(area.counting.stage_began.load(Relaxed));
    let limit = area.orders.stage_ticks();
    // Where yields are rare, one sample is worth waiting for.
    if !timed || taken >= SAMPLES || spent > if taken == 0 { 8 * limit } else { limit } {
        advance(area);
    }
    if stage == SITE {
        // From yield to yield, this one included: its cache line is on its way meanwhile.
        area.counting.last_yield.store(area.own().rip.load(Relaxed), Relaxed);
        area.counting.away.store(now, Relaxed);
    }
    start_lap(area);
    area.counting.resumed.store(ticks(), Relaxed);
    next
}

/// Counts the outcome of a yield. Where there are too many yields for the table, some are left out.
fn count_outcome(page: &Control, resume: u64, soon: bool) {
    for at in site_rows(resume) {
        let row = &page.site[at % SITES];
        let there = row.resume.compare_exchange(0, resume, Relaxed, Relaxed);
        if there.is_ok() || there == Err(resume) {
            row.outcomes.fetch_add(1, Relaxed);
            row.soon.fetch_add(u64::from(soon), Relaxed);
            return;
        }
    }
}

/// To the next stage, if the ring may be changed now; else at the next occasion.
pub(crate) fn advance(area: &'static Area) {
    if area.lock.compare_exchange(lock::FREE, lock::THREAD, AcqRel, Relaxed).is_err() {
        return;
    }
    unlink(area);
    match after(area.counting.stage.load(Relaxed), area.counting.obeyed.load(Relaxed)) {
        NOTHING => finish(area),
        stage => {
            begin(area, stage);
            link(area);
        }
    }
    area.lock.store(lock::FREE, Release);
}

// Entered as every context is: rax and CUR are it, everything else is dead. They end in the tail of
// `switch`.
global_asm!(
    ".globl gleaner_count",
    ".hidden gleaner_count",
    "gleaner_count:",
    "sub dword ptr gs:[{COUNT}], 1",
    "jle gleaner_timed",
    "mov rax, [rax + {NEXT}]",
    "jmp gleaner_tail",
    "",
    // The last site's load must be complete: else its miss is taken for that of a later site, whose
    // yield waits for it.
    ".globl gleaner_site_timed",
    ".hidden gleaner_site_timed",
    "gleaner_site_timed:",
    "lfence",
    ".globl gleaner_timed",
    ".hidden gleaner_timed",
    "gleaner_timed:",
    "nop", // a fault where a context begins would be taken for the program's
    "rdtsc",
    "shl rdx, 32",
    "lea rsi, [rax + rdx]",
    "mov rsp, gs:[{SLOW_STACK}]",
    "mov rdi, gs:[{SELF}]",
    "call {counted}",
    "jmp gleaner_tail",
    "",
    ".globl gleaner_away",
    ".hidden gleaner_away",
    "gleaner_away:",
    "mov rbx, [rax + {NEXT}]",
    // What the primary waits for since its last turn shall have come: guests run ahead of that, and
    // the clock is read ahead, so an absence would never be shorter than a miss.
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov gs:[{AWAY}], rax",
    "mov rax, rbx",
    "jmp gleaner_tail",
    NEXT = const c::NEXT, SELF = const a::SELF,
    COUNT = const offset_of!(Area, counting.count), AWAY = const offset_of!(Area, counting.away),
    SLOW_STACK = const offset_of!(Area, switching.slow_stack),
    counted = sym counted,
);

// SAFETY: labels of the assembly above; only their addresses are taken.
unsafe extern "C" {
    fn gleaner_count();
    fn gleaner_timed();
    fn gleaner_site_timed();
    fn gleaner_away();
    fn gleaner_turned();
}

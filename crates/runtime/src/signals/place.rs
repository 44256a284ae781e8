//! Where a signal hit a thread of the primary, and what has to be kept of it.
//!
//! Inserted code is looked at instruction by instruction here: from the moment in which a context
//! is wholly saved until its first instruction after the switch, there is nothing to capture and
//! the registers mean nothing.

use crate::layout::area::{Area, XSAVE, XSAVE_SIZE};
use crate::layout::context::Context;
use crate::signals::forward::{self, stands};
use crate::signals::frame::{RSP, Registers, UserContext, VectorSize};
use crate::switching::labels;
use crate::switching::redirect;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptedAt {
    /// The program's own code runs, possibly in a handler.
    Program,
    /// The program is at its yield; the context that ran is saved, or had not begun.
    Yield,
    /// A guest runs.
    Guest,
    /// The runtime is at work on the ring.
    Runtime,
}

/// `mov gs:[CUR], rax`: the context that yields is saved.
const STORE_CUR: [u8; 9] = [0x65, 0x48, 0x89, 0x04, 0x25, 0x08, 0, 0, 0];
/// `jmp [rax + RIP]`: the context in rax is not begun.
const JUMP: [u8; 3] = [0xff, 0x60, 0x08];

/// Flags of the processor's that are no part of a program's state.
const TRAP: u64 = 0x100;
const RESUME: u64 = 0x10000;

/// # Safety
/// `registers` must be what the kernel saved of this thread; unless it `faulted`, its instruction
/// was fetched.
pub(super) unsafe fn of(area: &Area, registers: &Registers, faulted: bool) -> InterruptedAt {
    let cur = area.twin.cur.load(Acquire);
    let own = area.own();
    let rip = registers.rip;
    if area.signals.at_yield.swap(0, Relaxed) != 0 {
        return InterruptedAt::Yield;
    }
    if cur == area.quiet().pointer() {
        return InterruptedAt::Program;
    }
    // SAFETY: the caller's.
    let is = |bytes: &[u8]| !faulted && unsafe { stands(rip, bytes) };
    let begun = !(labels::is_tail(rip as usize)
        || is(&STORE_CUR)
        || registers.rax == cur as u64 && is(&JUMP)
        // SAFETY: contexts are never unmapped.
        || rip == unsafe { &*cur }.rip.load(Acquire) && registers.rax == cur as u64);
    if !begun {
        return InterruptedAt::Yield;
    }
    let ours = labels::is_ours(rip as usize);
    if ours && labels::is_restore(rip as usize) {
        // SAFETY: as above. Its frame is whole still, but it may have put its own resume point back
        // already.
        unsafe { &*cur }.rip.store(labels::restore_address() as u64, Release);
        return InterruptedAt::Yield;
    }
    if cur == own.pointer() {
        return InterruptedAt::Program;
    }
    if ours || cur == area.control().pointer() { InterruptedAt::Runtime } else { InterruptedAt::Guest }
}

/// Puts a guest that was on its way from a leave to another module back in front of what follows
/// the leave.
///
/// # Safety
/// The context that runs must be that guest ([`labels::is_across`]).
pub(super) unsafe fn before_across(area: &Area, registers: &mut Registers) {
    // SAFETY: the caller's; contexts are never unmapped.
    let frame = unsafe { &*area.twin.cur.load(Acquire) }.home().frame();
    for (number, general) in frame.general.iter().enumerate() {
        *registers.at(number as u8) = general.load(Relaxed);
    }
    registers.rip = frame.rip.load(Relaxed);
    registers.flags = frame.flags.load(Relaxed);
}

/// Whether a thread of a scavenger is at its yield: on its way to where it parks or back, with the
/// own context saved and signals let in. One that was captured whole is made to begin anew with its
/// restoring.
///
/// # Safety
/// `registers` must be what the kernel saved of the area's thread.
pub(super) unsafe fn is_at_yield_at_home(area: &Area, registers: &Registers) -> bool {
    let within =
        |[from, to]: [&AtomicU64; 2]| (from.load(Relaxed)..to.load(Relaxed)).contains(&registers.rip);
    let (own, region) = (area.own(), area.region());
    let cur = area.twin.cur.load(Relaxed);
    if cur == own.pointer() && within([&region.restore, &region.restore_end]) {
        // It may have put its own resume point back already.
        own.rip.store(region.restore.load(Relaxed), Release);
        return true;
    }
    // The hook was followed: there is an instruction, since no fault there comes with such a
    // context.
    let hooked = area.control().pointer();
    // SAFETY: as said.
    let follows = cur == hooked && registers.rax == hooked as u64 && unsafe { stands(registers.rip, &JUMP) };
    follows || within(area.thread.parks.each_ref())
}

/// A note of registers in front of the place where a yield goes on, as `docs/harvest-abi.md` has
/// it: behind the jump that switches.
#[repr(C, packed)]
struct SunkNote {
    jump: [u8; 3],
    test: u8,
    registers: u32,
    load: [u8; 3],
    from: i32,
    load_again: [u8; 3],
    to: i32,
}

/// Bytes that a note may speak of, and more.
const NEAR: u64 = 0x10000;

/// Which registers a guest at `rip`, whose last yield went on at `yielded`, may have in their slots
/// alone.
///
/// # Safety
/// There must be code of a twin there, or not so near.
unsafe fn left(yielded: u64, rip: u64) -> u32 {
    if yielded.abs_diff(rip) > NEAR {
        return 0;
    }
    // SAFETY: in front of the place where a yield goes on lies its switch, which is longer.
    let note = unsafe { ((yielded as usize - size_of::<SunkNote>()) as *const SunkNote).read() };
    let load = [0x48, 0x8d, 0x05];
    if note.jump != JUMP || note.test != 0xa9 || note.load != load || note.load_again != load {
        return 0;
    }
    let (from, to) = (i64::from(note.from), i64::from(note.to));
    let from = yielded.wrapping_sub(7).wrapping_add_signed(from);
    let to = yielded.wrapping_add_signed(to);
    if (from..to).contains(&rip) { note.registers } else { 0 }
}

/// Keeps all of a guest's state, so that it goes on by `restore`.
///
/// # Safety
/// The context must be the guest that was interrupted.
pub(super) unsafe fn capture(area: &Area, guest: &Context, context: &UserContext) {
    let home = guest.home();
    let frame = home.frame();
    let registers = &context.registers;
    // SAFETY: the guest came from its yield, and has not come to another one.
    let left = unsafe { left(redirect::goes_on(guest), registers.rip) };
    for (number, (to, from)) in frame.general.iter().zip(registers.general()).enumerate() {
        // SAFETY: the guest does not run, and no other thread uses its slots.
        let from = if left >> number & 1 == 1 { unsafe { forward::slot(guest, number as u8) } } else { from };
        // The context that it was about to go on with is not next to it any more where it goes on:
        // so it goes on with itself.
        let next = number != RSP && area.region().is_context(from) && from != guest.pointer() as u64;
        to.store(if next { guest.pointer() as u64 } else { from }, Relaxed);
    }
    frame.rip.store(registers.rip, Relaxed);
    frame.flags.store(registers.flags & !(TRAP | RESUME), Relaxed);
    for (to, from) in frame.scratch.iter().zip(&area.twin.scratch) {
        to.store(from.load(Relaxed), Relaxed);
    }
    let image = (home.address() + XSAVE) as *mut u8;
    // SAFETY: the kernel's image, into ours, which is large enough for all the processor has.
    unsafe {
        let size = VectorSize::of(registers.vectors).image.min(XSAVE_SIZE);
        core::ptr::copy_nonoverlapping(registers.vectors, image, size);
        let header = image.add(512).cast::<u64>();
        if size == 512 {
            header.write(3); // x87 and SSE are all there is
            header.add(1).write(0);
        }
    }
    frame.yield_rip.store(redirect::goes_on(guest), Relaxed);
    guest.rip.store(labels::restore_address() as u64, Release);
}

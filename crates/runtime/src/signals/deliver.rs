//! Builds the frame of a handler of the primary's, as the kernel would have built it without
//! guests.

use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::signals::action::{SA_NODEFER, SA_ONSTACK, bit};
use crate::signals::forward;
use crate::signals::frame::{
    Interrupted, InterruptedLoads, RSP, Registers, SS_ONSTACK, SignalFrame, SignalInfo, UserContext,
    VectorSize,
};
use crate::switching::labels;
use crate::switching::redirect;
use crate::sys::SigAction;
use core::sync::atomic::Ordering::{Relaxed, Release};
use runtime_abi::context;

const RED_ZONE: u64 = 128;
/// Direction, trap, resume: as a handler begins.
const FLAGS_CLEARED: u64 = 0x400 | 0x100 | 0x10000;

/// Makes registers those of a program at its yield, behind its loads from the slots.
///
/// # Safety
/// The own context must be saved, and no other thread may use it.
pub(super) unsafe fn at_yield(area: &Area, registers: &mut Registers) {
    let own = area.own();
    registers.rip = redirect::goes_on(own);
    // One that was captured as a guest: its registers are where they were put then.
    let captured = registers.rip == area.region().restore.load(Relaxed);
    for number in 0..16 {
        *registers.at(number) = if captured {
            area.frame().general[usize::from(number)].load(Relaxed)
        } else {
            // SAFETY: the caller's.
            unsafe { forward::slot(own, number) }
        };
    }
    registers.rsp = stack_of(area, captured);
    registers.rax = own.pointer() as u64;
    registers.flags &= !FLAGS_CLEARED;
    area.twin.cur.store(own.pointer(), Release);
    if !captured {
        // SAFETY: the place where the program's yield goes on; the rest is the caller's.
        unsafe { forward::to_the_end_of_loads(area, registers) };
    }
}

/// The stack pointer of a program at its yield, also if it was captured there.
fn stack_of(area: &Area, captured: bool) -> u64 {
    if captured { area.frame().general[RSP].load(Relaxed) } else { area.own().rsp.load(Relaxed) }
}

/// The stack pointer of a scavenger that is home again, and has not gone on.
pub(crate) fn stack_at_home(area: &Area) -> u64 {
    stack_of(area, redirect::goes_on(area.own()) == area.region().restore.load(Relaxed))
}

/// Behind a switch back rax holds the context until the last load. For a handler it is made what
/// the program has there; afterwards [`go_on_loading`].
///
/// # Safety
/// The own context must run, and no other thread may use its slots.
pub(super) unsafe fn show_rax(area: &Area, registers: &mut Registers) -> Option<InterruptedLoads> {
    let own = area.own();
    if registers.rax != own.pointer() as u64 {
        return None;
    }
    let captured = registers.rip == area.region().restore.load(Relaxed);
    registers.rax = if captured {
        area.frame().general[0].load(Relaxed)
    } else {
        // SAFETY: the caller's.
        unsafe { forward::slot(own, 0) }
    };
    Some(InterruptedLoads { rip: registers.rip })
}

/// The handler has returned, and what it changed is in the slots. If it did not choose another
/// place to go on, the loads do.
pub(super) fn go_on_loading(area: &Area, registers: &mut Registers, loading: Option<InterruptedLoads>) {
    if loading.is_some_and(|loading| loading.rip == registers.rip) {
        registers.rax = area.own().pointer() as u64;
    }
}

/// In the midst of inserted code, what the program has in a register may stand in a slot (or in
/// scratch) and nowhere else. Collectors that stop threads by a signal look for it on the stack,
/// from the handler's frame on. So it lies there, too.
pub(super) fn held(area: &Area) -> [u64; 16] {
    // SAFETY: read only, and slots are the own context's; only this thread writes them meanwhile.
    core::array::from_fn(|number| unsafe { forward::slot(area.own(), number as u8) })
}

/// Lets the kernel's frame return into the program's handler.
///
/// # Safety
/// `context` and `info` must be those of the kernel's frame, on the signal stack, `context` with
/// the program's registers. `amid` says whether it was in the midst of a yield before they were
/// made that.
pub(super) unsafe fn into_handler(
    area: &Area,
    action: &SigAction,
    context: &mut UserContext,
    info: &SignalInfo,
    amid: bool,
) {
    let stack = area.signals.program_stack();
    let interrupted = context.registers.rsp;
    let interrupted_general = context.registers.general();
    let runs = area.twin.cur.load(Relaxed) == area.own().pointer();
    // SAFETY: it runs here, if it does.
    let loading = if runs { unsafe { show_rax(area, &mut context.registers) } } else { None };
    let shown_general = context.registers.general();
    let on_stack = stack.holds(interrupted);
    let alternative = action.flags & SA_ONSTACK != 0 && stack.size > 0 && !on_stack;
    let top = if alternative { stack.top() } else { interrupted - RED_ZONE };
    // SAFETY: the kernel's frame; and the program's stack below what it uses, or its signal stack,
    // is its to be written to. If there is no space, this faults with SIGSEGV blocked, and the
    // kernel ends the process by it, as it does when it finds no space.
    unsafe {
        let vectors = context.registers.vectors;
        let size = VectorSize::of(vectors).whole;
        let copy = ((top - size as u64) & !63) as *mut u8;
        core::ptr::copy_nonoverlapping(vectors, copy, size);
        let at = ((copy as u64 - size_of::<SignalFrame>() as u64) & !15) - 8;
        let frame = at as *mut SignalFrame;
        let mut shown = *context;
        shown.registers.vectors = copy;
        shown.stack = stack;
        if on_stack {
            shown.stack.flags |= SS_ONSTACK;
        }
        frame.write(SignalFrame {
            return_to: labels::signal_return_address(),
            context: shown,
            info: *info,
            ours: Interrupted {
                cur: area.twin.cur.load(Relaxed) as usize,
                scratch: core::array::from_fn(|i| area.twin.scratch[i].load(Relaxed)),
                general: shown_general,
                slots: held(area),
                loading,
            },
        });
        let registers = &mut context.registers;
        registers.rip = action.handler as u64;
        registers.rsp = at;
        registers.rdi = info.signal as u64;
        registers.rsi = &raw const (*frame).info as u64;
        registers.rdx = &raw const (*frame).context as u64;
        registers.rax = 0;
        registers.flags &= !FLAGS_CLEARED;
    }
    // In a handler inside a handler, what the outer one interrupted counts.
    if area.twin.cur.load(Relaxed) != area.quiet().pointer() {
        let holds =
            amid || interrupted_general.iter().any(|register| area.region().holds_context(area, *register));
        area.signals.free_hands.store(u32::from(!holds), Relaxed);
    }
    let own_bit = if action.flags & SA_NODEFER == 0 { bit(info.signal) } else { 0 };
    context.mask |= action.mask | own_bit;
    area.twin.cur.store(area.quiet().pointer(), Release);
}

/// A handler has returned: its frame is about to be given back to the kernel.
///
/// # Safety
/// It must be a frame of [`into_handler`].
pub(crate) unsafe extern "C" fn handler_returned(frame: *mut SignalFrame) {
    // SAFETY: the caller's; the thread has an area, since its frame was built here.
    let (frame, area) = unsafe { (&mut *frame, crate::switching::gs::area()) };
    // The kernel takes the signal stack from the frame: ours stays.
    frame.context.stack = area.signal_stack();
    for (to, from) in area.twin.scratch.iter().zip(frame.ours.scratch) {
        to.store(from, Relaxed);
    }
    if frame.ours.cur == area.own().pointer() as usize {
        // SAFETY: the own context of the calling thread, which runs no yield now.
        unsafe { into_slots(area.own(), &frame.ours.general, &frame.context.registers.general()) };
        go_on_loading(area, &mut frame.context.registers, frame.ours.loading);
    }
    area.twin.cur.store(frame.ours.cur as *mut crate::layout::context::Context, Release);
}

/// What a handler changed in its frame reaches the context's slots too, for the next yield may load
/// it from there without having stored it. The others are left as they are: the handler may have
/// come in the midst of a yield.
///
/// # Safety
/// No other thread may use the context's slots meanwhile.
pub(super) unsafe fn into_slots(own: &Context, before: &[u64; 16], after: &[u64; 16]) {
    for (number, (before, after)) in before.iter().zip(after).enumerate() {
        if before == after {
            continue;
        }
        if number == RSP {
            own.rsp.store(*after, Relaxed);
        } else {
            // SAFETY: slots lie in front of a context's address; the rest is the caller's.
            unsafe {
                own.pointer().byte_offset(context::slot(number as u8) as isize).cast::<u64>().write(*after);
            }
        }
    }
}

//! The one handler that the kernel knows.

use crate::counting::count;
use crate::layout::area::{Area, kind};
use crate::layout::context::Context;
use crate::layout::region::{AreaPurpose, TO_COME};
use crate::signals::action::{self, DEFAULT, FAULT_MASK, FAULTS, IGNORE, SA_RESETHAND, SIGTRAP, bit};
pub(crate) use crate::signals::deliver::handler_returned;
use crate::signals::deliver::{at_yield, go_on_loading, held, into_handler, into_slots, show_rax};
use crate::signals::forward;
use crate::signals::frame::{SignalInfo, UserContext};
use crate::signals::place::{self, InterruptedAt};
use crate::switching::gs;
use crate::switching::labels;
use crate::switching::links;
use crate::switching::loans::{self, VisitEnd};
use crate::sys::{self, SigAction};
use core::sync::atomic::Ordering::{Relaxed, Release};
use runtime_abi::control::trip;

/// The kernel's registration of ours, with what the program asked the kernel to do.
pub(crate) fn registration(flags: u64, mask: u64) -> SigAction {
    SigAction {
        handler: on_signal as *const () as usize,
        flags: flags | action::SA_SIGINFO | action::SA_RESTORER,
        restorer: labels::restorer_address(),
        mask,
    }
}

/// Sets up a thread of the primary: its signal stack, and that faults get through.
pub(crate) fn begin_thread(area: &Area) {
    let stack = area.signal_stack();
    // SAFETY: the kernel reads one `stack_t`; the memory is the slot's.
    unsafe { sys::syscall(sys::nr::SIGALTSTACK, [&raw const stack as usize, 0, 0, 0, 0, 0]) };
    sys::set_signal_mask(sys::set_signal_mask(u64::MAX) & !FAULT_MASK);
}

/// Sets up a thread of a scavenger: where it is parked it lets in what comes to us.
pub(crate) fn begin_home(area: &Area) {
    area.thread.wrapped.store(core::ptr::from_ref(action::wrapped()).cast_mut(), Release);
}

/// Sets up the primary: ours for faults, whatever the program will want.
pub(crate) fn begin_process() {
    for signal in FAULTS {
        let mut before = SigAction::default();
        // SAFETY: our handler is one.
        unsafe {
            sys::sigaction(signal, None, Some(&mut before));
            action::set(signal, &before, true);
            sys::sigaction(signal, Some(&registration(action::SA_ONSTACK, u64::MAX)), None);
        }
    }
}

/// # Safety
/// For the kernel only.
unsafe extern "C" fn on_signal(signal: i32, info: &SignalInfo, context: &mut UserContext) {
    // SAFETY: it is only registered in processes whose threads have areas.
    let area = unsafe { gs::area() };
    // SAFETY: what the kernel passed.
    unsafe {
        if area.is_primarys() {
            in_primary(area, signal, info, context);
        } else {
            at_home(area, signal, info, context);
        }
    }
}

/// # Safety
/// With what the kernel passed to a handler, in a scavenger.
unsafe fn at_home(area: &Area, signal: i32, info: &SignalInfo, context: &mut UserContext) {
    let action = action::get(signal);
    if action.handler <= IGNORE {
        // The program changed its mind between the kernel's decision and ours.
        return;
    }
    let [from, to] = [0, 1].map(|end| area.thread.sleeps[end].load(Relaxed));
    if from != 0 && sys::gettid() == area.tid.load(Relaxed) {
        // Parked: the program is elsewhere, and is fetched. No other comes until then, but one may
        // have come in the midst of this.
        sys::set_signal_mask(u64::MAX);
        if area.switching.deferred.load(Relaxed) == 0 {
            put_off(area, info, context.mask);
        } else {
            send_again(info);
        }
        context.mask = u64::MAX;
        if (from..to).contains(&context.registers.rip) {
            context.registers.rip = to;
        }
        return;
    }
    reset_if_once(area, signal, &action);
    // SAFETY: the program's handler; it may take one argument or three.
    let handler: unsafe extern "C" fn(i32, *const SignalInfo, *mut UserContext) =
        unsafe { core::mem::transmute(action.handler) };
    let its_own = sys::gettid() == area.tid.load(Relaxed);
    // SAFETY: the kernel's registers, of the area's thread.
    if its_own && unsafe { place::is_at_yield_at_home(area, &context.registers) } {
        // It goes on there when the handler returns: with its registers, which handlers look at. If
        // it was about to park, it is hooked still, and does at its next yield. SAFETY: the own
        // context is saved, and no other thread uses it.
        unsafe { at_yield(area, &mut context.registers) };
    }
    if !its_own {
        // A thread that has no area yet, and its creator's in GS.
        // SAFETY: as above.
        with_an_area(area, || unsafe { handler(signal, info, context) });
        return;
    }
    let scratch: [u64; 3] = core::array::from_fn(|i| area.twin.scratch[i].load(Relaxed));
    let cur = area.twin.cur.swap(area.quiet().pointer(), Relaxed);
    let ours = cur == area.own().pointer();
    if ours && (info.code <= 0 || !FAULTS.contains(&signal)) {
        // SAFETY: the kernel's registers, and the own context runs here.
        unsafe { forward::to_the_end_of_loads(area, &mut context.registers) };
    }
    // SAFETY: as above.
    let loading = if ours { unsafe { show_rax(area, &mut context.registers) } } else { None };
    let before = context.registers.general();
    let on_stack = core::hint::black_box((held(area), scratch));
    // SAFETY: as above.
    unsafe { handler(signal, info, context) };
    core::hint::black_box(&on_stack);
    if ours {
        // SAFETY: the own context of the calling thread, which runs no yield now.
        unsafe { into_slots(area.own(), &before, &context.registers.general()) };
        go_on_loading(area, &mut context.registers, loading);
    }
    for (to, from) in area.twin.scratch.iter().zip(scratch) {
        to.store(from, Relaxed);
    }
    area.twin.cur.store(cur, Relaxed);
}

/// A handler that is asked for once only is so no more. Ours stays in a primary, for the faults of
/// its guests.
fn reset_if_once(area: &Area, signal: i32, action: &SigAction) {
    if action.flags & SA_RESETHAND != 0 {
        let stays = FAULTS.contains(&signal) && area.is_primarys();
        action::set(signal, &SigAction { handler: DEFAULT, ..*action }, stays);
        if !stays {
            // SAFETY: the default is no code of ours.
            unsafe { sys::sigaction(signal, Some(&SigAction::default()), None) };
        }
    }
}

/// # Safety
/// With what the kernel passed to a handler, in a primary.
unsafe fn in_primary(area: &'static Area, signal: i32, info: &SignalInfo, context: &mut UserContext) {
    // Sent signals have a code that is not positive.
    let faulted = FAULTS.contains(&signal) && info.code > 0;
    // Told without a system call: a program that has forbidden itself most of them may have guests
    // that fault.
    let here = 0_u8;
    let lent = area.thread.lent.load(Relaxed) != 0;
    if !lent && !area.signal_stack().holds(&raw const here as u64) {
        // SAFETY: the caller's.
        unsafe { by_itself(area, signal, info, context, faulted) };
        return;
    }
    let place = if lent {
        InterruptedAt::Program
    } else if labels::is_across(context.registers.rip as usize) {
        // SAFETY: the guest that leaves is the context that runs.
        unsafe { place::before_across(area, &mut context.registers) };
        InterruptedAt::Guest
    } else {
        // SAFETY: the kernel's registers.
        unsafe { place::of(area, &context.registers, faulted) }
    };
    let cur = area.twin.cur.load(Relaxed);
    let mut amid = place != InterruptedAt::Program;
    match place {
        InterruptedAt::Program if lent || faulted || cur != area.own().pointer() => {}
        InterruptedAt::Program => {
            amid = context.registers.rax == cur as u64;
            // SAFETY: the kernel's registers, and the own context runs here.
            unsafe { forward::to_the_end_of_loads(area, &mut context.registers) };
        }
        // SAFETY: the place says that the own context is saved, and this thread runs it.
        InterruptedAt::Yield => unsafe { at_yield(area, &mut context.registers) },
        InterruptedAt::Guest => {
            // SAFETY: CUR is the guest that was interrupted.
            let guest: &Context = unsafe { &*cur };
            // SAFETY: as above.
            unsafe { place::capture(area, guest, context) };
            if faulted {
                links::take_out(area, guest);
                // All signals wait meanwhile, for a fifth of a millisecond at most.
                if loans::visit(area, guest, trip::FAULT) == VisitEnd::None {
                    links::dismiss(guest, trip::FAULT);
                }
            }
            // SAFETY: the program is at its yield while a guest runs.
            unsafe { at_yield(area, &mut context.registers) };
            if faulted {
                return;
            }
        }
        InterruptedAt::Runtime if faulted && count::pass_over_clock(area, &mut context.registers) => return,
        InterruptedAt::Runtime if faulted => {
            sys::write(2, b"gleaner: the harvest runtime faulted; please report this\n");
            die(signal, info, true);
            return;
        }
        InterruptedAt::Runtime => {
            put_off(area, info, context.mask);
            context.mask = !FAULT_MASK;
            return;
        }
    }
    // SAFETY: the context has the program's registers now.
    unsafe { to_program(area, signal, info, context, faulted, amid) };
}

/// A thread that has no area yet, and its creator's in GS, which its creator works with.
///
/// # Safety
/// As [`in_primary`].
unsafe fn by_itself(
    area: &'static Area,
    signal: i32,
    info: &SignalInfo,
    context: &mut UserContext,
    faulted: bool,
) {
    let action = action::get(signal);
    match action.handler {
        IGNORE if !faulted => {}
        handler if handler <= IGNORE => die(signal, info, !faulted || signal == SIGTRAP),
        handler => {
            reset_if_once(area, signal, &action);
            // SAFETY: the program's handler; it may take one argument or three.
            let handler: unsafe extern "C" fn(i32, *const SignalInfo, *mut UserContext) =
                unsafe { core::mem::transmute(handler) };
            // SAFETY: as above.
            let mut call = || unsafe { handler(signal, info, context) };
            if sys::gettid() == area.tid.load(Relaxed) {
                // It may have been interrupted before a computed jump.
                let scratch: [u64; 3] = core::array::from_fn(|i| area.twin.scratch[i].load(Relaxed));
                call();
                for (to, from) in area.twin.scratch.iter().zip(scratch) {
                    to.store(from, Relaxed);
                }
            } else {
                with_an_area(area, call);
            }
        }
    }
}

/// Its creator works with its area meanwhile, and may have guests there; code of scavengers finds
/// its thread's storage by its area, too. So a handler has one for itself while it runs.
fn with_an_area(creators: &Area, call: impl FnOnce()) {
    let region = creators.region();
    let purpose = AreaPurpose {
        kind: kind::CLAIMED,
        primary: creators.is_primarys(),
        row: creators.row.load(Relaxed),
        pid: sys::getpid(),
        tid: TO_COME,
        fs: gs::fs_base(),
    };
    let area = region.claim_in_time(&purpose);
    area.twin.cur.store(area.quiet().pointer(), Relaxed);
    // SAFETY: an area of its own, which stays until the handler is done; then that which was there
    // before.
    unsafe {
        gs::set_base(area.address());
        call();
        gs::set_base(creators.address());
    }
    region.give_back(area);
}

/// # Safety
/// As [`into_handler`].
unsafe fn to_program(
    area: &Area,
    signal: i32,
    info: &SignalInfo,
    context: &mut UserContext,
    faulted: bool,
    amid: bool,
) {
    let action = action::get(signal);
    let blocked = area.signals.blocked_faults() & bit(signal) != 0;
    match action.handler {
        IGNORE if !faulted => {}
        handler if handler <= IGNORE || faulted && blocked => {
            // A fault comes again when its instruction does; what is not tied to one is sent again.
            die(signal, info, !faulted || signal == SIGTRAP);
        }
        _ => {
            reset_if_once(area, signal, &action);
            // SAFETY: the caller's.
            unsafe { into_handler(area, &action, context, info, amid) };
        }
    }
}

/// Sends the calling thread a signal that came for it before.
fn send_again(info: &SignalInfo) {
    const RT_TGSIGQUEUEINFO: usize = 297;
    let (pid, tid) = (sys::getpid() as usize, sys::gettid() as usize);
    let from = core::ptr::from_ref(info) as usize;
    // SAFETY: the kernel reads one `siginfo_t`.
    unsafe { sys::syscall(RT_TGSIGQUEUEINFO, [pid, tid, info.signal as usize, from, 0, 0]) };
}

/// Keeps a signal until the runtime is done.
fn put_off(area: &Area, info: &SignalInfo, mask: u64) {
    area.signals.keep(info, mask);
    area.switching.deferred.store(1, Release);
}

/// A signal came for a thread of a scavenger while it was parked. All are blocked; it comes when
/// they are not.
pub(crate) fn send_put_off(area: &Area) {
    if area.switching.deferred.swap(0, Relaxed) != 0 {
        send_again(&area.signals.what_was_put_off().0);
    }
}

/// Lets the signal's default happen once the handler has returned.
fn die(signal: i32, info: &SignalInfo, again: bool) {
    // SAFETY: the default is no code of ours.
    unsafe { sys::sigaction(signal, Some(&SigAction::default()), None) };
    if again {
        send_again(info);
    }
}

/// A signal was put off while the runtime was at work; now the program is at its yield. Does not
/// come back if it has a handler.
pub(crate) fn catch_up(area: &'static Area) {
    let (info, mask) = area.signals.what_was_put_off();
    let own = area.own().pointer();
    let cur = area.twin.cur.swap(own, Relaxed);
    area.signals.at_yield.store(1, Release);
    send_again(&info);
    sys::set_signal_mask(mask);
    area.signals.at_yield.store(0, Relaxed);
    area.twin.cur.store(cur, Relaxed);
}

//! The clock in a process: its beginning, its threads and children, and its end.

use super::action::{self, SIGNALS};
use super::layout::kind;
use super::sample::{self, Record};
use super::{maps, state, timers};
use crate::layout::Region;
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Starts the clock in this process, for the calling thread; whether it runs.
///
/// # Safety
/// Only while it does not run, and not by two threads at a time. The region stays mapped.
pub unsafe fn begin(region: Region) -> bool {
    let Some(clock) = region.clock() else { return false };
    let Some(signal) = SIGNALS.into_iter().find(|&signal| action::take(signal)) else {
        clock.without_signal.fetch_add(1, Relaxed);
        return false;
    };
    let process = sys::process();
    // SAFETY: the caller's, see above.
    unsafe { state::begin(region, process, signal) };
    tell(kind::BEGAN, 0);
    add_thread();
    true
}

/// Stops the clock in this process. The handler stays: a signal may be on its way to a thread.
pub fn end() {
    if state::SIGNAL.swap(0, AcqRel) != 0 {
        timers::remove_all();
    }
}

/// Sets a timer for the calling thread.
pub(super) fn add_thread() {
    let Some(((clock, process), signal)) = state::clock().zip(state::signal()) else { return };
    if clock.is_over.load(Relaxed) != 0 {
        return;
    }
    let period_ns = clock.period_ns.load(Relaxed);
    if state::is_in_sandbox() || !timers::add_own(process, signal, period_ns) {
        clock.without_timer.fetch_add(1, Relaxed);
    }
}

/// In a forked child: timers are not inherited.
pub(crate) extern "C" fn forked() {
    if state::signal().is_none() {
        return;
    }
    let parent = state::forked(sys::process());
    timers::forget();
    maps::forget();
    tell(kind::FORKED, parent);
    add_thread();
}

/// The program wants our signal for itself.
pub(super) fn change_signal(wanted: u32) {
    let Some((clock, _)) = state::clock() else { return };
    if state::SIGNAL.load(Acquire) != wanted {
        return;
    }
    if let Some(signal) = SIGNALS.into_iter().find(|&signal| signal > wanted && action::take(signal)) {
        state::SIGNAL.store(signal, Relaxed);
        timers::change(signal, clock.period_ns.load(Relaxed));
    } else {
        clock.without_signal.fetch_add(1, Relaxed);
        end();
    }
}

fn tell(kind: u64, thread: u32) {
    if let Some((clock, process)) = state::clock() {
        let registers = &[0; super::layout::REGISTERS];
        let record = Record { kind, process, thread, overrun: 0, ticks: sys::ticks(), registers };
        sample::write(clock, &record);
    }
}

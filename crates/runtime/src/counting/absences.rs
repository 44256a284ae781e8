//! Absences of the primary, told to the launcher.

use crate::layout::area::Area;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, bucket};

/// Counts an absence of this length.
pub(super) fn tell_absence(page: &Control, ticks: u64) {
    page.absences[bucket(ticks)].fetch_add(1, Relaxed);
    page.longest_absence.fetch_max(ticks, Relaxed);
}

/// Guests had the thread for `ticks` in a busy-wait.
pub(super) fn absent(area: &Area, ticks: u64) {
    tell_absence(area.region().page(), ticks);
    let long = ticks > area.orders.absence_ticks();
    area.counting.long_turns.store(area.counting.long_turns.load(Relaxed) + u32::from(long), Relaxed);
    area.counting.all_turns.store(area.counting.all_turns.load(Relaxed).saturating_add(1), Relaxed);
}

//! Absences of the primary, told to the launcher.

use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, bucket};

/// Counts an absence of this length.
pub(super) fn tell_absence(page: &Control, ticks: u64) {
    page.absences[bucket(ticks)].fetch_add(1, Relaxed);
    page.longest_absence.fetch_max(ticks, Relaxed);
}

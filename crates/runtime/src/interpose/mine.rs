//! The area of the calling thread, for functions that are interposed.

use crate::layout::area::Area;
use crate::mappings::seen;
use crate::switching::gs;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// This process is part of a harvest: each of its threads finds an area in GS, its own or its
/// creator's. Written once, by the constructor; asked in place of the kernel, since a program may
/// have forbidden itself what asks it.
static TAKES_PART: AtomicBool = AtomicBool::new(false);

pub(crate) fn take_part() {
    TAKES_PART.store(true, Relaxed);
}

/// The area of the calling thread, if it is part of a harvest.
pub(super) fn mine() -> Option<&'static Area> {
    // SAFETY: the constructor has set, or found, an area in GS, and threads inherit it.
    TAKES_PART.load(Relaxed).then(|| unsafe { gs::area() })
}

/// The same, but not in a child that shares its parent's memory (`vfork`) and has signal handlers
/// and masks of its own.
pub(super) fn mine_for_signals() -> Option<&'static Area> {
    mine().filter(|area| area.thread.lent.load(Relaxed) == 0)
}

/// A thread of a scavenger whose libc brings an area for each thread that it makes
/// ([`crate::interpose::clones`]).
pub(super) fn brings_areas(area: &Area) -> bool {
    !area.is_primarys() && area.mappings().has_seen(seen::CLONES)
}

/// Two words, which are returned in rax and rdx.
#[repr(C)]
pub(crate) struct RegisterPair {
    pub(super) start: u64,
    pub(super) argument: u64,
}

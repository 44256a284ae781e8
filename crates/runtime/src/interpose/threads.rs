//! New threads get areas of their own, before any code of the program runs in them; and processes
//! that share the memory.

use crate::interpose::mine::{RegisterPair, brings_areas, mine};
use crate::interpose::next::{call_next, fail};
use crate::layout::area::{Area, closed, kind, settled};
use crate::layout::region::{AreaPurpose, TO_COME};
use crate::signals;
use crate::switching::gs;
use crate::switching::labels;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

const EAGAIN: i32 = 11;
const THRD_ERROR: i32 = 2;
pub(super) const CLONE_VM: i32 = 0x100;
pub(super) const CLONE_THREAD: i32 = 0x10000;

type Start = unsafe extern "C" fn();

/// Makes the area of a thread to come, which will call `start` with `argument`.
pub(super) fn area_for(creator: &'static Area, start: usize, argument: usize) -> Option<&'static Area> {
    let region = creator.region();
    let primary = creator.kind.load(Relaxed) == kind::PRIMARY;
    let purpose = AreaPurpose {
        kind: kind::CLAIMED,
        primary,
        row: creator.row.load(Relaxed),
        pid: sys::getpid(),
        tid: TO_COME,
        fs: 0,
    };
    let area = region.claim(&purpose)?;
    area.thread.start[0].store(start as u64, Relaxed);
    area.thread.start[1].store(argument as u64, Relaxed);
    area.signals.block_faults(creator.signals.blocked_faults());
    if primary
        && creator.closed.load(Relaxed) != 0
        && creator.pid.load(Relaxed) != region.primary.load(Relaxed)
    {
        area.closed.store(closed::FORKS, Relaxed); // a forked child has no supervisor
    }
    Some(area)
}

/// The area is for a process: it has signal handlers of its own, and may execute another program
/// any time.
pub(super) fn is_for_a_process(area: &Area) {
    area.thread.lent.store(1, Relaxed);
    area.closed.store(closed::FORKS, Relaxed);
    area.settled.store(settled::FOR_GOOD, Relaxed);
}

/// What a thread begins with: returns the program's function and its argument. Called on the
/// thread's own stack.
pub(crate) extern "C" fn begin(area: &'static Area) -> RegisterPair {
    // SAFETY: the area made for this thread; it stays until the thread is gone.
    unsafe { gs::set_base(area.address()) };
    let fs = gs::fs_base();
    area.own().fs.store(fs, Relaxed);
    area.quiet().fs.store(fs, Relaxed);
    let primary = area.is_primarys();
    if primary {
        signals::entry::begin_thread(area);
    } else {
        signals::entry::begin_home(area);
    }
    let tid = sys::gettid();
    area.region().supersede(tid, area);
    area.tid.store(tid, Relaxed);
    area.pid.store(sys::getpid(), Relaxed); // it may be a process, by clone()
    area.region().adopt(area, tid, if primary { kind::PRIMARY } else { kind::HOME });
    RegisterPair { start: area.thread.start[0].load(Relaxed), argument: area.thread.start[1].load(Relaxed) }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: usize,
    argument: usize,
) -> i32 {
    let Some(creator) = mine() else {
        return next_create(thread, attributes, start, argument);
    };
    if brings_areas(creator) {
        let result = next_create(thread, attributes, start, argument);
        super::handlers::take_over_libcs(creator);
        return result;
    }
    let Some(area) = area_for(creator, start, argument) else { return EAGAIN };
    let result = next_create(thread, attributes, labels::thread_start() as Start as usize, area.address());
    if result != 0 {
        area.region().give_back(area);
    }
    super::handlers::take_over_libcs(creator);
    result
}

fn next_create(thread: *mut c_void, attributes: *const c_void, start: usize, argument: usize) -> i32 {
    call_next!(c"pthread_create" as fn(*mut c_void, *const c_void, usize, usize) -> i32,
        (thread, attributes, start, argument), else EAGAIN)
}

/// Libc's `clone`: a thread or process that shares the memory needs an area.
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn clone(
    start: usize,
    stack: usize,
    flags: i32,
    argument: usize,
    parent_tid: usize,
    tls: usize,
    child_tid: usize,
) -> i32 {
    let next = |start: usize, argument: usize| {
        call_next!(c"clone" as fn(usize, usize, i32, usize, usize, usize, usize) -> i32,
            (start, stack, flags, argument, parent_tid, tls, child_tid), else fail(EAGAIN))
    };
    let Some(creator) = mine() else { return next(start, argument) };
    if flags & CLONE_VM != 0 && brings_areas(creator) {
        return next(start, argument);
    }
    if start == 0 || flags & CLONE_VM == 0 {
        return super::forks::forked(|| next(start, argument));
    }
    let Some(area) = area_for(creator, start, argument) else { return fail(EAGAIN) };
    if flags & CLONE_THREAD == 0 {
        is_for_a_process(area);
    }
    let child = next(labels::thread_start() as Start as usize, area.address());
    if child < 0 {
        area.region().give_back(area);
    }
    child
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn thrd_create(thread: *mut c_void, start: usize, argument: usize) -> i32 {
    let unseen = mine().filter(|creator| !brings_areas(creator));
    let area = unseen.map(|creator| area_for(creator, start, argument));
    let (start, argument) = match area {
        None => (start, argument),
        Some(None) => return THRD_ERROR,
        Some(Some(area)) => (labels::thread_start() as Start as usize, area.address()),
    };
    let result = call_next!(c"thrd_create" as fn(*mut c_void, usize, usize) -> i32,
        (thread, start, argument), else THRD_ERROR);
    if let (Some(Some(area)), true) = (area, result != 0) {
        area.region().give_back(area);
    }
    if let Some(creator) = mine() {
        super::handlers::take_over_libcs(creator);
    }
    result
}

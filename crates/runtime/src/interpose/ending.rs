//! A primary ends: no guest comes aboard any more, and guests on its other threads are given time
//! to come to a yield.

use crate::interpose::next::call_next;
// A child that shares its parent's memory (`vfork`) ends itself, not its parent's harvest.
use crate::interpose::mine::mine_for_signals as mine;
use crate::layout::area::{Area, closed, kind};
use crate::sys;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// How often it is looked whether a guest still runs, with [`POLL_NS`] between. One that runs comes
/// to a yield at once; but its thread may have to wait for a processor.
const POLLS: u32 = 2000;
const POLL_NS: u64 = 50_000;

/// Sends every guest of the calling process home, as far as that can be waited for.
pub(crate) fn everybody_home() {
    let Some(area) = mine().filter(|area| area.kind.load(Relaxed) == kind::PRIMARY) else { return };
    let region = area.region();
    if region.primary.load(Relaxed) != area.pid.load(Relaxed) {
        return; // a forked child, without guests
    }
    super::forks::close(area, closed::ENDS);
    let others = || {
        (0..region.slots())
            .filter(|slot| region.tid(*slot) > 0)
            .map(|slot| region.area(slot))
            .filter(|other| other.kind.load(Acquire) == kind::PRIMARY && other.address() != area.address())
    };
    for other in others() {
        other.closed.fetch_or(closed::ENDS, Relaxed); // which the supervisor sees, and hooks it
    }
    for _ in 0..POLLS {
        if !others().any(runs_guest) {
            return;
        }
        sys::sleep_ns(POLL_NS);
    }
}

fn runs_guest(area: &Area) -> bool {
    let cur = area.twin.cur.load(Acquire);
    cur != area.own().pointer() && cur != area.quiet().pointer()
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn _exit(code: i32) -> ! {
    end(code)
}

pub(super) fn end(code: i32) -> ! {
    everybody_home();
    sys::exit_group(code)
}

#[expect(non_snake_case, reason = "its name in libc")]
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn _Exit(code: i32) -> ! {
    end(code)
}

/// Ends inside libc.
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn quick_exit(code: i32) -> ! {
    everybody_home();
    call_next!(c"quick_exit" as fn(i32) -> (), (code), else ());
    end(code)
}

#[cfg(freestanding)]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// `exit`, and a return from `main`.
#[cfg(freestanding)]
extern "C" fn destructor() {
    everybody_home();
}

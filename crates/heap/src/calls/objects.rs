//! The loaded file that an address lies in.

use bare_calls::look_up;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Release};

/// A loaded file: where it lies, and the header of its tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) header: u64,
}

/// As glibc's header has it on x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: u64,
    end: u64,
    link_map: u64,
    header: u64,
    reserved: [u64; 7],
}

const UNKNOWN: usize = 0;
const NONE: usize = 1;
static FIND: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// The file at an address. Glibc has a function for it since 2.35, which takes no lock and may be
/// called in signal handlers.
pub(super) fn find(address: u64) -> Option<Object> {
    let function = match FIND.load(Acquire) {
        UNKNOWN => {
            let found = look_up(c"_dl_find_object") as usize;
            FIND.store(if found == 0 { NONE } else { found }, Release);
            found
        }
        NONE => 0,
        known => known,
    };
    if function == 0 {
        return None;
    }
    let mut found = Found { flags: 0, start: 0, end: 0, link_map: 0, header: 0, reserved: [0; 7] };
    // SAFETY: a function of that name has that type; it writes what it found.
    let failed = unsafe {
        let function: unsafe extern "C" fn(u64, *mut Found) -> i32 = core::mem::transmute(function);
        function(address, &raw mut found)
    };
    (failed == 0 && found.header != 0).then_some(Object {
        start: found.start,
        end: found.end,
        header: found.header,
    })
}

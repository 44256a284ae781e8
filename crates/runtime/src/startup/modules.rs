//! Where the rewritten files of a process are loaded, and what its libraries are called.
//!
//! A program's rewritten libraries are found in a directory that its loader was told of before all
//! others. Once they are there, each is given the name of the file that it was rewritten from:
//! libraries ask the loader where they are (`dladdr`), to find what lies beside them, and what is
//! loaded by that name later must be the one that is there.

use crate::exec::auxiliaries;
use crate::exec::stack;
use crate::layout::page;
use crate::layout::region::Region;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, Release};
use runtime_abi::control::{Control, ModuleRow};

/// What the loader tells debuggers of each file, as all have it that speak their protocol.
#[repr(C)]
struct Loaded {
    bias: usize,
    name: *const i8,
    dynamic: usize,
    next: *mut Loaded,
}

/// The beginning of what leads debuggers there.
#[repr(C)]
struct ForDebuggers {
    version: i32,
    first: *mut Loaded,
}

/// Finds them in this process, which has not begun yet: no other code reads the loader's list.
pub(crate) fn find(region: &Region, rows: &'static [ModuleRow]) {
    let control = region.page();
    let mut at = first();
    // SAFETY: the loader's list, which it changes only where a library is loaded or unloaded.
    while let Some(loaded) = unsafe { at.as_mut() } {
        at = loaded.next;
        if loaded.name.is_null() {
            continue;
        }
        // SAFETY: a string of the loader's.
        let name = unsafe { CStr::from_ptr(loaded.name) };
        let is_it = |row: &&ModuleRow| row.name != 0 && page::string(control, row.name) == Some(name);
        if let Some(row) = rows.iter().find(is_it) {
            // The page stays as long as the process, and what is loaded before it begins is never
            // unloaded.
            if let Some(original) = page::string(control, row.original) {
                loaded.name = original.as_ptr();
            }
            found(region, row, loaded.bias as u64);
        }
    }
}

/// Shows where each file of the loader's list begins; the same holds.
pub(crate) fn each_base(show: &mut dyn FnMut(usize)) {
    let mut at = first();
    // SAFETY: as in [`find`].
    while let Some(loaded) = unsafe { at.as_ref() } {
        show(loaded.bias);
        at = loaded.next;
    }
}

/// The program itself, which begins there; nothing where that is not known.
pub(crate) fn find_program(region: &Region, rows: &[ModuleRow], entry: Option<u64>) {
    if let (Some(row), Some(entry)) = (rows.iter().find(|row| row.name == 0), entry) {
        found(region, row, entry.wrapping_sub(row.entry));
    }
}

fn found(region: &Region, row: &ModuleRow, bias: u64) {
    region.add_twins(row, bias);
    row.bias.store(bias, Relaxed);
    row.found.store(1, Release);
}

/// Whether a file is here whose name has this in it.
pub(crate) fn is_found(control: &'static Control, rows: &[ModuleRow], part: &[u8]) -> bool {
    let named = |row: &ModuleRow| {
        let name = page::string(control, row.name).map(CStr::to_bytes);
        name.is_some_and(|name| name.windows(part.len()).any(|bytes| bytes == part))
    };
    rows.iter().any(|row| row.name != 0 && row.found.load(Relaxed) != 0 && named(row))
}

/// Where the program that the kernel started begins.
pub(crate) fn entry() -> Option<u64> {
    let mut found = None;
    auxiliaries::each(|key, value| {
        if key == stack::AT_ENTRY {
            found = Some(value);
        }
    });
    found
}

fn first() -> *mut Loaded {
    #[cfg(freestanding)]
    {
        let (it, its_address): (*const ForDebuggers, *const *const ForDebuggers);
        // SAFETY: reads the addresses of weak symbols, which are 0 where there are none: glibc has
        // the one, musl the other.
        unsafe {
            core::arch::asm!(".weak _r_debug", "mov {}, [rip + _r_debug@GOTPCREL]",
                ".weak _dl_debug_addr", "mov {}, [rip + _dl_debug_addr@GOTPCREL]",
                out(reg) it, out(reg) its_address, options(nostack, readonly, preserves_flags));
            let it = it.as_ref().or_else(|| its_address.as_ref().and_then(|address| address.as_ref()));
            it.map_or(core::ptr::null_mut(), |it| it.first)
        }
    }
    #[cfg(not(freestanding))]
    core::ptr::null_mut()
}

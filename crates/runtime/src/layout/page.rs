//! The control page, mapped: what the launcher asked for and what it is told.

use crate::sys;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::{Control, EntryRow, MAGIC, ModuleRow, ScavengerRow, SwitchRow, VERSION, refusal};

/// Maps the page that this path names.
pub(crate) fn map(path: &CStr) -> Option<&'static Control> {
    let fd = sys::open(path, sys::O_RDWR | sys::O_CLOEXEC);
    if fd < 0 {
        return None;
    }
    let size = sys::fstat(fd as i32).map_or(0, |stat| stat.size as usize);
    let protection = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: a new mapping; nothing is replaced.
    let at =
        unsafe { sys::mmap(0, size.max(size_of::<Control>()), protection, sys::MAP_SHARED, fd as i32, 0) };
    sys::close(fd as i32);
    if size < size_of::<Control>() {
        return None;
    }
    // SAFETY: a mapping of that size, which stays; what the launcher may still change is atomic.
    Some(unsafe { &*(at.ok()? as *const Control) })
}

/// Whether it was written by a launcher of this build.
pub(crate) fn check(page: &Control) -> u32 {
    if page.magic == MAGIC && page.version == VERSION { refusal::NONE } else { refusal::VERSION }
}

/// A string behind the page; none for offset 0.
pub(crate) fn string(page: &'static Control, offset: u32) -> Option<&'static CStr> {
    // SAFETY: the launcher wrote a string with its zero there.
    (offset != 0)
        .then(|| unsafe { CStr::from_ptr(core::ptr::from_ref(page).cast::<i8>().add(offset as usize)) })
}

/// `count` strings, one behind the other.
pub(crate) fn strings(page: &'static Control, first: u32, count: u32) -> impl Iterator<Item = &'static CStr> {
    let mut at = first;
    (0..count).map_while(move |_| {
        let text = string(page, at)?;
        at += text.to_bytes_with_nul().len() as u32;
        Some(text)
    })
}

/// The primary's rewritten files, its own first.
pub(crate) fn modules(page: &'static Control) -> &'static [ModuleRow] {
    behind(page, page.first_module, page.modules)
}

/// A scavenger's rewritten libraries.
pub(crate) fn modules_of(page: &'static Control, row: &ScavengerRow) -> &'static [ModuleRow] {
    behind(page, row.first_module, row.modules)
}

/// The yields of one of the primary's files that can be switched.
pub(crate) fn switches(page: &'static Control, row: &ModuleRow) -> &'static [SwitchRow] {
    behind(page, row.first_switch, row.switches)
}

/// Functions of a file whose entries are no jumps to their twins.
pub(crate) fn entries(page: &'static Control, row: &ModuleRow) -> &'static [EntryRow] {
    behind(page, row.first_entry, row.entries)
}

/// `count` rows that the launcher wrote behind the structure.
fn behind<T>(page: &'static Control, first: u32, count: u32) -> &'static [T] {
    if count == 0 {
        return &[];
    }
    let page = core::ptr::from_ref(page).cast::<u8>();
    // SAFETY: the launcher wrote that many there, aligned; only what is atomic changes.
    unsafe { core::slice::from_raw_parts(page.add(first as usize).cast(), count as usize) }
}

pub(crate) fn rows(page: &'static Control) -> &'static [ScavengerRow] {
    &page.scavenger[..(page.scavengers as usize).min(page.scavenger.len())]
}

/// A count that only one process writes.
pub(crate) fn add(counter: &core::sync::atomic::AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// The same of a floating-point number, by its bits.
pub(crate) fn add_number(sum: &core::sync::atomic::AtomicU64, value: f64) {
    sum.store((f64::from_bits(sum.load(Relaxed)) + value).to_bits(), Relaxed);
}

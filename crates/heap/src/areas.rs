//! Memory that the program maps itself: `mmap`, `munmap`, `mremap`. What libc maps for its own
//! `malloc` does not come through here.
//!
//! Only memory that no file has is told of. A file that is mapped into such an area ends that part
//! of it.

use crate::interpose::{push, push_caller, region, seldom, ticks};
use crate::next::{self, call_next, next};
use crate::record;
use crate::stack::Caller;
use crate::sys::{nr, syscall};
use core::arch::naked_asm;

const ANONYMOUS: i32 = 0x20;
const FIXED: i32 = 0x10;
const FAILED: isize = -1;
const PAGE: usize = 4096;

/// A function of six arguments: the caller's registers are the seventh, which is on the stack.
macro_rules! mapping {
    ($name:ident) => {
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                push_caller!(),
                "mov rax, rsp",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "push rax",
                ".cfi_adjust_cfa_offset 8",
                "call {map}",
                "add rsp, 72",
                ".cfi_adjust_cfa_offset -72",
                "ret",
                ".cfi_endproc",
                map = sym map,
            )
        }
    };
}

mapping!(mmap);
mapping!(mmap64);
seldom!(munmap, "rdx", unmap);
seldom!(mremap, "r9", remap);

/// # Safety
/// As libc's.
unsafe extern "C" fn map(
    at: usize,
    bytes: usize,
    access: i32,
    flags: i32,
    file: i32,
    from: isize,
    caller: &Caller,
) -> isize {
    let ticks = ticks();
    let otherwise = || {
        // SAFETY: the program's. Its `errno` is not set: libc is not ready.
        let done = unsafe {
            syscall(nr::MMAP, [at, bytes, access as usize, flags as usize, file as usize, from as usize])
        };
        done.max(FAILED)
    };
    let found = call_next!(next::MMAP, fn(usize, usize, i32, i32, i32, isize) -> isize,
        (at, bytes, access, flags, file, from), else otherwise());
    if let Some((region, process)) = region().filter(|_| found != FAILED) {
        let size = bytes.next_multiple_of(PAGE) as u64;
        if flags & ANONYMOUS != 0 {
            record::mapped(region, process, found as u64, size, caller);
        } else if flags & FIXED != 0 {
            record::unmapped(region, process, found as u64, size, ticks);
        }
    }
    found
}

/// # Safety
/// As libc's.
unsafe extern "C" fn unmap(at: usize, bytes: usize, _caller: &Caller) -> i32 {
    // Once it is unmapped, another thread may map something there.
    let ticks = ticks();
    // SAFETY: the program's.
    let otherwise = || unsafe { syscall(nr::MUNMAP, [at, bytes, 0, 0, 0, 0]).max(FAILED) as i32 };
    let failed = call_next!(next::MUNMAP, fn(usize, usize) -> i32, (at, bytes), else otherwise());
    if let Some((region, process)) = region().filter(|_| failed == 0) {
        record::unmapped(region, process, at as u64, bytes.next_multiple_of(PAGE) as u64, ticks);
    }
    failed
}

/// # Safety
/// As libc's.
unsafe extern "C" fn remap(
    old: usize,
    old_bytes: usize,
    bytes: usize,
    flags: i32,
    to: usize,
    caller: &Caller,
) -> isize {
    let ticks = ticks();
    let otherwise = || {
        // SAFETY: the program's.
        unsafe { syscall(nr::MREMAP, [old, old_bytes, bytes, flags as usize, to, 0]).max(FAILED) }
    };
    let new = call_next!(next::MREMAP, fn(usize, usize, usize, i32, usize) -> isize,
        (old, old_bytes, bytes, flags, to), else otherwise());
    if let Some((region, process)) = region().filter(|_| new != FAILED) {
        record::unmapped(region, process, old as u64, old_bytes.next_multiple_of(PAGE) as u64, ticks);
        record::mapped(region, process, new as u64, bytes.next_multiple_of(PAGE) as u64, caller);
    }
    new
}

//! The functions that programs call in place of libc's: each hands on where it was called from.

use super::{blocks, pages};
use core::arch::naked_asm;

/// A function that is handed its return address and its caller's stack pointer, behind its own
/// arguments. It is a jump, so that the stack is as the caller left it.
macro_rules! with_caller {
    ($name:ident, $address:literal, $stack:literal, $function:path) => {
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                concat!("mov ", $address, ", [rsp]"),
                concat!("lea ", $stack, ", [rsp + 8]"),
                "jmp {function}",
                function = sym $function,
            )
        }
    };
}

with_caller!(malloc, "rsi", "rdx", blocks::allocate);
with_caller!(calloc, "rdx", "rcx", blocks::allocate_zeroed);
with_caller!(realloc, "rdx", "rcx", blocks::reallocate);
with_caller!(memalign, "rdx", "rcx", blocks::allocate_aligned);
with_caller!(aligned_alloc, "rdx", "rcx", blocks::allocate_aligned);
with_caller!(posix_memalign, "rcx", "r8", blocks::allocate_aligned_into);

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut u8) {
    // SAFETY: the program's.
    unsafe { blocks::end(block) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(at: usize, bytes: usize, access: i32, flags: i32, file: i32, from: isize) -> isize {
    // SAFETY: the program's.
    unsafe { pages::map(at, bytes, access, flags, file, from) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    at: usize,
    bytes: usize,
    access: i32,
    flags: i32,
    file: i32,
    from: isize,
) -> isize {
    // SAFETY: the program's.
    unsafe { pages::map(at, bytes, access, flags, file, from) }
}

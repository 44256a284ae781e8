//! The functions that programs call in place of libc's.
//!
//! `malloc`, `calloc` and `free` are assembly: an allocation that is not recorded costs a hash, and
//! their callers' registers are still in place when a stack is copied. All others are called
//! less often; they are Rust behind an entry that keeps the registers.
//!
//! ```text
//! at entry      rsp -> return address
//! after note    rsp -> rbx rbp r12 r13 r14 r15 result, return address   (`stack::Caller`)
//! ```

use crate::arena::{self, ARENA, Arena};
use crate::clock;
use crate::layout::{HASH, Region};
use crate::next::{self, call_next, next};
use crate::record;
use crate::recording::{self, THRESHOLD};
use crate::stack::Caller;
use crate::sys;
use crate::table::{self, TABLE};
use core::arch::naked_asm;

/// The hash of the page of the address in a register, into ecx; compared to the threshold.
macro_rules! compare_hash {
    ($register:literal) => {
        concat!(
            "mov rcx, ",
            $register,
            "\nshr rcx, 12\nimul ecx, ecx, {hash_one}\nmov edx, ecx\nshr edx, 15\nxor ecx, edx\n",
            "imul ecx, ecx, {hash_two}\nmov rdx, [rip + {threshold}]\ncmp ecx, [rdx]",
        )
    };
}

/// What follows an allocation of rdi bytes at rax. Nothing is decided for a null: its page has the
/// hash zero, but `note` looks, and so it does where a large size leads to it.
macro_rules! decide {
    () => {
        concat!(
            compare_hash!("rax"),
            "\njb 4f",
            // It ends on another page.
            "\nmov ecx, eax\nand ecx, 4095\nadd rcx, rdi\ncmp rcx, 4096\nja 4f\nret",
            "\n4: mov rsi, rdi\nmov rdi, rax\njmp {noted}",
        )
    };
}

macro_rules! push {
    ($register:literal) => {
        concat!("push ", $register, "\n.cfi_adjust_cfa_offset 8")
    };
}
pub(crate) use push;

macro_rules! pop {
    ($register:literal) => {
        concat!("pop ", $register, "\n.cfi_adjust_cfa_offset -8")
    };
}

/// Leaves rsp at a `Caller`.
macro_rules! push_caller {
    () => {
        concat!(
            push!("rax"),
            "\n",
            push!("r15"),
            "\n",
            push!("r14"),
            "\n",
            push!("r13"),
            "\n",
            push!("r12"),
            "\n",
            push!("rbp"),
            "\n",
            push!("rbx"),
        )
    };
}
pub(crate) use push_caller;

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "mov rax, [rip + {next} + 8 * {malloc}]",
        "test rax, rax",
        "jz 8f",
        push!("rdi"),
        "call rax",
        pop!("rdi"),
        "2:",
        decide!(),
        "8:",
        push!("rdi"),
        "call {first_malloc}",
        pop!("rdi"),
        "jmp 2b",
        ".cfi_endproc",
        next = sym next::NEXT,
        malloc = const next::MALLOC,
        first_malloc = sym first_malloc,
        hash_one = const HASH.0.cast_signed(),
        hash_two = const HASH.1.cast_signed(),
        threshold = sym THRESHOLD,
        noted = sym noted,
    )
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "mov rax, [rip + {next} + 8 * {calloc}]",
        "test rax, rax",
        "jz 8f",
        "3:",
        push!("rdi"),
        push!("rsi"),
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call rax",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        pop!("rsi"),
        pop!("rdi"),
        // An overflow had no memory.
        "imul rdi, rsi",
        decide!(),
        "8: lea rax, [rip + {first_calloc}]",
        "jmp 3b",
        ".cfi_endproc",
        next = sym next::NEXT,
        calloc = const next::CALLOC,
        first_calloc = sym first_calloc,
        hash_one = const HASH.0.cast_signed(),
        hash_two = const HASH.1.cast_signed(),
        threshold = sym THRESHOLD,
        noted = sym noted,
    )
}

/// Jumped to with rdi: address, rsi: size, rax: the result. Returns to the program.
///
/// # Safety
/// Not to be called.
#[unsafe(naked)]
unsafe extern "C" fn noted() {
    naked_asm!(
        ".cfi_startproc",
        push_caller!(),
        "mov rdx, rsp",
        "call {note}",
        "add rsp, 48",
        ".cfi_adjust_cfa_offset -48",
        pop!("rax"),
        "ret",
        ".cfi_endproc",
        note = sym note,
    )
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn free(address: *mut u8) {
    naked_asm!(
        ".cfi_startproc",
        "test rdi, rdi",
        "jz 7f",
        compare_hash!("rdi"),
        "jb 4f",
        // The two tags of its bucket in the table.
        "mov rcx, rdi",
        "shr rcx, {alignment_bits}",
        "mov rdx, rcx",
        "shr rdx, {bucket_bits}",
        "imul eax, edx, {table_hash}",
        "shr eax, 32 - {bucket_bits}",
        "xor eax, ecx",
        "and eax, (1 << {bucket_bits}) - 1",
        "lea rcx, [rip + {table}]",
        "cmp edx, [rcx + 8 * rax]",
        "je 4f",
        "cmp edx, [rcx + 8 * rax + 4]",
        "je 4f",
        "5:",
        "lea rcx, [rip + {arena}]",
        "mov rdx, rdi",
        "sub rdx, rcx",
        "cmp rdx, {arena_bytes}",
        "jb 7f",
        "mov rax, [rip + {next} + 8 * {free}]",
        "test rax, rax",
        "jz 8f",
        "jmp rax",
        "4:",
        push!("rdi"),
        "call {note_end}",
        pop!("rdi"),
        "jmp 5b",
        "7: ret",
        "8: jmp {first_free}",
        ".cfi_endproc",
        next = sym next::NEXT,
        free = const next::FREE,
        first_free = sym first_free,
        note_end = sym note_end,
        hash_one = const HASH.0.cast_signed(),
        hash_two = const HASH.1.cast_signed(),
        threshold = sym THRESHOLD,
        alignment_bits = const table::ALIGNMENT_BITS,
        bucket_bits = const table::BUCKET_BITS,
        table_hash = const table::HASH.cast_signed(),
        table = sym TABLE,
        arena = sym ARENA,
        arena_bytes = const arena::BYTES,
    )
}

/// A function that is called seldom: Rust behind an entry that keeps its caller's registers, and
/// hands them over in the register behind the arguments.
macro_rules! seldom {
    ($name:ident, $caller:literal, $function:path) => {
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                push_caller!(),
                concat!("mov ", $caller, ", rsp"),
                "call {function}",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                function = sym $function,
            )
        }
    };
}

pub(crate) use seldom;

seldom!(realloc, "rdx", reallocate);
seldom!(reallocarray, "rcx", reallocate_array);
seldom!(posix_memalign, "rcx", allocate_aligned_into);
seldom!(aligned_alloc, "rdx", allocate_aligned);
seldom!(memalign, "rdx", allocate_at);
seldom!(valloc, "rsi", allocate_pages);
seldom!(pvalloc, "rsi", allocate_whole_pages);

/// A program may forbid itself the time stamp counter: `PR_SET_SECCOMP` with the strict mode does
/// so, and `PR_SET_TSC`. Nothing can be recorded then.
///
/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn prctl() {
    naked_asm!(
        ".cfi_startproc",
        "cmp edi, {set_seccomp}",
        "je 2f",
        "cmp edi, {set_tsc}",
        "jne 4f",
        "cmp rsi, {tsc_faults}",
        "je 3f",
        "jmp 4f",
        "2: cmp rsi, {seccomp_strict}",
        "jne 9f",
        "3:",
        push!("rdi"),
        push!("rsi"),
        push!("rdx"),
        push!("rcx"),
        push!("r8"),
        "call {end}",
        pop!("r8"),
        pop!("rcx"),
        pop!("rdx"),
        pop!("rsi"),
        pop!("rdi"),
        "4: mov r11, [rip + {next} + 8 * {prctl}]",
        "test r11, r11",
        "jz 5f",
        "jmp r11",
        // Called before the constructor, and before any allocation.
        "5:",
        push!("rdi"),
        push!("rsi"),
        push!("rdx"),
        push!("rcx"),
        push!("r8"),
        "mov edi, {prctl}",
        "call {find}",
        pop!("r8"),
        pop!("rcx"),
        pop!("rdx"),
        pop!("rsi"),
        pop!("rdi"),
        "test rax, rax",
        "jz 6f",
        "jmp rax",
        "6: mov eax, -1",
        "ret",
        // Other calls than these may be forbidden from now on.
        "9:",
        push!("rdi"),
        push!("rsi"),
        push!("rdx"),
        push!("rcx"),
        push!("r8"),
        "call {enter_sandbox}",
        pop!("r8"),
        pop!("rcx"),
        pop!("rdx"),
        pop!("rsi"),
        pop!("rdi"),
        "jmp 4b",
        ".cfi_endproc",
        enter_sandbox = sym clock::enter_sandbox,
        set_seccomp = const 22,
        seccomp_strict = const 1,
        set_tsc = const 26,
        tsc_faults = const 2,
        end = sym end,
        next = sym next::NEXT,
        prctl = const next::PRCTL,
        find = sym find,
    )
}

/// Nothing is recorded any more.
extern "C" fn end() {
    recording::end();
    clock::arm::end();
}

extern "C" fn find(function: usize) -> *mut () {
    next(function)
}

/// Code of this library that no other one can replace.
pub(crate) fn own_code() -> *const () {
    noted as *const ()
}

/// The region, while something is recorded.
pub(crate) fn region() -> Option<(&'static Region, u32)> {
    recording::region().map(|region| (region, recording::process()))
}

/// The time, while something is recorded: a program that has none recorded may have forbidden it.
pub(crate) fn ticks() -> u64 {
    region().map_or(0, |_| sys::ticks())
}

/// Memory was allocated, or the attempt failed.
extern "C" fn note(address: *mut u8, size: usize, caller: &Caller) {
    if address.is_null() || ARENA.holds(address as usize) {
        return;
    }
    if let Some((region, process)) = region() {
        record::allocated(region, process, address as u64, size as u64, caller);
    }
}

/// Memory is about to end.
extern "C" fn note_end(address: *mut u8) {
    if let Some((region, process)) = region() {
        record::freed(region, process, address as u64, sys::ticks());
    }
}

extern "C" fn first_malloc(size: usize) -> *mut u8 {
    call_next!(next::MALLOC, fn(usize) -> *mut u8, (size), else ARENA.allocate(size, 0))
}

extern "C" fn first_calloc(count: usize, size: usize) -> *mut u8 {
    call_next!(next::CALLOC, fn(usize, usize) -> *mut u8, (count, size), else {
        count.checked_mul(size).map_or(core::ptr::null_mut(), |bytes| ARENA.allocate(bytes, 0))
    })
}

extern "C" fn first_free(address: *mut u8) {
    call_next!(next::FREE, fn(*mut u8) -> (), (address), else ());
}

/// # Safety
/// As libc's.
unsafe extern "C" fn reallocate(old: *mut u8, size: usize, caller: &Caller) -> *mut u8 {
    if !old.is_null() && ARENA.holds(old as usize) {
        let new = first_malloc(size);
        if !new.is_null() {
            // SAFETY: a piece of the arena, and memory that is as large as the smaller of both.
            unsafe { core::ptr::copy_nonoverlapping(old, new, Arena::size(old).min(size)) };
            note(new, size, caller);
        }
        return new;
    }
    // Once the memory has moved, another thread may have the old piece.
    let ticks = ticks();
    let new = call_next!(next::REALLOC, fn(*mut u8, usize) -> *mut u8, (old, size), else {
        if old.is_null() { ARENA.allocate(size, 0) } else { core::ptr::null_mut() }
    });
    moved(old, new, size, ticks, caller);
    new
}

/// # Safety
/// As libc's.
unsafe extern "C" fn reallocate_array(old: *mut u8, count: usize, size: usize, caller: &Caller) -> *mut u8 {
    let ticks = ticks();
    let bytes = count.checked_mul(size);
    if let Some(bytes) = bytes.filter(|_| ARENA.holds(old as usize) || next(next::REALLOCARRAY).is_null()) {
        // SAFETY: as for this function.
        return unsafe { reallocate(old, bytes, caller) };
    }
    let new = call_next!(next::REALLOCARRAY, fn(*mut u8, usize, usize) -> *mut u8, (old, count, size), else {
        core::ptr::null_mut()
    });
    moved(old, new, bytes.unwrap_or(0), ticks, caller);
    new
}

fn moved(old: *mut u8, new: *mut u8, size: usize, ticks: u64, caller: &Caller) {
    // A size of zero frees, at libc's choice; any other failure leaves the old piece alone.
    if new.is_null() && size != 0 {
        return;
    }
    if let Some((region, process)) = region().filter(|_| !old.is_null()) {
        record::freed(region, process, old as u64, ticks);
    }
    note(new, size, caller);
}

/// # Safety
/// As libc's.
unsafe extern "C" fn allocate_aligned_into(
    to: *mut *mut u8,
    alignment: usize,
    size: usize,
    caller: &Caller,
) -> i32 {
    const ENOMEM: i32 = 12;
    let failed = call_next!(next::POSIX_MEMALIGN, fn(*mut *mut u8, usize, usize) -> i32,
        (to, alignment, size), else ENOMEM);
    if failed == 0 {
        // SAFETY: the function has just written there.
        note(unsafe { *to }, size, caller);
    }
    failed
}

extern "C" fn allocate_aligned(alignment: usize, size: usize, caller: &Caller) -> *mut u8 {
    let new = call_next!(next::ALIGNED_ALLOC, fn(usize, usize) -> *mut u8, (alignment, size), else {
        call_next!(next::MEMALIGN, fn(usize, usize) -> *mut u8, (alignment, size), else {
            ARENA.allocate(size, alignment)
        })
    });
    note(new, size, caller);
    new
}

extern "C" fn allocate_at(alignment: usize, size: usize, caller: &Caller) -> *mut u8 {
    let new = call_next!(next::MEMALIGN, fn(usize, usize) -> *mut u8, (alignment, size), else {
        ARENA.allocate(size, alignment)
    });
    note(new, size, caller);
    new
}

extern "C" fn allocate_pages(size: usize, caller: &Caller) -> *mut u8 {
    let new = call_next!(next::VALLOC, fn(usize) -> *mut u8, (size), else core::ptr::null_mut());
    note(new, size, caller);
    new
}

extern "C" fn allocate_whole_pages(size: usize, caller: &Caller) -> *mut u8 {
    let new = call_next!(next::PVALLOC, fn(usize) -> *mut u8, (size), else core::ptr::null_mut());
    note(new, size, caller);
    new
}

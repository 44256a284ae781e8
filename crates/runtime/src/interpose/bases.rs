//! A program sets the GS base for itself: its yields would take what is there for their area. It
//! ends, with a line.
//!
//! Seen is what goes through libc, by `arch_prctl` or by `syscall`. Programs with `wrgsbase` are
//! not rewritten. By `syscall` a program unmaps memory, too, past libc's functions for that.

use crate::interpose::dispatch;
use crate::interpose::ending;
use crate::interpose::mine::mine;
use crate::interpose::next::{Next, call_next, fail};
use crate::layout::area::kind;
use crate::mappings;
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;

const ARCH_SET_GS: i32 = 0x1001;
const ENOSYS: i32 = 38;
pub(crate) const LINE: &[u8] = b"gleaner: a harvested program sets the GS base (ARCH_SET_GS), by which its yields find their place; it ends here, and runs alone only\n";

static SYSCALL: Next = Next::new(c"syscall");

fn refuse() {
    if mine().is_some() {
        sys::write(2, LINE);
        ending::end(3);
    }
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn arch_prctl(code: i32, address: usize) -> i32 {
    if code == ARCH_SET_GS {
        refuse();
    }
    call_next!(c"arch_prctl" as fn(i32, usize) -> i32, (code, address), else fail(ENOSYS))
}

/// Libc's function, behind a call that may be one that is not let through, or one that a
/// scavenger's memory is known by. 0 if there is none, or it has failed.
extern "C" fn look(
    number: usize,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> usize {
    let code = first as i32;
    if let Some(area) = mine().filter(|area| area.kind.load(Relaxed) == kind::HOME) {
        mappings::before(area, number, [first, second, third, fourth, fifth, 0]);
    }
    if number == sys::nr::ARCH_PRCTL && code == ARCH_SET_GS {
        refuse();
    }
    if number == sys::nr::SECCOMP {
        dispatch::forbids();
    }
    if number == sys::nr::PRCTL && dispatch::is_refused(code) {
        return 0;
    }
    SYSCALL.address()
}

/// Finds libc's functions before a thread of the program may hold its loader's lock.
pub(crate) fn look_up() {
    SYSCALL.address();
    dispatch::look_up();
}

/// It passes on what it was passed, to libc's function.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn syscall() -> isize {
    core::arch::naked_asm!(
        "cmp rdi, {number}",
        "je 2f",
        "cmp rdi, {other}",
        "je 2f",
        "cmp rdi, {seccomp}",
        "je 2f",
        "cmp rdi, {map}",
        "je 2f",
        "cmp rdi, {unmap}",
        "je 2f",
        "cmp rdi, {remap}",
        "je 2f",
        "cmp rdi, {attach}",
        "je 2f",
        "mov rax, [rip + {next} + {address}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
        "call {look}",
        "mov r11, rax",
        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "test r11, r11",
        "jz 3f",
        "jmp r11",
        "3: or rax, -1",
        "ret",
        number = const sys::nr::ARCH_PRCTL, other = const sys::nr::PRCTL, seccomp = const sys::nr::SECCOMP, next = sym SYSCALL, look = sym look,
        address = const Next::ADDRESS, map = const sys::nr::MMAP, unmap = const sys::nr::MUNMAP,
        remap = const sys::nr::MREMAP, attach = const sys::nr::SHMAT,
    )
}

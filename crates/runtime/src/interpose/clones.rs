//! A scavenger's libc that has twins makes a thread: its first instructions, in libc, are twins,
//! so it needs an area before. The system call itself is replaced ([`hook::clones`]) by one that
//! brings it: the area is made first, its address is in a register that the call keeps, and the new
//! thread takes it before it goes on.
//!
//! What shares the memory only until it executes another program (`posix_spawn`, while its parent
//! waits) has its parent's area, as after `vfork`.

use crate::interpose::mine::RegisterPair;
use crate::interpose::threads::{self, CLONE_THREAD, CLONE_VM};
use crate::layout::area::Area;
use crate::mappings::{hook, seen};
use crate::switching::gs;
use crate::sys;
use core::arch::naked_asm;
use core::sync::atomic::Ordering::Relaxed;

const CLONE_VFORK: usize = 0x4000;
/// Where `struct clone_args` has the stack.
const STACK: usize = 40;
/// In place of an area: none is needed, and none is to be had.
const NOTHING: usize = 0;
const REFUSED: usize = 2;
/// With the address of an area: it is the caller's own.
const BORROWED: usize = 1;

/// Whether all threads that this scavenger's libc makes come by here from now on.
///
/// # Safety
/// Before the program runs, and any thread of it.
pub(crate) unsafe fn begin(area: &Area) -> bool {
    // SAFETY: the caller's; it is such a call.
    let seen = unsafe { hook::clones(area, cloned as *const () as usize) };
    if seen {
        area.mappings().sees(seen::CLONES);
    }
    seen
}

/// In place of the system call: like it, this changes no register but rax, rcx and r11, and no
/// memory below the stack pointer. `rcx` is where to go on.
#[unsafe(naked)]
extern "C" fn cloned() {
    naked_asm!(
        "lea rsp, [rsp - 128]",
        "push rbp",
        "mov rbp, rsp",
        "push rax",
        "push rcx",
        "push r9",
        "push r8",
        "push r10",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdi, rsp",
        "mov esi, eax",
        "sub rsp, 8",
        "and rsp, -16",
        "call {prepare}",
        "mov r11, rax",
        "lea rsp, [rbp - 64]",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r10",
        "pop r8",
        "pop r9",
        "pop rcx",
        "pop rax",
        "pop rbp",
        "cmp r11, {refused}",
        "ja 2f",
        "je 3f",
        // Nothing to bring: the call as it is.
        "push rcx",
        "syscall",
        "pop rcx",
        "lea rsp, [rsp + 128]",
        "jmp rcx",
        "3: lea rsp, [rsp + 128]",
        "mov rax, -11",
        "jmp rcx",
        "2: push rcx",
        "push r9",
        "mov r9, r11",
        "syscall",
        "test rax, rax",
        "jz 4f",
        // The creator, which is where it was. The area may be another's by now.
        "test r9, {borrowed}",
        "jnz 5f",
        "test rax, rax",
        "jns 6f",
        "5: push rax", "push rdi", "push rsi", "push rdx", "push r8", "push r10", "push rbp",
        "mov rbp, rsp",
        "and rsp, -16",
        "mov rdi, r9",
        "call {created}",
        "mov rsp, rbp",
        "pop rbp", "pop r10", "pop r8", "pop rdx", "pop rsi", "pop rdi", "pop rax",
        "6: pop r9",
        "pop rcx",
        "lea rsp, [rsp + 128]",
        "jmp rcx",
        // The new one, on a stack of its own.
        "4: push rdi", "push rsi", "push rdx", "push r8", "push r10", "push rbp",
        "mov rbp, rsp",
        "and rsp, -16",
        "mov rdi, r9",
        "call {begun}",
        "mov rcx, rax",
        "mov r9, rdx",
        "mov rsp, rbp",
        "pop rbp", "pop r10", "pop r8", "pop rdx", "pop rsi", "pop rdi",
        "xor eax, eax",
        "jmp rcx",
        prepare = sym prepare, created = sym created, begun = sym begun,
        refused = const REFUSED, borrowed = const BORROWED,
    )
}

/// What the new thread is to bring: an area, with [`BORROWED`] the creator's own; [`NOTHING`] or
/// [`REFUSED`]. Where it goes on, and what it has in r9, is kept there.
///
/// # Safety
/// For [`cloned`] only: the call's arguments, behind which is where it goes on.
unsafe extern "C" fn prepare(kept: &[usize; 7], number: u32) -> usize {
    let [first, second, _, _, _, sixth, onward] = *kept;
    // SAFETY: the caller's arguments, as the call takes them; GS is a scavenger's area.
    let (flags, stack, creator) = unsafe {
        let creator = gs::area();
        if number as usize == sys::nr::CLONE3 {
            let arguments = first as *const usize;
            (*arguments, *arguments.byte_add(STACK), creator)
        } else {
            (first, second, creator)
        }
    };
    if flags & CLONE_VM as usize == 0 || stack == 0 {
        return NOTHING;
    }
    if flags & CLONE_VFORK != 0 {
        creator.thread.start[0].store(onward as u64, Relaxed);
        creator.thread.start[1].store(sixth as u64, Relaxed);
        creator.thread.lent.fetch_add(1, Relaxed);
        return creator.address() | BORROWED;
    }
    let Some(area) = threads::area_for(creator, onward, sixth) else { return REFUSED };
    if flags & CLONE_THREAD as usize == 0 {
        threads::is_for_a_process(area);
    }
    area.address()
}

/// The call is over in the creator: it failed, or what it made is done with its area.
///
/// # Safety
/// For [`cloned`] only.
unsafe extern "C" fn created(area: usize) {
    // SAFETY: what `prepare` returned; areas are never unmapped.
    let of: &'static Area = unsafe { &*((area & !BORROWED) as *const Area) };
    if area & BORROWED == 0 {
        of.region().give_back(of);
    } else {
        of.thread.lent.fetch_sub(1, Relaxed);
    }
}

/// The new thread: returns where it goes on, and what it has in r9.
///
/// # Safety
/// For [`cloned`] only, in the new thread.
unsafe extern "C" fn begun(area: usize) -> RegisterPair {
    // SAFETY: what `prepare` returned; areas are never unmapped.
    let of: &'static Area = unsafe { &*((area & !BORROWED) as *const Area) };
    if area & BORROWED == 0 {
        return threads::begin(of);
    }
    let [start, argument] = [0, 1].map(|at| of.thread.start[at].load(Relaxed));
    RegisterPair { start, argument }
}

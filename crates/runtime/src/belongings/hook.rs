//! [`map`] in the place of a scavenger's own `mmap`, in its private copy of the code, before any of it runs.
//!
//! - [`loader`]: what it maps, nothing preloaded sees, and its function has no name outside. So the system call itself is replaced, where it
//!   is the only one of its kind. Where a libc is its own loader (musl), that is all.
//! - [`libc`]: its function has a name, and malloc and the threads' stacks use the same code (glibc). So that begins with a jump to ours.

use super::{PAGE, map};
use crate::sys;
use crate::{area::Area, gs, interpose};
use core::arch::naked_asm;

/// `mov eax, 9; syscall`
const CALL: [u8; 7] = [0xb8, sys::nr::MMAP as u8, 0, 0, 0, 0x0f, 0x05];
/// The second of its two instructions.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `jmp [rip]`, and behind it where to.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
const JUMP_SIZE: usize = JUMP.len() + 8;

/// Replaces code of the calling process. False where that is forbidden, and then nothing is changed.
///
/// # Safety
/// It must be code that nobody runs now, all of it mapped, of this process alone.
unsafe fn write_code(at: usize, code: &[u8]) -> bool {
    let first = at & !(PAGE - 1);
    let size = (at + code.len()).next_multiple_of(PAGE) - first;
    let protection = sys::PROT_READ | sys::PROT_EXEC;
    // SAFETY: the caller's. It stays executable all the time: some kernels' policies do not let it become so again.
    unsafe {
        if sys::mprotect(first, size, protection | sys::PROT_WRITE) < 0 {
            return false;
        }
        core::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len());
        sys::mprotect(first, size, protection);
    }
    true
}

/// In the loader, whose code lies at `code`; the page at `spare`, near it, is ours to use. Whoever jumps to the system call itself gets
/// it as it is, since only what is before it is replaced.
///
/// # Safety
/// Before it runs, in the process that will run it.
pub(crate) unsafe fn loader(code: &'static [u8], spare: usize) {
    let mut found = code.windows(CALL.len()).enumerate().filter(|(_, bytes)| *bytes == CALL);
    let (Some((at, _)), None) = (found.next(), found.next()) else { return };
    let at = code.as_ptr() as usize + at;
    let Ok(distance) = i32::try_from(spare as i64 - (at + 5) as i64) else { return };
    // mov rcx, back; mov r11, ours; jmp r11: the kernel changes both, so nobody has anything in them.
    let mut way = [0_u8; 23];
    way[..2].copy_from_slice(&[0x48, 0xb9]);
    way[2..10].copy_from_slice(&(at + CALL.len()).to_le_bytes());
    way[10..12].copy_from_slice(&[0x49, 0xbb]);
    way[12..20].copy_from_slice(&(called as *const () as usize).to_le_bytes());
    way[20..].copy_from_slice(&[0x41, 0xff, 0xe3]);
    let mut jump = [0xe9_u8; 5];
    jump[1..].copy_from_slice(&distance.to_le_bytes());
    // SAFETY: the caller's.
    unsafe {
        if write_code(spare, &way) {
            write_code(at, &jump);
        }
    }
}

/// In the place of the system call: as it, this changes no register but rax, rcx and r11, and no memory below the stack pointer.
#[unsafe(naked)]
extern "C" fn called() {
    naked_asm!(
        "lea rsp, [rsp - 128]",
        "push rbp",
        "mov rbp, rsp",
        "push rcx",
        "push r9",
        "push r8",
        "push r10",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdi, rsp",
        "sub rsp, 256",
        "and rsp, -16",
        "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8", "movups [rsp + 144], xmm9", "movups [rsp + 160], xmm10", "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12", "movups [rsp + 208], xmm13", "movups [rsp + 224], xmm14", "movups [rsp + 240], xmm15",
        "call {map}",
        "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
        "movups xmm8, [rsp + 128]", "movups xmm9, [rsp + 144]", "movups xmm10, [rsp + 160]", "movups xmm11, [rsp + 176]",
        "movups xmm12, [rsp + 192]", "movups xmm13, [rsp + 208]", "movups xmm14, [rsp + 224]", "movups xmm15, [rsp + 240]",
        "lea rsp, [rbp - 56]",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r10",
        "pop r8",
        "pop r9",
        "pop rcx",
        "pop rbp",
        "lea rsp, [rsp + 128]",
        "jmp rcx",
        map = sym map_for_loader,
    )
}

/// # Safety
/// For [`called`] only: a scavenger's thread, and the system call's arguments.
unsafe extern "C" fn map_for_loader(arguments: &[usize; 6]) -> isize {
    // SAFETY: a scavenger's GS is its area; the arguments are its own.
    unsafe { map(gs::area(), *arguments) }
}

/// In glibc, by the constructor, which is in front of all that maps memory afterwards.
///
/// # Safety
/// Before the program runs, and any thread of it.
pub(crate) unsafe fn libc(area: &Area) {
    const LONGEST: usize = 128;
    let [mmap, errno] = [c"mmap", c"__errno_location"].map(interpose::look_up);
    if mmap == 0 || errno == 0 || !is_glibc() || !super::spans::share_a_file(area, mmap, errno) {
        return;
    }
    // SAFETY: code of a library, which goes on behind this function.
    let code = unsafe { core::slice::from_raw_parts(mmap as *const u8, LONGEST) };
    // Its system call is behind what is replaced.
    if code.windows(SYSCALL.len()).position(|bytes| bytes == SYSCALL).is_none_or(|at| at < JUMP_SIZE) {
        return;
    }
    let mut jump = [0; JUMP_SIZE];
    jump[..JUMP.len()].copy_from_slice(&JUMP);
    jump[JUMP.len()..].copy_from_slice(&(mmap_marked as *const () as usize).to_le_bytes());
    // SAFETY: the caller's, and [`share_a_file`]: libc's own code, of this process.
    unsafe { write_code(mmap, &jump) };
}

fn is_glibc() -> bool {
    interpose::look_up(c"gnu_get_libc_version") != 0
}

/// libc's `mmap`.
///
/// # Safety
/// As libc's.
unsafe extern "C" fn mmap_marked(
    at: usize,
    size: usize,
    protection: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> usize {
    let numbers = [protection, flags].map(|number| number as u32 as usize);
    // SAFETY: a scavenger's GS is its area; the arguments are its own.
    let result =
        unsafe { map(gs::area(), [at, size, numbers[0], numbers[1], fd as isize as usize, offset as usize]) };
    match sys::address(result) {
        Ok(at) => at,
        Err(errno) => interpose::fail(errno) as isize as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> usize {
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        unsafe { sys::mmap(0, PAGE, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0) }.expect("memory")
    }

    /// As a loader's: how often the call is there, and whether it was replaced.
    fn hooked(calls: usize) -> bool {
        let (code, spare) = (page(), page());
        // SAFETY: the page, which is this test's.
        let bytes = unsafe { core::slice::from_raw_parts_mut(code as *mut u8, PAGE) };
        (1..=calls).for_each(|call| bytes[call * 100..][..CALL.len()].copy_from_slice(&CALL));
        let before = bytes.to_vec();
        // SAFETY: nobody runs it.
        unsafe { loader(core::slice::from_raw_parts(code as *const u8, PAGE), spare) };
        // SAFETY: as before.
        let after = unsafe { core::slice::from_raw_parts(code as *const u8, PAGE) };
        let is_way = after[100] == 0xe9;
        if is_way {
            let distance = i32::from_le_bytes(after[101..105].try_into().unwrap());
            assert_eq!((code + 105).wrapping_add_signed(distance as isize), spare);
            assert_eq!(after[105..107], SYSCALL, "who jumps there finds it");
            // SAFETY: it was written.
            let way = unsafe { core::slice::from_raw_parts(spare as *const u8, 23) };
            assert_eq!(way[2..10], (code + 107).to_le_bytes());
        } else {
            assert_eq!(after, before);
        }
        is_way
    }

    #[test]
    fn only_a_call_that_is_the_only_one_is_replaced() {
        assert_eq!([0, 1, 2].map(hooked), [false, true, false]);
    }
}

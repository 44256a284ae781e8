//! Replaces a scavenger's own system calls for mappings by [`super`]'s functions, in its private
//! copy of the code, before any of it runs.
//!
//! Malloc, thread stacks and the loader map by calls inside their libraries, which nothing
//! preloaded sees. So the system call itself is replaced: in libc's function, and in the loader,
//! whose functions have no names outside, where it is the only one of its kind. A libc that is its
//! own loader (musl) is both.
//!
//! Of `mov eax, NUMBER; syscall` only the first instruction is replaced: code that comes to the
//! second by another way, as twins do, makes the call as it is.

use crate::interpose;
use crate::layout::area::Area;
use crate::mappings::spans;
use crate::mappings::{PAGE, maps, near, seen};
use crate::switching::gs;
use crate::sys;
use core::arch::naked_asm;
use core::sync::atomic::Ordering::Relaxed;

/// The opcode of `mov eax, NUMBER`.
const NUMBER: u8 = 0xb8;
const BEFORE: usize = 5;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// What may be between the two: some of `mov r64, r64`.
const BETWEEN: usize = 9;

/// Space for the way to us; one page holds several.
const WAY: usize = 64;

/// Where a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallSite {
    at: usize,
    /// From there to behind it.
    size: usize,
}

/// The first call with this number in these bytes, and how many there are.
fn find(code: &[u8], number: usize) -> Option<(CallSite, usize)> {
    let mut start = [NUMBER, 0, 0, 0, 0];
    start[1..].copy_from_slice(&(number as u32).to_le_bytes());
    let begins = code.windows(BEFORE).enumerate().filter(|(_, bytes)| *bytes == start);
    let mut calls = begins.filter_map(|(at, _)| {
        let mut between = 0;
        loop {
            match code.get(at + BEFORE + between..)? {
                [0x0f, 0x05, ..] => return Some(CallSite { at, size: BEFORE + between + SYSCALL.len() }),
                [0x48..=0x4f, 0x89 | 0x8b, 0xc0..=0xff, ..] if between < BETWEEN => between += 3,
                _ => return None,
            }
        }
    });
    let first = calls.next()?;
    Some((first, 1 + calls.count()))
}

/// Replaces code of the calling process. False where that is forbidden, and then nothing is
/// changed.
///
/// # Safety
/// It must be code that no thread runs now, all of it mapped, of this process alone.
unsafe fn write_code(at: usize, code: &[u8]) -> bool {
    let first = at & !(PAGE - 1);
    let size = (at + code.len()).next_multiple_of(PAGE) - first;
    let protection = sys::PROT_READ | sys::PROT_EXEC;
    // SAFETY: the caller's. It stays executable all the time: some kernels' policies do not let it
    // become so again.
    unsafe {
        if sys::mprotect(first, size, protection | sys::PROT_WRITE) < 0 {
            return false;
        }
        core::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len());
        sys::mprotect(first, size, protection);
    }
    true
}

/// Replaces one call by [`called`], by way of `spare`. Whether it did.
///
/// # Safety
/// As [`replace_by`].
unsafe fn replace(code: &[u8], call: CallSite, spare: usize) -> bool {
    // SAFETY: the caller's; it takes the place of such a call.
    unsafe { replace_by(code, call, spare, called as *const () as usize) }
}

/// Replaces one call by what is at `ours`, which finds the number in `eax` and in `rcx` where to go
/// on; by way of `spare`, where there is space for [`WAY`] bytes. Whether it did.
///
/// # Safety
/// As [`write_code`]; the call must be one, and `spare` ours.
unsafe fn replace_by(code: &[u8], call: CallSite, spare: usize, ours: usize) -> bool {
    let at = code.as_ptr() as usize + call.at;
    let Ok(distance) = i32::try_from(spare as i64 - (at + BEFORE) as i64) else { return false };
    let kept = &code[call.at..call.at + call.size - SYSCALL.len()];
    // What is in front of the call; mov rcx, back; mov r11, ours; jmp r11: the kernel changes both,
    // so they hold nothing.
    let mut way = [0_u8; WAY];
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        way[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    };
    put(kept);
    put(&[0x48, 0xb9]);
    put(&(at + call.size).to_le_bytes());
    put(&[0x49, 0xbb]);
    put(&ours.to_le_bytes());
    put(&[0x41, 0xff, 0xe3]);
    let mut jump = [0xe9_u8; BEFORE];
    jump[1..].copy_from_slice(&distance.to_le_bytes());
    // SAFETY: the caller's.
    unsafe { write_code(spare, &way) && write_code(at, &jump) }
}

/// In the loader, whose code this is; the page at `spare`, near it, is ours to use.
///
/// # Safety
/// Before it runs, in the process that will run it.
pub(crate) unsafe fn loader(area: &Area, code: &'static [u8], spare: usize) {
    let only = |number, spare| match find(code, number) {
        // SAFETY: the caller's.
        Some((call, 1)) => unsafe { replace(code, call, spare) },
        _ => false,
    };
    for (number, spare, seen) in
        [(sys::nr::MMAP, spare, seen::LOADER_MAPS), (sys::nr::MUNMAP, spare + WAY, seen::LOADER_UNMAPS)]
    {
        if only(number, spare) {
            area.mappings().sees(seen);
        }
    }
}

/// In libc, by the constructor.
///
/// # Safety
/// Before the program runs, and any thread of it.
pub(crate) unsafe fn libc(area: &Area) {
    const LONGEST: usize = 256;
    if !area.mappings().are_marked() {
        return;
    }
    let errno = interpose::look_up(c"__errno_location");
    // SAFETY: new memory.
    let Some(spare) = (unsafe { near::code_page(area, errno) }) else { return };
    let mut ways = (spare..).step_by(WAY);
    let mut replace = |name, number| {
        let at = interpose::look_up(name);
        // Another library may have a function of that name.
        if at == 0 || errno == 0 || !spans::share_a_file(area, at, errno) {
            return false;
        }
        // SAFETY: code of a library, behind which there is more; see the caller's.
        unsafe {
            let code = core::slice::from_raw_parts(at as *const u8, LONGEST);
            find(code, number)
                .is_some_and(|(call, _)| ways.next().is_some_and(|way| replace(code, call, way)))
        }
    };
    let own = area.mappings();
    own.libc.store(spans::inode_at(area, errno), Relaxed);
    if errno != 0 && spans::is_loaders(area, errno) {
        // One and the same. Where threads unmap their own stacks it does so by a call of its own,
        // which has to stay as it is.
        if replace(c"munmap", sys::nr::MUNMAP) {
            own.sees(seen::LOADER_UNMAPS);
        }
        let rest = [(c"mremap", sys::nr::MREMAP), (c"shmat", sys::nr::SHMAT)];
        if own.has_seen(seen::LOADER_MAPS) && rest.into_iter().all(|(name, number)| replace(name, number)) {
            own.sees(seen::LIBC);
        }
        return;
    }
    // The first of these is of use alone, too.
    let all = [
        (c"mmap", sys::nr::MMAP),
        (c"munmap", sys::nr::MUNMAP),
        (c"mremap", sys::nr::MREMAP),
        (c"shmat", sys::nr::SHMAT),
    ];
    if all.into_iter().all(|(name, number)| replace(name, number)) {
        own.sees(seen::LIBC);
    }
}

/// The calls of libc's by which threads and processes are made that share the memory: all of them,
/// or none. `clone3` has no name outside, so it is looked for in all of libc's code.
///
/// # Safety
/// As [`libc`]; what is at `ours` must do what such a call does.
pub(crate) unsafe fn clones(area: &Area, ours: usize) -> bool {
    const LONGEST: usize = 256;
    let [named, errno] = [c"clone", c"__errno_location"].map(interpose::look_up);
    let mut text = (0, 0);
    maps::each(|line| {
        if line.holds(errno) {
            text = (line.start, line.end);
        }
    });
    if named == 0 || errno == 0 || !(text.0..text.1 - LONGEST.min(text.1)).contains(&named) {
        return false;
    }
    // SAFETY: mapped code, of which the kernel just told that it is there.
    let code = unsafe { core::slice::from_raw_parts(text.0 as *const u8, text.1 - text.0) };
    let (first, rest) = (named - text.0, &code[named - text.0..][..LONGEST]);
    let (Some((clone3, 1)), Some((clone, _))) = (find(code, sys::nr::CLONE3), find(rest, sys::nr::CLONE))
    else {
        return false;
    };
    let clone = CallSite { at: first + clone.at, ..clone };
    // SAFETY: the caller's, and new memory.
    unsafe { near::code_page(area, errno) }.is_some_and(|spare| unsafe {
        replace_by(code, clone3, spare, ours) && replace_by(code, clone, spare + WAY, ours)
    })
}

/// In place of the system call: like it, this changes no register but rax, rcx and r11, and no
/// memory below the stack pointer.
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
        "mov esi, eax",
        "sub rsp, 256",
        "and rsp, -16",
        "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8", "movups [rsp + 144], xmm9", "movups [rsp + 160], xmm10", "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12", "movups [rsp + 208], xmm13", "movups [rsp + 224], xmm14", "movups [rsp + 240], xmm15",
        "call {call}",
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
        call = sym call,
    )
}

/// # Safety
/// For [`called`] only: a scavenger's thread, and the system call's arguments and number.
unsafe extern "C" fn call(arguments: &[usize; 6], number: u32) -> isize {
    // SAFETY: a scavenger's GS is its area; the arguments are its own.
    unsafe { super::call(gs::area(), number as usize, *arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: [u8; 7] = [0xb8, 9, 0, 0, 0, 0x0f, 5];

    #[test]
    fn a_call_is_found_with_what_may_be_in_it() {
        let code = |parts: &[&[u8]]| parts.concat();
        let found = |code: &[u8]| find(code, 9).map(|(call, count)| (call.at, call.size, count));
        assert_eq!(found(&code(&[&[0x90], &CALL, &[0xc3]])), Some((1, 7, 1)));
        assert_eq!(found(&code(&[&CALL, &CALL])), Some((0, 7, 2)));
        // mov rdi, r12
        assert_eq!(found(&code(&[&CALL[..5], &[0x4c, 0x89, 0xe7], &CALL[5..]])), Some((0, 10, 1)));
        // mov rdi, [rsp]; mov edi, eax; another number; the end.
        for other in [&[0x48, 0x8b, 0x3c, 0x24][..], &[0x89, 0xc7], &[0xb8, 10, 0, 0, 0]] {
            assert_eq!(found(&code(&[&CALL[..5], other, &CALL[5..]])), None);
        }
        assert_eq!(found(&CALL[..6]), None);
        assert_eq!(find(&CALL, 10), None);
    }

    fn page() -> &'static mut [u8] {
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
        // SAFETY: a new mapping, of a page.
        unsafe {
            let at = sys::mmap(0, PAGE, sys::PROT_READ | sys::PROT_WRITE, flags, -1, 0).expect("memory");
            core::slice::from_raw_parts_mut(at as *mut u8, PAGE)
        }
    }

    #[test]
    fn only_what_brings_the_number_is_replaced() {
        let (code, spare) = (page(), page().as_ptr() as usize);
        code[100..107].copy_from_slice(&CALL);
        let (call, _) = find(code, 9).unwrap();
        // SAFETY: this test's own memory, which nobody runs.
        assert!(unsafe { replace(code, call, spare) });
        let distance = i32::from_le_bytes(code[101..105].try_into().unwrap());
        let behind = code.as_ptr() as usize + 105;
        assert_eq!((code[100], behind.wrapping_add_signed(distance as isize)), (0xe9, spare));
        assert_eq!(code[105..107], SYSCALL);
        // SAFETY: it was written.
        let way = unsafe { core::slice::from_raw_parts(spare as *const u8, WAY) };
        assert_eq!(way[..5], CALL[..5]);
        assert_eq!(way[7..15], (behind + 2).to_le_bytes());
        let code = page();
        code[200..207].copy_from_slice(&CALL);
        let far = CallSite { at: 200, size: 7 };
        // SAFETY: it is not written to.
        assert!(!unsafe { replace(code, far, 1 << 20) }, "too far");
        assert_eq!(code[200..207], CALL);
    }
}

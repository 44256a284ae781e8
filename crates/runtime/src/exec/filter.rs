//! What a scavenger may not do, since the address space has it only once: a system call filter
//! (seccomp).
//!
//! - `brk` moves the one heap end that the primary's malloc works with. It fails with ENOMEM, and
//!   malloc maps memory instead.
//! - Settings of the address space as a whole would hold for the primary: that it is locked in
//!   memory (`mlockall`; it fails, and `munlockall` does nothing), where its parts are
//!   (`PR_SET_MM`), that nothing becomes executable (`PR_SET_MDWE`), that it has no large pages
//!   (`PR_SET_THP_DISABLE`). They fail as where the caller has no right to them, or the kernel does
//!   not know them.
//! - The time stamp counter is not taken from it (`PR_SET_TSC`): aboard it could not be, and at
//!   home the runtime reads it. That fails likewise.
//! - System calls are not handed to the program itself (`PR_SET_SYSCALL_USER_DISPATCH`, see
//!   [`crate::interpose::dispatch`]).
//!
//! Of a program without a dynamic loader these are trapped (SIGSYS) and done by [`on_trap`]. Only
//! calls of this program are: what it executes later lies elsewhere and is not asked.
//!
//! - `arch_prctl`, by which it sets its FS base: its twins reach thread-local storage through the
//!   context, so the context is told, too. A program that sets its GS base ends there ([`bases`]).
//! - `rt_sigprocmask`: a call that is trapped while SIGSYS is blocked ends the process. So SIGSYS
//!   never is.
//! - `rt_sigaction`: nothing of ours stands between its handlers and its yields, so once it has a
//!   handler it stays at home. Of SIGSYS itself it finds and changes nothing (`posix_spawn` in a
//!   child resets signals with handlers).
//! - `clone` with `CLONE_THREAD`: a new thread would share its creator's area, since nothing of
//!   ours is there to give it one. It fails with EAGAIN, as if there were too many threads, and the
//!   launcher is told.
//! - `execve` and `readlink`, for its own file's sake, and [`onward`]'s.
//! - `mmap`, `munmap`, `mremap` and `shmat`, to be done as [`mappings::call`] does them.
//!
//! Of a program with a loader whose libc has twins, the loader's `arch_prctl` is trapped, for the
//! same reason: libc runs before the runtime's constructor.

use crate::exec::onward;
use crate::interpose::bases;
use crate::interpose::dispatch::PR_SET_SYSCALL_USER_DISPATCH;
use crate::interpose::itself;
use crate::layout::area::{Area, settled};
use crate::mappings;
use crate::signals::action::{IGNORE, SA_RESTORER, SA_SIGINFO, bit};
use crate::signals::frame::{SignalInfo, UserContext};
use crate::switching::gs;
use crate::switching::labels;
use crate::sys::{self, SigAction};
use core::sync::atomic::Ordering::Relaxed;

#[repr(C)]
#[derive(Clone, Copy)]
struct FilterInstruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

const fn load(offset: u32) -> FilterInstruction {
    FilterInstruction { code: 0x20, if_true: 0, if_false: 0, value: offset }
}

/// Goes on with the next instruction if equal, else skips `else_skip`.
const fn equal(value: u32, else_skip: u8) -> FilterInstruction {
    FilterInstruction { code: 0x15, if_true: 0, if_false: else_skip, value }
}

const fn any_bit(value: u32, else_skip: u8) -> FilterInstruction {
    FilterInstruction { code: 0x45, if_true: 0, if_false: else_skip, value }
}

const fn answer(value: u32) -> FilterInstruction {
    FilterInstruction { code: 0x06, if_true: 0, if_false: 0, value }
}

const ARCH_SET_GS: u32 = 0x1001;
const ARCH_SET_FS: u32 = 0x1002;
const SIGSYS: i32 = 31;
const SIGSTOP: i32 = 19;
const EINVAL: isize = -22;
const EOVERFLOW: i32 = 75;
const TRAP: u32 = 0x00030000;
const ALLOW: u32 = 0x7fff0000;
const ERRNO: u32 = 0x00050000;
const EPERM: u32 = 1;
const ENOMEM: u32 = 12;
const INVALID: u32 = 22;
const EAGAIN: u32 = 11;
const ENOSYS: u32 = 38;
const CLONE_THREAD: u32 = 0x10000;
const PR_SET_TSC: u32 = 26;
const PR_SET_MM: u32 = 35;
const PR_SET_THP_DISABLE: u32 = 41;
const PR_SET_MDWE: u32 = 65;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const POINTER: u32 = 8;
const FIRST_ARGUMENT: u32 = 16;
const X86_64: u32 = 0xc000003e;

/// For all programs: what follows finds the call's number loaded.
const SHARED: [FilterInstruction; 23] = [
    load(ARCHITECTURE),
    FilterInstruction { code: 0x15, if_true: 1, if_false: 0, value: X86_64 },
    answer(ALLOW),
    load(NUMBER),
    equal(sys::nr::BRK as u32, 1),
    answer(ERRNO | ENOMEM),
    equal(sys::nr::MLOCKALL as u32, 1),
    answer(ERRNO | EPERM),
    equal(sys::nr::MUNLOCKALL as u32, 1),
    answer(ERRNO), // done, without doing it
    equal(sys::nr::PRCTL as u32, 12),
    load(FIRST_ARGUMENT),
    equal(PR_SET_MM, 1),
    answer(ERRNO | EPERM),
    equal(PR_SET_MDWE, 1),
    answer(ERRNO | INVALID),
    equal(PR_SET_THP_DISABLE, 1),
    answer(ERRNO | INVALID),
    equal(PR_SET_TSC, 1),
    answer(ERRNO | INVALID),
    equal(PR_SET_SYSCALL_USER_DISPATCH as u32, 1),
    answer(ERRNO | INVALID),
    answer(ALLOW),
];

const DYNAMIC: [FilterInstruction; SHARED.len() + 1] = joined(&[answer(ALLOW)], &[]);

/// What is behind [`SHARED`], in two parts.
const fn joined<const ALL: usize>(
    middle: &[FilterInstruction],
    end: &[FilterInstruction],
) -> [FilterInstruction; ALL] {
    let before_end = SHARED.len() + middle.len();
    assert!(ALL == before_end + end.len());
    let mut all = [answer(ALLOW); ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < SHARED.len() {
            SHARED[at]
        } else if at < before_end {
            middle[at - SHARED.len()]
        } else {
            end[at - before_end]
        };
        at += 1;
    }
    all
}

/// Traps what is called from these addresses, which share their upper halves, and allows the rest.
const fn trapped_within(first: u64, end: u64) -> [FilterInstruction; 7] {
    [
        load(POINTER + 4),
        equal((first >> 32) as u32, 4),
        load(POINTER),
        at_least(first as u32, 2),
        FilterInstruction { code: 0x35, if_true: 1, if_false: 0, value: end as u32 },
        answer(TRAP),
        answer(ALLOW),
    ]
}

const fn at_least(value: u32, else_skip: u8) -> FilterInstruction {
    FilterInstruction { code: 0x35, if_true: 0, if_false: else_skip, value }
}

/// With the addresses of the program, which share their upper halves.
const fn for_static(first: u64, end: u64) -> [FilterInstruction; SHARED.len() + 32] {
    let (upper, lowest, past) = ((first >> 32) as u32, first as u32, end as u32);
    let by_number = [
        equal(sys::nr::CLONE3 as u32, 1),
        answer(ERRNO | ENOSYS),
        equal(sys::nr::CLONE as u32, 9),
        load(FIRST_ARGUMENT),
        any_bit(CLONE_THREAD, 26),
        load(POINTER + 4),
        equal(upper, 4),
        load(POINTER),
        at_least(lowest, 2),
        FilterInstruction { code: 0x35, if_true: 1, if_false: 0, value: past },
        answer(TRAP),
        answer(ERRNO | EAGAIN),
        equal(sys::nr::ARCH_PRCTL as u32, 3),
        load(FIRST_ARGUMENT),
        FilterInstruction { code: 0x15, if_true: 10, if_false: 0, value: ARCH_SET_FS },
        FilterInstruction { code: 0x15, if_true: 9, if_false: 15, value: ARCH_SET_GS },
        FilterInstruction { code: 0x15, if_true: 8, if_false: 0, value: sys::nr::RT_SIGPROCMASK as u32 },
        FilterInstruction { code: 0x15, if_true: 7, if_false: 0, value: sys::nr::MMAP as u32 },
        FilterInstruction { code: 0x15, if_true: 6, if_false: 0, value: sys::nr::MUNMAP as u32 },
        FilterInstruction { code: 0x15, if_true: 5, if_false: 0, value: sys::nr::MREMAP as u32 },
        FilterInstruction { code: 0x15, if_true: 4, if_false: 0, value: sys::nr::SHMAT as u32 },
        FilterInstruction { code: 0x15, if_true: 3, if_false: 0, value: sys::nr::EXECVE as u32 },
        FilterInstruction { code: 0x15, if_true: 2, if_false: 0, value: sys::nr::READLINK as u32 },
        FilterInstruction { code: 0x15, if_true: 1, if_false: 0, value: sys::nr::READLINKAT as u32 },
        equal(sys::nr::RT_SIGACTION as u32, 6),
    ];
    joined(&by_number, &trapped_within(first, end))
}

/// With the addresses of a loader.
const fn for_loader(first: u64, end: u64) -> [FilterInstruction; SHARED.len() + 10] {
    let sets_fs = [equal(sys::nr::ARCH_PRCTL as u32, 8), load(FIRST_ARGUMENT), equal(ARCH_SET_FS, 6)];
    joined(&sets_fs, &trapped_within(first, end))
}

/// The kernel's signal for a call that was trapped: does it, and tells the context.
///
/// # Safety
/// For the kernel only, in a scavenger.
unsafe extern "C" fn on_trap(_: i32, _: *const SignalInfo, context: &mut UserContext) {
    let registers = &mut context.registers;
    let number = registers.rax as usize;
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9]
        .map(|argument| argument as usize);
    // SAFETY: the program's arguments, as the calls take them; its GS is its area, and from here
    // the filter lets all through.
    registers.rax = unsafe {
        match number {
            sys::nr::RT_SIGPROCMASK => change_mask(&mut context.mask, arguments),
            sys::nr::RT_SIGACTION => set_action(arguments),
            sys::nr::ARCH_PRCTL => set_base(arguments),
            sys::nr::MMAP | sys::nr::MUNMAP | sys::nr::MREMAP | sys::nr::SHMAT => {
                mappings::call(gs::area(), number, arguments)
            }
            sys::nr::EXECVE => onward::execute(gs::area(), context.mask, arguments),
            sys::nr::READLINK | sys::nr::READLINKAT => read_link(number, arguments),
            _thread => refuse_thread(gs::area()),
        }
    } as u64;
}

/// # Safety
/// The arguments must be what the call takes, and GS the area.
unsafe fn set_action(arguments: [usize; 6]) -> isize {
    let [signal, action, old, ..] = arguments;
    // SAFETY: the caller's.
    unsafe {
        if signal == SIGSYS as usize {
            if let Some(old) = (old as *mut SigAction).as_mut() {
                *old = SigAction::default();
            }
            return 0;
        }
        let result = sys::syscall(sys::nr::RT_SIGACTION, arguments);
        if action != 0 && (*(action as *const SigAction)).handler > IGNORE {
            gs::area().settled.fetch_or(settled::FOR_GOOD, Relaxed);
        }
        result
    }
}

/// # Safety
/// GS must be the area.
unsafe fn set_base(arguments: [usize; 6]) -> isize {
    if arguments[0] == ARCH_SET_GS as usize {
        sys::write(2, bases::LINE);
        sys::exit_group(3);
    }
    // SAFETY: the caller's; a number is set.
    unsafe {
        let result = sys::syscall(sys::nr::ARCH_PRCTL, arguments);
        if result == 0 {
            let area = gs::area();
            area.own().fs.store(arguments[1] as u64, Relaxed);
            area.quiet().fs.store(arguments[1] as u64, Relaxed);
        }
        result
    }
}

/// # Safety
/// The arguments must be what the call takes.
unsafe fn read_link(number: usize, arguments: [usize; 6]) -> isize {
    let skipped = usize::from(number == sys::nr::READLINKAT);
    let [path, buffer, size] = [0, 1, 2].map(|at| arguments[at + skipped]);
    // SAFETY: the caller's.
    unsafe { itself::read_link(path, buffer, size).unwrap_or_else(|| sys::syscall(number, arguments)) }
}

fn refuse_thread(area: &Area) -> isize {
    area.scavenger().refused_threads.store(1, Relaxed);
    -(EAGAIN as isize)
}

/// As the kernel would, but that SIGSYS is never blocked. The mask is the one that the handler's
/// return sets.
///
/// # Safety
/// The arguments must be what the call takes.
unsafe fn change_mask(mask: &mut u64, [how, new, old, size, ..]: [usize; 6]) -> isize {
    const BLOCK: usize = 0;
    const UNBLOCK: usize = 1;
    const SET: usize = 2;
    const UNBLOCKABLE: u64 = bit(sys::SIGKILL) | bit(SIGSTOP) | bit(SIGSYS);
    if size != size_of::<u64>() || new != 0 && how > SET {
        return EINVAL;
    }
    // SAFETY: the caller's; they may be one.
    unsafe {
        let wanted = (new as *const u64).as_ref().copied();
        if let Some(old) = (old as *mut u64).as_mut() {
            *old = *mask;
        }
        match (wanted, how) {
            (None, _) => {}
            (Some(wanted), BLOCK) => *mask |= wanted & !UNBLOCKABLE,
            (Some(wanted), UNBLOCK) => *mask &= !wanted,
            (Some(wanted), _) => *mask = wanted & !UNBLOCKABLE,
        }
    }
    0
}

/// Which calls are trapped, by where they are made.
#[derive(Clone, Copy)]
pub(crate) enum Trapped {
    None,
    /// A loader's, by which it sets the FS base, until [`end_of_start`].
    FsBase((usize, usize)),
    /// All that are, of a program without a loader.
    All((usize, usize)),
}

/// The kernel's signal for a call that is trapped, as a bit of a mask.
pub(crate) const SIGNAL: u64 = bit(SIGSYS);

/// The loader is done: the signal is the program's, as it inherits it.
pub(crate) fn end_of_start(blocked: u64, ignored: u64) {
    let handler = if ignored & SIGNAL == 0 { 0 } else { IGNORE };
    // SAFETY: no handler.
    unsafe { sys::sigaction(SIGSYS, Some(&SigAction { handler, ..SigAction::default() }), None) };
    sys::set_signal_mask(blocked);
}

/// Sets it for the calling process and what it starts. An error is the kernel's number.
pub(crate) fn install(trapped: Trapped) -> Result<(), i32> {
    #[repr(C)]
    struct Program {
        length: u16,
        first: *const FilterInstruction,
    }
    const FILTER: usize = 2;
    let (first, end) = match trapped {
        Trapped::None => (0, 0),
        Trapped::FsBase((first, end)) | Trapped::All((first, end)) => (first as u64, end as u64),
    };
    let (fixed, by_loader) = (for_static(first, end), for_loader(first, end));
    let instructions: &[FilterInstruction] = match trapped {
        Trapped::None => &DYNAMIC,
        Trapped::FsBase(_) => &by_loader,
        Trapped::All(_) => &fixed,
    };
    if !matches!(trapped, Trapped::None) {
        if first >> 32 != end >> 32 {
            return Err(EOVERFLOW); // one chance in thousands: the next start finds other addresses
        }
        let action = SigAction {
            handler: on_trap as *const () as usize,
            flags: SA_SIGINFO | SA_RESTORER,
            restorer: labels::restorer_address(),
            mask: u64::MAX,
        };
        // SAFETY: a handler of that type.
        unsafe { sys::sigaction(SIGSYS, Some(&action), None) };
    }
    let program = Program { length: instructions.len() as u16, first: instructions.as_ptr() };
    // SAFETY: a program of that length, which the kernel copies and checks.
    let result = unsafe {
        sys::prctl(sys::PR_SET_NO_NEW_PRIVS, 1, 0);
        sys::prctl(sys::PR_SET_SECCOMP, FILTER, &raw const program as usize)
    };
    if result < 0 { Err(-result as i32) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would make of it.
    fn run(program: &[FilterInstruction], number: u32, first_argument: u32, pointer: u64) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let instruction = program[at];
            at += 1;
            let skip =
                |taken: bool| usize::from(if taken { instruction.if_true } else { instruction.if_false });
            match instruction.code {
                0x20 => {
                    loaded = match instruction.value {
                        NUMBER => number,
                        ARCHITECTURE => X86_64,
                        FIRST_ARGUMENT => first_argument,
                        POINTER => pointer as u32,
                        other if other == POINTER + 4 => (pointer >> 32) as u32,
                        other => panic!("offset {other}"),
                    }
                }
                0x15 => at += skip(loaded == instruction.value),
                0x35 => at += skip(loaded >= instruction.value),
                0x45 => at += skip(loaded & instruction.value != 0),
                0x06 => return instruction.value,
                other => panic!("code {other}"),
            }
        }
    }

    #[test]
    fn only_what_must_not_be_is_refused() {
        use sys::nr::{EXECVE, MMAP, MREMAP, MUNMAP, READLINK, READLINKAT, SHMAT};
        let (first, end) = (0x7fff_1000_0000, 0x7fff_1001_0000);
        let by_loader = for_loader(first, end);
        let set = |argument, pointer| run(&by_loader, sys::nr::ARCH_PRCTL as u32, argument, pointer);
        assert_eq!([set(ARCH_SET_FS, first), set(ARCH_SET_FS, end - 1)], [TRAP; 2]);
        assert_eq!([set(ARCH_SET_FS, end), set(ARCH_SET_FS, first - 1), set(ARCH_SET_GS, first)], [ALLOW; 3]);
        assert_eq!(run(&by_loader, MMAP as u32, 0, first), ALLOW);
        let fixed = for_static(first, end);
        for program in [&DYNAMIC[..], &fixed[..], &by_loader[..]] {
            assert_eq!(run(program, sys::nr::BRK as u32, 0, first), ERRNO | ENOMEM);
            assert_eq!(run(program, sys::nr::MMAP as u32, 0, end), ALLOW);
            assert_eq!(run(program, sys::nr::CLONE as u32, 0x11, first), ALLOW, "fork");
            assert_eq!(run(program, sys::nr::MLOCKALL as u32, 3, first), ERRNO | EPERM);
            assert_eq!(run(program, sys::nr::MUNLOCKALL as u32, 0, first), ERRNO, "0, and not done");
            for (option, outcome) in [
                (PR_SET_MM, EPERM),
                (PR_SET_MDWE, INVALID),
                (PR_SET_THP_DISABLE, INVALID),
                (PR_SET_TSC, INVALID),
                (PR_SET_SYSCALL_USER_DISPATCH as u32, INVALID),
            ] {
                assert_eq!(run(program, sys::nr::PRCTL as u32, option, first), ERRNO | outcome);
            }
            assert_eq!(run(program, sys::nr::PRCTL as u32, sys::PR_SET_NAME as u32, first), ALLOW);
        }
        assert_eq!(run(&DYNAMIC, sys::nr::CLONE as u32, CLONE_THREAD, 0), ALLOW);
        assert_eq!(run(&DYNAMIC, sys::nr::CLONE3 as u32, 0, 0), ALLOW);
        for (pointer, answer) in [
            (first, TRAP),
            (end - 1, TRAP),
            (end, ERRNO | EAGAIN),
            (first - 1, ERRNO | EAGAIN),
            (0, ERRNO | EAGAIN),
        ] {
            assert_eq!(
                run(&fixed, sys::nr::CLONE as u32, CLONE_THREAD | 0x100, pointer),
                answer,
                "{pointer:x}"
            );
        }
        assert_eq!(run(&fixed, sys::nr::CLONE as u32, 0x100, first), ALLOW, "a process");
        assert_eq!(run(&fixed, sys::nr::CLONE3 as u32, 0, 0), ERRNO | ENOSYS);
        let set = |argument, pointer| run(&fixed, sys::nr::ARCH_PRCTL as u32, argument, pointer);
        assert_eq!(set(ARCH_SET_FS, first), TRAP);
        assert_eq!(set(ARCH_SET_FS, end - 1), TRAP);
        assert_eq!(set(ARCH_SET_FS, end), ALLOW);
        assert_eq!(set(ARCH_SET_FS, first - 1), ALLOW);
        assert_eq!(set(ARCH_SET_FS, first - (1 << 32)), ALLOW);
        assert_eq!(set(ARCH_SET_FS + 1, first), ALLOW);
        assert_eq!(set(ARCH_SET_GS, first), TRAP);
        assert_eq!(set(ARCH_SET_GS, end), ALLOW, "the runtime's own");
        for trapped in [MMAP, MUNMAP, MREMAP, SHMAT, EXECVE, READLINK, READLINKAT] {
            assert_eq!(run(&fixed, trapped as u32, 0, first), TRAP);
            assert_eq!(run(&fixed, trapped as u32, 0, end), ALLOW);
            assert_eq!(run(&DYNAMIC, trapped as u32, 0, first), ALLOW);
        }
        assert_eq!(run(&fixed, sys::nr::MPROTECT as u32, 0, first), ALLOW);
        assert_eq!(run(&fixed, sys::nr::RT_SIGACTION as u32, 11, first), TRAP);
        assert_eq!(run(&fixed, sys::nr::RT_SIGACTION as u32, 11, end), ALLOW);
        assert_eq!(run(&fixed, sys::nr::RT_SIGPROCMASK as u32, 2, first), TRAP);
        assert_eq!(run(&fixed, sys::nr::RT_SIGPROCMASK as u32, 2, end), ALLOW);
        assert_eq!(run(&DYNAMIC, sys::nr::RT_SIGPROCMASK as u32, 2, first), ALLOW);
    }

    #[test]
    fn what_is_trapped_is_never_blocked() {
        let change = |mask: &mut u64, how: usize, new: Option<u64>| {
            let (new, mut old) = (new.as_ref(), 0_u64);
            let new = new.map_or(0, |new| core::ptr::from_ref(new) as usize);
            // SAFETY: two words of this function.
            let result = unsafe { change_mask(mask, [how, new, &raw mut old as usize, 8, 0, 0]) };
            (result, old)
        };
        let mut mask = 5;
        assert_eq!(change(&mut mask, 0, Some(u64::MAX)), (0, 5));
        assert_eq!(mask, !(bit(9) | bit(19) | bit(31)));
        let all = mask;
        assert_eq!(change(&mut mask, 1, Some(1)), (0, all));
        assert_eq!(change(&mut mask, 7, None), (0, all & !1));
        assert_eq!(change(&mut mask, 2, Some(bit(31) | 2)), (0, all & !1));
        assert_eq!(mask, 2);
        assert_eq!(change(&mut mask, 3, Some(0)).0, -22);
    }
}

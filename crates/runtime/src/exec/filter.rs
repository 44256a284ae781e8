//! What a scavenger may not do, since the address space has it only once: a system call filter (seccomp).
//!
//! - `brk` moves the one heap end that the primary's malloc works with. It fails with ENOMEM, and malloc maps memory instead.
//! - A new thread of a program without a dynamic loader would share its creator's area, since nothing of ours is in it to give
//!   it one. `clone` with `CLONE_THREAD` fails with EAGAIN, as if there were too many.

use crate::sys;

#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

const fn load(offset: u32) -> Instruction {
    Instruction { code: 0x20, if_true: 0, if_false: 0, value: offset }
}

/// Goes on with the next instruction if equal, else skips so many.
const fn equal(value: u32, else_skip: u8) -> Instruction {
    Instruction { code: 0x15, if_true: 0, if_false: else_skip, value }
}

const fn any_bit(value: u32, else_skip: u8) -> Instruction {
    Instruction { code: 0x45, if_true: 0, if_false: else_skip, value }
}

const fn answer(value: u32) -> Instruction {
    Instruction { code: 0x06, if_true: 0, if_false: 0, value }
}

const ALLOW: u32 = 0x7fff0000;
const ERRNO: u32 = 0x00050000;
const ENOMEM: u32 = 12;
const EAGAIN: u32 = 11;
const ENOSYS: u32 = 38;
const CLONE_THREAD: u32 = 0x10000;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const X86_64: u32 = 0xc000003e;

const DYNAMIC: [Instruction; 6] = [
    load(ARCHITECTURE),
    equal(X86_64, 3),
    load(NUMBER),
    equal(sys::nr::BRK as u32, 1),
    answer(ERRNO | ENOMEM),
    answer(ALLOW),
];

const STATIC: [Instruction; 12] = [
    load(ARCHITECTURE),
    equal(X86_64, 9),
    load(NUMBER),
    equal(sys::nr::BRK as u32, 1),
    answer(ERRNO | ENOMEM),
    equal(sys::nr::CLONE3 as u32, 1),
    answer(ERRNO | ENOSYS),
    equal(sys::nr::CLONE as u32, 3),
    load(FIRST_ARGUMENT),
    any_bit(CLONE_THREAD, 1),
    answer(ERRNO | EAGAIN),
    answer(ALLOW),
];

/// Sets it for the calling process and what it starts. An error is the kernel's number.
pub(crate) fn install(has_loader: bool) -> Result<(), i32> {
    #[repr(C)]
    struct Program {
        length: u16,
        first: *const Instruction,
    }
    const FILTER: usize = 2;
    let instructions: &[Instruction] = if has_loader { &DYNAMIC } else { &STATIC };
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
    fn run(program: &[Instruction], number: u32, first_argument: u32) -> u32 {
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
                        other => panic!("offset {other}"),
                    }
                }
                0x15 => at += skip(loaded == instruction.value),
                0x45 => at += skip(loaded & instruction.value != 0),
                0x06 => return instruction.value,
                other => panic!("code {other}"),
            }
        }
    }

    #[test]
    fn only_what_must_not_be_is_refused() {
        for program in [&DYNAMIC[..], &STATIC[..]] {
            assert_eq!(run(program, sys::nr::BRK as u32, 0), ERRNO | ENOMEM);
            assert_eq!(run(program, sys::nr::MMAP as u32, 0), ALLOW);
            assert_eq!(run(program, sys::nr::CLONE as u32, 0x11), ALLOW, "fork");
        }
        assert_eq!(run(&DYNAMIC, sys::nr::CLONE as u32, CLONE_THREAD), ALLOW);
        assert_eq!(run(&DYNAMIC, sys::nr::CLONE3 as u32, 0), ALLOW);
        assert_eq!(run(&STATIC, sys::nr::CLONE as u32, CLONE_THREAD | 0x100), ERRNO | EAGAIN);
        assert_eq!(run(&STATIC, sys::nr::CLONE3 as u32, 0), ERRNO | ENOSYS);
    }
}

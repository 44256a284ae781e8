//! System calls that the runtime does in a scavenger's place: it replaces the instructions in libc
//! that make them, in the originals. A twin would make them as they were, and those that make a
//! thread or map memory take their guest home anyway.

use iced_x86::{Code, Mnemonic, Register};
use image::Module;

/// `mmap`, `munmap`, `mremap`, `shmat`, `clone` and `clone3`.
const NUMBERS: [u32; 6] = [9, 11, 25, 30, 56, 435];

/// Whether a unit may make one of them: it has the number of one, and a system call in it or behind
/// its end, as where unwind tables leave out what a new thread begins with.
pub(crate) fn makes_one(module: &Module<'_>, unit: usize) -> bool {
    let (mut calls, mut has_number, mut is_last) = (false, false, false);
    for instruction in module.instructions(unit) {
        calls |= instruction.mnemonic() == Mnemonic::Syscall;
        is_last = instruction.code() == Code::Mov_r32_imm32
            && instruction.op0_register() == Register::EAX
            && NUMBERS.contains(&instruction.immediate32());
        has_number |= is_last;
    }
    is_last || calls && has_number
}

//! Ends the loading of registers that a signal interrupted, so that a handler finds in its frame
//! what the program had.
//!
//! Behind a switch back, registers come one by one from the own context's slots; until then they
//! are the guest's. Readers of a frame want the program's: collectors look for pointers in it,
//! unwinders follow `rbp`, handlers change registers there. So the loads are done here instead, and
//! RIP is put behind them. Vector registers are left to the code: where they are loaded, rax may
//! hold the context still.

use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::signals::frame::Registers;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::context;

const RAX: u8 = 0;
const RSP: u8 = 4;
/// More loads than any yield has.
const MOST: usize = 24;
/// `mov dword gs:[BUDGET], …`
const SET_BUDGET: [u8; 8] = [0x65, 0xc7, 0x04, 0x25, 0x28, 0, 0, 0];

/// What may stand behind a switch back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadStep {
    /// `mov to, rax`
    Copy {
        to: u8,
    },
    /// `mov to, [rax + slot(to)]`, or rsp from RSP
    Load {
        to: u8,
    },
    Budget(i32),
}

/// Does what is left of the loads, if the own context is about to be taken on with: rax holds it
/// then, which no program's does.
///
/// # Safety
/// `registers` must be those of an instruction that was fetched, and no other thread may use the
/// own context's slots.
pub(super) unsafe fn to_the_end_of_loads(area: &Area, registers: &mut Registers) {
    let own = area.own();
    for _ in 0..MOST {
        if registers.rax != own.pointer() as u64 {
            return;
        }
        // SAFETY: the caller's; what is behind an instruction done here is fetched next.
        let Some((step, length)) = (unsafe { step(registers.rip) }) else { return };
        match step {
            LoadStep::Copy { to } => *registers.at(to) = registers.rax,
            LoadStep::Load { to: RSP } => registers.rsp = own.rsp.load(Relaxed),
            // SAFETY: the caller's.
            LoadStep::Load { to } => *registers.at(to) = unsafe { slot(own, to) },
            LoadStep::Budget(cycles) => area.twin.budget.store(cycles, Relaxed),
        }
        registers.rip += length;
    }
}

/// Whether these are the bytes of the instruction there. Never reads beyond an instruction: each of
/// these beginnings is that of one instruction only.
///
/// # Safety
/// It must be the address of an instruction that was fetched.
pub(super) unsafe fn stands(at: u64, bytes: &[u8]) -> bool {
    // SAFETY: the caller's; and see above.
    bytes.iter().enumerate().all(|(i, byte)| unsafe { (at as *const u8).add(i).read() } == *byte)
}

/// What stands in a slot.
///
/// # Safety
/// No thread may write to it meanwhile.
pub(super) unsafe fn slot(own: &Context, number: u8) -> u64 {
    // SAFETY: slots lie in front of a context's address; the rest is the caller's.
    unsafe { own.pointer().byte_offset(context::slot(number) as isize).cast::<u64>().read() }
}

/// The step at an address, and its length. Reads no byte behind the instruction: each one read says
/// that there is another.
///
/// # Safety
/// It must be the address of an instruction.
unsafe fn step(at: u64) -> Option<(LoadStep, u64)> {
    // SAFETY: the caller's, and see above.
    let byte = |i: usize| unsafe { (at as *const u8).add(i).read() };
    let prefix = byte(0);
    if prefix == SET_BUDGET[0] {
        // SAFETY: the caller's.
        let stands = unsafe { stands(at, &SET_BUDGET) };
        return stands
            .then(|| (LoadStep::Budget(i32::from_le_bytes([byte(8), byte(9), byte(10), byte(11)])), 12));
    }
    // REX.W, and at most one of R and B.
    let (r, b) = match prefix {
        0x48 => (0, 0),
        0x4c => (8, 0),
        0x49 => (0, 8),
        _ => return None,
    };
    let operation = byte(1);
    if operation != 0x8b && operation != 0x89 {
        return None;
    }
    let modrm = byte(2);
    let (mode, register, other) = (modrm >> 6, (modrm >> 3 & 7) + r, (modrm & 7) + b);
    match (operation, mode) {
        (0x8b, 3) if other == RAX => Some((LoadStep::Copy { to: register }, 3)),
        (0x89, 3) if register == RAX => Some((LoadStep::Copy { to: other }, 3)),
        (0x8b, 1) if other == RAX => {
            let from = i32::from(byte(3) as i8);
            let expected = if register == RSP { context::RSP } else { context::slot(register) };
            (from == expected).then_some((LoadStep::Load { to: register }, 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<(LoadStep, u64)> {
        // SAFETY: whole instructions.
        unsafe { step(bytes.as_ptr() as u64) }
    }

    #[test]
    fn loads_from_slots_are_known() {
        assert_eq!(of(&[0x48, 0x8b, 0x60, 0x10]), Some((LoadStep::Load { to: RSP }, 4))); // mov rsp, [rax + 0x10]
        assert_eq!(of(&[0x48, 0x8b, 0x58, 0x98]), Some((LoadStep::Load { to: 3 }, 4))); // mov rbx, [rax - 0x68]
        assert_eq!(of(&[0x4c, 0x8b, 0x60, 0xe0]), Some((LoadStep::Load { to: 12 }, 4))); // mov r12, [rax - 0x20]
        assert_eq!(of(&[0x48, 0x8b, 0x40, 0x80]), Some((LoadStep::Load { to: RAX }, 4))); // mov rax, [rax - 0x80]
        assert_eq!(of(&[0x49, 0x89, 0xc7]), Some((LoadStep::Copy { to: 15 }, 3))); // mov r15, rax
        assert_eq!(of(&[0x4c, 0x8b, 0xf8]), Some((LoadStep::Copy { to: 15 }, 3))); // the other way to write it
        let budget = [0x65, 0xc7, 0x04, 0x25, 0x28, 0, 0, 0, 0xd0, 0x07, 0, 0];
        assert_eq!(of(&budget), Some((LoadStep::Budget(2000), 12)));
    }

    #[test]
    fn nothing_else_is_done_here() {
        for bytes in [
            &[0x48, 0x8b, 0x58, 0x90][..], // mov rbx, [rax - 0x70]: another's slot
            &[0x48, 0x8b, 0x5b, 0x98],     // mov rbx, [rbx - 0x68]
            &[0x48, 0x89, 0x58, 0x98],     // mov [rax - 0x68], rbx
            &[0x49, 0x8b, 0x58, 0x98],     // mov rbx, [r8 - 0x68]
            &[0x48, 0x8b, 0xc3],           // mov rax, rbx
            &[0x48, 0x8b, 0x00],           // mov rax, [rax]
            &[0x65, 0x48, 0x89, 0x04, 0x25, 0x08, 0, 0, 0], // mov gs:[CUR], rax
            &[0x65, 0xc7, 0x04, 0x25, 0x2c, 0, 0, 0, 1, 0, 0, 0], // mov dword gs:[0x2c], 1
            &[0x65, 0x89, 0x0c, 0x25, 0x28, 0, 0, 0], // mov gs:[BUDGET], ecx
            &[0x8b, 0x48, 0xa0],           // mov ecx, [rax - 0x60]
            &[0xc5, 0xf8, 0x10, 0x80, 0x80, 0, 0, 0], // vmovups xmm0, [rax + 0x80]
            &[0xff, 0x60, 0x08],           // jmp [rax + RIP]
            &[0xc3],
        ] {
            assert_eq!(of(bytes), None, "{bytes:02x?}");
        }
    }
}

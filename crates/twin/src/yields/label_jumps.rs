//! Computed jumps to labels, as an interpreter's from one operation to the next: what they lead to
//! is looked up in the unit's label table, and where it is a label, its twin is gone on with. All
//! else is left to what follows: a leave, and the jump itself.
//!
//! Nothing is known of what a computed jump leads to, so everything may be live there: two
//! registers and the flags are kept in scratch words meanwhile.

use crate::layout::insertions::{Piece, Reference};
use crate::yields::assembler::assemble;
use crate::yields::registers::{RAX, RCX};
use crate::yields::tls::uses_segment;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, OpKind, Register};
use runtime_abi::area;

/// What goes before the jump; `unit` are its address and size. `None` where the jump's operand is
/// of an odd kind, or is in a fixed place, as those of imports.
pub(crate) fn to_label(jump: &Instruction, (start, size): (u64, u32)) -> Option<Piece> {
    let load = load_operand(jump)?;
    Some(assemble(|asm| {
        let miss = asm.label();
        asm.store_area(area::SCRATCH[0], RAX);
        asm.store_area(area::SCRATCH[2], RCX);
        asm.flags_to_rax();
        asm.store_area(area::SCRATCH[1], RAX);
        asm.load_area(RAX, area::SCRATCH[0]);
        // A fault here finds all that the program has.
        asm.raw(&load);
        asm.load_address(RAX, Reference::Address(start));
        asm.subtract(RCX, RAX);
        asm.compare_with_number(RCX, size);
        asm.jump_if_not_below(miss);
        asm.load_address(RAX, Reference::LabelTable);
        asm.load_signed(RCX, RAX, RCX);
        asm.test(RCX);
        asm.jump_if_equal(miss);
        asm.add_scaled(RCX, RAX, RCX, 0);
        asm.load_area(RAX, area::SCRATCH[1]);
        asm.store_area(area::SCRATCH[1], RCX);
        asm.flags_from_rax();
        asm.load_area(RCX, area::SCRATCH[2]);
        asm.load_area(RAX, area::SCRATCH[0]);
        asm.jump_area(area::SCRATCH[1]);
        asm.place(miss);
        asm.load_area(RAX, area::SCRATCH[1]);
        asm.flags_from_rax();
        asm.load_area(RCX, area::SCRATCH[2]);
        asm.load_area(RAX, area::SCRATCH[0]);
    }))
}

/// `mov rcx, …` of what the jump jumps to.
fn load_operand(jump: &Instruction) -> Option<Vec<u8>> {
    let load = match jump.op0_kind() {
        OpKind::Register if jump.op0_register().is_gpr64() => {
            Instruction::with2(Code::Mov_r64_rm64, Register::RCX, jump.op0_register())
        }
        OpKind::Memory => {
            let (base, index) = (jump.memory_base(), jump.memory_index());
            let wide = |register: Register| register == Register::None || register.is_gpr64();
            let far = uses_segment(jump, Register::FS) || uses_segment(jump, Register::GS);
            if jump.code() != Code::Jmp_rm64 || far || !wide(base) || !wide(index) {
                return None;
            }
            let (scale, displacement) = (jump.memory_index_scale(), jump.memory_displacement64() as i64);
            // Without a base the 32 bits are widened with their sign, which the encoder calls 64.
            let size = if base == Register::None { 8 } else { u32::from(displacement != 0) };
            let operand = MemoryOperand::new(base, index, scale, displacement, size, false, Register::None);
            Instruction::with2(Code::Mov_r64_rm64, Register::RCX, operand)
        }
        _ => return None,
    };
    let mut encoder = Encoder::new(64);
    encoder.encode(&load.ok()?, 0).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decode(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn operands() {
        let of = |bytes: &[u8]| load_operand(&decode(bytes)).map(|load| decode(&load).to_string());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&[0xff, 0xe0]), some("mov rcx,rax"));
        assert_eq!(of(&[0x3e, 0x41, 0xff, 0xe4]), some("mov rcx,r12"));
        assert_eq!(of(&[0xff, 0x24, 0xc2]), some("mov rcx,[rdx+rax*8]"));
        assert_eq!(of(&[0x41, 0xff, 0x64, 0xc5, 0x08]), some("mov rcx,[r13+rax*8+8]"));
        assert_eq!(of(&[0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x00]), some("mov rcx,[rax*8+401000h]"));
        assert_eq!(of(&[0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x80]), some("mov rcx,[rax*8-7FBFF000h]"));
        assert_eq!(of(&[0xff, 0x25, 0, 0x10, 0, 0]), None, "a fixed place");
        assert_eq!(of(&[0x64, 0xff, 0x20]), None, "fs");
        assert_eq!(of(&[0x67, 0xff, 0x20]), None, "a short base");
        assert_eq!(of(&[0xff, 0x28]), None, "a far jump");
    }
}

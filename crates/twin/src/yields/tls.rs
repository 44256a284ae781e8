//! Thread-local storage in scavenger twins: what is relative to FS in the original is relative to
//! the context's FS base in the twin, since aboard the FS base is the primary's.

use crate::layout::insertions::Piece;
use crate::yields::assembler::assemble;
use crate::yields::registers::Register as Number;
use iced_x86::{Encoder, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register};
use image::code::regs::RegSet;
use runtime_abi::{area, context};

/// Whether an instruction refers to memory by way of a segment register.
pub(crate) fn uses_segment(instruction: &Instruction, segment: Register) -> bool {
    let explicit = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    // A prefix on what has no memory operand (branch hints, padding) means nothing.
    (explicit || instruction.is_string_instruction() || has_hidden_operand(instruction))
        && (instruction.segment_prefix() == segment || instruction.memory_segment() == segment)
        && instruction.mnemonic() != iced_x86::Mnemonic::Lea
        && instruction.mnemonic() != iced_x86::Mnemonic::Nop
}

fn has_hidden_operand(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Maskmovdqu, Maskmovq, Vmaskmovdqu, Xlatb};
    matches!(instruction.mnemonic(), Xlatb | Maskmovdqu | Maskmovq | Vmaskmovdqu)
}

/// What goes before the instruction, and what takes its place. Where no register is dead, one that
/// the instruction does not use is kept in S1 meanwhile, if it is none of those `taken`; it is
/// loaded again by the end of what takes the instruction's place. Rather none of those that the
/// context's slots hold: for the checker, a slot no longer does once its register was another's.
/// `None` where it cannot be done: the operand is of an odd kind.
pub(crate) fn rewritten(
    instruction: &Instruction,
    live: RegSet,
    taken: RegSet,
    held: RegSet,
) -> Option<(Piece, Vec<u8>)> {
    let plain = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory)
        && !instruction.is_string_instruction()
        && !has_hidden_operand(instruction)
        && !instruction.is_ip_rel_memory_operand()
        && !instruction.is_stack_instruction();
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let wide = |register: Register| register == Register::None || register.is_gpr64();
    if !plain || !wide(base) || !wide(index) {
        return None;
    }
    // The lower registers need no prefix, which some instructions cannot have.
    let usable = [0u32, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 13, 14, 15, 12];
    let dead = usable
        .into_iter()
        .filter(|&register| !(live | taken).contains(RegSet::general(register)))
        .find_map(|register| Some((address(instruction, register), relative_to(instruction, register)?)));
    if dead.is_some() || instruction.flow_control() != FlowControl::Next {
        return dead;
    }
    let others = used(instruction) | taken;
    let borrowed_but = |others: RegSet| {
        let mut rest = usable.into_iter().filter(|&register| !others.contains(RegSet::general(register)));
        rest.find_map(|register| borrowed(instruction, register))
    };
    borrowed_but(others | held).or_else(|| borrowed_but(others))
}

/// General registers that an instruction uses in any way.
fn used(instruction: &Instruction) -> RegSet {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers().iter().map(|used| used.register().full_register());
    used.filter(|register| register.is_gpr64())
        .fold(RegSet::EMPTY, |all, register| all | RegSet::general(register.number() as Number))
}

/// By way of a live register, which is as before in the end. Loading it leaves the flags alone.
fn borrowed(instruction: &Instruction, register: Number) -> Option<(Piece, Vec<u8>)> {
    let mut before = assemble(|asm| asm.store_area(area::SCRATCH[1], register));
    before.append(&address(instruction, register));
    let mut bytes = relative_to(instruction, register)?;
    bytes.extend(assemble(|asm| asm.load_area(register, area::SCRATCH[1])).hot.bytes);
    Some((before, bytes))
}

/// The context's FS base, and what registers add to it.
fn address(instruction: &Instruction, register: Number) -> Piece {
    let number = |register: Register| register.number() as Number;
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    assemble(|asm| {
        asm.load_area(register, area::CUR);
        asm.load(register, register, context::FS);
        if base != Register::None {
            // As an index if it can be one: the other way round only for rsp.
            if number(base) == 4 {
                asm.add_scaled(register, number(base), register, 0);
            } else {
                asm.add_scaled(register, register, number(base), 0);
            }
        }
        if index != Register::None {
            asm.add_scaled(
                register,
                register,
                number(index),
                instruction.memory_index_scale().trailing_zeros(),
            );
        }
    })
}

fn relative_to(instruction: &Instruction, register: Number) -> Option<Vec<u8>> {
    let mut new = *instruction;
    new.set_segment_prefix(Register::None);
    new.set_memory_base(Register::RAX + register);
    new.set_memory_index(Register::None);
    new.set_memory_index_scale(1);
    // Absolute displacements are sign-extended to 64 bits by the decoder.
    new.set_memory_displacement64(i64::from(instruction.memory_displacement64() as i32) as u64);
    new.set_memory_displ_size(if instruction.memory_displacement64() == 0 { 0 } else { 8 });
    let mut encoder = Encoder::new(64);
    encoder.encode(&new, instruction.ip()).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8], live: RegSet) -> Option<(Vec<String>, String)> {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert!(uses_segment(&instruction, Register::FS));
        let (piece, new) = rewritten(&instruction, live, RegSet::EMPTY, RegSet::EMPTY)?;
        Some((text(&piece.hot.bytes), text(&new).concat()))
    }
    fn text(bytes: &[u8]) -> Vec<String> {
        let decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        decoder.into_iter().map(|insn| insn.to_string()).collect()
    }
    fn all_but(numbers: &[u32]) -> RegSet {
        numbers.iter().fold(RegSet::ALL, |set, &number| set - RegSet::general(number))
    }

    #[test]
    fn canaries_and_variables() {
        // mov rax, fs:[28h]
        let (before, new) = of(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], all_but(&[0])).unwrap();
        assert_eq!(before, ["mov rax,gs:[8]", "mov rax,[rax+18h]"]);
        assert_eq!(new, "mov rax,[rax+28h]");
        // add dword ptr fs:[0fffffffffffffffch], 1
        let (_, new) = of(&[0x64, 0x83, 0x04, 0x25, 0xfc, 0xff, 0xff, 0xff, 1], all_but(&[12])).unwrap();
        assert_eq!(new, "add dword ptr [r12-4],1");
        // mov edx, fs:[rax+rcx*4-10h]
        let (before, new) = of(&[0x64, 0x8b, 0x54, 0x88, 0xf0], all_but(&[2])).unwrap();
        assert_eq!(before[2..], ["lea rdx,[rdx+rax]", "lea rdx,[rdx+rcx*4]"]);
        assert_eq!(new, "mov edx,[rdx-10h]");
    }

    #[test]
    fn a_live_register_is_borrowed_where_none_is_dead() {
        // sub rax, fs:[28h]
        let (before, new) = of(&[0x64, 0x48, 0x2b, 0x04, 0x25, 0x28, 0, 0, 0], RegSet::ALL).unwrap();
        assert_eq!(before, ["mov gs:[18h],rcx", "mov rcx,gs:[8]", "mov rcx,[rcx+18h]"]);
        assert_eq!(new, "sub rax,[rcx+28h]mov rcx,gs:[18h]");
        // mov ecx, fs:[rax+rdx*4-10h]
        let (before, new) = of(&[0x64, 0x8b, 0x4c, 0x90, 0xf0], RegSet::ALL).unwrap();
        assert_eq!(before[0], "mov gs:[18h],rsi");
        assert_eq!(new, "mov ecx,[rsi-10h]mov rsi,gs:[18h]");
        // jmp qword ptr fs:[28h] would not come back to load it
        assert_eq!(of(&[0x64, 0xff, 0x24, 0x25, 0x28, 0, 0, 0], RegSet::ALL), None);
    }

    #[test]
    fn what_slots_hold_is_borrowed_last() {
        let load = [0x64, 0x48, 0x2b, 0x04, 0x25, 0x28, 0, 0, 0]; // sub rax, fs:[28h]
        let instruction = Decoder::with_ip(64, &load, 0x1000, DecoderOptions::NONE).decode();
        let by = |held| text(&rewritten(&instruction, RegSet::ALL, RegSet::EMPTY, held).unwrap().1).concat();
        assert_eq!(by(RegSet::general(1) | RegSet::general(2)), "sub rax,[rsi+28h]mov rsi,gs:[18h]");
        assert_eq!(by(RegSet::ALL), "sub rax,[rcx+28h]mov rcx,gs:[18h]");
    }

    #[test]
    fn what_cannot_be_done() {
        // mov ah, fs:[28h] has no form with r8
        assert_eq!(
            of(&[0x64, 0x8a, 0x24, 0x25, 0x28, 0, 0, 0], all_but(&[8])).unwrap().1,
            "mov ah,[rcx+28h]mov rcx,gs:[18h]"
        );
        assert!(of(&[0x64, 0x8a, 0x24, 0x25, 0x28, 0, 0, 0], all_but(&[1, 8])).is_some());
        // push qword ptr fs:[28h]
        assert_eq!(of(&[0x64, 0xff, 0x34, 0x25, 0x28, 0, 0, 0], all_but(&[1])), None);
    }
}

//! The memory operand of a site: whether it can be fetched ahead, and the prefetch that does so.

use crate::layout::insertions::{Part, Reference};
use crate::report::SiteRefusal;
use crate::yields::Fetch;
use crate::yields::tls::uses_segment;
use iced_x86::{
    Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess, OpKind, Register,
};
use image::code::regs::RegSet;
use units::load::Prefetch;

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// What its address hangs on.
    pub registers: RegSet,
    pub is_read: bool,
    pub is_written: bool,
}

impl Operand {
    pub(crate) fn of(
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> Result<Self, SiteRefusal> {
        let explicit = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
        if !explicit || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
            return Err(SiteRefusal::NoMemoryOperand);
        }
        let info = factory.info(instruction);
        let (mut is_read, mut is_written) = (false, false);
        // Pushes and calls have another one besides, of the stack.
        for used in info.used_memory() {
            let same = used.base() == instruction.memory_base() && used.index() == instruction.memory_index();
            if !same {
                continue;
            }
            is_read |= matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            is_written |= matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
        }
        if !is_read && !is_written {
            return Err(SiteRefusal::NoMemoryOperand);
        }
        let index = instruction.memory_index();
        let far = uses_segment(instruction, Register::FS) || uses_segment(instruction, Register::GS);
        if index.is_vector_register() || far || instruction.mnemonic() == Mnemonic::Pop {
            return Err(SiteRefusal::OddOperand);
        }
        let registers = RegSet::of(instruction.memory_base()) | RegSet::of(index);
        Ok(Self { registers, is_read, is_written })
    }
}

/// Whether an operand lies on the stack or at a fixed place.
pub(crate) fn is_near(instruction: &Instruction, has_frame_pointer: bool) -> bool {
    let base = instruction.memory_base();
    instruction.is_ip_rel_memory_operand()
        || base == Register::RSP
        || base == Register::RBP && has_frame_pointer
        || base == Register::None && instruction.memory_index() == Register::None
}

/// Whether `rbp` is set to something near `rsp`.
pub(crate) fn has_frame_pointer(instructions: &[Instruction]) -> bool {
    instructions.iter().any(|insn| {
        insn.op_count() == 2
            && insn.op0_register() == Register::RBP
            && match insn.mnemonic() {
                Mnemonic::Mov => insn.op1_register() == Register::RSP,
                Mnemonic::Lea => insn.memory_base() == Register::RSP,
                _ => false,
            }
    })
}

/// The prefetch of an instruction's operand.
pub(crate) fn fetch(
    instruction: &Instruction,
    operand: &Operand,
    wanted: Option<Prefetch>,
) -> Result<Fetch, SiteRefusal> {
    let what = wanted.unwrap_or(if operand.is_written { Prefetch::Write } else { Prefetch::Read });
    let code = match what {
        Prefetch::Read => Code::Prefetcht0_m8,
        Prefetch::Write => Code::Prefetchw_m8,
    };
    let relative = instruction.is_ip_rel_memory_operand();
    let displacement = instruction.memory_displacement64() as i64;
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    // Without a base the 32 bits are widened with their sign, which the encoder calls 64.
    let size = match base {
        _ if relative => 4,
        Register::None => 8,
        _ => u32::from(displacement != 0),
    };
    let memory = MemoryOperand::new(
        base,
        index,
        instruction.memory_index_scale(),
        displacement,
        size,
        false,
        Register::None,
    );
    let fetch = Instruction::with1(code, memory).map_err(|_| SiteRefusal::OddOperand)?;
    let mut encoder = Encoder::new(64);
    // As if it stood where its operand is; the distance is filled in later.
    encoder.encode(&fetch, instruction.ip()).map_err(|_| SiteRefusal::OddOperand)?;
    let mut prefetches = Part { bytes: encoder.take_buffer(), references: Vec::new() };
    if relative {
        let at = prefetches.bytes.len() - 4;
        let address = instruction.ip_rel_memory_address();
        prefetches.references.push((at as u32, Reference::Address(address)));
    }
    Ok(Fetch { prefetches, origins: vec![instruction.ip()] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn fetched(bytes: &[u8]) -> Result<String, SiteRefusal> {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        let operand = Operand::of(&instruction, &mut InstructionInfoFactory::new())?;
        let fetch = fetch(&instruction, &operand, None)?;
        assert_eq!(fetch.origins, [0x1000]);
        Ok(Decoder::with_ip(64, &fetch.prefetches.bytes, 0, DecoderOptions::NONE).decode().to_string())
    }

    #[test]
    fn operands_are_fetched_as_they_are_used() {
        let of = |bytes: &[u8]| fetched(bytes).unwrap();
        assert_eq!(of(&[0x48, 0x8b, 0x47, 0x08]), "prefetcht0 [rdi+8]", "mov rax, [rdi+8]");
        assert_eq!(of(&[0x48, 0x8b, 0x04, 0xca]), "prefetcht0 [rdx+rcx*8]");
        assert_eq!(of(&[0xf0, 0x83, 0x07, 0x01]), "prefetchw [rdi]", "lock add dword [rdi], 1");
        assert_eq!(of(&[0x48, 0x89, 0x47, 0x08]), "prefetchw [rdi+8]", "mov [rdi+8], rax");
        assert_eq!(of(&[0xff, 0x50, 0x18]), "prefetcht0 [rax+18h]", "call [rax+18h]");
        assert_eq!(of(&[0x41, 0x8b, 0x84, 0x24, 0, 2, 0, 0]), "prefetcht0 [r12+200h]");
        assert_eq!(of(&[0x8b, 0x04, 0x8d, 0, 0x10, 0, 0]), "prefetcht0 [rcx*4+1000h]");
        assert_eq!(of(&[0x8a, 0x04, 0x25, 0xf0, 0xff, 0xff, 0xff]), "prefetcht0 [0FFFFFFFFFFFFFFF0h]");
        assert_eq!(of(&[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 1]), "prefetcht0 [rdi+40h]", "vmovups zmm");
    }

    #[test]
    fn some_have_none_that_can_be() {
        assert_eq!(fetched(&[0x89, 0xf8]), Err(SiteRefusal::NoMemoryOperand), "mov eax, edi");
        assert_eq!(fetched(&[0x8d, 0x04, 0x37]), Err(SiteRefusal::NoMemoryOperand), "lea");
        assert_eq!(fetched(&[0x0f, 0x18, 0x0f]), Err(SiteRefusal::NoMemoryOperand), "prefetcht0");
        assert_eq!(fetched(&[0xa4]), Err(SiteRefusal::NoMemoryOperand), "movsb");
        assert_eq!(fetched(&[0x64, 0x8b, 0x07]), Err(SiteRefusal::OddOperand), "mov eax, fs:[rdi]");
        assert_eq!(fetched(&[0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x8f]), Err(SiteRefusal::OddOperand), "a gather");
    }
}

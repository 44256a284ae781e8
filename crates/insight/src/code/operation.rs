//! How long an instruction that reads memory and computes with it takes by itself, where each turn
//! of its loop waits for the turn before.
//!
//! ```text
//!     addss xmm0, [rdi]     xmm0 of this turn needs that of the last one: four cycles a turn,
//!     add rdi, 4            whatever the load takes, as long as that is less
//! ```
//!
//! A sample behind it says that the core waited for it, not whether for its memory.

use crate::code::cause::{Code, UnitCode, writes};
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use image::flow::dominators::Dominators;
use image::flow::loops::Loops;
use units::Svma;

/// What each turn of a loop waits for, of the turn before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Carried {
    /// The cycles of all operations on the way. The most that processors since Skylake and Zen 2
    /// take, by published tables (uops.info).
    pub cycles: f64,
    /// How many bytes of memory they read in a turn.
    pub bytes: u64,
}

/// The operations on the way from turn to turn, if a load's instruction is one of them.
pub(crate) fn carried(code: &Code<'_>, load: Svma) -> Option<Carried> {
    let (decoded, at) = code.decoded_at(load)?;
    let instruction = decoded.instructions.get(at)?;
    let body = loop_of(&decoded, at)?;
    let mut factory = InstructionInfoFactory::new();
    let bytes = |instruction: &Instruction| instruction.memory_size().size() as u64;
    let register = accumulator(instruction, &mut factory)?;
    let mut found = Carried { cycles: 0.0, bytes: 0 };
    for &other in &body {
        let other = &decoded.instructions[other];
        if accumulator(other, &mut factory) == Some(register) {
            found.cycles += cycles(other);
            found.bytes += if other.op_kinds().any(|kind| kind == OpKind::Memory) { bytes(other) } else { 0 };
        } else if writes(other, register) {
            return None;
        }
    }
    Some(found)
}

/// The register that an operation adds to: its result, and one of its operands.
fn accumulator(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<Register> {
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let register = instruction.op0_register();
    let reads_itself = factory.info(instruction).op0_access() == OpAccess::ReadWrite
        || (1..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand) == register
        });
    reads_itself.then(|| register.full_register())
}

/// The instructions of the innermost loop around one.
fn loop_of(code: &UnitCode, at: usize) -> Option<Vec<usize>> {
    let dominators = Dominators::of(&code.cfg);
    let loops = Loops::of(&code.cfg, &dominators);
    let around = loops.around(code.cfg.block_of(at))?;
    let blocks = around.body.iter().map(|&block| code.cfg.blocks[block as usize]);
    Some(blocks.flat_map(|block| block.first as usize..block.end as usize).collect())
}

fn cycles(instruction: &Instruction) -> f64 {
    const ADDS: [&str; 4] = ["add", "sub", "max", "min"];
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let name = name.strip_prefix('v').unwrap_or(&name);
    let is_float = ["ss", "sd", "ps", "pd", "sh", "ph"].iter().any(|end| name.ends_with(end));
    let starts = |beginning: &str| name.starts_with(beginning);
    if starts("div") || starts("sqrt") {
        20.0
    } else if starts("fm") || starts("fnm") {
        5.0
    } else if starts("pmulld") {
        10.0
    } else if starts("pmul") || starts("pmadd") || starts("mul") && is_float {
        5.0
    } else if starts("imul") || starts("crc32") || is_float && ADDS.iter().any(|it| starts(it)) {
        4.0
    } else if instruction.op0_register().is_vector_register() || starts("adc") || starts("sbb") {
        2.0
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn operations_add_to_a_register_of_theirs() {
        let mut factory = InstructionInfoFactory::new();
        let mut of = |bytes: &[u8]| accumulator(&decoded(bytes), &mut factory);
        assert_eq!(of(&[0xf3, 0x0f, 0x58, 0x07]), Some(Register::ZMM0), "addss xmm0, [rdi]");
        assert_eq!(of(&[0xc5, 0xfa, 0x58, 0x07]), Some(Register::ZMM0), "vaddss xmm0, xmm0, [rdi]");
        assert_eq!(of(&[0xc5, 0xf2, 0x58, 0x07]), None, "vaddss xmm0, xmm1, [rdi]");
        assert_eq!(of(&[0x48, 0x03, 0x07]), Some(Register::RAX), "add rax, [rdi]");
        assert_eq!(of(&[0x48, 0x8b, 0x07]), None, "mov rax, [rdi]");
    }

    #[test]
    fn operations_take_their_time() {
        let of = |bytes: &[u8]| cycles(&decoded(bytes));
        assert_eq!(of(&[0xf3, 0x0f, 0x58, 0x07]), 4.0, "addss xmm0, [rdi]");
        assert_eq!(of(&[0xf2, 0x0f, 0x5e, 0x07]), 20.0, "divsd xmm0, [rdi]");
        assert_eq!(of(&[0x48, 0x0f, 0xaf, 0x07]), 4.0, "imul rax, [rdi]");
        assert_eq!(of(&[0x48, 0x03, 0x07]), 1.0, "add rax, [rdi]");
        assert_eq!(of(&[0x66, 0x0f, 0xfe, 0x07]), 2.0, "paddd xmm0, [rdi]");
    }
}

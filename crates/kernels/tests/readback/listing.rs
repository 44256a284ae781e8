//! A kernel's code as a disassembler reads it that has nothing to do with the assembler that wrote
//! it.

use gleaner_kernels::Kernel;
use std::collections::BTreeSet;
use yaxpeax_x86::long_mode::{InstDecoder, Instruction, Opcode, Operand, RegSpec};

pub(crate) struct Line {
    pub(crate) at: usize,
    pub(crate) bytes: usize,
    pub(crate) instruction: Instruction,
    pub(crate) text: String,
}

pub(crate) struct Listing {
    pub(crate) lines: Vec<Line>,
    pub(crate) starts: BTreeSet<usize>,
}

impl Listing {
    /// Fails the test if a byte does not decode.
    pub(crate) fn of(kernel: &Kernel) -> Listing {
        let decoder = InstDecoder::default();
        let mut lines = Vec::new();
        let mut at = 0;
        while at < kernel.code.len() {
            let instruction = decoder
                .decode_slice(&kernel.code[at..])
                .unwrap_or_else(|e| panic!("{:?} at {at:#x}: {e}", kernel.spec));
            let bytes = length(&instruction);
            lines.push(Line { at, bytes, instruction, text: instruction.to_string() });
            at += bytes;
        }
        assert_eq!(at, kernel.code.len(), "{:?} ends within an instruction", kernel.spec);
        let starts = lines.iter().map(|line| line.at).collect();
        Listing { lines, starts }
    }

    /// How many instructions read exactly so.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.lines.iter().filter(|line| line.text == text).count()
    }

    pub(crate) fn count_if(&self, test: impl Fn(&Line) -> bool) -> usize {
        self.lines.iter().filter(|line| test(line)).count()
    }

    /// The instructions between the first that reads `from` and the next that reads `to`, both
    /// excluded.
    pub(crate) fn between(&self, from: &str, to: &str) -> &[Line] {
        let position = |lines: &[Line], text: &str| {
            lines.iter().position(|line| line.text == text).unwrap_or_else(|| panic!("no {text}"))
        };
        let first = 1 + position(&self.lines, from);
        &self.lines[first..first + position(&self.lines[first..], to)]
    }
}

fn length(instruction: &Instruction) -> usize {
    use yaxpeax_arch::LengthedInstruction;
    instruction.len().to_const() as usize
}

impl Line {
    pub(crate) fn opcode(&self) -> Opcode {
        self.instruction.opcode()
    }

    pub(crate) fn operands(&self) -> impl Iterator<Item = Operand> + '_ {
        (0..self.instruction.operand_count()).map(|i| self.instruction.operand(i))
    }

    /// Where a direct branch goes.
    pub(crate) fn target(&self) -> Option<i64> {
        let distance = match self.instruction.operand(0) {
            Operand::ImmediateI8 { imm } => i64::from(imm),
            Operand::ImmediateI32 { imm } => i64::from(imm),
            _ => return None,
        };
        self.is_branch().then_some((self.at + self.bytes) as i64 + distance)
    }

    pub(crate) fn is_branch(&self) -> bool {
        self.opcode().is_jcc() || self.opcode() == Opcode::JMP
    }

    /// Where a RIP-relative operand points.
    pub(crate) fn rip_target(&self) -> Option<i64> {
        self.operands().find_map(|operand| match operand {
            Operand::Disp { base, disp } if base == RegSpec::rip() => {
                Some((self.at + self.bytes) as i64 + i64::from(disp))
            }
            Operand::MemDeref { base } if base == RegSpec::rip() => Some((self.at + self.bytes) as i64),
            _ => None,
        })
    }

    /// Reads or writes memory; `lea` and `nop` have memory operands but touch none.
    pub(crate) fn touches_memory(&self) -> bool {
        !matches!(self.opcode(), Opcode::LEA | Opcode::NOP) && self.operands().any(|o| o.is_memory())
    }

    /// Writes memory: what has a memory operand first does, but for comparisons and jumps.
    pub(crate) fn stores(&self) -> bool {
        self.touches_memory()
            && self.instruction.operand(0).is_memory()
            && !matches!(self.opcode(), Opcode::CMP | Opcode::TEST | Opcode::JMP)
    }

    /// The register that is written, if it is a general one that a caller expects back.
    pub(crate) fn overwrites_saved(&self) -> Option<&'static str> {
        if matches!(self.opcode(), Opcode::PUSH | Opcode::CMP | Opcode::TEST) {
            return None;
        }
        if self.opcode() == Opcode::CPUID {
            return Some("rbx");
        }
        let Operand::Register { reg } = self.instruction.operand(0) else { return None };
        ["rbx", "rbp", "r12", "r13", "r14", "r15"].into_iter().find(|&saved| whole(reg.name()) == saved)
    }
}

/// The 64-bit register that `name` is a part of, for the parts that appear in kernels.
fn whole(name: &str) -> &str {
    match name {
        "ebx" => "rbx",
        "ebp" => "rbp",
        "r12d" => "r12",
        "r13d" => "r13",
        "r14d" => "r14",
        "r15d" => "r15",
        _ => name,
    }
}

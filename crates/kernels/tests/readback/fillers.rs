//! What stands in a gap: the number is the caller's to check, the kind is checked here.

use crate::listing::Line;
use gleaner_kernels::Filler;
use yaxpeax_x86::long_mode::{Opcode, Operand};

pub(crate) fn check(filler: Filler, lines: &[Line]) {
    for (i, line) in lines.iter().enumerate() {
        let expected = match filler {
            Filler::Alternating => [Kind::Constant, Kind::VectorAdd][i % 2],
            Filler::Mixed => {
                [Kind::IntOr, Kind::VectorAdd, Kind::Store, Kind::IntOr, Kind::VectorAdd, Kind::Branch][i % 6]
            }
            Filler::Nop { bytes } => {
                assert_eq!(line.bytes, bytes as usize, "{}", line.text);
                Kind::Nop
            }
            Filler::IntAdd => Kind::IntAdd,
            Filler::VectorAdd => Kind::VectorAdd,
            Filler::Load => Kind::Load,
            Filler::Store => Kind::Store,
            Filler::Branch => Kind::Branch,
            Filler::TakenBranch => Kind::TakenBranch,
            Filler::Cmp => Kind::Cmp,
        };
        assert_eq!(Kind::of(line), Some(expected), "{filler:?}, {i}: {}", line.text);
        if line.is_branch() {
            assert_eq!(line.target(), Some((line.at + line.bytes) as i64), "not to the next instruction");
        }
    }
    // A result that the one before it also writes would make a chain.
    let register = |line: &Line| match (Kind::of(line), line.instruction.operand(0)) {
        (Some(Kind::Cmp | Kind::Nop), _) => None,
        (_, Operand::Register { reg }) => Some(reg),
        _ => None,
    };
    for pair in lines.windows(2) {
        let (first, second) = (register(&pair[0]), register(&pair[1]));
        assert!(first.is_none() || first != second, "{} {}", pair[0].text, pair[1].text);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nop,
    IntAdd,
    IntOr,
    Constant,
    VectorAdd,
    Load,
    Store,
    Branch,
    TakenBranch,
    Cmp,
}

impl Kind {
    fn of(line: &Line) -> Option<Kind> {
        let name = |i: u8| match line.instruction.operand(i) {
            Operand::Register { reg } => reg.name(),
            _ => "",
        };
        // The sources are the frame's address and a register nobody writes; the results are in the
        // fillers' own registers.
        let integer =
            ["r10", "r11", "r12", "r13", "r14", "r15"].iter().any(|r| name(0).trim_end_matches('d') == *r);
        match line.opcode() {
            Opcode::NOP | Opcode::XCHG => Some(Kind::Nop),
            Opcode::ADD if integer && name(1) == "rbp" => Some(Kind::IntAdd),
            Opcode::OR if integer && name(1) == "rbp" => Some(Kind::IntOr),
            Opcode::PADDD if name(0) != "xmm0" && name(1) == "xmm0" => Some(Kind::VectorAdd),
            Opcode::CMP if name(0) == "rbp" && !line.touches_memory() => Some(Kind::Cmp),
            Opcode::JB => Some(Kind::Branch),
            Opcode::JMP => Some(Kind::TakenBranch),
            Opcode::MOV if integer && line.text.contains("[rbp") => Some(Kind::Load),
            Opcode::MOV if integer && !line.touches_memory() && name(1).is_empty() => Some(Kind::Constant),
            Opcode::MOV if line.stores() && line.text.contains("[rbp") && name(1) == "rbp" => {
                Some(Kind::Store)
            }
            _ => None,
        }
    }
}

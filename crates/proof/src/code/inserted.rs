//! Rule R7: what stands between the copies of instructions.

use super::indexed::{self, is_prefetch};
use crate::Context;
use crate::container::mapping::{PREFETCH, Unit};
use crate::container::stream::Item;
use crate::decode::{Opinion, Second};
use crate::liveness::set::{RED_ZONE, Set, names};
use crate::liveness::{Buffers, Liveness, effects};
use crate::rule::Rule;
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use rayon::prelude::*;

impl Context<'_> {
    /// R7: each inserted instruction is of its mode's closed list, and writes nothing that is live
    /// before the instruction it stands before.
    pub(crate) fn inserted_code(&self, dead: &Liveness<'_, '_>) {
        dead.functions().par_iter().with_min_len(16).for_each_init(
            || (Buffers::default(), InstructionInfoFactory::new(), Second::default()),
            |(buffers, factory, second), members| {
                dead.live(members, buffers, |unit, items, live| {
                    self.inserted(&self.mapping.units[unit as usize], items, live, (factory, second));
                });
            },
        );
    }

    fn inserted(
        &self,
        unit: &Unit<'_>,
        items: &[Item],
        live: &[Set],
        (factory, second): (&mut InstructionInfoFactory, &mut Second),
    ) {
        let mut code = Vec::new();
        for (item, &live) in items.iter().zip(live).filter(|(item, _)| item.inserted > 0) {
            let place = item.place as usize;
            let bytes = &unit.copy[place..place + item.inserted as usize];
            code.clear();
            code.extend(Decoder::with_ip(64, bytes, unit.twin + place as u64, DecoderOptions::NONE));
            let listed = if self.note.mode == PREFETCH {
                let end = unit.twin + place as u64 + u64::from(item.inserted) + u64::from(item.twin_len);
                prefetches(&code, &behind(unit, item), end)
            } else {
                code.iter().take_while(|insn| !insn.is_invalid() && is_poison(insn)).count()
            };
            let mut at = 0;
            for (number, insn) in code.iter().enumerate() {
                let wrong = |what: String| self.findings.at(Rule::Inserted, insn.ip(), what);
                if number >= listed {
                    wrong("inserted code that is not one of the permitted instructions".to_owned());
                    break;
                }
                if let Opinion::Contradicts(what) = second.of(&bytes[at..], insn, true) {
                    wrong(format!("the decoders read this instruction differently: {what}"));
                    break;
                }
                let hit = written(insn, factory) & live;
                if hit != 0 {
                    let before = unit.start + u64::from(item.at);
                    wrong(format!(
                        "inserted code writes what may be live before {before:#x}: {}",
                        names(hit)
                    ));
                }
                at += insn.len();
            }
        }
    }
}

/// The original's instruction that inserted code stands before.
fn behind(unit: &Unit<'_>, item: &Item) -> Instruction {
    let code = &unit.code[item.at as usize..item.end() as usize];
    Decoder::with_ip(64, code, unit.start + u64::from(item.at), DecoderOptions::NONE).decode()
}

/// The number of instructions, from the first one on, that are prefetches or what belongs to one,
/// or that jump over the prefetch behind them, to where its copy ends.
fn prefetches(code: &[Instruction], behind: &Instruction, end: u64) -> usize {
    let mut listed = 0;
    while let Some(rest) = code.get(listed..).filter(|rest| !rest.is_empty()) {
        listed += match indexed::length(rest, behind) {
            Some(length) => length,
            None if is_prefetch(&rest[0]) || jumps_over(&rest[0], behind, end) => 1,
            None => break,
        };
    }
    listed
}

/// A prefetch changes nothing, so it need not be executed.
fn jumps_over(insn: &Instruction, behind: &Instruction, end: u64) -> bool {
    let is_hint = matches!(
        behind.mnemonic(),
        Mnemonic::Prefetchnta
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
    );
    is_hint && insn.code() == Code::Jmp_rel8_64 && insn.near_branch64() == end
}

/// What an inserted instruction changes.
fn written(insn: &Instruction, factory: &mut InstructionInfoFactory) -> Set {
    let effect = effects::of(insn, factory);
    let below = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory && insn.mnemonic() == Mnemonic::Mov;
    effect.writes & !RED_ZONE | if below { RED_ZONE } else { 0 }
}

/// The list of poison: constants into registers, comparisons for their flags, all ones into vectors
/// and masks, constants into the 128 bytes below the stack pointer. Nothing else of memory is
/// touched, nothing can fault, nothing branches.
fn is_poison(insn: &Instruction) -> bool {
    let register = |operand| insn.op_kind(operand) == OpKind::Register;
    let constant = insn.op_count() > 0
        && matches!(
            insn.op_kind(insn.op_count() - 1),
            OpKind::Immediate8
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32
                | OpKind::Immediate32to64
                | OpKind::Immediate64
        );
    let memory = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory);
    if insn.has_lock_prefix() || insn.has_rep_prefix() || insn.segment_prefix() != Register::None {
        return false;
    }
    if memory {
        let from = insn.memory_displacement64() as i64;
        return insn.mnemonic() == Mnemonic::Mov
            && constant
            && insn.memory_base() == Register::RSP
            && insn.memory_index() == Register::None
            && from >= -128
            && from + insn.memory_size().size() as i64 <= 0;
    }
    match insn.mnemonic() {
        Mnemonic::Mov => constant && register(0) && insn.op0_register().full_register() != Register::RSP,
        Mnemonic::Cmp | Mnemonic::Test => constant && register(0),
        Mnemonic::Dec => register(0) && insn.op0_register().size() >= 4,
        Mnemonic::Stc
        | Mnemonic::Clc
        | Mnemonic::Cmc
        | Mnemonic::Sahf
        | Mnemonic::Pcmpeqd
        | Mnemonic::Vpcmpeqd
        | Mnemonic::Vpternlogd
        | Mnemonic::Vpternlogq
        | Mnemonic::Vinsertf128
        | Mnemonic::Kxnorw
        | Mnemonic::Kxnorq => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::set::names;

    fn decode(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn the_closed_list() {
        let listed: [&[u8]; 6] = [
            &[0x48, 0xc7, 0xc0, 1, 2, 3, 4],             // mov rax, imm
            &[0x81, 0xfc, 1, 2, 3, 4],                   // cmp esp, imm
            &[0x66, 0x0f, 0x76, 0xc0],                   // pcmpeqd xmm0, xmm0
            &[0x62, 0xd3, 0x35, 0x48, 0x25, 0xc9, 0xff], // vpternlogd zmm1, zmm9, zmm9, -1
            &[0x48, 0xc7, 0x44, 0x24, 0xf8, 1, 2, 3, 4], // mov qword [rsp-8], imm
            &[0xc7, 0x44, 0x24, 0x80, 1, 2, 3, 4],       // mov dword [rsp-128], imm
        ];
        for bytes in listed {
            assert!(is_poison(&decode(bytes)), "{bytes:x?}");
        }
        let others: [&[u8]; 8] = [
            &[0x48, 0xc7, 0xc4, 1, 2, 3, 4],             // mov rsp, imm
            &[0x48, 0xc7, 0x04, 0x24, 1, 2, 3, 4],       // mov qword [rsp], imm
            &[0x48, 0xc7, 0x44, 0x24, 0xfc, 1, 2, 3, 4], // mov qword [rsp-4], imm
            &[0x48, 0xc7, 0x45, 0xf8, 1, 2, 3, 4],       // mov qword [rbp-8], imm
            &[0x48, 0x89, 0xd8],                         // mov rax, rbx
            &[0x48, 0x8b, 0x44, 0x24, 0xf8],             // mov rax, [rsp-8]
            &[0xfd],                                     // std
            &[0xeb, 0x00],                               // jmp
        ];
        for bytes in others {
            assert!(!is_poison(&decode(bytes)), "{bytes:x?}");
        }
    }

    #[test]
    fn prefetches_and_nothing_else() {
        let prefetches: [&[u8]; 3] = [
            &[0x0f, 0x18, 0x0c, 0xcf],          // prefetcht0 [rdi + rcx*8]
            &[0x0f, 0x18, 0x8f, 0, 0x10, 0, 0], // prefetcht0 [rdi + 0x1000]
            &[0x41, 0x0f, 0x18, 0x4d, 0x40],    // prefetcht0 [r13 + 0x40]
        ];
        for bytes in prefetches {
            assert!(is_prefetch(&decode(bytes)), "{bytes:x?}");
            assert!(!is_poison(&decode(bytes)), "{bytes:x?}");
        }
        let others: [&[u8]; 6] = [
            &[0x8b, 0x04, 0xcf],             // mov eax, [rdi + rcx*8]
            &[0x64, 0x0f, 0x18, 0x0c, 0xcf], // prefetcht0 fs:[rdi + rcx*8]
            &[0x67, 0x0f, 0x18, 0x0f],       // prefetcht0 [edi]
            &[0x0f, 0x0d, 0x0f],             // prefetchw [rdi]
            &[0x0f, 0x18, 0x0d, 0, 0, 0, 0], // prefetcht0 [rip]
            &[0x0f, 0x1f, 0x04, 0xcf],       // nop [rdi + rcx*8]
        ];
        for bytes in others {
            assert!(!is_prefetch(&decode(bytes)), "{bytes:x?}");
        }
    }

    #[test]
    fn what_it_writes() {
        let says = |bytes: &[u8]| names(written(&decode(bytes), &mut InstructionInfoFactory::new()));
        assert_eq!(says(&[0x48, 0xc7, 0xc0, 1, 2, 3, 4]), "rax");
        assert_eq!(says(&[0x81, 0xfc, 1, 2, 3, 4]), "cf, pf, af, zf, sf, of");
        assert_eq!(says(&[0x66, 0x0f, 0x76, 0xc0]), "xmm0");
        assert_eq!(says(&[0xc7, 0x44, 0x24, 0x80, 1, 2, 3, 4]), "the red zone");
        assert_eq!(
            says(&[0x62, 0xd3, 0x35, 0x48, 0x25, 0xc9, 0xff]),
            "xmm1, the upper part of ymm1, the upper part of zmm1"
        );
    }
}

//! A second decoder's opinion of every instruction that a rule depends on.
//!
//! The rules read instructions by `iced-x86`, whose tables of effects they need, and which the
//! rewriter uses, too. An error of that crate would be the same on both sides. So `yaxpeax-x86`, of
//! another author and by other tables, decodes the same bytes, and what the two say is compared.

mod accesses;
mod agreed;
mod bodies;
mod names;
mod operands;
pub(crate) mod skipped_lock;

use crate::liveness::effects::{self, Effect};
use agreed::Agreed;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register, UsedMemory};
pub(crate) use operands::is_branch;
use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{self, InstDecoder, Opcode, Operand};

/// The longest an instruction can be.
const LONGEST: usize = 15;

/// What the second decoder says of an instruction as the first one read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    Agrees,
    /// It knows no such instruction: newer than the decoder, or one that no manual names.
    Unknown,
    /// It reads something else: what differs.
    Contradicts(&'static str),
}

/// The second decoder, with what it has been asked before.
pub(crate) struct Second {
    decoder: InstDecoder,
    /// For each mnemonic of the first decoder, the opcode of the second that was last found to be
    /// the same.
    same: Vec<Option<Opcode>>,
    agreed: Agreed,
    factory: InstructionInfoFactory,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            decoder: InstDecoder::default(),
            same: vec![None; Mnemonic::values().len()],
            agreed: Agreed::default(),
            factory: InstructionInfoFactory::new(),
        }
    }
}

impl Second {
    /// What an instruction reads and writes by the first decoder's tables.
    pub(crate) fn effect(&mut self, first: &Instruction) -> Effect {
        effects::of(first, &mut self.factory)
    }

    /// The memory that an instruction accesses, by the first decoder's tables.
    pub(crate) fn accessed(&mut self, first: &Instruction) -> Vec<UsedMemory> {
        self.factory.info(first).used_memory().to_vec()
    }

    /// What both decoders find at the beginning of `bytes`, of which `first` is what the first one
    /// decoded; and what it reads and writes, where that counts. Compilers write the same few
    /// instructions again and again, and the second decoder is asked once for each.
    pub(crate) fn of(&mut self, bytes: &[u8], first: &Instruction, effect_counts: bool) -> Opinion {
        if self.agreed.knows(bytes, first, effect_counts) {
            return Opinion::Agrees;
        }
        let effect = effect_counts.then(|| self.effect(first));
        let opinion = self.opinion(bytes, first, effect.as_ref());
        if opinion == Opinion::Agrees {
            self.agreed.learn(bytes, first, effect_counts);
        }
        opinion
    }

    /// Compares what both decoders find at the beginning of `bytes`, which may go on behind the
    /// instruction; and what it reads and writes, where that counts.
    pub(crate) fn opinion(&mut self, bytes: &[u8], first: &Instruction, effect: Option<&Effect>) -> Opinion {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        let Ok(second) = self.decoder.decode_slice(bytes) else { return Opinion::Unknown };
        if let Some(what) = self.difference(first, &second) {
            return Opinion::Contradicts(what);
        }
        let effect = effect.filter(|_| !operands::misread(first));
        effect
            .and_then(|effect| accesses::difference(first, effect, &second))
            .map_or(Opinion::Agrees, Opinion::Contradicts)
    }

    fn difference(&mut self, first: &Instruction, second: &long_mode::Instruction) -> Option<&'static str> {
        if second.len().to_const() as usize != first.len() {
            return Some("length");
        }
        if !self.same_operation(first, second) {
            return Some("operation");
        }
        if first.has_lock_prefix() != second.prefixes.lock() {
            return Some("lock prefix");
        }
        if is_branch(first) {
            return (branch_target(first, second) != Some(first.near_branch_target()))
                .then_some("branch target");
        }
        operands::difference(first, second)
    }

    fn same_operation(&mut self, first: &Instruction, second: &long_mode::Instruction) -> bool {
        let (mnemonic, opcode) = (first.mnemonic(), second.opcode());
        if self.same[mnemonic as usize] == Some(opcode) {
            return true;
        }
        let is_same = names::same(mnemonic, opcode);
        if is_same {
            self.same[mnemonic as usize] = Some(opcode);
        }
        is_same
    }
}

fn branch_target(first: &Instruction, second: &long_mode::Instruction) -> Option<u64> {
    let distance = match second.operand(0) {
        Operand::ImmediateI8 { imm } => i64::from(imm),
        Operand::ImmediateI32 { imm } => i64::from(imm),
        _ => return None,
    };
    Some(first.next_ip().wrapping_add_signed(distance))
}

/// Whether an instruction reads or writes memory by way of a segment register.
pub(crate) fn is_relative_to(insn: &Instruction, segment: Register) -> bool {
    let reaches = (0..insn.op_count()).any(|op| {
        matches!(
            insn.op_kind(op),
            OpKind::Memory
                | OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
        )
    });
    reaches && insn.memory_segment() == segment && !matches!(insn.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions};
    use object::elf::SHF_EXECINSTR;
    use std::collections::BTreeMap;

    fn first(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn the_decoders_agree_on_what_compilers_write() {
        let codes: [&[u8]; 24] = [
            &[0x48, 0x89, 0xe5],                               // mov rbp, rsp
            &[0x8b, 0x44, 0x8a, 0xfc],                         // mov eax, [rdx+rcx*4-4]
            &[0x48, 0x8d, 0x05, 0x10, 0, 0, 0],                // lea rax, [rip+0x10]
            &[0x67, 0x8d, 0x51, 0xff],                         // lea edx, [ecx-1]
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],    // mov rax, fs:[0x28]
            &[0x75, 0xfe],                                     // jne
            &[0xe8, 0, 1, 0, 0],                               // call
            &[0xf2, 0xe9, 0, 0, 0, 0],                         // bnd jmp
            &[0xff, 0x25, 8, 0, 0, 0],                         // jmp [rip+8]
            &[0xc3],                                           // ret
            &[0x0f, 0xca],                                     // bswap edx
            &[0x91],                                           // xchg ecx, eax
            &[0xf0, 0x0f, 0xb1, 0x0f],                         // lock cmpxchg [rdi], ecx
            &[0xf0, 0x0f, 0xc1, 0x4f, 0x10],                   // lock xadd [rdi+16], ecx
            &[0xf3, 0x48, 0xab],                               // rep stosq
            &[0xc9],                                           // leave
            &[0x41, 0xc1, 0xe1, 0x02],                         // shl r9d, 2
            &[0x66, 0x0f, 0x6e, 0xc0],                         // movd xmm0, eax
            &[0x66, 0x0f, 0x3a, 0x22, 0xd8, 3],                // pinsrd xmm3, eax, 3
            &[0xdb, 0x6c, 0x24, 0x18],                         // fld tbyte [rsp+24]
            &[0xc5, 0xf8, 0x77],                               // vzeroupper
            &[0xc4, 0x62, 0x1d, 0x90, 0x14, 0xa0],             // vpgatherdd ymm10, [rax+ymm4*4], ymm12
            &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x01], // vmovups zmm0, [rsp+64]
            &[0x62, 0x83, 0xfd, 0x48, 0x3b, 0xd0, 1],          // vextracti64x4 ymm24, zmm18, 1
        ];
        let mut second = Second::default();
        for code in codes {
            let insn = first(code);
            let effect = second.effect(&insn);
            assert_eq!(second.opinion(code, &insn, Some(&effect)), Opinion::Agrees, "{code:x?} {insn}");
        }
        let mask = [0xc5, 0xfb, 0x93, 0xc0]; // kmovd eax, k0
        assert_eq!(second.opinion(&mask, &first(&mask), None), Opinion::Unknown);
    }

    #[test]
    fn whatever_differs_is_noticed() {
        let mut second = Second::default();
        let mut says = |code: &[u8], change: &dyn Fn(&mut Instruction)| {
            let mut insn = first(code);
            change(&mut insn);
            second.opinion(code, &insn, None)
        };
        let load = [0x8b, 0x44, 0x8a, 0xfc]; // mov eax, [rdx+rcx*4-4]
        let wrong = Opinion::Contradicts;
        assert_eq!(says(&load, &|insn| insn.set_len(3)), wrong("length"));
        assert_eq!(says(&load, &|insn| insn.set_code(Code::Movsxd_r32_rm32)), wrong("operation"));
        assert_eq!(says(&load, &|insn| insn.set_has_lock_prefix(true)), wrong("lock prefix"));
        assert_eq!(says(&load, &|insn| insn.set_op0_register(Register::EBX)), wrong("register"));
        assert_eq!(says(&load, &|insn| insn.set_op0_register(Register::RAX)), wrong("register"));
        assert_eq!(says(&load, &|insn| insn.set_memory_base(Register::RSI)), wrong("base"));
        assert_eq!(says(&load, &|insn| insn.set_memory_index(Register::None)), wrong("index"));
        assert_eq!(says(&load, &|insn| insn.set_memory_index_scale(8)), wrong("scale"));
        assert_eq!(says(&load, &|insn| insn.set_memory_displacement64(4)), wrong("displacement"));
        assert_eq!(says(&load, &|insn| insn.set_segment_prefix(Register::FS)), wrong("segment"));
        let add = [0x48, 0x83, 0xc0, 0x08]; // add rax, 8
        assert_eq!(says(&add, &|insn| insn.set_immediate8to64(9)), wrong("constant"));
        let jump = [0xeb, 0x10];
        assert_eq!(says(&jump, &|insn| insn.set_near_branch64(0x1013)), wrong("branch target"));
        let relative = [0x48, 0x8b, 0x05, 0x10, 0, 0, 0]; // mov rax, [rip+16]
        assert_eq!(says(&relative, &|insn| insn.set_memory_displacement64(0x1018)), wrong("displacement"));
    }

    #[test]
    fn effects_that_say_too_little_are_noticed() {
        let add = [0x48, 0x01, 0x0a]; // add [rdx], rcx
        let insn = first(&add);
        let mut second = Second::default();
        let whole = second.effect(&insn);
        let mut says = |effect: Effect| second.opinion(&add, &insn, Some(&effect));
        assert_eq!(says(whole), Opinion::Agrees);
        assert_eq!(says(Effect { reads: whole.reads & !(1 << 1), ..whole }), Opinion::Contradicts("read"));
        assert_eq!(says(Effect { reads: whole.reads & !(1 << 2), ..whole }), Opinion::Contradicts("read"));
        assert_eq!(says(Effect { kills: whole.kills | 1, ..whole }), Opinion::Contradicts("overwritten"));
        assert_eq!(says(Effect { writes: 0, kills: 0, ..whole }), Opinion::Contradicts("written"));
    }

    /// What the kernel alone may do, `insertq` with constants, and `fnstsw ax` behind a REX prefix.
    const DIFFERENT: [&str; 10] = [
        "operation Getsecq",
        "operation Sysexitq",
        "operation Sysretq",
        "operation Vmgexit",
        "overwritten Invept",
        "overwritten Invvpid",
        "overwritten Sysret",
        "read Insertq",
        "register Fnstsw",
        "registers Vmrun",
    ];

    #[test]
    fn it_is_known_where_the_decoders_differ() {
        let mut found = BTreeMap::new();
        let mut second = Second::default();
        let prefixes: [&[u8]; 8] = [&[], &[0x66], &[0x48], &[0xf3], &[0xf2], &[0x41], &[0x49], &[0xf3, 0x48]];
        let maps: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
        let operands = || (0..8).flat_map(|number| [0xc1, 0x01, 0x41, 0xc0].map(|form| form | number << 3));
        for (prefix, map) in prefixes.into_iter().flat_map(|prefix| maps.map(|map| (prefix, map))) {
            let is_another_prefix = |op| map.is_empty() && (0x40..0x50).contains(&op);
            for (op, operands) in (0..=255_u8).flat_map(|op| operands().map(move |operands| (op, operands))) {
                let code = [prefix, map, &[op, operands, 3, 4, 5, 6, 7, 8, 9, 10]].concat();
                let insn = first(&code);
                if insn.is_invalid() || is_another_prefix(op) {
                    continue;
                }
                let effect = second.effect(&insn);
                if let Opinion::Contradicts(what) = second.opinion(&code, &insn, Some(&effect)) {
                    found.insert(format!("{what} {:?}", insn.mnemonic()), code);
                }
            }
        }
        let new: Vec<_> = found.iter().filter(|(kind, _)| !DIFFERENT.contains(&kind.as_str())).collect();
        assert!(new.is_empty(), "{new:x?}");
        assert_eq!(found.len(), DIFFERENT.len(), "{found:x?}");
    }

    /// Prints how often the decoders differ in the executable sections of the ELF files that
    /// `FILES` names, with an example of each kind: what to run when either decoder is updated.
    #[test]
    #[ignore = "a survey of the host's files, by hand"]
    fn survey() {
        let mut counts: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let mut total = 0usize;
        let mut second = Second::default();
        for path in std::env::var("FILES").unwrap_or_default().split_whitespace() {
            let Ok(data) = std::fs::read(path) else { continue };
            let Ok(elf) = crate::container::elf::Elf::parse(&data) else { continue };
            for section in elf.sections().iter().filter(|section| section.flags.contains(SHF_EXECINSTR)) {
                let code = elf.section_bytes(section).unwrap_or(&[]);
                let mut decoder = Decoder::with_ip(64, code, section.address, DecoderOptions::NONE);
                while decoder.can_decode() {
                    let at = decoder.position();
                    let insn = decoder.decode();
                    if insn.is_invalid() {
                        continue;
                    }
                    total += 1;
                    let effect = second.effect(&insn);
                    let kind = match second.opinion(&code[at..], &insn, Some(&effect)) {
                        Opinion::Agrees => continue,
                        Opinion::Unknown => format!("unknown {:?}", insn.mnemonic()),
                        Opinion::Contradicts(what) => format!("{what} {:?}", insn.mnemonic()),
                    };
                    let example = || {
                        let other = second.decoder.decode_slice(&code[at..]);
                        let other = other.map_or_else(|e| format!("{e:?}"), |other| other.to_string());
                        (0, format!("{:x?} {insn} | {other} ({path})", &code[at..at + insn.len()]))
                    };
                    counts.entry(kind).or_insert_with(example).0 += 1;
                }
            }
        }
        println!("{total} instructions");
        for (kind, (count, example)) in counts {
            println!("{count:8} {kind}: {example}");
        }
    }
}

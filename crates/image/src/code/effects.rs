//! What one instruction reads and what it certainly overwrites, in [`RegSet`]s.
//!
//! Reads are never left out. Writes are counted only where the whole register (or part, see there)
//! gets a value that does not hang on its old one; where that takes thought, it is not counted.
//! Calls, jumps out and returns are not judged here but where their targets are known.

use crate::code::regs::{Flag, R11, RAX, RCX, RegSet};
use iced_x86::{
    EncodingKind, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    RflagsBits,
};

/// The effect of an instruction on registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    pub reads: RegSet,
    /// Certainly and wholly overwritten.
    pub kills: RegSet,
    /// Possibly or partly overwritten (includes `kills`).
    pub writes: RegSet,
}

pub fn effect(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Effect {
    effect_by(instruction, factory.info(instruction))
}

/// The same, for a caller that has the decoder's tables of an instruction.
pub fn effect_by(instruction: &Instruction, info: &InstructionInfo) -> Effect {
    let mut effect = Effect::default();
    if reads_everything(instruction) {
        let writes = if restores_much(instruction) {
            RegSet::ALL
        } else if asks_the_kernel(instruction) {
            returned_by_the_kernel()
        } else {
            named_as_written(instruction, info)
        };
        return Effect { reads: RegSet::ALL, kills: RegSet::EMPTY, writes };
    }
    match instruction.mnemonic() {
        Mnemonic::Vzeroupper | Mnemonic::Vzeroall => {
            for number in 0..16 {
                effect.kills |= RegSet::ymm_upper(number) | RegSet::zmm_upper(number);
                if instruction.mnemonic() == Mnemonic::Vzeroall {
                    effect.kills |= RegSet::xmm(number);
                }
            }
            effect.writes = effect.kills;
            return effect;
        }
        _ => {}
    }
    let legacy = instruction.encoding() == EncodingKind::Legacy;
    let merges = instruction.has_op_mask() && !instruction.zeroing_masking();
    let whole = instruction_writes_whole_xmm(instruction);
    for used in info.used_registers() {
        let register = used.register();
        let set = RegSet::of(register);
        if reads(used.access()) {
            effect.reads |= set;
        }
        if !writes(used.access()) {
            continue;
        }
        let is_vector = register.is_vector_register();
        // All but the old instructions zero what lies above what they write.
        let reach = if is_vector && !legacy { RegSet::vector(register.number() as u32) } else { set };
        effect.writes |= reach;
        let certainly = used.access() == OpAccess::Write;
        let wholly = if is_vector {
            if legacy { whole } else { !merges }
        } else if register.is_gpr() {
            register.size() >= 4
        } else {
            register.is_k()
        };
        if certainly && wholly && !may_leave_its_result(instruction) {
            effect.kills |= reach;
        }
    }
    let flags = |bits| flags(bits);
    effect.reads |= flags(instruction.rflags_read());
    effect.writes |= flags(instruction.rflags_modified());
    if !keeps_flags_at_times(instruction) {
        effect.kills |=
            flags(instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set());
    }
    effect.kills = effect.kills - RegSet::flag(Flag::Direction);
    if is_repeated(instruction) {
        effect.reads |= RegSet::general(RCX);
    }
    // What depends on the old value may equal it: `or edi, edi` reads rdi, and the code that wrote
    // rdi may rely on it.
    effect.kills = effect.kills - effect.reads;
    effect
}

/// What an instruction moves to the stack, and from there.
pub(crate) fn by_stack(instruction: &Instruction) -> (RegSet, RegSet) {
    let register = |op| match instruction.op_kind(op) {
        OpKind::Register => RegSet::of(instruction.op_register(op)),
        _ => RegSet::EMPTY,
    };
    match instruction.mnemonic() {
        Mnemonic::Push => return (register(0), RegSet::EMPTY),
        Mnemonic::Pop => return (RegSet::EMPTY, register(0)),
        _ => {}
    }
    if instruction.op_count() != 2 || !matches!(instruction.memory_base(), Register::RSP | Register::RBP) {
        return (RegSet::EMPTY, RegSet::EMPTY);
    }
    match (instruction.op0_kind(), instruction.op1_kind()) {
        (OpKind::Memory, OpKind::Register) => (register(1), RegSet::EMPTY),
        (OpKind::Register, OpKind::Memory) => (RegSet::EMPTY, register(0)),
        _ => (RegSet::EMPTY, RegSet::EMPTY),
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Instructions that look at (or may put back) more state than their operands say: system calls,
/// traps, saving and restoring of extended state, and whatever only a kernel runs.
fn reads_everything(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl;
    matches!(
        instruction.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Int
            | Mnemonic::Int1
            | Mnemonic::Int3
            | Mnemonic::Into
            | Mnemonic::Hlt
            | Mnemonic::Fxsave
            | Mnemonic::Fxsave64
            | Mnemonic::Fxrstor
            | Mnemonic::Fxrstor64
            | Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
            | Mnemonic::Xsaves
            | Mnemonic::Xsaves64
            | Mnemonic::Xrstor
            | Mnemonic::Xrstor64
            | Mnemonic::Xrstors
            | Mnemonic::Xrstors64
            | Mnemonic::Xbegin
            | Mnemonic::Xend
            | Mnemonic::Xabort
            | Mnemonic::Tilerelease
    ) || instruction.flow_control() == FlowControl::Exception
        || instruction.is_privileged()
}

fn asks_the_kernel(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
}

/// What the decoder's tables say is written: nothing by a trap, eax by the begin of a transaction.
/// That one of them stands in a function does not say that it changes anything else.
fn named_as_written(instruction: &Instruction, info: &InstructionInfo) -> RegSet {
    let flags = flags(instruction.rflags_modified());
    let used = info.used_registers().iter();
    used.filter(|used| writes(used.access())).fold(flags, |all, used| all | RegSet::of(used.register()))
}

/// What a system call changes: everything else is as it was, and callers may know that.
const fn returned_by_the_kernel() -> RegSet {
    RegSet::general(RAX).union(RegSet::general(RCX)).union(RegSet::general(R11))
}

/// Whether it may change more than its operands say: vector registers, masks, modes; which of them
/// hangs on what is in memory.
pub(crate) fn restores_much(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Fxrstor
            | Mnemonic::Fxrstor64
            | Mnemonic::Xrstor
            | Mnemonic::Xrstor64
            | Mnemonic::Xrstors
            | Mnemonic::Xrstors64
    )
}

/// Instructions that at times leave their result register as it was: a search that finds nothing,
/// and what is a no-op on (or set up so on) some machines.
fn may_leave_its_result(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Bsf
            | Mnemonic::Bsr
            | Mnemonic::Tzcnt
            | Mnemonic::Lzcnt
            | Mnemonic::Lar
            | Mnemonic::Lsl
            | Mnemonic::Rdsspd
            | Mnemonic::Rdsspq
    )
}

/// A count of zero leaves all flags as they were.
fn keeps_flags_at_times(instruction: &Instruction) -> bool {
    let by_register = (0..instruction.op_count())
        .any(|op| instruction.op_kind(op) == OpKind::Register && instruction.op_register(op) == Register::CL);
    let by_constant = instruction.op_count() >= 2
        && instruction.op_kind(instruction.op_count() - 1) == OpKind::Immediate8
        && instruction.immediate8().trailing_zeros() >= 5;
    let shifts = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Sal
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Shld
            | Mnemonic::Shrd
    );
    shifts && (by_register || by_constant) || is_repeated(instruction)
}

fn is_repeated(instruction: &Instruction) -> bool {
    (instruction.has_rep_prefix() || instruction.has_repe_prefix() || instruction.has_repne_prefix())
        && instruction.is_string_instruction()
}

/// Whether an old (not VEX-encoded) vector instruction gives all 128 bits of what it writes a value
/// that does not hang on the old one. A list, since many old instructions merge.
fn instruction_writes_whole_xmm(instruction: &Instruction) -> bool {
    let from_memory = instruction.op_count() >= 2 && instruction.op1_kind() == OpKind::Memory;
    match instruction.mnemonic() {
        Mnemonic::Movaps
        | Mnemonic::Movapd
        | Mnemonic::Movups
        | Mnemonic::Movupd
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Lddqu
        | Mnemonic::Movd
        | Mnemonic::Movq
        | Mnemonic::Pshufd
        | Mnemonic::Cvtdq2ps
        | Mnemonic::Cvtps2dq
        | Mnemonic::Cvttps2dq
        | Mnemonic::Cvtdq2pd
        | Mnemonic::Cvtps2pd => true,
        Mnemonic::Movss | Mnemonic::Movsd => from_memory,
        // Of a register with itself: zero. The decoder knows that it does not read then.
        Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd => {
            instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register()
        }
        _ => false,
    }
}

fn flags(bits: u32) -> RegSet {
    const PAIRS: [(u32, Flag); 7] = [
        (RflagsBits::CF, Flag::Carry),
        (RflagsBits::PF, Flag::Parity),
        (RflagsBits::AF, Flag::Adjust),
        (RflagsBits::ZF, Flag::Zero),
        (RflagsBits::SF, Flag::Sign),
        (RflagsBits::OF, Flag::Overflow),
        (RflagsBits::DF, Flag::Direction),
    ];
    if bits == RflagsBits::NONE {
        return RegSet::EMPTY;
    }
    PAIRS
        .into_iter()
        .filter(|&(bit, _)| bits & bit != 0)
        .fold(RegSet::EMPTY, |set, (_, flag)| set | RegSet::flag(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regs::{RDI, RDX, RSI};
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> Effect {
        let instruction = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(instruction.len(), bytes.len());
        effect(&instruction, &mut InstructionInfoFactory::new())
    }
    fn general(numbers: &[u32]) -> RegSet {
        numbers.iter().fold(RegSet::EMPTY, |set, &number| set | RegSet::general(number))
    }

    #[test]
    fn narrow_writes_do_not_kill() {
        assert_eq!(of(&[0x89, 0xf8]).kills, general(&[RAX]), "mov eax, edi");
        assert_eq!(of(&[0x88, 0xf8]).kills, RegSet::EMPTY, "mov al, bh");
        assert_eq!(of(&[0x66, 0x89, 0xf8]).kills, RegSet::EMPTY, "mov ax, di");
        assert_eq!(of(&[0x66, 0x89, 0xf8]).writes, general(&[RAX]));
        assert!(of(&[0x0f, 0x44, 0xc7]).reads.contains(general(&[RAX, RDI])), "cmove eax, edi");
        assert!(of(&[0x0f, 0x44, 0xc7]).reads.contains(RegSet::flag(Flag::Zero)));
        let xor = of(&[0x31, 0xc0]);
        assert!(xor.reads.is_empty() && xor.kills.contains(general(&[RAX])), "xor eax, eax");
        assert!(of(&[0x0f, 0x94, 0xc0]).kills.is_empty(), "sete al");
        assert!(!of(&[0x0f, 0xbc, 0xc7]).kills.meets(general(&[RAX])), "bsf eax, edi may find nothing");
        assert!(of(&[0xf3, 0x48, 0x0f, 0x1e, 0xc8]).kills.is_empty(), "rdsspq rax may be a no-op");
    }

    #[test]
    fn flags_of_shifts_by_a_register_live_on() {
        assert!(!of(&[0xd3, 0xe0]).kills.meets(RegSet::ARITHMETIC_FLAGS), "shl eax, cl");
        assert!(of(&[0xc1, 0xe0, 3]).kills.contains(RegSet::flag(Flag::Carry)), "shl eax, 3");
        assert!(!of(&[0xff, 0xc0]).kills.contains(RegSet::flag(Flag::Carry)), "inc eax");
        assert!(!of(&[0xf3, 0xa6]).kills.meets(RegSet::ARITHMETIC_FLAGS), "repe cmpsb");
        assert!(of(&[0xf3, 0xa4]).reads.contains(general(&[RCX, RSI, RDI])), "rep movsb");
        assert!(of(&[0x9c]).reads.contains(RegSet::ARITHMETIC_FLAGS), "pushfq");
        assert!(of(&[0x9e]).reads.contains(general(&[RAX])), "sahf");
    }

    #[test]
    fn vector_parts() {
        let movaps = of(&[0x0f, 0x28, 0xc1]);
        assert_eq!((movaps.reads, movaps.kills), (RegSet::xmm(1), RegSet::xmm(0)), "movaps xmm0, xmm1");
        assert!(of(&[0xf3, 0x0f, 0x10, 0xc1]).kills.is_empty(), "movss xmm0, xmm1 merges");
        assert!(of(&[0xf2, 0x48, 0x0f, 0x2a, 0xc0]).kills.is_empty(), "cvtsi2sd xmm0, rax merges");
        assert_eq!(of(&[0xc5, 0xf8, 0x28, 0xc1]).kills, RegSet::vector(0), "vmovaps xmm0, xmm1 zeroes above");
        let wide = of(&[0xc5, 0xf4, 0x58, 0xc2]);
        assert_eq!(wide.reads, RegSet::xmm(1) | RegSet::ymm_upper(1) | RegSet::xmm(2) | RegSet::ymm_upper(2));
        assert_eq!(of(&[0xc5, 0xf8, 0x77]).kills & RegSet::xmm(0), RegSet::EMPTY, "vzeroupper");
        assert!(of(&[0xc5, 0xf8, 0x77]).kills.contains(RegSet::ymm_upper(15)));
        // vaddps zmm0{k1}, zmm1, zmm2 keeps what its mask leaves out
        let masked = of(&[0x62, 0xf1, 0x74, 0x49, 0x58, 0xc2]);
        assert!(masked.reads.contains(RegSet::mask(1)) && masked.kills.is_empty());
        let zero = of(&[0x66, 0x0f, 0xef, 0xc0]);
        assert_eq!((zero.reads, zero.kills), (RegSet::EMPTY, RegSet::xmm(0)), "pxor xmm0, xmm0");
    }

    #[test]
    fn traps_change_nothing() {
        assert!(!of(&[0x0f, 0x0b]).writes.meets(RegSet::GENERAL | RegSet::VECTORS), "ud2");
        assert!(!of(&[0xcc]).writes.meets(RegSet::GENERAL | RegSet::VECTORS), "int3");
        let begins = of(&[0xc7, 0xf8, 0, 0, 0, 0]).writes;
        assert_eq!(begins & RegSet::GENERAL, general(&[RAX]), "xbegin");
        assert!(of(&[0x0f, 0x05]).writes.contains(general(&[RAX, RCX, R11])), "syscall");
        assert!(!of(&[0x0f, 0x05]).writes.meets(general(&[RDX, RDI, RSI]) | RegSet::VECTORS), "syscall");
        assert!(of(&[0x0f, 0xae, 0x2f]).writes.contains(RegSet::VECTORS), "xrstor [rdi]");
    }

    #[test]
    fn hidden_reads() {
        assert_eq!(of(&[0x0f, 0x05]).reads, RegSet::ALL, "syscall");
        assert!(of(&[0x48, 0xf7, 0xf7]).reads.contains(general(&[RAX, RDX, RDI])), "div rdi");
        assert!(of(&[0x0f, 0xa2]).kills.contains(general(&[RDX])), "cpuid");
    }
}

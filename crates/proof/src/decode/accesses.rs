//! Which registers an instruction reads and writes by the second decoder's tables, against what the
//! first one's say.

use crate::liveness::effects::Effect;
use crate::liveness::set;
use iced_x86::{Instruction, Mnemonic, OpKind};
use yaxpeax_x86::Access;
use yaxpeax_x86::long_mode::{self, Operand, RegSpec, register_class as class};

/// Registers as both decoders can tell them: 16 general ones, 32 vectors of any width, 8 masks, and
/// the flags as one.
type Registers = u64;

const VECTORS_AT: u32 = 16;
const MASKS_AT: u32 = 48;
const FLAGS: Registers = 1 << 56;

/// What differs, if the first decoder's effect leaves out something that the second one names, or
/// claims to overwrite what the second one does not write. More reads and fewer overwritten
/// registers are no harm.
pub(super) fn difference(
    insn: &Instruction,
    effect: &Effect,
    second: &long_mode::Instruction,
) -> Option<&'static str> {
    let Ok(operands) = second.behavior().all_operands() else { return None };
    let (mut reads, mut writes): (Registers, Registers) = (0, 0);
    for (operand, access) in operands.iter() {
        let (named, addressed) = named(&operand);
        reads |= addressed;
        if matches!(access, Access::Read | Access::ReadWrite) {
            reads |= named;
        }
        if matches!(access, Access::Write | Access::ReadWrite) {
            writes |= named;
        }
    }
    if only_writes_first(insn.mnemonic()) {
        let rest = (1..second.operand_count()).map(|at| named(&second.operand(at)));
        let rest = rest.fold(0, |all, (registers, addressed)| all | registers | addressed);
        let (first, addressed) = named(&second.operand(0));
        reads = reads & !first | rest | addressed;
    }
    let (unread, unwritten) = not_accessed(insn.mnemonic());
    let (first_reads, first_kills, first_writes) =
        (condensed(effect.reads), condensed(effect.kills), condensed(effect.writes));
    if first_kills & !writes & !unwritten != 0 {
        return Some("overwritten");
    }
    if writes & !unwritten & !first_writes != 0 {
        return Some("written");
    }
    (reads & !unread & !first_reads != 0 && !is_zeroing(insn)).then_some("read")
}

/// The registers of an operand, and those that its address is made of.
fn named(operand: &Operand) -> (Registers, Registers) {
    let bit = |register: RegSpec| {
        let number = u32::from(register.num());
        match register.class() {
            class::Q | class::D | class::W | class::RB => 1 << number,
            // ah, ch, dh and bh are parts of the first four.
            class::B => 1 << (number & 3),
            class::X | class::Y | class::Z => 1 << (VECTORS_AT + number),
            class::K => 1 << (MASKS_AT + number),
            class::RFLAGS | class::EFLAGS => FLAGS,
            _ => 0,
        }
    };
    let mask = |mask: RegSpec| if mask.num() == 0 { 0 } else { bit(mask) };
    match *operand {
        Operand::Register { reg } => (bit(reg), 0),
        Operand::RegisterMaskMerge { reg, mask: k, .. }
        | Operand::RegisterMaskMergeSae { reg, mask: k, .. }
        | Operand::RegisterMaskMergeSaeNoround { reg, mask: k, .. } => (bit(reg), mask(k)),
        Operand::MemDeref { base } | Operand::Disp { base, .. } => (0, bit(base)),
        Operand::MemDerefMasked { base, mask: k } | Operand::DispMasked { base, mask: k, .. } => {
            (0, bit(base) | mask(k))
        }
        Operand::MemIndexScale { index, .. } | Operand::MemIndexScaleDisp { index, .. } => (0, bit(index)),
        Operand::MemIndexScaleMasked { index, mask: k, .. }
        | Operand::MemIndexScaleDispMasked { index, mask: k, .. } => (0, bit(index) | mask(k)),
        Operand::MemBaseIndexScale { base, index, .. }
        | Operand::MemBaseIndexScaleDisp { base, index, .. } => (0, bit(base) | bit(index)),
        Operand::MemBaseIndexScaleMasked { base, index, mask: k, .. }
        | Operand::MemBaseIndexScaleDispMasked { base, index, mask: k, .. } => {
            (0, bit(base) | bit(index) | mask(k))
        }
        _ => (0, 0),
    }
}

fn condensed(set: set::Set) -> Registers {
    let general = (set & set::GENERAL) as Registers;
    let (vectors, masks) = set::numbers_of_vectors_and_masks(set);
    // The direction flag has its bit with the state of the x87.
    let flags = if set & (set::STATUS_FLAGS | set::RESERVED & !set::STACK_POINTER) != 0 { FLAGS } else { 0 };
    general | Registers::from(vectors) << VECTORS_AT | Registers::from(masks) << MASKS_AT | flags
}

/// Operations whose first operand is written alone, though the second decoder has it read, too.
fn only_writes_first(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Bsf
            | Mnemonic::Bsr
            | Mnemonic::Cvtsd2si
            | Mnemonic::Cvtss2si
            | Mnemonic::Cvttsd2si
            | Mnemonic::Cvttss2si
            | Mnemonic::Imul
            | Mnemonic::Mov
            | Mnemonic::Movmskpd
            | Mnemonic::Movmskps
            | Mnemonic::Movsd
            | Mnemonic::Movss
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Movzx
            | Mnemonic::Pmovmskb
            | Mnemonic::Pmovsxbd
            | Mnemonic::Pmovsxbq
            | Mnemonic::Pmovsxbw
            | Mnemonic::Pmovsxdq
            | Mnemonic::Pmovsxwd
            | Mnemonic::Pmovsxwq
            | Mnemonic::Pmovzxbd
            | Mnemonic::Pmovzxbq
            | Mnemonic::Pmovzxbw
            | Mnemonic::Pmovzxdq
            | Mnemonic::Pmovzxwd
            | Mnemonic::Pmovzxwq
            | Mnemonic::Pshufd
            | Mnemonic::Tzcnt
            | Mnemonic::Vcvtsd2si
            | Mnemonic::Vcvtss2si
            | Mnemonic::Vcvttsd2si
            | Mnemonic::Vcvttss2si
    )
}

/// What the second decoder names as read, and as written, that the manuals do not: flags that are
/// only set, registers of branches by `rcx`, and `rsp` where `leave` has just overwritten it. A
/// shift by nothing writes no flags.
fn not_accessed(mnemonic: Mnemonic) -> (Registers, Registers) {
    const RCX: Registers = 1 << 1;
    const RSP: Registers = 1 << 4;
    const RDI: Registers = 1 << 7;
    match mnemonic {
        Mnemonic::Clc | Mnemonic::Stc | Mnemonic::Xadd => (FLAGS, 0),
        Mnemonic::Cld | Mnemonic::Std | Mnemonic::Cli | Mnemonic::Sti => (FLAGS, FLAGS),
        Mnemonic::Leave => (RSP, 0),
        Mnemonic::Jrcxz | Mnemonic::Jecxz => (0, RCX | FLAGS),
        Mnemonic::Loop => (FLAGS, FLAGS),
        Mnemonic::Loope | Mnemonic::Loopne => (0, FLAGS),
        Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq => (RDI, RDI),
        Mnemonic::Nop => (Registers::MAX, 0),
        Mnemonic::Rcl | Mnemonic::Rcr => (FLAGS, FLAGS),
        Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Sal
        | Mnemonic::Sar
        | Mnemonic::Shl
        | Mnemonic::Shld
        | Mnemonic::Shr
        | Mnemonic::Shrd => (0, FLAGS),
        // It takes general registers for vectors.
        Mnemonic::Pinsrb | Mnemonic::Pinsrd | Mnemonic::Pinsrq | Mnemonic::Pinsrw => (Registers::MAX, 0),
        _ => (0, 0),
    }
}

/// Whether the result does not hang on what the operands hold, as of `xor eax, eax`.
fn is_zeroing(insn: &Instruction) -> bool {
    let register = |at| (insn.op_kind(at) == OpKind::Register).then(|| insn.op_register(at));
    let count = insn.op_count();
    count >= 2
        && register(count - 1).is_some()
        && register(count - 1) == register(count - 2)
        && insn.mnemonic() != Mnemonic::Mov
}

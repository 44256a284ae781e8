//! What an instruction reads and surely overwrites. Where the decoder's tables leave doubt, it
//! reads and does not overwrite.

use super::set::{ALL, LOWS, RED_ZONE, Set, UPPERS, flags, touched};
use iced_x86::{
    Code, EncodingKind, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

#[derive(Clone, Copy, Default)]
pub(crate) struct Effect {
    pub(crate) reads: Set,
    /// Overwritten whole, whatever happens.
    pub(crate) kills: Set,
    /// Possibly changed.
    pub(crate) writes: Set,
}

pub(crate) fn of(insn: &Instruction, factory: &mut InstructionInfoFactory) -> Effect {
    let info = factory.info(insn);
    let mut effect =
        Effect { reads: flags(insn.rflags_read()), kills: 0, writes: flags(insn.rflags_modified()) };
    for used in info.used_registers() {
        let parts = touched(used.register());
        let access = used.access();
        if !matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::None | OpAccess::NoMemAccess) {
            effect.reads |= parts;
        }
        if !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess) {
            effect.writes |= parts;
        }
        if access == OpAccess::Write && overwrites(insn, used.register()) && !may_keep_its_result(insn) {
            effect.kills |= parts;
        }
    }
    if !keeps_flags(insn) {
        effect.kills |= flags(insn.rflags_written() | insn.rflags_cleared() | insn.rflags_set());
    }
    if matches!(insn.mnemonic(), Mnemonic::Vzeroupper | Mnemonic::Vzeroall) {
        // Of each register at least the upper part gets a value that does not hang on the old one.
        let low = if insn.mnemonic() == Mnemonic::Vzeroall { LOWS } else { 0 };
        (effect.reads, effect.kills, effect.writes) = (0, UPPERS | low, UPPERS | low);
    }
    // Of what is below the stack pointer only rough account is kept.
    if insn.is_stack_instruction() || insn.memory_base() == Register::RSP {
        effect.writes |= RED_ZONE;
    }
    if is_opaque(insn) {
        effect.reads = ALL;
    }
    effect.kills &= !effect.reads;
    effect
}

/// Whether all of the parts that [`touched`] names for a register are overwritten by writing it.
fn overwrites(insn: &Instruction, register: Register) -> bool {
    if register.is_gpr() {
        return register.is_gpr64() || register.is_gpr32();
    }
    if register.is_vector_register() {
        let merges = insn.has_op_mask() && !insn.zeroing_masking();
        let whole =
            matches!(insn.encoding(), EncodingKind::VEX | EncodingKind::EVEX | EncodingKind::XOP) && !merges;
        // Scalar operations of old keep what they do not compute, and the decoder's tables do not
        // tell.
        let old = matches!(
            insn.mnemonic(),
            Mnemonic::Movaps
                | Mnemonic::Movups
                | Mnemonic::Movapd
                | Mnemonic::Movupd
                | Mnemonic::Movdqa
                | Mnemonic::Movdqu
                | Mnemonic::Movd
                | Mnemonic::Movq
                | Mnemonic::Pxor
                | Mnemonic::Xorps
                | Mnemonic::Xorpd
                | Mnemonic::Pshufd
                | Mnemonic::Lddqu
                | Mnemonic::Cvtdq2ps
                | Mnemonic::Cvtdq2pd
                | Mnemonic::Cvtps2pd
                | Mnemonic::Cvtps2dq
                | Mnemonic::Cvttps2dq
        ) || matches!(insn.mnemonic(), Mnemonic::Movss | Mnemonic::Movsd)
            && insn.op1_kind() == OpKind::Memory;
        return whole || old && register.is_xmm() && insn.op0_register() == register;
    }
    register.is_k()
}

/// A search that finds nothing leaves its result alone, and processors that do not know the newer
/// ones take them for the older; a look at segments or at the shadow stack may not be allowed, and
/// then changes nothing.
fn may_keep_its_result(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
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

/// Shifts by nothing and repetitions of nothing leave flags alone.
fn keeps_flags(insn: &Instruction) -> bool {
    if insn.has_rep_prefix() || insn.has_repne_prefix() {
        return true;
    }
    let shift = matches!(
        insn.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Sal
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Shld
            | Mnemonic::Shrd
    );
    let last = insn.op_count().saturating_sub(1);
    shift && (insn.op_kind(last) != OpKind::Immediate8 || insn.immediate8().trailing_zeros() >= 5)
}

/// What the kernel, the processor's microcode or a transaction reads is not in any table.
fn is_opaque(insn: &Instruction) -> bool {
    matches!(
        insn.flow_control(),
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception
    ) || matches!(insn.code(), Code::Syscall | Code::Sysenter | Code::Vmcall | Code::Vmmcall | Code::Hlt)
        || insn.is_save_restore_instruction()
        || matches!(
            insn.mnemonic(),
            Mnemonic::Fxsave
                | Mnemonic::Fxsave64
                | Mnemonic::Xsave
                | Mnemonic::Xsave64
                | Mnemonic::Xsavec
                | Mnemonic::Xsavec64
                | Mnemonic::Xsaveopt
                | Mnemonic::Xsaveopt64
                | Mnemonic::Xrstor
                | Mnemonic::Xrstor64
                | Mnemonic::Fxrstor
                | Mnemonic::Fxrstor64
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::set::names;
    use iced_x86::{Decoder, DecoderOptions};

    /// What is read, and what is overwritten.
    fn says(bytes: &[u8]) -> (String, String) {
        let insn = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        let effect = of(&insn, &mut InstructionInfoFactory::new());
        (names(effect.reads), names(effect.kills))
    }

    #[test]
    fn doubt_is_on_the_side_of_reading() {
        let both = |reads: &str, kills: &str| (reads.to_owned(), kills.to_owned());
        assert_eq!(says(&[0x89, 0xd8]), both("rbx", "rax"), "mov eax, ebx");
        assert_eq!(says(&[0x88, 0xd8]), both("rbx", ""), "mov al, bl keeps the rest");
        assert_eq!(says(&[0x66, 0x89, 0xd8]), both("rbx", ""), "mov ax, bx keeps the rest");
        assert_eq!(says(&[0xd3, 0xe0]), both("rax, rcx", ""), "shl eax, cl may leave flags alone");
        assert_eq!(says(&[0xc1, 0xe0, 0x20]).1, "", "shl eax, 32 does");
        assert_eq!(says(&[0xff, 0xc0]), both("rax", "pf, af, zf, sf, of"), "inc eax keeps the carry");
        assert_eq!(says(&[0xf3, 0xa6]).1, "", "repe cmpsb may compare nothing");
        assert_eq!(says(&[0xf3, 0x0f, 0x51, 0xc1]).1, "", "sqrtss xmm0, xmm1 keeps the rest");
        assert_eq!(says(&[0x0f, 0x28, 0xc1]), both("xmm1", "xmm0"), "movaps xmm0, xmm1 keeps the upper part");
        assert_eq!(
            says(&[0xc5, 0xf8, 0x28, 0xc1]).1,
            "xmm0, the upper part of ymm0, the upper part of zmm0",
            "vmovaps xmm0, xmm1 does not"
        );
        assert_eq!(
            says(&[0x8f, 0xe8, 0x78, 0xc2, 0xc1, 0x05]).1,
            "xmm0, the upper part of ymm0, the upper part of zmm0",
            "nor does vprotd xmm0, xmm1, 5"
        );
        assert_eq!(says(&[0x0f, 0x05]).1, "", "syscall");
    }
}

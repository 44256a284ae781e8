//! What single instructions mean to yields: state that is not switched, and acts on the kernel
//! thread.

use crate::yields::tls::uses_segment;
use iced_x86::{Instruction, Mnemonic, Register};

/// What begins functions that indirect branches may lead to.
pub(crate) const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// State that no yield saves may hold something wherever such an instruction is near: the x87 and
/// MMX registers, tiles and how they are laid out, the direction flag and what else `popf` sets,
/// transactions.
pub(crate) fn uses_unswitched_state(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Iret, Iretd, Iretq, Ldtilecfg, Popf, Popfd, Popfq, Std, Sttilecfg, Tilerelease, Xabort, Xbegin, Xend,
    };
    let uses = |wanted: fn(Register) -> bool| {
        (0..instruction.op_count()).any(|op| wanted(instruction.op_register(op)))
    };
    // `fld [m]` and its like have no register operand, but an opcode of the old coprocessor's.
    let x87 = format_is_x87(instruction);
    x87 || uses(|r| r.is_mm() || r.is_st() || r.is_tmm())
        || matches!(
            instruction.mnemonic(),
            Std | Popf
                | Popfd
                | Popfq
                | Iret
                | Iretd
                | Iretq
                | Ldtilecfg
                | Sttilecfg
                | Tilerelease
                | Xbegin
                | Xend
                | Xabort
        )
}

fn format_is_x87(instruction: &Instruction) -> bool {
    use iced_x86::CpuidFeature::{FPU, FPU287, FPU387};
    let features = instruction.cpuid_features();
    let control = matches!(
        instruction.mnemonic(),
        // These read or set modes and leave the registers alone.
        Mnemonic::Fldcw
            | Mnemonic::Fnstcw
            | Mnemonic::Fstcw
            | Mnemonic::Fnstsw
            | Mnemonic::Wait
            | Mnemonic::Fnop
    );
    !control && features.iter().any(|&f| matches!(f, FPU | FPU287 | FPU387))
}

/// Instructions that act on the kernel thread, or on modes that are not switched: a guest goes home
/// before them. Calls, jumps and accesses by way of FS are looked at elsewhere.
pub(crate) fn acts_on_the_thread(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Clui, Emms, Femms, Finit, Fldcw, Fldenv, Fninit, Fnsave, Fnstenv, Frstor, Fsave, Fstenv, Fxrstor,
        Fxrstor64, Fxsave, Fxsave64, Hlt, Incsspd, Incsspq, Int, Int1, Int3, Into, Ldmxcsr, Ldtilecfg, Lfs,
        Lgs, Lss, Mwaitx, Rdfsbase, Rdgsbase, Rdpid, Rdpkru, Rdsspd, Rdsspq, Rstorssp, Saveprevssp, Senduipi,
        Setssbsy, Sttilecfg, Stui, Swapgs, Syscall, Sysenter, Testui, Tilerelease, Tpause, Uiret, Umwait,
        Vldmxcsr, Wrfsbase, Wrgsbase, Wrpkru, Wrssd, Wrssq, Xrstor, Xrstor64, Xrstors, Xrstors64, Xsave,
        Xsave64, Xsavec, Xsavec64, Xsaveopt, Xsaveopt64, Xsaves, Xsaves64, Xsetbv,
    };
    matches!(
        instruction.mnemonic(),
        Clui | Emms
            | Femms
            | Finit
            | Fldcw
            | Fldenv
            | Fninit
            | Fnsave
            | Fnstenv
            | Frstor
            | Fsave
            | Fstenv
            | Fxrstor
            | Fxrstor64
            | Fxsave
            | Fxsave64
            | Hlt
            | Incsspd
            | Incsspq
            | Int
            | Int1
            | Int3
            | Into
            | Ldmxcsr
            | Ldtilecfg
            | Lfs
            | Lgs
            | Lss
            | Mwaitx
            | Rdfsbase
            | Rdgsbase
            | Rdpid
            | Rdpkru
            | Rdsspd
            | Rdsspq
            | Rstorssp
            | Saveprevssp
            | Senduipi
            | Setssbsy
            | Sttilecfg
            | Stui
            | Swapgs
            | Syscall
            | Sysenter
            | Testui
            | Tilerelease
            | Tpause
            | Uiret
            | Umwait
            | Vldmxcsr
            | Wrfsbase
            | Wrgsbase
            | Wrpkru
            | Wrssd
            | Wrssq
            | Xrstor
            | Xrstor64
            | Xrstors
            | Xrstors64
            | Xsave
            | Xsave64
            | Xsavec
            | Xsavec64
            | Xsaveopt
            | Xsaveopt64
            | Xsaves
            | Xsaves64
            | Xsetbv
    ) || uses_segment(instruction, Register::GS)
        || sets_segment(instruction)
        || uses_unswitched_state(instruction) && !format_is_x87(instruction) && !is_mmx(instruction)
        || instruction.is_privileged()
}

/// `mov` and `pop` to a segment register: those of FS and GS change its base, all are the kernel
/// thread's.
fn sets_segment(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Pop)
        && instruction.op0_register().is_segment_register()
}

fn is_mmx(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|op| instruction.op_register(op).is_mm())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> (bool, bool) {
        let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        assert_eq!(instruction.len(), bytes.len());
        (uses_unswitched_state(&instruction), acts_on_the_thread(&instruction))
    }

    #[test]
    fn one_of_each() {
        assert_eq!(of(&[0xdd, 0x04, 0x24]), (true, false), "fld qword [rsp]");
        assert_eq!(of(&[0xd9, 0xc0]), (true, false), "fld st0");
        assert_eq!(of(&[0x0f, 0x6f, 0xc1]), (true, false), "movq mm0, mm1");
        assert_eq!(of(&[0xfd]), (true, true), "std");
        assert_eq!(of(&[0x9d]), (true, true), "popfq");
        assert_eq!(of(&[0xd9, 0x2c, 0x24]), (false, true), "fldcw [rsp]");
        assert_eq!(of(&[0xd9, 0x3c, 0x24]), (false, false), "fnstcw [rsp]");
        assert_eq!(of(&[0x0f, 0xae, 0x14, 0x24]), (false, true), "ldmxcsr [rsp]");
        assert_eq!(of(&[0x0f, 0x05]), (false, true), "syscall");
        assert_eq!(of(&[0x65, 0x8b, 0x04, 0x25, 0, 0, 0, 0]), (false, true), "mov eax, gs:[0]");
        assert_eq!(of(&[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0]), (false, false), "mov eax, fs:[0]");
        assert_eq!(of(&[0x8b, 0x07]), (false, false), "mov eax, [rdi]");
        assert_eq!(of(&[0x0f, 0x28, 0xc1]), (false, false), "movaps xmm0, xmm1");
        assert_eq!(of(&[0xfc]), (false, false), "cld");
        assert_eq!(of(&[0xd9, 0x34, 0x24]), (true, true), "fnstenv [rsp]");
        assert_eq!(of(&[0xdd, 0x34, 0x24]), (true, true), "fnsave [rsp]");
        assert_eq!(of(&[0x0f, 0xb4, 0x07]), (false, true), "lfs eax, [rdi]");
        assert_eq!(of(&[0x0f, 0xb5, 0x07]), (false, true), "lgs eax, [rdi]");
        assert_eq!(of(&[0x0f, 0xb2, 0x07]), (false, true), "lss eax, [rdi]");
        assert_eq!(of(&[0x8e, 0xe0]), (false, true), "mov fs, eax");
        assert_eq!(of(&[0x8e, 0x2f]), (false, true), "mov gs, [rdi]");
        assert_eq!(of(&[0x8e, 0xd8]), (false, true), "mov ds, eax");
        assert_eq!(of(&[0x8e, 0xd0]), (false, true), "mov ss, eax");
        assert_eq!(of(&[0x0f, 0xa1]), (false, true), "pop fs");
        assert_eq!(of(&[0x8c, 0xe0]), (false, false), "mov eax, fs");
        assert_eq!(of(&[0x0f, 0xa0]), (false, false), "push fs");
        assert_eq!(of(&[0xc4, 0xe2, 0x78, 0x49, 0x07]), (true, true), "ldtilecfg [rdi]");
        assert_eq!(of(&[0xc4, 0xe2, 0x79, 0x49, 0x07]), (true, true), "sttilecfg [rdi]");
        assert_eq!(of(&[0xc4, 0xe2, 0x78, 0x49, 0xc0]), (true, true), "tilerelease");
    }
}

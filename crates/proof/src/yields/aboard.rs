//! Which instructions a guest must not run aboard (rule R16), and thread-local storage that it may
//! reach there (R17).

use super::ops::{General, Op, RSP, Word, op};
use super::state::{State, Value};
use crate::decode::is_relative_to;
use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

/// What acts on the kernel thread, or sets modes that no yield switches. Branches, calls and
/// returns are looked at where it is known what they lead to; what is relative to FS, in
/// [`crate::decode::is_relative_to`].
pub(crate) fn acts_on_the_thread(insn: &Instruction) -> bool {
    use CpuidFeature::{AMX_TILE, CET_SS, FSGSBASE, PKU, RDPID, RTM, UINTR, WAITPKG};
    use Mnemonic::{
        Fldcw, Fldenv, Fninit, Fnsave, Fnstenv, Frstor, Fsave, Fstenv, Iret, Iretd, Iretq, Ldmxcsr, Lfs, Lgs,
        Lss, Popf, Popfd, Popfq, Std, Syscall, Sysenter, Vldmxcsr,
    };
    let segment = insn.op_count() > 0
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().is_segment_register()
        && matches!(insn.mnemonic(), Mnemonic::Mov | Mnemonic::Pop);
    matches!(insn.flow_control(), FlowControl::Interrupt | FlowControl::XbeginXabortXend)
        || matches!(
            insn.mnemonic(),
            Fldcw
                | Fldenv
                | Fninit
                | Fnsave
                | Fnstenv
                | Frstor
                | Fsave
                | Fstenv
                | Iret
                | Iretd
                | Iretq
                | Ldmxcsr
                | Lfs
                | Lgs
                | Lss
                | Popf
                | Popfd
                | Popfq
                | Std
                | Syscall
                | Sysenter
                | Vldmxcsr
        )
        || segment
        || insn.is_privileged()
        || insn.is_save_restore_instruction()
        || is_relative_to(insn, Register::GS)
        || insn.cpuid_features().iter().any(|feature| {
            matches!(feature, AMX_TILE | CET_SS | FSGSBASE | PKU | RDPID | RTM | UINTR | WAITPKG)
        }) && !matches!(insn.mnemonic(), Mnemonic::Xtest)
}

/// State that no yield saves may hold something in a function that has such an instruction.
pub(crate) fn uses_unswitched_state(insn: &Instruction) -> bool {
    use CpuidFeature::{AMX_TILE, FPU, FPU287, FPU387, RTM};
    use Mnemonic::{
        Fldcw, Fnop, Fnstcw, Fnstsw, Fstcw, Fstsw, Iret, Iretd, Iretq, Popf, Popfd, Popfq, Std, Wait, Xtest,
    };
    let mut registers = (0..insn.op_count()).map(|op| insn.op_register(op));
    // These look at modes, or set them, and leave registers alone.
    let control = matches!(insn.mnemonic(), Fldcw | Fnop | Fnstcw | Fnstsw | Fstcw | Fstsw | Wait | Xtest);
    let features = insn.cpuid_features();
    registers.any(|register| register.is_mm() || register.is_st() || register.is_tmm())
        || matches!(insn.mnemonic(), Iret | Iretd | Iretq | Popf | Popfd | Popfq | Std)
        || !control && features.iter().any(|f| matches!(f, AMX_TILE | FPU | FPU287 | FPU387 | RTM))
}

/// The register that a copy of two instructions loads from S1 by its second one; none otherwise.
pub(crate) fn loaded_again(copy: &[u8], address: u64) -> Option<(General, usize)> {
    let mut decoder = Decoder::with_ip(64, copy, address, DecoderOptions::NONE);
    let first = decoder.decode();
    let second = decoder.can_decode().then(|| decoder.decode())?;
    match op(&second) {
        Some(Op::LoadArea(to, Word::Scratch(1))) if !decoder.can_decode() => Some((to, first.len())),
        _ => None,
    }
}

/// Whether `copy` does what `original` does when FS is its base: `state` says what registers and
/// scratch words hold before it. A register in which the address is, though it may be live, is in
/// S1, is nothing to the original, and is loaded again behind it.
pub(crate) fn is_local(original: &Instruction, copy: &[u8], address: u64, state: &State) -> bool {
    let found = &state.general;
    let mut decoder = Decoder::with_ip(64, copy, address, DecoderOptions::NONE);
    let mut new = decoder.decode();
    let copy = match loaded_again(copy, address) {
        Some((borrowed, len)) => {
            let right = new.memory_base().number() == usize::from(borrowed)
                && state.scratch[1] == Value::Program(borrowed)
                && original.flow_control() == FlowControl::Next
                && borrowed != RSP
                && !uses(original, borrowed);
            if !right {
                return false;
            }
            &copy[..len]
        }
        None => copy,
    };
    let (base, index) = (original.memory_base(), original.memory_index());
    let wide = |register: Register| register == Register::None || register.is_gpr64();
    let plain = (0..original.op_count()).any(|op| original.op_kind(op) == OpKind::Memory)
        && wide(base)
        && wide(index)
        && !original.is_ip_rel_memory_operand()
        && original.mnemonic() != Mnemonic::Xlatb;
    let sound = !new.is_invalid()
        && new.len() == copy.len()
        && new.segment_prefix() == Register::None
        && new.memory_base().is_gpr64()
        && new.memory_index() == Register::None
        && i64::from(original.memory_displacement64() as i32) == new.memory_displacement64() as i64;
    if !plain || !sound {
        return false;
    }
    let times = |register: Register, times: u64| match register {
        Register::None => 0,
        _ => times << (4 * register.number()),
    };
    let wanted = times(base, 1) + times(index, u64::from(original.memory_index_scale()));
    if found[new.memory_base().number()] != Value::Local(wanted) {
        return false;
    }
    new.set_segment_prefix(original.segment_prefix());
    new.set_memory_base(base);
    new.set_memory_index(index);
    new.set_memory_index_scale(original.memory_index_scale());
    new.set_memory_displacement64(original.memory_displacement64());
    new.set_memory_displ_size(original.memory_displ_size());
    new == *original
}

/// Whether an instruction reads or writes any part of a general register.
fn uses(insn: &Instruction, register: General) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let is_it = |used: Register| used.is_gpr64() && used.number() == usize::from(register);
    factory.info(insn).used_registers().iter().any(|used| is_it(used.register().full_register()))
}

/// Whether what a prefetch fetches is the memory operand of an instruction.
pub(crate) fn same_operand(fetch: &Instruction, insn: &Instruction) -> bool {
    let explicit = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
    let no_access = matches!(insn.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    let odd = matches!(insn.memory_segment(), Register::FS | Register::GS);
    if !explicit || no_access || odd {
        return false;
    }
    if fetch.is_ip_rel_memory_operand() || insn.is_ip_rel_memory_operand() {
        return fetch.is_ip_rel_memory_operand()
            && insn.is_ip_rel_memory_operand()
            && fetch.ip_rel_memory_address() == insn.ip_rel_memory_address();
    }
    let of = |insn: &Instruction| {
        (
            insn.memory_base(),
            insn.memory_index(),
            if insn.memory_index() == Register::None { 1 } else { insn.memory_index_scale() },
            insn.memory_displacement64(),
        )
    };
    of(fetch) == of(insn)
}

/// Whether an instruction may change a register that an operand hangs on.
pub(crate) fn changes(
    insn: &Instruction,
    operand: &Instruction,
    factory: &mut iced_x86::InstructionInfoFactory,
) -> bool {
    let of = |register: Register| register.full_register();
    let needed = [of(operand.memory_base()), of(operand.memory_index())];
    factory.info(insn).used_registers().iter().any(|used| {
        let reads = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
        );
        !reads && needed.contains(&of(used.register()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Instruction {
        let insn = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(insn.len(), bytes.len());
        insn
    }

    #[test]
    fn what_acts_on_the_thread() {
        let acting: [&[u8]; 14] = [
            &[0x0f, 0x05],                         // syscall
            &[0xcd, 0x80],                         // int 0x80
            &[0xcc],                               // int3
            &[0xd9, 0x2c, 0x24],                   // fldcw [rsp]
            &[0xd9, 0x34, 0x24],                   // fnstenv [rsp]
            &[0x0f, 0xae, 0x14, 0x24],             // ldmxcsr [rsp]
            &[0xf3, 0x48, 0x0f, 0xae, 0xc0],       // rdfsbase rax
            &[0xf3, 0x0f, 0xc7, 0xf8],             // rdpid rax
            &[0xc7, 0xf8, 0, 0, 0, 0],             // xbegin
            &[0x9d],                               // popfq
            &[0xfd],                               // std
            &[0x8e, 0xe0],                         // mov fs, eax
            &[0x0f, 0xae, 0x21],                   // xsave [rcx]
            &[0x65, 0x8b, 0x04, 0x25, 0, 0, 0, 0], // mov eax, gs:[0]
        ];
        for bytes in acting {
            assert!(acts_on_the_thread(&decode(bytes)), "{bytes:x?}");
        }
        let others: [&[u8]; 8] = [
            &[0xf3, 0x0f, 0x1e, 0xfa],             // endbr64
            &[0x0f, 0x0b],                         // ud2
            &[0xfc],                               // cld
            &[0x0f, 0xa2],                         // cpuid
            &[0xd9, 0x3c, 0x24],                   // fnstcw [rsp]
            &[0x0f, 0xae, 0x1c, 0x24],             // stmxcsr [rsp]
            &[0x65, 0x90],                         // gs nop
            &[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0], // mov eax, fs:[0]
        ];
        for bytes in others {
            assert!(!acts_on_the_thread(&decode(bytes)), "{bytes:x?}");
        }
    }

    #[test]
    fn operands_by_way_of_contexts() {
        let mut found = State::program();
        found.general[2] = Value::Local(1 | 4 << 4); // fs + rax + 4 * rcx
        let original = decode(&[0x64, 0x8b, 0x54, 0x88, 0xf0]); // mov edx, fs:[rax+rcx*4-16]
        assert!(is_local(&original, &[0x8b, 0x52, 0xf0], 0, &found));
        assert!(!is_local(&original, &[0x8b, 0x52, 0xf4], 0, &found), "another displacement");
        assert!(!is_local(&original, &[0x8b, 0x4a, 0xf0], 0, &found), "another destination");
        assert!(!is_local(&original, &[0x8b, 0x51, 0xf0], 0, &found), "another base");
        assert!(!is_local(&original, &[0x64, 0x8b, 0x52, 0xf0], 0, &found), "still by way of fs");
        // The same by way of a register that is loaded again from where it was kept.
        let again = [0x65, 0x48, 0x8b, 0x34, 0x25, 0x18, 0, 0, 0]; // mov rsi, gs:[18h]
        let borrowed = [&[0x8b, 0x56, 0xf0][..], &again].concat();
        found.general[6] = Value::Local(1 | 4 << 4);
        found.scratch[1] = Value::Program(6);
        assert!(is_local(&original, &borrowed, 0, &found));
        let other = [&[0x8b, 0x52, 0xf0][..], &again].concat();
        assert!(!is_local(&original, &other, 0, &found), "another register than that of the address");
        found.scratch[1] = Value::Program(7);
        assert!(!is_local(&original, &borrowed, 0, &found), "another register's value");
        let uses = decode(&[0x64, 0x8b, 0x74, 0x88, 0xf0]); // mov esi, fs:[rax+rcx*4-16]
        found.scratch[1] = Value::Program(6);
        assert!(!is_local(&uses, &[&[0x8b, 0x76, 0xf0][..], &again].concat(), 0, &found), "what it loads");
        found.general[2] = Value::Local(1 | 8 << 4);
        assert!(!is_local(&original, &[0x8b, 0x52, 0xf0], 0, &found), "another sum");
    }
}

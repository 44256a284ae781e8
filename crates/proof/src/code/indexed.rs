//! Rule R7, of prefetches ahead of loads that are indexed by what another load reads: the one form
//! of inserted code that reads memory, and only where the instruction behind it reads the same
//! page.
//!
//! ```text
//!   lea    s, M              M: the operand of the instruction behind all this, which loads
//!   and    s, 0xfff
//!   cmp    s, limit
//!   ja|jb  on                on: the end of this form
//!   mov    s, M + d          with d > 0: ja,  limit + d + its size ≤ 4096
//!                            with d < 0: jb,  limit ≥ -d, and d + its size ≤ 1
//!   …                        arithmetic on registers, which writes s and flags alone
//!   prefetcht0 …
//! on:
//!   mov    r, M
//! ```
//!
//! Then M + d lies in the page of M. If that is not there, the instruction behind would fault as
//! well; nothing comes between but what cannot fault. That s and the flags are dead is checked for
//! each instruction, as everywhere.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

const PAGE: i64 = 4096;

/// The number of instructions at the begin of `inserted` that are one such form, before `load`.
pub(super) fn length(inserted: &[Instruction], load: &Instruction) -> Option<usize> {
    let [lea, and, compare, branch, index, rest @ ..] = inserted else { return None };
    if !loads(load) || !is_general(load) {
        return None;
    }
    let scratch = lea.op0_register();
    let is_lea = lea.code() == Code::Lea_r64_m && is_operand(lea, load, 0);
    if !is_lea || !is_usable(scratch, load) {
        return None;
    }
    let compared = constant(and, Mnemonic::And, scratch)
        .filter(|&mask| mask == PAGE - 1)
        .and_then(|_| constant(compare, Mnemonic::Cmp, scratch))?;
    let ahead = displacement(index).checked_sub(displacement(load))?;
    let reads =
        loads(index) && index.op0_register().full_register() == scratch && is_operand(index, load, ahead);
    let bytes = i64::try_from(index.memory_size().size()).ok().filter(|&bytes| bytes > 0)?;
    let is_inside = match branch.code() {
        Code::Ja_rel8_64 if ahead > 0 => {
            compared >= 0 && compared.checked_add(ahead)?.checked_add(bytes)? <= PAGE
        }
        Code::Jb_rel8_64 if ahead < 0 => compared >= -ahead && ahead + bytes <= 1,
        _ => false,
    };
    if !reads || !is_inside {
        return None;
    }
    let made = rest.iter().take_while(|insn| is_arithmetic(insn, scratch)).count();
    let last = rest.get(made).filter(|insn| is_prefetch(insn))?;
    (branch.near_branch64() == last.next_ip()).then_some(made + 6)
}

/// The list of prefetches: one operand made of general registers, nothing that is written, nothing
/// that can fault. What it fetches may be anything, since fetching changes nothing.
pub(super) fn is_prefetch(insn: &Instruction) -> bool {
    let is_general = |register: Register| register == Register::None || register.is_gpr64();
    matches!(insn.mnemonic(), Mnemonic::Prefetcht0)
        && insn.op_count() == 1
        && insn.op_kind(0) == OpKind::Memory
        && is_general(insn.memory_base())
        && is_general(insn.memory_index())
        && insn.segment_prefix() == Register::None
        && !insn.has_lock_prefix()
        && !insn.has_rep_prefix()
        && !insn.has_repne_prefix()
}

/// A plain load into a general register: it reads all of its operand whenever it is executed.
fn loads(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Movzx)
        && insn.op_count() == 2
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().is_gpr()
        && insn.op1_kind() == OpKind::Memory
        && !insn.has_lock_prefix()
        && !insn.has_rep_prefix()
        && !insn.has_repne_prefix()
}

/// A memory operand of whole general registers, at least one, in the usual segment.
fn is_general(insn: &Instruction) -> bool {
    let (base, index) = (insn.memory_base(), insn.memory_index());
    let is = |register: Register| register == Register::None || register.is_gpr64();
    is(base)
        && is(index)
        && (base != Register::None || index != Register::None)
        && insn.segment_prefix() == Register::None
}

fn displacement(insn: &Instruction) -> i64 {
    insn.memory_displacement64() as i64
}

/// Whether an operand is that of the load, this number of bytes further on.
fn is_operand(insn: &Instruction, load: &Instruction, ahead: i64) -> bool {
    is_general(insn)
        && insn.memory_base() == load.memory_base()
        && insn.memory_index() == load.memory_index()
        && (load.memory_index() == Register::None || insn.memory_index_scale() == load.memory_index_scale())
        && displacement(load).checked_add(ahead) == Some(displacement(insn))
}

/// A register that is written before the load's operand is used again.
fn is_usable(scratch: Register, load: &Instruction) -> bool {
    scratch.is_gpr64()
        && scratch != Register::RSP
        && scratch != load.memory_base()
        && scratch != load.memory_index()
}

/// The constant in an instruction of the lower half of `scratch` and a constant.
fn constant(insn: &Instruction, mnemonic: Mnemonic, scratch: Register) -> Option<i64> {
    let is_it = insn.mnemonic() == mnemonic
        && insn.op_count() == 2
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register() == scratch.full_register32()
        && matches!(insn.op1_kind(), OpKind::Immediate8to32 | OpKind::Immediate32);
    is_it.then(|| i64::from(insn.immediate(1) as i32))
}

/// Arithmetic on registers that writes `scratch` alone, and flags.
fn is_arithmetic(insn: &Instruction, scratch: Register) -> bool {
    let touches = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory);
    let is_listed = match insn.mnemonic() {
        Mnemonic::Lea => insn.segment_prefix() == Register::None,
        Mnemonic::Mov
        | Mnemonic::Movsxd
        | Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Crc32 => !touches,
        // With one operand it writes two registers.
        Mnemonic::Imul => !touches && insn.op_count() > 1,
        _ => false,
    };
    is_listed
        && (insn.op_count() == 2 || insn.mnemonic() == Mnemonic::Imul)
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().is_gpr()
        && insn.op0_register().full_register() == scratch
        && !insn.has_lock_prefix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect()
    }

    /// What differs from the right form.
    #[derive(Clone, Copy)]
    struct Form {
        limit: i32,
        ahead: i32,
        is_below: bool,
        target: i32,
        mask: i32,
    }

    const RIGHT: Form = Form { limit: 4096 - 64 - 4, ahead: 64, is_below: false, target: 0, mask: 0xfff };

    fn written(form: Form) -> Vec<Instruction> {
        let mut code = CodeAssembler::new(64).unwrap();
        code.lea(rdx, qword_ptr(rsi + rax * 4 + 8)).unwrap();
        code.and(edx, form.mask).unwrap();
        code.cmp(edx, form.limit).unwrap();
        let rest =
            [0x48, 0x63, 0x54, 0x86, (8 + form.ahead) as u8, 0x48, 0xc1, 0xe2, 2, 0x0f, 0x18, 0x0c, 0x17];
        let mut bytes = code.assemble(0x1000).unwrap();
        bytes.extend([if form.is_below { 0x72 } else { 0x77 }, (rest.len() as i32 + form.target) as u8]);
        bytes.extend(rest);
        decoded(&bytes)
    }

    /// Returns `movsxd rdx, [rsi + 4*rax + 8]`.
    fn load() -> Instruction {
        decoded(&[0x48, 0x63, 0x54, 0x86, 8])[0]
    }

    fn is_accepted(form: Form) -> bool {
        length(&written(form), &load()) == Some(7)
    }

    #[test]
    fn the_page_of_the_load_and_no_other() {
        assert!(is_accepted(RIGHT));
        assert!(is_accepted(Form { limit: 100, ..RIGHT }), "seldom, but right");
        assert!(!is_accepted(Form { limit: 4096 - 64 - 3, ..RIGHT }), "a byte of the next page");
        assert!(!is_accepted(Form { limit: -1, ..RIGHT }), "unsigned, that is all");
        assert!(!is_accepted(Form { ahead: 68, ..RIGHT }));
        assert!(!is_accepted(Form { mask: 0x1fff, ..RIGHT }) && !is_accepted(Form { mask: 0x7ff, ..RIGHT }));
        assert!(!is_accepted(Form { is_below: true, ..RIGHT }));
        assert!(!is_accepted(Form { target: 1, ..RIGHT }) && !is_accepted(Form { target: -4, ..RIGHT }));
        let back = Form { limit: 64, ahead: -64, is_below: true, ..RIGHT };
        assert!(is_accepted(back) && is_accepted(Form { limit: 65, ..back }));
        assert!(!is_accepted(Form { limit: 63, ..back }), "a byte of the page before");
        assert!(!is_accepted(Form { ahead: -2, ..back }), "it begins in the page and ends behind it");
        assert!(!is_accepted(Form { is_below: false, ..back }));
    }

    #[test]
    fn another_instruction_behind_it_is_no_leave_to_read() {
        let right = written(RIGHT);
        let others: [&[u8]; 7] = [
            &[0x48, 0x63, 0x54, 0x86, 4],       // movsxd rdx, [rsi + 4*rax + 4]
            &[0x48, 0x63, 0x54, 0x46, 8],       // movsxd rdx, [rsi + 2*rax + 8]
            &[0x48, 0x63, 0x54, 0x8e, 8],       // movsxd rdx, [rsi + 4*rcx + 8]
            &[0x64, 0x48, 0x63, 0x54, 0x86, 8], // movsxd rdx, fs:[rsi + 4*rax + 8]
            &[0x48, 0x8d, 0x54, 0x86, 8],       // lea rdx, [rsi + 4*rax + 8]
            &[0x48, 0x89, 0x54, 0x86, 8],       // mov [rsi + 4*rax + 8], rdx
            &[0x0f, 0x18, 0x4c, 0x86, 8],       // prefetcht0 [rsi + 4*rax + 8]
        ];
        for other in others {
            assert_eq!(length(&right, &decoded(other)[0]), None, "{other:x?}");
        }
        // rax is what the load's own address is made of.
        let mut overwrites = right.clone();
        overwrites[0].set_op0_register(Register::RAX);
        assert_eq!(length(&overwrites, &load()), None);
    }

    #[test]
    fn nothing_else_stands_in_it() {
        // All but the arithmetic must be there.
        for left_out in [0, 1, 2, 3, 4, 6] {
            let mut less = written(RIGHT);
            less.remove(left_out);
            assert_eq!(length(&less, &load()), None, "{left_out}");
        }
        let others: [&[u8]; 6] = [
            &[0x48, 0xf7, 0xea, 0x90], // imul rdx
            &[0x48, 0x8b, 0x52, 0],    // mov rdx, [rdx]
            &[0x48, 0xf7, 0xf2, 0x90], // div rdx
            &[0x48, 0x89, 0xd1, 0x90], // mov rcx, rdx
            &[0x48, 0x89, 0x12, 0x90], // mov [rdx], rdx
            &[0x0f, 0x05, 0x90, 0x90], // syscall
        ];
        for other in others {
            let mut wrong = written(RIGHT);
            wrong[5] = decoded(other)[0];
            assert_eq!(length(&wrong, &load()), None, "{other:x?}");
        }
    }
}

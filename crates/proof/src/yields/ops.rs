//! The closed list (rule R13): what instructions of inserted code there may be. Nothing else is
//! looked at further; no operation here touches a stack, and none but those named write memory.

use iced_x86::{Code, Instruction, OpKind, Register};
use runtime_abi::{area, context};

/// General registers by number.
pub(crate) type General = u8;
pub(crate) const RAX: General = 0;
pub(crate) const RSP: General = 4;

/// Words of the area that are moved whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Current,
    Scratch(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Equal,
    NotEqual,
    Below,
    NotBelow,
    Negative,
    NotNegative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `mov r, gs:[word]`
    LoadArea(General, Word),
    /// `mov gs:[word], r`
    StoreArea(Word, General),
    /// `mov dword gs:[BUDGET], number`
    SetBudget(u32),
    /// `sub dword gs:[BUDGET], number`
    Charge(u32),
    /// `dec qword gs:[PASSES]`
    Pass,
    /// `cmp byte gs:[GUEST], 0`
    TestGuest,
    /// Something that loads a register, or sets flags, and becomes a jump if its first byte but for
    /// a prefix changes.
    Switch { sets: Option<General>, to: u64 },
    /// A `nop` that becomes a jump to a relay if its first byte changes.
    ToRelay,
    /// `jmp gs:[LEAVE]`
    Leave,
    /// `mov r, …` of what the computed jump behind the piece jumps to: not to be told by the
    /// instruction alone
    LoadTarget(General),
    /// `movsxd r, dword [base + index * 4]`
    LoadDistance { to: General, base: General, index: General },
    /// `jmp gs:[S1]`
    ToLabel,
    /// `mov to, from`
    Copy(General, General),
    /// `mov r, [base + displacement]`
    Load(General, General, i32),
    /// `mov [base + displacement], r`
    Store(General, i32, General),
    /// `cmp r, [base + displacement]`
    Compare(General, General, i32),
    /// `jmp [base + displacement]`
    Through(General, i32),
    /// To an address.
    Jump(When, u64),
    /// `lea r, [rip + …]`
    Place(General, u64),
    /// `lea r, [base + index * scale]`
    Sum { to: General, base: General, index: General, scale: u8 },
    /// `lahf`
    FlagsToAh,
    /// `seto al`
    OverflowToAl,
    /// `add al, 0x7f`
    OverflowFromAl,
    /// `sahf`
    FlagsFromAh,
    /// `sub a, b`
    Subtract(General, General),
    /// `cmp r, number`
    CompareNumber(General, u32),
    /// `cmp a, b`
    CompareBoth(General, General),
    /// `test r, r`
    Test(General),
    /// `prefetcht0`, `prefetchw`
    Prefetch,
    /// `movups` and its like; its width: 1, 2 and 3 are 128, 256 and 512 bits.
    Vector { store: bool, number: u8, level: u8, base: General, displacement: i32 },
    /// `test eax, registers`, which no way leads to: the begin of a note
    Note(u16),
    /// `kmovq`
    Mask { store: bool, number: u8, base: General, displacement: i32 },
}

/// What an inserted instruction is; `None`: nothing that may be inserted.
pub(crate) fn op(insn: &Instruction) -> Option<Op> {
    let number = |register: Register| Some(register.number() as u8).filter(|_| register.is_gpr64());
    let near = || Some(insn.near_branch64()).filter(|_| insn.op0_kind() == OpKind::NearBranch64);
    if insn.has_lock_prefix() || insn.has_rep_prefix() || insn.has_repne_prefix() {
        return None;
    }
    let vector = |store: bool| {
        let register = insn.op_register(u32::from(store));
        let level = match register {
            _ if register.is_xmm() => 1,
            _ if register.is_ymm() => 2,
            _ if register.is_zmm() => 3,
            _ => return None,
        };
        let (base, displacement) = plain(insn)?;
        let unmasked = insn.op_mask() == Register::None;
        unmasked.then_some(Op::Vector { store, number: register.number() as u8, level, base, displacement })
    };
    let mask = |store: bool| {
        let number = insn.op_register(u32::from(store)).number() as u8;
        let (base, displacement) = plain(insn)?;
        Some(Op::Mask { store, number, base, displacement })
    };
    match insn.code() {
        Code::Mov_r64_rm64 if insn.op1_kind() == OpKind::Memory => {
            let to = number(insn.op0_register())?;
            match in_area(insn) {
                Some(at) => Some(Op::LoadArea(to, word(at)?)),
                None => plain(insn).map(|(base, displacement)| Op::Load(to, base, displacement)),
            }
        }
        Code::Mov_rm64_r64 if insn.op0_kind() == OpKind::Memory => {
            let from = number(insn.op1_register())?;
            match in_area(insn) {
                Some(at) => Some(Op::StoreArea(word(at)?, from)),
                None => plain(insn).map(|(base, displacement)| Op::Store(base, displacement, from)),
            }
        }
        Code::Mov_rm64_r64 => Some(Op::Copy(number(insn.op0_register())?, number(insn.op1_register())?)),
        Code::Mov_rm32_imm32 if in_area(insn) == Some(area::BUDGET) => {
            Some(Op::SetBudget(insn.immediate32()))
        }
        Code::Sub_rm32_imm8 | Code::Sub_rm32_imm32 if in_area(insn) == Some(area::BUDGET) => {
            Some(Op::Charge(insn.immediate(1) as u32))
        }
        Code::Dec_rm64 if in_area(insn) == Some(area::PASSES) => Some(Op::Pass),
        Code::Cmp_rm8_imm8 if in_area(insn) == Some(area::GUEST) && insn.immediate8() == 0 => {
            Some(Op::TestGuest)
        }
        // Five bytes, or six with the prefix of a register that needs one: then its last four are
        // those of the jump's distance.
        Code::Mov_r32_imm32 => {
            let register = insn.op0_register().full_register();
            let sets = Some(register.number() as u8);
            let right = insn.len() == 5 + usize::from(register.number() >= 8);
            right.then(|| Op::Switch { sets, to: switched_to(insn) })
        }
        Code::Cmp_EAX_imm32 if insn.len() == 5 => Some(Op::Switch { sets: None, to: switched_to(insn) }),
        // The form of which no byte but the first one has to change.
        Code::Nop_rm32 if insn.len() == 5 && insn.op0_kind() == OpKind::Memory => Some(Op::ToRelay),
        Code::Jmp_rm64 if insn.op0_kind() == OpKind::Memory => match in_area(insn) {
            Some(at) if at == area::SCRATCH[1] => Some(Op::ToLabel),
            Some(at) => (at == area::LEAVE).then_some(Op::Leave),
            None => plain(insn).map(|(base, displacement)| Op::Through(base, displacement)),
        },
        Code::Cmp_r64_rm64 if insn.op1_kind() == OpKind::Memory => {
            let (base, displacement) = plain(insn)?;
            Some(Op::Compare(number(insn.op0_register())?, base, displacement))
        }
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Some(Op::Jump(When::Always, near()?)),
        Code::Je_rel8_64 | Code::Je_rel32_64 => Some(Op::Jump(When::Equal, near()?)),
        Code::Jne_rel8_64 | Code::Jne_rel32_64 => Some(Op::Jump(When::NotEqual, near()?)),
        Code::Js_rel8_64 | Code::Js_rel32_64 => Some(Op::Jump(When::Negative, near()?)),
        Code::Jb_rel8_64 | Code::Jb_rel32_64 => Some(Op::Jump(When::Below, near()?)),
        Code::Jae_rel8_64 | Code::Jae_rel32_64 => Some(Op::Jump(When::NotBelow, near()?)),
        Code::Jns_rel8_64 | Code::Jns_rel32_64 => Some(Op::Jump(When::NotNegative, near()?)),
        Code::Lea_r64_m => {
            let to = number(insn.op0_register())?;
            if insn.is_ip_rel_memory_operand() {
                let wide = insn.memory_base() == Register::RIP;
                return wide.then(|| Op::Place(to, insn.ip_rel_memory_address()));
            }
            let (base, index) = (number(insn.memory_base())?, number(insn.memory_index())?);
            let scale = insn.memory_index_scale() as u8;
            (insn.memory_displacement64() == 0).then_some(Op::Sum { to, base, index, scale })
        }
        Code::Movsxd_r64_rm32 if insn.op1_kind() == OpKind::Memory => {
            let (base, index) = (number(insn.memory_base())?, number(insn.memory_index())?);
            let right = insn.memory_index_scale() == 4
                && insn.memory_displacement64() == 0
                && insn.segment_prefix() == Register::None;
            right.then_some(Op::LoadDistance { to: number(insn.op0_register())?, base, index })
        }
        Code::Test_rm64_r64 if insn.op0_register() == insn.op1_register() => {
            Some(Op::Test(number(insn.op0_register())?))
        }
        Code::Test_EAX_imm32 if insn.len() == 5 => {
            // The stack pointer has a word of its own, and no slot.
            let registers = u16::try_from(insn.immediate32()).ok();
            registers.filter(|registers| registers >> RSP & 1 == 0).map(Op::Note)
        }
        Code::Lahf => Some(Op::FlagsToAh),
        Code::Sahf => Some(Op::FlagsFromAh),
        Code::Seto_rm8 if insn.op0_register() == Register::AL => Some(Op::OverflowToAl),
        Code::Add_AL_imm8 if insn.immediate8() == 0x7f => Some(Op::OverflowFromAl),
        Code::Sub_rm64_r64 if insn.op0_kind() == OpKind::Register => {
            Some(Op::Subtract(number(insn.op0_register())?, number(insn.op1_register())?))
        }
        Code::Cmp_rm64_r64 if insn.op0_kind() == OpKind::Register => {
            Some(Op::CompareBoth(number(insn.op0_register())?, number(insn.op1_register())?))
        }
        Code::Cmp_rm64_imm32 if insn.op0_kind() == OpKind::Register => {
            let value = u32::try_from(insn.immediate(1)).ok()?;
            Some(Op::CompareNumber(number(insn.op0_register())?, value))
        }
        Code::Cmp_RAX_imm32 => Some(Op::CompareNumber(RAX, u32::try_from(insn.immediate(1)).ok()?)),
        Code::Prefetcht0_m8 | Code::Prefetchw_m8 => {
            (insn.segment_prefix() == Register::None).then_some(Op::Prefetch)
        }
        Code::Movups_xmmm128_xmm
        | Code::VEX_Vmovups_xmmm128_xmm
        | Code::VEX_Vmovups_ymmm256_ymm
        | Code::EVEX_Vmovups_xmmm128_k1z_xmm
        | Code::EVEX_Vmovups_ymmm256_k1z_ymm
        | Code::EVEX_Vmovups_zmmm512_k1z_zmm => vector(true),
        Code::Movups_xmm_xmmm128
        | Code::VEX_Vmovups_xmm_xmmm128
        | Code::VEX_Vmovups_ymm_ymmm256
        | Code::EVEX_Vmovups_xmm_k1z_xmmm128
        | Code::EVEX_Vmovups_ymm_k1z_ymmm256
        | Code::EVEX_Vmovups_zmm_k1z_zmmm512 => vector(false),
        Code::VEX_Kmovq_m64_kr => mask(true),
        Code::VEX_Kmovq_kr_km64 if insn.op1_kind() == OpKind::Memory => mask(false),
        _ => None,
    }
}

/// Where a switch leads when it is a jump.
fn switched_to(insn: &Instruction) -> u64 {
    insn.next_ip().wrapping_add_signed(i64::from(insn.immediate32() as i32))
}

/// An operand `gs:[offset]`.
fn in_area(insn: &Instruction) -> Option<u32> {
    let alone = insn.memory_base() == Register::None && insn.memory_index() == Register::None;
    let here = alone && insn.segment_prefix() == Register::GS;
    u32::try_from(insn.memory_displacement64()).ok().filter(|_| here)
}

fn word(offset: u32) -> Option<Word> {
    match offset {
        area::CUR => Some(Word::Current),
        _ => area::SCRATCH.iter().position(|&at| at == offset).map(|at| Word::Scratch(at as u8)),
    }
}

/// An operand `[base + displacement]`.
fn plain(insn: &Instruction) -> Option<(General, i32)> {
    let base = insn.memory_base();
    let alone =
        base.is_gpr64() && insn.memory_index() == Register::None && insn.segment_prefix() == Register::None;
    let displacement = i32::try_from(insn.memory_displacement64() as i64).ok()?;
    alone.then(|| (base.number() as u8, displacement))
}

/// What of a context a general register's word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Slot(General),
    Next,
    Rip,
    Rsp,
    Fs,
    Flags,
}

pub(crate) fn field(displacement: i32) -> Option<Field> {
    match displacement {
        context::NEXT => Some(Field::Next),
        context::RIP => Some(Field::Rip),
        context::RSP => Some(Field::Rsp),
        context::FS => Some(Field::Fs),
        context::FLAGS => Some(Field::Flags),
        _ => (0..16).find(|&number| number != RSP && context::slot(number) == displacement).map(Field::Slot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> Option<Op> {
        let insn = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(insn.len(), bytes.len());
        op(&insn)
    }

    #[test]
    fn the_closed_list() {
        let gs = |head: &[u8], offset: u8| [head, &[offset, 0, 0, 0]].concat();
        assert_eq!(of(&gs(&[0x65, 0x48, 0x8b, 0x0c, 0x25], 8)), Some(Op::LoadArea(1, Word::Current)));
        assert_eq!(of(&gs(&[0x65, 0x48, 0x89, 0x04, 0x25], 0x18)), Some(Op::StoreArea(Word::Scratch(1), 0)));
        assert_eq!(of(&gs(&[0x65, 0xff, 0x24, 0x25], 0x30)), Some(Op::Leave));
        assert_eq!(of(&gs(&[0x65, 0x48, 0xff, 0x0c, 0x25], 0x40)), Some(Op::Pass));
        assert_eq!(of(&[0xbe, 0x10, 0, 0, 0]), Some(Op::Switch { sets: Some(6), to: 0x1015 }));
        assert_eq!(
            of(&[0x41, 0xbf, 0xfa, 0xff, 0xff, 0xff]),
            Some(Op::Switch { sets: Some(15), to: 0x1000 })
        );
        assert_eq!(of(&[0x3d, 0, 1, 0, 0]), Some(Op::Switch { sets: None, to: 0x1105 }));
        assert_eq!(of(&[0x48, 0x3b, 0x49, 0]), Some(Op::Compare(1, 1, 0)));
        assert_eq!(of(&[0x48, 0x39, 0xf1]), Some(Op::CompareBoth(1, 6)));
        assert_eq!(of(&[0x48, 0x63, 0x0c, 0x88]), Some(Op::LoadDistance { to: 1, base: 0, index: 1 }));
        assert_eq!(of(&[0x4d, 0x85, 0xd2]), Some(Op::Test(10)));
        assert_eq!(of(&gs(&[0x65, 0xff, 0x24, 0x25], 0x18)), Some(Op::ToLabel));
        assert_eq!(of(&[0xff, 0x60, 8]), Some(Op::Through(0, 8)));
        assert_eq!(of(&[0x0f, 0x18, 0x0f]), Some(Op::Prefetch));
        assert_eq!(of(&[0x04, 0x7f]), Some(Op::OverflowFromAl));
    }

    #[test]
    fn not_on_it() {
        let others: [&[u8]; 26] = [
            &[0x65, 0xff, 0x24, 0x25, 0x20, 0, 0, 0],       // jmp gs:[S2]
            &[0x48, 0x63, 0x4c, 0x88, 4],                   // movsxd rcx, dword [rax+rcx*4+4]
            &[0x48, 0x63, 0x0c, 0xc8],                      // movsxd rcx, dword [rax+rcx*8]
            &[0x48, 0x85, 0xc1],                            // test rcx, rax
            &[0x65, 0x89, 0x0c, 0x25, 0x28, 0, 0, 0],       // mov gs:[BUDGET], ecx
            &[0x8b, 0x48, 0xa0],                            // mov ecx, [rax-0x60]
            &[0x65, 0x80, 0x3c, 0x25, 0x2d, 0, 0, 0, 0],    // cmp byte gs:[0x2d], 0
            &[0x66, 0xb8, 0, 0],                            // mov ax, 0
            &[0x40, 0xb8, 0, 0, 0, 0], // mov eax, 0, with a prefix that would not be that of a jump alone
            &[0xc7, 0xc0, 0, 0, 0, 0], // mov eax, 0, with its longer opcode
            &[0x2e, 0x3d, 0, 0, 0, 0], // cmp eax, 0, with a prefix
            &[0x50],                   // push rax
            &[0x9c],                   // pushf
            &[0xe8, 0, 0, 0, 0],       // call
            &[0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0], // mov rax, gs:[SELF]
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0], // mov rax, fs:[8]
            &[0x65, 0x8b, 0x04, 0x25, 8, 0, 0, 0], // mov eax, gs:[CUR]
            &[0x65, 0x48, 0xff, 0x0c, 0x25, 0x48, 0, 0, 0], // dec qword gs:[0x48]
            &[0x65, 0xff, 0x0c, 0x25, 0x40, 0, 0, 0], // dec dword gs:[PASSES]
            &[0x65, 0x48, 0xff, 0x04, 0x25, 0x40, 0, 0, 0], // inc qword gs:[PASSES]
            &[0x8b, 0x41, 8],          // mov eax, [rcx+8]
            &[0x04, 0x7e],             // add al, 0x7e
            &[0x0f, 0x91, 0xc0],       // setno al
            &[0x0f, 0x18, 0x07],       // prefetchnta
            &[0x48, 0x01, 0xc8],       // add rax, rcx
            &[0xff, 0x24, 0xc8],       // jmp [rax+rcx*8]
        ];
        for bytes in others {
            assert_eq!(of(bytes), None, "{bytes:x?}");
        }
    }
}

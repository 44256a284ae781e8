//! The operands of an instruction as both decoders read them: registers, memory, constants.

use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind, Register};
use yaxpeax_x86::long_mode::{self, Operand, RegSpec, Segment, register_class as class};

/// What of the second decoder's word for registers counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    All,
    /// The number alone: it errs about the width, or about the kind.
    Number,
    Nothing,
}

/// Where the second decoder (2.2) is known to be wrong, or names other operands.
fn trust(first: &Instruction) -> Trust {
    let is_segment =
        |at| first.op_kind(at) == OpKind::Register && first.op_register(at).is_segment_register();
    match first.mnemonic() {
        Mnemonic::Insb
        | Mnemonic::Insw
        | Mnemonic::Insd
        | Mnemonic::Outsb
        | Mnemonic::Outsw
        | Mnemonic::Outsd => Trust::Nothing,
        // Gathers and scatters, whose masks it lists like any register.
        _ if first.memory_index().is_vector_register() => Trust::Nothing,
        Mnemonic::Rdsspd | Mnemonic::Rdsspq | Mnemonic::Reservednop => Trust::Nothing,
        // Where the destination is in the place of memory, its number comes out without the highest
        // bit.
        _ if first.encoding() == EncodingKind::EVEX && is_high(first.op0_register()) => Trust::Nothing,
        Mnemonic::Bswap
        | Mnemonic::Bt
        | Mnemonic::Btc
        | Mnemonic::Btr
        | Mnemonic::Bts
        | Mnemonic::Extractps
        | Mnemonic::Lldt
        | Mnemonic::Lmsw
        | Mnemonic::Lsl
        | Mnemonic::Ltr
        | Mnemonic::Movd
        | Mnemonic::Movdiri
        | Mnemonic::Movmskpd
        | Mnemonic::Movmskps
        | Mnemonic::Movsxd
        | Mnemonic::Pextrb
        | Mnemonic::Pextrd
        | Mnemonic::Pextrw
        | Mnemonic::Pinsrb
        | Mnemonic::Pinsrd
        | Mnemonic::Pinsrq
        | Mnemonic::Pinsrw
        | Mnemonic::Pmovmskb
        | Mnemonic::Pop
        | Mnemonic::Push
        | Mnemonic::Sldt
        | Mnemonic::Str
        | Mnemonic::Ud0
        | Mnemonic::Verr
        | Mnemonic::Verw => Trust::Number,
        Mnemonic::Mov if [0, 1].into_iter().any(is_segment) => Trust::Number,
        _ => Trust::All,
    }
}

fn is_high(register: Register) -> bool {
    register.is_vector_register() && register.number() >= 16
}

/// Whether the second decoder takes this instruction's registers for others.
pub(super) fn misread(first: &Instruction) -> bool {
    trust(first) == Trust::Nothing
}

/// Whether an instruction names the place that it leads to.
pub(crate) fn is_branch(insn: &Instruction) -> bool {
    insn.op_count() > 0
        && matches!(insn.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

/// A memory operand; the displacement is the address where the base is the instruction pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    base: Option<RegSpec>,
    index: Option<RegSpec>,
    scale: u8,
    displacement: u64,
}

/// What differs between the operands, if anything does.
pub(super) fn difference(first: &Instruction, second: &long_mode::Instruction) -> Option<&'static str> {
    let trust = trust(first);
    // Of x87 registers no rule knows more than that they are some.
    let mut registers = (0..first.op_count())
        .filter(|&at| first.op_kind(at) == OpKind::Register && !first.op_register(at).is_st());
    // `xchg` has its operands in any order.
    let swapped = first.mnemonic() == Mnemonic::Xchg && first.op1_kind() == OpKind::Register;
    let swapped =
        swapped && register(&second.operand(0)).is_some_and(|one| !same_register(first.op0_register(), one));
    let mut constants = (0..first.op_count()).filter(|&at| is_constant(first.op_kind(at)));
    let mut meets_memory = false;
    for at in 0..second.operand_count() {
        let operand = second.operand(at);
        if let Some(register) = register(&operand) {
            if trust == Trust::Nothing || register.class() == class::ST {
                continue;
            }
            let Some(at) = registers.next() else { return Some("registers") };
            let at = if swapped { 1 - at } else { at };
            let own = first.op_register(at);
            let is_same =
                same_register(own, register) || trust == Trust::Number && same_number(own, register);
            if !is_same {
                return Some("register");
            }
        } else if let Some((value, width)) = constant(&operand) {
            if matches!(first.mnemonic(), Mnemonic::Int1 | Mnemonic::Int3) {
                continue;
            }
            let Some(at) = constants.next() else { return Some("constants") };
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            if (first.immediate(at) ^ value) & mask != 0 {
                return Some("constant");
            }
        } else if let Some(memory) = memory(&operand, first.next_ip()) {
            meets_memory = true;
            if let Some(what) = memory_difference(first, second, memory) {
                return Some(what);
            }
        }
    }
    if trust != Trust::Nothing && registers.next().is_some() {
        return Some("registers of the second");
    }
    if constants.next().is_some() {
        return Some("constants of the second");
    }
    let has_memory = (0..first.op_count()).any(|at| first.op_kind(at) == OpKind::Memory);
    (has_memory && !meets_memory && first.mnemonic() != Mnemonic::Xlatb).then_some("memory")
}

fn memory_difference(
    first: &Instruction,
    second: &long_mode::Instruction,
    memory: Memory,
) -> Option<&'static str> {
    if !(0..first.op_count()).any(|at| first.op_kind(at) == OpKind::Memory) {
        let is_memory = (0..first.op_count()).any(|at| is_memory_of_strings(first.op_kind(at)));
        return (!is_memory).then_some("memory of the second");
    }
    let is_same = |register: Register, other: Option<RegSpec>| match other {
        None => register == Register::None,
        Some(other) => same_register(register, other),
    };
    if !is_same(first.memory_base(), memory.base) {
        return Some("base");
    }
    // Of gathers and scatters it leaves out the vector of indices.
    if !first.memory_index().is_vector_register() && !is_same(first.memory_index(), memory.index) {
        return Some("index");
    }
    if memory.index.is_some() && first.memory_index_scale() != u32::from(memory.scale) {
        return Some("scale");
    }
    // What stands above the lower half hangs on the width of addresses, which the registers show.
    let narrow = [memory.base, memory.index].iter().flatten().all(|register| register.class() == class::D);
    let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
    if (first.memory_displacement64() ^ memory.displacement) & mask != 0 {
        return Some("displacement");
    }
    let segment = |segment: Segment| match segment {
        Segment::FS => Register::FS,
        Segment::GS => Register::GS,
        _ => Register::None,
    };
    let local = |register: Register| {
        if matches!(register, Register::FS | Register::GS) { register } else { Register::None }
    };
    (local(first.segment_prefix()) != segment(second.prefixes.segment())).then_some("segment")
}

fn is_constant(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Operands of string instructions, which name no registers in their encoding.
fn is_memory_of_strings(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI
    )
}

fn register(operand: &Operand) -> Option<RegSpec> {
    match *operand {
        Operand::Register { reg }
        | Operand::RegisterMaskMerge { reg, .. }
        | Operand::RegisterMaskMergeSae { reg, .. }
        | Operand::RegisterMaskMergeSaeNoround { reg, .. } => Some(reg),
        _ => None,
    }
}

/// A constant, and how many bits of it are encoded.
fn constant(operand: &Operand) -> Option<(u64, u32)> {
    Some(match *operand {
        Operand::ImmediateI8 { imm } => (imm as u64, 8),
        Operand::ImmediateU8 { imm } => (u64::from(imm), 8),
        Operand::ImmediateI16 { imm } => (imm as u64, 16),
        Operand::ImmediateU16 { imm } => (u64::from(imm), 16),
        Operand::ImmediateI32 { imm } => (imm as u64, 32),
        Operand::ImmediateU32 { imm } => (u64::from(imm), 32),
        Operand::ImmediateI64 { imm } => (imm as u64, 64),
        Operand::ImmediateU64 { imm } => (imm, 64),
        _ => return None,
    })
}

fn memory(operand: &Operand, next: u64) -> Option<Memory> {
    let memory = |base: Option<RegSpec>, index: Option<(RegSpec, u8)>, displacement: i32| {
        let (index, scale) = index.map_or((None, 1), |(index, scale)| (Some(index), scale));
        let displacement = i64::from(displacement) as u64;
        let displacement = match base {
            Some(base) if base.class() == class::RIP => next.wrapping_add(displacement),
            Some(base) if base.class() == class::EIP => u64::from(next.wrapping_add(displacement) as u32),
            _ => displacement,
        };
        Some(Memory { base, index, scale, displacement })
    };
    match *operand {
        Operand::AbsoluteU32 { addr } => memory(None, None, addr as i32),
        Operand::AbsoluteU64 { addr } => {
            Some(Memory { base: None, index: None, scale: 1, displacement: addr })
        }
        Operand::MemDeref { base } | Operand::MemDerefMasked { base, .. } => memory(Some(base), None, 0),
        Operand::Disp { base, disp } | Operand::DispMasked { base, disp, .. } => {
            memory(Some(base), None, disp)
        }
        Operand::MemIndexScale { index, scale } | Operand::MemIndexScaleMasked { index, scale, .. } => {
            memory(None, Some((index, scale)), 0)
        }
        Operand::MemIndexScaleDisp { index, scale, disp }
        | Operand::MemIndexScaleDispMasked { index, scale, disp, .. } => {
            memory(None, Some((index, scale)), disp)
        }
        Operand::MemBaseIndexScale { base, index, scale }
        | Operand::MemBaseIndexScaleMasked { base, index, scale, .. } => {
            memory(Some(base), Some((index, scale)), 0)
        }
        Operand::MemBaseIndexScaleDisp { base, index, scale, disp }
        | Operand::MemBaseIndexScaleDispMasked { base, index, scale, disp, .. } => {
            memory(Some(base), Some((index, scale)), disp)
        }
        _ => None,
    }
}

pub(super) fn same_register(first: Register, second: RegSpec) -> bool {
    let number = first.number();
    let (is_of_class, number) = match second.class() {
        class::Q => (first.is_gpr64(), number),
        class::D => (first.is_gpr32(), number),
        class::W => (first.is_gpr16(), number),
        class::B => (first.is_gpr8(), number),
        // The first decoder counts ah, ch, dh and bh before spl.
        class::RB => (first.is_gpr8(), number.wrapping_sub(4)),
        class::X => (first.is_xmm(), number),
        class::Y => (first.is_ymm(), number),
        class::Z => (first.is_zmm(), number),
        class::K => (first.is_k(), number),
        class::MM => (first.is_mm(), number),
        class::ST => (first.is_st(), number),
        class::S => (first.is_segment_register(), number),
        class::CR => (first.is_cr(), number),
        class::DR => (first.is_dr(), number),
        class::RIP => (first == Register::RIP, 0),
        class::EIP => (first == Register::EIP, 0),
        _ => (false, 0),
    };
    is_of_class && number == usize::from(second.num())
}

fn same_number(first: Register, second: RegSpec) -> bool {
    first.number() == usize::from(second.num())
}

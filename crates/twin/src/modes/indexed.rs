//! Prefetches ahead of loads whose address hangs on what another load reads, `a[b[i]]`, where that
//! other one walks through memory in steps.
//!
//! Before the other load, the index load, stands:
//!
//! ```text
//!   lea    edx, [rsi + 4*rax]           where it reads
//!   and    edx, 0xfff                   at which place in its page
//!   cmp    edx, 0xfbc                   a place that is read some steps later in the same page?
//!   ja     on
//!   movsxd rdx, [rsi + 4*rax + 64]      the index of then: the page is there, for it is read now
//!   shl    rdx, 2                       what the program makes of an index, without memory
//!   prefetcht0 [rdi + 8*rdx]
//! on:
//!   movsxd rdx, [rsi + 4*rax]           the index load itself
//! ```
//!
//! One register and the flags are changed: both are dead there, by liveness. Usually the register
//! is the one that the index load fills. Nothing can fault that would not fault at once behind it.

use iced_x86::{
    Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess, OpKind, Register,
};
use image::code::regs::{RSP, RegSet};

/// Instructions between the two loads, at most.
const NEAR: usize = 32;
/// What the program makes of an index takes no more than this: a hash is a handful.
const MOST_MADE: usize = 12;
const PAGE: i64 = 4096;
/// Steps that reach further in a page would leave it too often.
const FARTHEST: i64 = 2048;

/// A load that is indexed by what another one reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indexed {
    /// The number of the index load among the instructions of its unit.
    pub(crate) index_load: usize,
    /// What it moves by each time, in bytes.
    pub(crate) step: i64,
    /// The instructions by which the address is made, in their order, and the register that each
    /// takes its value from and leaves it in.
    made: Vec<(usize, Register, Register)>,
    /// The register of the load's own operand.
    last: Register,
}

/// How a load of these instructions is indexed, if it is.
pub(crate) fn indexed(all: &[Instruction], load: usize) -> Option<Indexed> {
    let operand = &all[load];
    if !is_plain(operand) {
        return None;
    }
    [operand.memory_index(), operand.memory_base()]
        .into_iter()
        .filter(|register| register.is_gpr64())
        .find_map(|register| followed(all, load, register))
}

/// Goes back from a load to the one that its address comes from.
fn followed(all: &[Instruction], load: usize, last: Register) -> Option<Indexed> {
    let mut factory = InstructionInfoFactory::new();
    let (mut now, mut made) = (last, Vec::new());
    for at in (load.saturating_sub(NEAR)..load).rev() {
        let instruction = &all[at];
        if !leads_on(instruction) {
            return None;
        }
        if !writes(instruction, now, &mut factory) {
            continue;
        }
        if is_index_load(instruction) {
            let step = step(all, at, &mut factory)?;
            made.reverse();
            return Some(Indexed { index_load: at, step, made, last });
        }
        let from = source(instruction, now)?;
        made.push((at, from, now));
        if made.len() > MOST_MADE {
            return None;
        }
        now = from;
    }
    None
}

/// Whether the next instruction may follow, and nothing is known to come between.
fn leads_on(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl::{ConditionalBranch, Next};
    matches!(instruction.flow_control(), Next | ConditionalBranch)
}

fn writes(instruction: &Instruction, register: Register, factory: &mut InstructionInfoFactory) -> bool {
    let changes = |access| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
    factory
        .info(instruction)
        .used_registers()
        .iter()
        .any(|used| changes(used.access()) && used.register().full_register() == register)
}

/// A plain load of an index of four or eight bytes, which is still told by its operand afterwards.
fn is_index_load(instruction: &Instruction) -> bool {
    let to = instruction.op0_register();
    let is_load = matches!(
        instruction.code(),
        Code::Mov_r32_rm32 | Code::Mov_r64_rm64 | Code::Movsxd_r64_rm32 | Code::Movzx_r32_rm16
    );
    let own = [instruction.memory_base(), instruction.memory_index()];
    is_load
        && instruction.op1_kind() == OpKind::Memory
        && is_plain(instruction)
        && to.full_register() != Register::RSP
        && !own.contains(&to.full_register())
}

/// Its memory operand is made of general registers alone.
fn is_plain(instruction: &Instruction) -> bool {
    let is_general = |register: Register| register == Register::None || register.is_gpr64();
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
        && (base != Register::None || index != Register::None)
        && is_general(base)
        && is_general(index)
        && base != Register::RSP
        && instruction.segment_prefix() == Register::None
}

/// The register that a value is taken from which an instruction leaves in `to`, without memory.
fn source(instruction: &Instruction, to: Register) -> Option<Register> {
    let is_register = |operand| instruction.op_kind(operand) == OpKind::Register;
    let is_same = |register: Register| register.full_register() == to;
    let wide = |register: Register| matches!(register.size(), 4 | 8);
    if instruction.op0_kind() != OpKind::Register || !is_same(instruction.op0_register()) {
        return (instruction.code() == Code::Cdqe && to == Register::RAX).then_some(to);
    }
    if !wide(instruction.op0_register()) {
        return None;
    }
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movsxd if is_register(1) && wide(instruction.op1_register()) => {
            Some(instruction.op1_register().full_register())
        }
        Mnemonic::Shl
        | Mnemonic::Sar
        | Mnemonic::Shr
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Imul
        | Mnemonic::Crc32
            if instruction.op_count() == 2 && !is_memory(instruction) && !is_cl(instruction) =>
        {
            Some(to)
        }
        // A product with a constant, in another register.
        Mnemonic::Imul if instruction.op_count() == 3 && is_register(1) => {
            Some(instruction.op1_register().full_register())
        }
        Mnemonic::Lea => {
            let (base, index) = (instruction.memory_base(), instruction.memory_index());
            let from = if index == Register::None || base == to { base } else { index };
            (is_plain(instruction) && from.is_gpr64()).then_some(from)
        }
        _ => None,
    }
}

fn is_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

fn is_cl(instruction: &Instruction) -> bool {
    instruction.op1_kind() == OpKind::Register && instruction.op1_register().size() < 4
}

/// What the operand of an index load moves by, where an instruction of the function adds a constant
/// to one of its registers.
fn step(all: &[Instruction], at: usize, factory: &mut InstructionInfoFactory) -> Option<i64> {
    let load = &all[at];
    let (base, index) = (load.memory_base(), load.memory_index());
    let of = |register: Register, factory: &mut InstructionInfoFactory| {
        let near = (at.saturating_sub(4 * NEAR)..(at + 4 * NEAR).min(all.len())).filter(|&other| other != at);
        let mut near: Vec<usize> = near.collect();
        near.sort_by_key(|other| other.abs_diff(at));
        // Others set where the walk begins.
        near.into_iter()
            .filter(|&other| writes(&all[other], register, factory))
            .find_map(|other| constant(&all[other], register))
    };
    let scale = i64::from(load.memory_index_scale());
    let moved = if index.is_gpr64() { of(index, factory).map(|step| step * scale) } else { None };
    let moved = moved.or_else(|| if base.is_gpr64() { of(base, factory) } else { None })?;
    (moved != 0 && moved.abs() < FARTHEST).then_some(moved)
}

/// What an instruction adds to a register.
fn constant(instruction: &Instruction, register: Register) -> Option<i64> {
    let is_it =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register().full_register() == register;
    let immediate = || {
        let is_one = matches!(
            instruction.op1_kind(),
            OpKind::Immediate8to32 | OpKind::Immediate8to64 | OpKind::Immediate32 | OpKind::Immediate32to64
        );
        is_one.then(|| i64::from(instruction.immediate(1) as i32))
    };
    match instruction.mnemonic() {
        Mnemonic::Inc if is_it => Some(1),
        Mnemonic::Dec if is_it => Some(-1),
        Mnemonic::Add if is_it => immediate(),
        Mnemonic::Sub if is_it => immediate().map(|step| -step),
        Mnemonic::Lea
            if is_it
                && instruction.memory_base() == register
                && instruction.memory_index() == Register::None =>
        {
            Some(instruction.memory_displacement64() as i64)
        }
        _ => None,
    }
}

impl Indexed {
    /// The code that goes before the index load, to fetch what is read that many steps later;
    /// `live` is what is live there.
    pub(crate) fn code(
        &self,
        all: &[Instruction],
        load: &Instruction,
        live: RegSet,
        steps: i32,
    ) -> Option<Vec<u8>> {
        let index_load = &all[self.index_load];
        let ahead = self.step.checked_mul(i64::from(steps))?;
        if ahead == 0 || ahead.abs() > FARTHEST || live.meets(RegSet::ARITHMETIC_FLAGS) {
            return None;
        }
        let scratch = self.scratch(all, load, live)?;
        let low = narrow(scratch);
        let bytes = i64::from(index_load.memory_size().size() as u32);
        let mut code = Vec::new();
        let lea = Instruction::with2(Code::Lea_r64_m, scratch, memory(index_load, 0)?).ok()?;
        push(&mut code, &lea)?;
        push(&mut code, &Instruction::with2(Code::And_rm32_imm32, low, PAGE as i32 - 1).ok()?)?;
        // What is read then must lie in the page: below its end, or above its begin.
        let (limit, skip) = if ahead > 0 { (PAGE - ahead - bytes, JA) } else { (-ahead, JB) };
        push(&mut code, &Instruction::with2(Code::Cmp_rm32_imm32, low, limit as i32).ok()?)?;
        let mut rest = Vec::new();
        let to = if index_load.op0_register().size() == 4 { low } else { scratch };
        push(&mut rest, &Instruction::with2(index_load.code(), to, memory(index_load, ahead)?).ok()?)?;
        for &(at, from, into) in &self.made {
            push(&mut rest, &made(&all[at], from, into, scratch)?)?;
        }
        push(&mut rest, &self.prefetch(load, scratch)?)?;
        code.extend([skip, u8::try_from(rest.len()).ok().filter(|&bytes| bytes < 128)?]);
        code.extend(rest);
        Some(code)
    }

    /// A register that is dead before the index load and that nothing else here reads.
    fn scratch(&self, all: &[Instruction], load: &Instruction, live: RegSet) -> Option<Register> {
        let index_load = &all[self.index_load];
        let mut used: Vec<Register> =
            vec![Register::RSP, index_load.memory_base(), index_load.memory_index()];
        let mut from = |instruction: &Instruction, followed: &[Register]| {
            let operands = (0..instruction.op_count())
                .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
                .map(|operand| instruction.op_register(operand));
            let all = operands.chain([instruction.memory_base(), instruction.memory_index()]);
            used.extend(all.map(Register::full_register).filter(|one| !followed.contains(one)));
        };
        for &(at, from_register, into) in &self.made {
            from(&all[at], &[from_register, into]);
        }
        from(load, &[self.last, load.op0_register().full_register()]);
        let own = index_load.op0_register().full_register();
        let others = (0..16).map(|number| Register::RAX + number);
        [own].into_iter().chain(others).find(|&register| {
            // Its own may be live, too: where an exception's landing pad reads it.
            let is_dead = !live.contains(RegSet::of(register));
            is_dead && !used.contains(&register) && !RegSet::of(register).meets(RegSet::general(RSP))
        })
    }

    /// The prefetch of the load's operand, by the register that its index is in.
    fn prefetch(&self, load: &Instruction, scratch: Register) -> Option<Instruction> {
        let put = |register| if register == self.last { scratch } else { register };
        let operand = operand(load, 0, &put)?;
        Instruction::with1(Code::Prefetcht0_m8, operand).ok()
    }
}

const JA: u8 = 0x77;
const JB: u8 = 0x72;

/// An instruction that makes an address, with another register in the place of those followed.
fn made(instruction: &Instruction, from: Register, into: Register, scratch: Register) -> Option<Instruction> {
    let put = |register: Register| {
        let is_followed = register.full_register() == from || register.full_register() == into;
        if !is_followed {
            register
        } else if register.size() == 4 {
            narrow(scratch)
        } else {
            scratch
        }
    };
    if instruction.code() == Code::Cdqe {
        return Instruction::with2(Code::Movsxd_r64_rm32, scratch, narrow(scratch)).ok();
    }
    let mut changed = *instruction;
    for operand in 0..instruction.op_count() {
        if instruction.op_kind(operand) == OpKind::Register {
            changed.set_op_register(operand, put(instruction.op_register(operand)));
        }
    }
    if instruction.mnemonic() == Mnemonic::Lea {
        changed.set_memory_base(put(instruction.memory_base()));
        changed.set_memory_index(put(instruction.memory_index()));
        if changed.memory_index() == Register::RSP {
            return None;
        }
    }
    Some(changed)
}

fn narrow(register: Register) -> Register {
    register.full_register32()
}

/// The memory operand of an instruction, this number of bytes further on.
fn memory(instruction: &Instruction, ahead: i64) -> Option<MemoryOperand> {
    operand(instruction, ahead, &|register| register)
}

fn operand(
    instruction: &Instruction,
    ahead: i64,
    put: &dyn Fn(Register) -> Register,
) -> Option<MemoryOperand> {
    let displacement = (instruction.memory_displacement64() as i64).checked_add(ahead)?;
    i32::try_from(displacement).ok()?;
    let (base, index) = (put(instruction.memory_base()), put(instruction.memory_index()));
    let is_short = base != Register::None && i8::try_from(displacement).is_ok();
    let size = if is_short { 1 } else { 8 };
    let scale = instruction.memory_index_scale();
    Some(MemoryOperand::new(base, index, scale, displacement, size, false, Register::None))
}

fn push(code: &mut Vec<u8>, instruction: &Instruction) -> Option<()> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).ok()?;
    code.extend(encoder.take_buffer());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect()
    }

    /// What goes before the index load of the one load at `load`.
    fn before(
        load: usize,
        live: RegSet,
        steps: i32,
        write: impl Fn(&mut CodeAssembler),
    ) -> Option<Vec<String>> {
        let mut code = CodeAssembler::new(64).unwrap();
        write(&mut code);
        let all = decoded(&code.assemble(0x1000).unwrap());
        let indexed = indexed(&all, load)?;
        let code = indexed.code(&all, &all[load], live, steps)?;
        Some(decoded(&code).iter().map(ToString::to_string).collect())
    }

    fn gather(code: &mut CodeAssembler) {
        code.movsxd(rdx, dword_ptr(rsi + rax * 4)).unwrap();
        code.addsd(xmm0, qword_ptr(rdi + rdx * 8)).unwrap();
        code.add(rax, 1).unwrap();
        code.cmp(rax, rcx).unwrap();
    }

    #[test]
    fn the_index_of_later_is_read_where_its_page_is_there() {
        let code = before(1, RegSet::EMPTY, 16, gather).unwrap();
        let expected = [
            "lea rdx,[rsi+rax*4]",
            "and edx,0FFFh",
            "cmp edx,0FBCh",
            "ja short 000000000000101Bh",
            "movsxd rdx,[rsi+rax*4+40h]",
            "prefetcht0 [rdi+rdx*8]",
        ];
        assert_eq!(code[..3], expected[..3]);
        assert!(code[3].starts_with("ja short"), "{code:?}");
        assert_eq!(code[4..], expected[4..]);
    }

    #[test]
    fn what_the_program_makes_of_an_index_is_made() {
        let code = before(4, RegSet::EMPTY, -8, |code| {
            code.mov(eax, dword_ptr(rbx)).unwrap();
            code.cdqe().unwrap();
            code.lea(rcx, qword_ptr(rax + rax * 2)).unwrap();
            code.shl(rcx, 4).unwrap();
            code.mov(rdx, qword_ptr(r8 + rcx + 8)).unwrap();
            code.add(rbx, 4).unwrap();
        });
        let code = code.unwrap();
        let expected = [
            "mov eax,[rbx-20h]",
            "movsxd rax,eax",
            "lea rax,[rax+rax*2]",
            "shl rax,4",
            "prefetcht0 [r8+rax+8]",
        ];
        assert_eq!((&*code[2], &code[4..]), ("cmp eax,20h", &expected.map(str::to_owned)[..]));
        assert!(code[3].starts_with("jb short"), "{code:?}");
    }

    #[test]
    fn a_hash_of_the_index_is_made() {
        let code = before(7, RegSet::EMPTY, 16, |code| {
            code.mov(edx, dword_ptr(rsi)).unwrap();
            code.mov(rcx, rdx).unwrap();
            code.imul_2(rdx, r9).unwrap();
            code.shr(rdx, 20).unwrap();
            code.xor(rdx, r10).unwrap();
            code.and(rdx, rdi).unwrap();
            code.imul_3(rax, rdx, 24).unwrap();
            code.cmp(ecx, dword_ptr(r8 + rax)).unwrap();
            code.add(rsi, 4).unwrap();
        });
        let expected = [
            "mov edx,[rsi+40h]",
            "imul rdx,r9",
            "shr rdx,14h",
            "xor rdx,r10",
            "and rdx,rdi",
            "imul rdx,18h",
            "prefetcht0 [r8+rdx]",
        ];
        assert_eq!(code.unwrap()[4..], expected.map(str::to_owned));
    }

    #[test]
    fn another_register_is_taken_if_the_load_needs_that_of_the_index() {
        // What the index is added to lies in the register that the index load fills.
        let write = |code: &mut CodeAssembler| {
            code.mov(edx, dword_ptr(rdi)).unwrap();
            code.lea(rcx, qword_ptr(rdx * 8)).unwrap();
            code.mov(rdx, r9).unwrap();
            code.mov(r8, qword_ptr(rdx + rcx)).unwrap();
            code.add(rdi, 4).unwrap();
        };
        let live = RegSet::general(0) | RegSet::general(1);
        let code = before(3, live, 4, write).unwrap();
        assert_eq!((&*code[0], &*code[4]), ("lea rbx,[rdi]", "mov ebx,[rdi+10h]"), "{code:?}");
        let every = RegSet::GENERAL;
        assert_eq!(before(3, every, 4, write), None, "all are live");
        // A landing pad may read what the index load is about to overwrite.
        let code = before(1, RegSet::general(2), 16, gather).unwrap();
        assert_eq!(code[0], "lea rcx,[rsi+rax*4]");
        assert_eq!(before(1, every, 16, gather), None, "its own register, too");
    }

    #[test]
    fn a_chain_is_no_walk() {
        let chain = |code: &mut CodeAssembler| {
            code.mov(rsi, qword_ptr(rsi)).unwrap();
            code.mov(rdx, qword_ptr(rsi + 16)).unwrap();
        };
        assert_eq!(before(1, RegSet::EMPTY, 4, chain), None);
        let list = |code: &mut CodeAssembler| {
            code.mov(edx, dword_ptr(rdi + rdx * 4)).unwrap();
            code.mov(r8, qword_ptr(r9 + rdx * 8)).unwrap();
            code.add(rdi, 4).unwrap();
        };
        assert_eq!(before(1, RegSet::EMPTY, 4, list), None, "its index is its own value");
    }

    #[test]
    fn nothing_is_done_where_flags_live_or_nothing_moves() {
        assert_eq!(before(1, RegSet::ARITHMETIC_FLAGS, 16, gather), None);
        assert_eq!(before(1, RegSet::EMPTY, 4096, gather), None, "another page");
        let still = |code: &mut CodeAssembler| {
            code.movsxd(rdx, dword_ptr(rsi + rax * 4)).unwrap();
            code.addsd(xmm0, qword_ptr(rdi + rdx * 8)).unwrap();
        };
        assert_eq!(before(1, RegSet::EMPTY, 16, still), None);
        let called = |code: &mut CodeAssembler| {
            code.movsxd(rdx, dword_ptr(rsi + rax * 4)).unwrap();
            code.call(rbx).unwrap();
            code.addsd(xmm0, qword_ptr(rdi + rdx * 8)).unwrap();
            code.add(rax, 1).unwrap();
        };
        assert_eq!(before(2, RegSet::EMPTY, 16, called), None);
    }
}

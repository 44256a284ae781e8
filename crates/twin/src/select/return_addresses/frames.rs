//! What is done with a return address where the unwind table says that it lies: in the word below
//! the frame's address.
//!
//! Something is added to it, or it to something; or it is loaded, and before anything branches
//! something is added to the copy, or the copy points to what is read. That it is loaded and handed
//! on is common, and does no harm.

use super::is_at;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use image::Module;
use image::code::insn::{Flow, Insn};
use image::code::regs::{RSP, RegSet};
use image::unwind::cfi::starts_as_called;
use image::unwind::needed::{self, Row};

/// Whether a function's first instruction does more than hand it on; its code is behind the
/// `endbr64`.
pub(crate) fn begin(code: &[u8]) -> bool {
    let row = Row { at: 0, needed: RegSet::EMPTY, is_bare: true, frame: Some((RegSet::general(RSP), 8)) };
    let first = &code[..code.len().min(15)];
    shape(first).is_some_and(|shape| is_it(&shape, row)) && {
        // Taken off, loaded or changed: it does not matter what comes behind it.
        let first = decode(first);
        is_pop(&first) || is_load(&first) || adds(&first)
    }
}

/// Whether a unit begins as a function that was just called, as far as is known: split-off parts
/// begin in the frame of what jumps there.
pub(crate) fn is_called(module: &Module<'_>, unit: usize) -> bool {
    module.units[unit].fde.is_none_or(|fde| {
        let fde = &module.frames.fdes[fde as usize];
        let cie = &module.frames.cies[fde.cie as usize];
        starts_as_called(module.frames.program(&cie.program), module.frames.program(&fde.program))
    })
}

/// Whether a unit does so anywhere, or goes to code that begins so.
pub(crate) fn are_used(module: &Module<'_>, unit: usize) -> bool {
    let Some(fde) = module.units[unit].fde else { return false };
    let fde = &module.frames.fdes[fde as usize];
    let cie = &module.frames.cies[fde.cie as usize];
    let rows = needed::rows(module.frames.program(&cie.program), module.frames.program(&fde.program));
    let insns = &module.decoded[unit].insns;
    let code = module.code(unit);
    let mut row = 0;
    for (index, insn) in insns.iter().enumerate() {
        while rows.get(row + 1).is_some_and(|next| next.at <= u64::from(insn.at)) {
            row += 1;
        }
        let here = rows[row];
        if insn.flow != Flow::Next {
            if here.is_bare && leaves(module, unit, *insn).is_some_and(|to| is_at(module, to)) {
                return true;
            }
            continue;
        }
        if !shape(insn.bytes(code)).is_some_and(|shape| is_it(&shape, here)) {
            continue;
        }
        let instruction = decode(insn.bytes(code));
        let found = if is_pop(&instruction) || is_load(&instruction) {
            let behind = insns[index..].windows(2).take_while(|pair| pair[0].end() == pair[1].at);
            let mut behind = behind.map(|pair| (pair[1].flow, decode(pair[1].bytes(code))));
            is_used(instruction.op0_register(), &mut behind)
        } else {
            adds(&instruction)
        };
        if found {
            return true;
        }
    }
    false
}

/// Whether a unit reads, behind a call, the word that the call's return address was in: below the
/// stack pointer. So do functions that are hardened against speculation, to know that they
/// were returned to.
pub(crate) fn look_back(module: &Module<'_>, unit: usize) -> bool {
    let insns = &module.decoded[unit].insns;
    let code = module.code(unit);
    let mut is_behind = false;
    let mut end = 0;
    for insn in insns {
        is_behind &= insn.at == end;
        end = insn.end();
        if is_behind && matches!(shape(insn.bytes(code)), Some(Shape::Operand(RSP, -8))) {
            let instruction = decode(insn.bytes(code));
            // What is put there first is something else.
            let puts = instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Memory;
            if !puts {
                return true;
            }
            is_behind = false;
        }
        if insn.flow != Flow::Next {
            is_behind = insn.flow.is_call();
        }
    }
    false
}

/// Where an instruction jumps to, out of its unit.
fn leaves(module: &Module<'_>, unit: usize, insn: Insn) -> Option<units::Svma> {
    if matches!(insn.flow, Flow::Next | Flow::Return | Flow::Stop) || insn.flow.is_call() {
        return None;
    }
    let target = insn.target(module.units[unit].start, module.code(unit))?;
    (!module.units[unit].holds(target)).then_some(target)
}

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode()
}

/// By its bytes alone, for speed: what may touch a word of the stack.
enum Shape {
    Pop,
    /// An operand in memory, by a register's number and a displacement.
    Operand(u32, i32),
}

/// `None` for what neither takes off, loads, adds to nor exchanges a word.
fn shape(bytes: &[u8]) -> Option<Shape> {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let first = bytes.iter().position(|byte| !is_prefix(byte))?;
    let rex = first.checked_sub(1).map(|last| bytes[last]).filter(|byte| byte & 0xf0 == 0x40).unwrap_or(0);
    let operand = match bytes[first..] {
        [0x58..=0x5f, ..] => return Some(Shape::Pop),
        [opcode @ (0x00..=0x3b | 0x80..=0x8f | 0xfe | 0xff), ..] if opcode >= 0x80 || opcode & 7 < 4 => {
            &bytes[first + 1..]
        }
        [0x0f, 0xc0 | 0xc1, ..] => &bytes[first + 2..],
        _ => return None,
    };
    let modrm = *operand.first()?;
    let (base, behind) = match modrm & 7 {
        // No index: the stack pointer has no number as one.
        4 => (operand.get(1).copied().filter(|sib| sib >> 3 & 7 == 4 && rex & 2 == 0)?, &operand[2..]),
        _ => (modrm, &operand[1..]),
    };
    let displacement = match modrm >> 6 {
        0 if base & 7 == 5 => return None,
        0 => 0,
        1 => i32::from(*behind.first()? as i8),
        2 => i32::from_le_bytes(behind.get(..4)?.try_into().ok()?),
        _ => return None,
    };
    Some(Shape::Operand(u32::from(base & 7 | (rex & 1) << 3), displacement))
}

/// Whether that is the return address by a row of the unwind table.
fn is_it(shape: &Shape, row: Row) -> bool {
    match *shape {
        Shape::Pop => row.is_bare,
        Shape::Operand(base, displacement) => {
            row.frame == Some((RegSet::general(base), i64::from(displacement) + 8))
        }
    }
}

fn is_pop(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Pop && instruction.op0_kind() == OpKind::Register
}

fn is_load(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Memory
        && instruction.op0_register().is_gpr64()
}

fn adds(instruction: &Instruction) -> bool {
    use Mnemonic::{Adc, Add, Dec, Inc, Sbb, Sub, Xadd, Xchg};
    matches!(instruction.mnemonic(), Add | Sub | Adc | Sbb | Inc | Dec | Xadd | Xchg)
}

/// Whether what was loaded is added to, or points to an operand, before anything branches.
fn is_used(register: Register, behind: &mut dyn Iterator<Item = (Flow, Instruction)>) -> bool {
    let mut copies = RegSet::of(register);
    for (flow, instruction) in behind {
        let holds = |register: Register| register.is_gpr() && RegSet::of(register).meets(copies);
        let register = |at: u32| {
            Some(instruction.op_register(at)).filter(|_| instruction.op_kind(at) == OpKind::Register)
        };
        let any = (0..instruction.op_count()).filter_map(register).any(holds);
        let points = holds(instruction.memory_base()) || holds(instruction.memory_index());
        if points && instruction.mnemonic() != Mnemonic::Nop {
            return true;
        }
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let is_cleared = matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub) && to == from;
        let exchanges = instruction.mnemonic() == Mnemonic::Xchg;
        if adds(&instruction) && !exchanges && !is_cleared && any {
            return true;
        }
        if flow != Flow::Next {
            return false;
        }
        if exchanges && any {
            copies |= [to, from]
                .into_iter()
                .filter(|r| r.is_gpr())
                .map(RegSet::of)
                .fold(RegSet::EMPTY, |a, b| a | b);
        } else if instruction.mnemonic() == Mnemonic::Mov && to.is_gpr64() && any && holds(from) {
            copies |= RegSet::of(to);
        } else if to.is_gpr64()
            && (is_cleared || matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Pop | Mnemonic::Lea))
        {
            copies = copies - RegSet::of(to);
        }
        if copies == RegSet::EMPTY {
            return false;
        }
    }
    false
}

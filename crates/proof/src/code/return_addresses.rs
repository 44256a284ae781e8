//! Rule R6, of return addresses: a function that a twin calls finds one that lies in the twin. It
//! makes no difference to code that returns there, but it does to code that goes on beside it, or
//! reads what stands there.
//!
//! The word that holds it is found by the unwind table: it is the one below the frame's address,
//! wherever that is a register and a constant. A function *uses its return address* if one of its
//! instructions
//!
//! - is its first one (behind an `endbr64`), and takes it off the stack, loads it, or changes it by
//!   what it was;
//! - changes that word by what it was (`add`, `sub`, `adc`, `sbb`, `inc`, `dec`, `xadd`, `xchg`),
//!   or adds it to something;
//! - loads it into a register, or takes it off the stack, and one of those behind it, as far as
//!   nothing branches, adds to that register or to a copy of it, subtracts from it or with it, or
//!   has it in the address of an operand;
//!
//! or if it jumps to a piece of code that does; where the return address is on top of the stack,
//! also to one that nothing is known of but its first instruction.
//!
//! What is called, and begins with another frame than that of a function just called, may do so
//! without any of this: nobody knows where its return address lies. (So the tables of split stacks
//! describe what allocates stack: by its caller's frame.)
//!
//! A caller finds its call's return address, too: below the stack pointer, until something else is
//! put there. A function that reads that word behind a call, as far as nothing branches or moves
//! the stack, has no twin.
//!
//! What only hands it on (to code that looks up its caller, or logs it) does none of this, nor does
//! code that puts another in its place. To add a way of using it: an arm in [`touch`] or
//! [`is_used`], and one in the rewriter, which must see it too.

use crate::Context;
use crate::container::read::Reader;
use crate::container::stream::{self, Item};
use crate::liveness::{descent, effects, set};
use crate::rule::Rule;
use crate::unwind::cfa::Rows;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use rayon::prelude::*;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// The stack pointer, as instructions number registers.
const RSP: u8 = 4;
/// The stack pointer, as unwind tables number registers.
const STACK_POINTER: u64 = 7;
/// Where the frame is when a function was just called.
const CALLED: (u64, i64) = (STACK_POINTER, 8);
/// A straight piece of code longer than this is looked at no further.
const STRAIGHT: usize = 64;

/// Whether the code of a function at its begin uses its return address by its very first
/// instruction.
fn begins(code: &[u8]) -> bool {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    let first = Decoder::with_ip(64, &code[..code.len().min(15)], 0, DecoderOptions::NONE).decode();
    !first.is_invalid() && touch(&first, CALLED) != Touch::None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    None,
    /// It is in this register now.
    Taken(Register),
    /// Something was added to it, or it to something.
    Changed,
}

/// What an instruction does with the word below the frame's address.
fn touch(insn: &Instruction, (frame, offset): (u64, i64)) -> Touch {
    if insn.mnemonic() == Mnemonic::Pop && insn.op0_kind() == OpKind::Register {
        return if (frame, offset) == CALLED { Touch::Taken(insn.op0_register()) } else { Touch::None };
    }
    let base = insn.memory_base();
    let is_it = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory)
        && base.is_gpr64()
        && is_numbered(frame, base.number() as u8)
        && insn.memory_index() == Register::None
        && offset.checked_sub(8) == Some(insn.memory_displacement64() as i64);
    match insn.mnemonic() {
        _ if !is_it => Touch::None,
        Mnemonic::Mov if insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64() => {
            Touch::Taken(insn.op0_register())
        }
        mnemonic if adds(mnemonic) || mnemonic == Mnemonic::Xchg => Touch::Changed,
        _ => Touch::None,
    }
}

/// Whether unwind tables have this number for that general register.
fn is_numbered(number: u64, register: u8) -> bool {
    const ORDER: [u64; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    number == ORDER.get(usize::from(register)).copied().unwrap_or(u64::from(register))
}

fn adds(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Adc, Add, Dec, Inc, Sbb, Sub, Xadd};
    matches!(mnemonic, Add | Sub | Adc | Sbb | Inc | Dec | Xadd)
}

/// Whether the instructions that follow, as far as nothing branches, do more with what was loaded
/// than hand it on.
fn is_used(
    register: Register,
    following: impl Iterator<Item = Instruction>,
    factory: &mut InstructionInfoFactory,
) -> bool {
    let mut copies = set::touched(register);
    for insn in following.take(STRAIGHT) {
        let holds = |register: Register| register.is_gpr() && set::touched(register) & copies != 0;
        let operand = |at| insn.op_kind(at) == OpKind::Register && holds(insn.op_register(at));
        let memory = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory);
        if memory
            && insn.mnemonic() != Mnemonic::Nop
            && (holds(insn.memory_base()) || holds(insn.memory_index()))
        {
            return true;
        }
        let cleared = insn.op_count() == 2
            && insn.op1_kind() == OpKind::Register
            && insn.op0_register() == insn.op1_register();
        if adds(insn.mnemonic()) && !cleared && (0..insn.op_count()).any(operand) {
            return true;
        }
        if insn.flow_control() != FlowControl::Next {
            return false;
        }
        let copied = match insn.mnemonic() {
            Mnemonic::Mov if insn.op0_register().is_gpr64() && operand(1) => {
                set::touched(insn.op0_register())
            }
            Mnemonic::Xchg if operand(0) || operand(1) => {
                set::touched(insn.op0_register()) | set::touched(insn.op1_register())
            }
            _ => 0,
        };
        copies = copies & !effects::of(&insn, factory).kills | copied;
        if copies == 0 {
            return false;
        }
    }
    false
}

/// What the bytes of an instruction say it may be: looked at for every instruction there is, so
/// without the decoder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    /// May touch the word at so much from a general register.
    Word(u8, i32),
    /// Takes a word off the stack.
    Pop,
    /// A direct jump, with the number of last bytes that say where to.
    Jump(usize),
    Call,
}

fn kind(bytes: &[u8]) -> Kind {
    let (mut at, mut rex) = (0, 0);
    while let Some(prefix @ (0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f)) =
        bytes.get(at)
    {
        rex = if prefix & 0xf0 == 0x40 { *prefix } else { 0 };
        at += 1;
    }
    match bytes[at..] {
        [0xe8, ..] => Kind::Call,
        [0xeb | 0x70..=0x7f | 0xe0..=0xe3, ..] => Kind::Jump(1),
        [0xe9, ..] | [0x0f, 0x80..=0x8f, ..] => Kind::Jump(4),
        [0x58..=0x5f, ..] => Kind::Pop,
        // add, adc, sbb, sub, the same with constants, xchg, mov, pop, inc and dec
        [
            0x01 | 0x03 | 0x11 | 0x13 | 0x19 | 0x1b | 0x29 | 0x2b | 0x81 | 0x83 | 0x87 | 0x8b | 0x8f | 0xff,
            ..,
        ] => word(rex, &bytes[at + 1..]),
        [0x0f, 0xc1, ..] => word(rex, &bytes[at + 2..]),
        _ => Kind::Other,
    }
}

/// Where a direct jump or call leads, from the start of the code.
fn target(kind: Kind, code: &[u8], item: &Item) -> Option<i64> {
    let size = if let Kind::Jump(size) = kind { size } else { 4 };
    let distance = Reader::new(code, (item.end() as usize).checked_sub(size)?).signed(size)?;
    Some(i64::from(item.end()) + distance)
}

/// The memory operand of a `ModRM` byte and what follows, if it is a register and a displacement.
fn word(rex: u8, operand: &[u8]) -> Kind {
    let (modrm, sib) = match operand {
        [modrm, sib, ..] if modrm & 7 == 4 => (*modrm, Some(*sib)),
        [modrm, ..] => (*modrm, None),
        [] => return Kind::Other,
    };
    let behind = 1 + usize::from(sib.is_some());
    let low = sib.unwrap_or(modrm) & 7;
    let indexed = sib.is_some_and(|sib| sib & 0x38 != 0x20) || sib.is_some() && rex & 2 != 0;
    let displacement = match modrm >> 6 {
        0 if low != 5 => Some(0),
        1 => Reader::new(operand, behind).signed(1),
        2 => Reader::new(operand, behind).signed(4),
        _ => None,
    };
    match displacement {
        Some(displacement) if !indexed => Kind::Word(low | (rex & 1) << 3, displacement as i32),
        _ => Kind::Other,
    }
}

/// What is known of one piece of code: whether it uses its return address by itself, and where it
/// jumps to.
#[derive(Default)]
struct Piece {
    uses: bool,
    /// It reads the return address of a call behind it.
    looks_back: bool,
    jumps: Vec<u64>,
}

/// Looks at a piece of code.
fn look(
    context: &Context<'_>,
    start: u64,
    code: &[u8],
    items: &[Item],
    rows: Option<Rows<'_>>,
    factory: &mut InstructionInfoFactory,
) -> Piece {
    let mut piece = Piece::default();
    let Some(mut rows) = rows else { return piece };
    let decode = |item: &Item| {
        let bytes = &code[item.at as usize..item.end() as usize];
        Decoder::with_ip(64, bytes, start + u64::from(item.at), DecoderOptions::NONE).decode()
    };
    for (index, item) in items.iter().enumerate() {
        let kind = kind(&code[item.at as usize..item.end() as usize]);
        if matches!(kind, Kind::Other | Kind::Call) {
            continue;
        }
        if kind == Kind::Word(RSP, -8) {
            let whole = items[..=index].windows(2).rev().take_while(|pair| pair[0].end() == pair[1].at);
            piece.looks_back |= is_behind_a_call(whole.map(|pair| decode(&pair[0])));
        }
        if rows.advance(u64::from(item.at)).is_none() {
            break;
        }
        let frame = rows.plain_frame();
        let lies_at = |base: u8, displacement: i32| {
            frame.filter(|&(register, offset)| {
                is_numbered(register, base) && offset.checked_sub(8) == Some(i64::from(displacement))
            })
        };
        let frame = match kind {
            Kind::Jump(_) => {
                let to = target(kind, code, item).map(|distance| start.wrapping_add_signed(distance));
                if let Some(to) = to.filter(|to| to.wrapping_sub(start) >= code.len() as u64) {
                    piece.jumps.push(to);
                    piece.uses |= frame == Some(CALLED) && context.is_made_for_its_return_address(to);
                }
                continue;
            }
            Kind::Pop => frame.filter(|&frame| frame == CALLED),
            Kind::Word(base, displacement) => lies_at(base, displacement),
            _ => None,
        };
        let Some(frame) = frame else { continue };
        piece.uses |= match touch(&decode(item), frame) {
            Touch::None => false,
            Touch::Changed => true,
            Touch::Taken(register) => {
                let whole = items[index..].windows(2).take_while(|pair| pair[0].end() == pair[1].at);
                is_used(register, whole.map(|pair| decode(&pair[1])), factory)
            }
        };
    }
    piece
}

/// Whether a call comes first among the instructions before one that reads the word below the stack
/// pointer.
fn is_behind_a_call(before: impl Iterator<Item = Instruction>) -> bool {
    for insn in before.take(STRAIGHT) {
        if matches!(insn.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            return true;
        }
        let moves = insn.is_stack_instruction() || insn.op0_register() == Register::RSP;
        let writes = insn.op0_kind() == OpKind::Memory
            && insn.memory_base() == Register::RSP
            && insn.memory_displacement64() as i64 == -8
            && insn.mnemonic() == Mnemonic::Mov;
        if insn.flow_control() != FlowControl::Next || moves || writes {
            return false;
        }
    }
    false
}

fn is_code(context: &Context<'_>, address: u64) -> bool {
    context.original.load_at(units::Svma(address)).is_some_and(crate::container::elf::Segment::is_executable)
}

/// Where the pieces begin that use their return addresses, ascending.
fn users(context: &Context<'_>) -> Vec<u64> {
    let mapping = &context.mapping;
    let mut reach = 0;
    let mut covering = context.unwind.covering();
    covering.retain(|&(start, size, _)| {
        let apart = start >= reach && size < 1 << 31;
        reach = if apart { start.saturating_add(size) } else { reach };
        apart
    });
    let pieces: Vec<(u64, Piece)> = covering
        .par_iter()
        .with_min_len(64)
        .map_init(
            || (Vec::new(), InstructionInfoFactory::new()),
            |(items, factory), &(start, size, fde)| {
                let code = match mapping.at(start) {
                    Some(unit) if unit.start == start => {
                        if stream::read(unit, items).is_err() {
                            items.clear();
                        }
                        unit.code
                    }
                    _ => {
                        let code = context.original.bytes_at(units::Svma(start), size as usize);
                        let code = code.filter(|_| is_code(context, start)).unwrap_or(&[]);
                        descent::follow(start, code, &[], items);
                        code
                    }
                };
                // A split-off part begins in the frame of what jumps there.
                let is_called = context.unwind.rows(fde).is_none_or(|rows| rows.is_bare());
                let mut piece = look(context, start, code, items, context.unwind.rows(fde), factory);
                piece.uses |= is_called && begins(code);
                (start, piece)
            },
        )
        .collect();
    for (start, _) in pieces.iter().filter(|(_, piece)| piece.looks_back) {
        if let Some(unit) = mapping.at(*start).filter(|unit| unit.start == *start) {
            let what = "a function that reads the return address of a call behind it";
            context.findings.at(Rule::Calls, unit.twin, what);
        }
    }
    // Jumps' sources, by their targets.
    let known = |to: &u64| pieces.binary_search_by_key(to, |piece| piece.0).is_ok();
    let mut jumps: Vec<(u64, u64)> = pieces
        .iter()
        .flat_map(|(from, piece)| piece.jumps.iter().filter(|to| known(to)).map(move |&to| (to, *from)))
        .collect();
    jumps.sort_unstable();
    let mut found: Vec<u64> =
        pieces.iter().filter(|(_, piece)| piece.uses).map(|&(start, _)| start).collect();
    let mut seen: std::collections::BTreeSet<u64> = found.iter().copied().collect();
    while let Some(to) = found.pop() {
        let first = jumps.partition_point(|jump| jump.0 < to);
        let from = jumps[first..].iter().take_while(|jump| jump.0 == to).map(|jump| jump.1);
        found.extend(from.filter(|&from| seen.insert(from)));
    }
    seen.into_iter().collect()
}

impl Context<'_> {
    /// R6 for a call that leads to this address, by the first instruction there.
    pub(crate) fn is_made_for_its_return_address(&self, to: u64) -> bool {
        self.original.bytes_from(units::Svma(to)).filter(|_| is_code(self, to)).is_some_and(begins)
    }

    /// R6: no twin calls what uses its return address. Such functions are rare: calls are looked at
    /// again only if there are any.
    pub(crate) fn return_addresses(&self) {
        let users = users(self);
        if users.is_empty() {
            return;
        }
        self.mapping.units.par_iter().with_min_len(64).for_each_init(Vec::new, |items, unit| {
            if stream::read(unit, items).is_err() {
                return; // told when the unit itself was looked at
            }
            for item in &*items {
                let bytes = &unit.code[item.at as usize..item.end() as usize];
                if kind(bytes) != Kind::Call {
                    continue;
                }
                let to = target(Kind::Call, unit.code, item);
                let to = to.map(|distance| unit.start.wrapping_add_signed(distance));
                if let Some(to) = to.filter(|to| users.binary_search(to).is_ok()) {
                    let at = unit.twin + u64::from(item.copy());
                    let what = format!("a call of {to:#x}, which uses its return address");
                    self.findings.at(Rule::Calls, at, what);
                }
            }
        });
    }
}

//! Recursive-descent decoding of one unit: only what control flow is seen to reach is taken for
//! code.

use crate::code::insn::{Flow, Insn};
use crate::code::jump_table::{JumpTable, OpenJump};
use crate::code::reads;
use crate::code::surroundings::Surroundings;
use crate::code::tables;
use crate::elf::joined;
use iced_x86::{Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use units::Svma;

/// What decoding found in a unit.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// By ascending address.
    pub insns: Vec<Insn>,
    /// Recognised jump tables.
    pub tables: Vec<JumpTable>,
    /// Indirect jumps whose targets stay unknown.
    pub open_jumps: Vec<OpenJump>,
    /// Reached offsets at which no instruction could be decoded (or none that may be copied).
    pub undecoded: Vec<u32>,
    /// Targets of direct jumps and of table entries that lie outside the unit.
    pub jumps_out: Vec<Svma>,
    /// Targets of direct calls.
    pub calls: Vec<Svma>,
    /// Operands and constants that point into code.
    pub code_references: Vec<Svma>,
    /// What of those operands is read, or written: where each begins and ends.
    pub reads: Vec<(u64, u64)>,
    /// Two instructions share bytes: the code cannot be laid out in a line.
    pub overlaps: bool,
    /// It calls the instruction after the call, to learn where it is.
    pub reads_own_address: bool,
}

/// Bitmaps and lists that are kept from unit to unit.
#[derive(Default)]
pub struct Scratch {
    started: Vec<u64>,
    work: Vec<u32>,
}

impl Scratch {
    fn is_started(&self, at: u32) -> bool {
        self.started.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

/// Decodes the unit at `start`, whose bytes are `code`, from its first byte and the `roots`
/// (offsets) on.
pub fn decode(
    start: Svma,
    code: &[u8],
    roots: &[u32],
    around: &Surroundings<'_, '_>,
    scratch: &mut Scratch,
) -> Decoded {
    let mut descent = Descent {
        start,
        code,
        around,
        decoder: Decoder::with_ip(64, code, start.0, DecoderOptions::NONE),
        indirect: false,
        followed: Vec::new(),
        out: Decoded { insns: Vec::with_capacity(code.len() / 4 + 1), ..Decoded::default() },
    };
    scratch.started.clear();
    scratch.started.resize(code.len().div_ceil(64), 0);
    scratch.work.clear();
    scratch.work.extend(roots);
    scratch.work.push(0);
    descent.run(scratch);
    if descent.indirect {
        resolve_tables(&mut descent, roots, scratch);
    }
    descent.out.insns.sort_unstable_by_key(|insn| insn.at);
    for attempt in 0..FRESH_STARTS {
        if descent.out.tables.is_empty() || !overlap(&descent.out.insns) {
            break;
        }
        // A table that was believed for a while may have led into the middle of instructions.
        if attempt > 0 {
            descent.out.tables.retain(|table| table.is_guarded);
        }
        start_afresh(&mut descent, roots, scratch);
    }
    if descent.was_misled() {
        keep_reached(&mut descent, roots, scratch);
    }
    let mut out = descent.out;
    out.insns.shrink_to_fit();
    out.overlaps = overlap(&out.insns);
    for list in [&mut out.jumps_out, &mut out.calls, &mut out.code_references] {
        list.sort_unstable();
        list.dedup();
    }
    out.reads = joined(out.reads);
    out.undecoded.sort_unstable();
    out
}

const FRESH_STARTS: usize = 4;
/// From this number of table entries on, it pays to look for repetitions.
const MANY: usize = 1 << 15;

fn overlap(insns: &[Insn]) -> bool {
    insns.windows(2).any(|pair| pair[0].end() > pair[1].at)
}

/// Decodes once more, with only the tables believed in the end, and keeps those of them that are
/// believed still.
fn start_afresh(descent: &mut Descent<'_, '_, '_>, roots: &[u32], scratch: &mut Scratch) {
    let tables = std::mem::take(&mut descent.out.tables);
    descent.forget(roots, scratch);
    for table in &tables {
        descent.follow(table, scratch);
    }
    descent.run(scratch);
    descent.out.insns.sort_unstable_by_key(|insn| insn.at);
    let (start, code) = (descent.start, descent.code);
    let (found, mut open) = tables::resolve(start, code, &descent.out.insns, &tables, roots, descent.around);
    let (kept, lost): (Vec<_>, Vec<_>) = found.into_iter().partition(|table| tables.contains(table));
    open.extend(lost.iter().map(|table| OpenJump { at: table.jump_at, is_pointer: false }));
    descent.out.tables = kept;
    descent.out.open_jumps = open;
}

/// Decodes once more, along the tables that are believed in the end and no others: what only a
/// table that was dropped since had led to may be no code at all. The tables stay as judged, for
/// that was done with more code in view, and more code only ever shows more ways around a bounds
/// check.
fn keep_reached(descent: &mut Descent<'_, '_, '_>, roots: &[u32], scratch: &mut Scratch) {
    let mut tables = std::mem::take(&mut descent.out.tables);
    let open_jumps = std::mem::take(&mut descent.out.open_jumps);
    descent.forget(roots, scratch);
    loop {
        descent.run(scratch);
        let (reached, others): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|table| scratch.is_started(table.jump_at));
        tables = others;
        if reached.is_empty() {
            break;
        }
        for table in reached {
            descent.follow(&table, scratch);
            descent.out.tables.push(table);
        }
    }
    descent.out.tables.sort_by_key(|table| table.jump_at);
    descent.out.open_jumps = open_jumps;
    descent.out.open_jumps.retain(|jump| scratch.is_started(jump.at));
    descent.out.insns.sort_unstable_by_key(|insn| insn.at);
}

/// Finds jump tables, decodes what they lead to, and asks again, until nothing is new. In the end
/// every table is looked at once more with all of the code known, since later finds may show ways
/// around a bounds check.
fn resolve_tables(descent: &mut Descent<'_, '_, '_>, roots: &[u32], scratch: &mut Scratch) {
    const ROUNDS: usize = 12;
    for round in 0..ROUNDS {
        descent.out.insns.sort_unstable_by_key(|insn| insn.at);
        let known = &descent.out;
        let (tables, open) =
            tables::resolve(descent.start, descent.code, &known.insns, &known.tables, roots, descent.around);
        let settled = tables == descent.out.tables;
        let last = round + 1 == ROUNDS;
        if last && !settled {
            // Never settled: trust none.
            let jumps = descent.out.insns.iter().filter(|insn| insn.flow == Flow::JumpIndirect);
            descent.out.open_jumps = jumps.map(|insn| OpenJump { at: insn.at, is_pointer: false }).collect();
            descent.out.tables.clear();
            return;
        }
        descent.out.open_jumps = open;
        descent.out.tables = tables;
        if settled {
            return;
        }
        for table in descent.out.tables.clone() {
            descent.follow(&table, scratch);
        }
        descent.run(scratch);
    }
}

struct Descent<'a, 'd, 'c> {
    start: Svma,
    code: &'c [u8],
    around: &'a Surroundings<'a, 'd>,
    decoder: Decoder<'c>,
    indirect: bool,
    /// Where tables led: the place of the jump, and the target.
    followed: Vec<(u32, Svma)>,
    out: Decoded,
}

impl Descent<'_, '_, '_> {
    fn run(&mut self, scratch: &mut Scratch) {
        let mut instruction = Instruction::default();
        while let Some(mut at) = scratch.work.pop() {
            let mut placed = false;
            while let Some(word) = scratch.started.get_mut(at as usize / 64) {
                let bit = 1 << (at % 64);
                if *word & bit != 0 || at as usize >= self.code.len() {
                    break;
                }
                if !placed {
                    if self.decoder.set_position(at as usize).is_err() {
                        break;
                    }
                    self.decoder.set_ip(self.start.0 + u64::from(at));
                    placed = true;
                }
                *word |= bit;
                self.decoder.decode_out(&mut instruction);
                let Some(insn) = self.take(at, &instruction, &mut scratch.work) else {
                    self.out.undecoded.push(at);
                    break;
                };
                self.out.insns.push(insn);
                if !insn.flow.falls_through() || insn.never_returns {
                    break;
                }
                at = insn.end();
            }
        }
    }

    /// Back to where nothing is decoded yet.
    fn forget(&mut self, roots: &[u32], scratch: &mut Scratch) {
        self.out = Decoded { insns: Vec::with_capacity(self.code.len() / 4 + 1), ..Decoded::default() };
        self.followed.clear();
        scratch.started.fill(0);
        scratch.work.clear();
        scratch.work.extend(roots);
        scratch.work.push(0);
    }

    /// Goes on where a jump table leads.
    fn follow(&mut self, table: &JumpTable, scratch: &mut Scratch) {
        self.followed.extend(table.targets.iter().map(|&target| (table.jump_at, target)));
        if self.followed.len() > MANY {
            self.followed.sort_unstable();
            self.followed.dedup();
            self.out.jumps_out.sort_unstable();
            self.out.jumps_out.dedup();
        }
        for &target in &table.targets {
            match target.0.wrapping_sub(self.start.0) {
                inside if inside < self.code.len() as u64 => scratch.work.push(inside as u32),
                _ => self.out.jumps_out.push(target),
            }
        }
    }

    /// Was a table entry followed that is not believed in the end?
    fn was_misled(&self) -> bool {
        let believed: std::collections::HashSet<(u32, Svma)> = self
            .out
            .tables
            .iter()
            .flat_map(|table| table.targets.iter().map(|&target| (table.jump_at, target)))
            .collect();
        self.followed.iter().any(|entry| !believed.contains(entry))
    }

    fn take(&mut self, at: u32, instruction: &Instruction, work: &mut Vec<u32>) -> Option<Insn> {
        let flow = flow(instruction)?;
        if flow != Flow::Next && has_vague_size(&self.code[at as usize..]) {
            return None;
        }
        let mut insn =
            Insn { at, len: instruction.len() as u8, flow, rip_displacement: 0, never_returns: false };
        if instruction.is_ip_rel_memory_operand() {
            if instruction.memory_base() != iced_x86::Register::RIP {
                return None; // EIP-relative: 32-bit wrap-around
            }
            let offsets = self.decoder.get_constant_offsets(instruction);
            if offsets.displacement_size() != 4 {
                return None;
            }
            insn.rip_displacement = offsets.displacement_offset() as u8;
            if flow == Flow::CallIndirect {
                insn.never_returns =
                    (self.around.slot_never_returns)(Svma(instruction.ip_rel_memory_address()));
            }
        }
        let fixed = !self.around.image.is_position_independent();
        if let Some(target) = reads::place(instruction, fixed) {
            if self.is_code(target) {
                self.out.code_references.push(Svma(target));
            }
            let code = self.around.code;
            let range =
                reads::range(instruction, target).filter(|range| range.0 < code.1 && code.0 < range.1);
            self.out.reads.extend(range);
        }
        if fixed
            && instruction.op_count() > 0
            && let Some(constant) = wide_immediate(instruction)
            && self.is_code(constant)
        {
            self.out.code_references.push(Svma(constant));
        }
        match flow {
            Flow::Jump8 | Flow::Jump32 | Flow::Branch8 | Flow::Branch32 | Flow::Loop8 => {
                let target = insn.target(self.start, self.code)?;
                let inside = target.0.wrapping_sub(self.start.0);
                if inside < self.code.len() as u64 {
                    work.push(inside as u32);
                } else {
                    self.out.jumps_out.push(target);
                }
            }
            Flow::Call32 => {
                let target = insn.target(self.start, self.code)?;
                insn.never_returns = (self.around.never_returns)(target);
                self.out.reads_own_address |= target.0 == self.start.0 + u64::from(insn.end());
                self.out.calls.push(target);
            }
            Flow::JumpIndirect => self.indirect = true,
            _ => {}
        }
        Some(insn)
    }

    fn is_code(&self, address: u64) -> bool {
        self.around.code.0 <= address && address < self.around.code.1
    }
}

/// An immediate large enough for an address.
fn wide_immediate(instruction: &Instruction) -> Option<u64> {
    let last = instruction.op_count() - 1;
    match instruction.op_kind(last) {
        OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
            Some(instruction.immediate(last))
        }
        _ => None,
    }
}

/// `None` for what is no instruction, or none that may run at another place.
fn flow(instruction: &Instruction) -> Option<Flow> {
    let near32 = |wide, short| match instruction.op0_kind() {
        OpKind::NearBranch64 => Some(if is_short(instruction) { short } else { wide }),
        _ => None,
    };
    // The decoder counts what it cannot decode among the instructions that trap.
    if instruction.is_invalid() {
        return None;
    }
    Some(match instruction.flow_control() {
        FlowControl::Next => match instruction.mnemonic() {
            Mnemonic::Hlt => Flow::Stop,
            _ => Flow::Next,
        },
        FlowControl::UnconditionalBranch => near32(Flow::Jump32, Flow::Jump8)?,
        FlowControl::ConditionalBranch => match instruction.mnemonic() {
            Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne | Mnemonic::Jrcxz | Mnemonic::Jecxz => {
                near32(Flow::Loop8, Flow::Loop8)?
            }
            _ => near32(Flow::Branch32, Flow::Branch8)?,
        },
        FlowControl::Call => match instruction.code() {
            Opcode::Call_rel32_64 => Flow::Call32,
            // `syscall`, `sysenter` and `int n` are calls for the decoder.
            Opcode::Syscall => Flow::Next,
            _ => return None,
        },
        FlowControl::Interrupt => Flow::Next,
        FlowControl::IndirectBranch => match instruction.code() {
            Opcode::Jmp_rm64 => Flow::JumpIndirect,
            _ => return None,
        },
        FlowControl::IndirectCall => match instruction.code() {
            Opcode::Call_rm64 => Flow::CallIndirect,
            _ => return None,
        },
        FlowControl::Return => match instruction.code() {
            Opcode::Retnq | Opcode::Retnq_imm16 => Flow::Return,
            _ => return None,
        },
        FlowControl::Exception => Flow::Stop,
        FlowControl::XbeginXabortXend => match instruction.mnemonic() {
            Mnemonic::Xbegin if instruction.code() == Opcode::Xbegin_rel32 => Flow::Branch32,
            Mnemonic::Xbegin => return None,
            _ => Flow::Next,
        },
    })
}

/// An operand-size prefix on a branch means one thing to Intel and another to AMD, unless REX.W
/// overrules it (as in the padded calls of the general-dynamic TLS sequence).
fn has_vague_size(bytes: &[u8]) -> bool {
    let mut small = false;
    for byte in bytes {
        match byte {
            0x66 => small = true,
            0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x67 | 0xf0 | 0xf2 | 0xf3 => {}
            0x40..=0x4f => return small && byte & 8 == 0,
            _ => return small,
        }
    }
    small
}

fn is_short(instruction: &Instruction) -> bool {
    instruction.op_code().op0_kind() == iced_x86::OpCodeOperandKind::br64_1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_instruction_stays_in_the_original() {
        let flow_of = |bytes: &[u8]| flow(&Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode());
        assert_eq!(flow_of(&[0xff, 0xff, 0x48, 0x8d]), None, "no operation of its group");
        assert_eq!(
            flow_of(&[0xd5, 0x48, 0x01, 0xc0]),
            None,
            "newer than the decoder, and worth its own ways"
        );
        assert_eq!(flow_of(&[0x0f, 0x0b]), Some(Flow::Stop), "ud2");
        assert_eq!(flow_of(&[0x0f, 0xb9, 0xc0]), Some(Flow::Stop), "ud1");
    }
}

//! Jump tables: how gcc, clang and rustc compile `switch` and `match`.
//!
//! Two shapes are recognised, however their instructions are scheduled: a table of 64-bit addresses
//! (code that is not position-independent), and one of 32-bit offsets that are added to a base. A
//! table is believed only if, on every way to the jump, the index is bounded by a comparison (or by
//! its own width) and the table's address is a constant; it is believed exactly as far as that
//! bound. Anything else stays an [`OpenJump`].
//!
//! Assumed of calls on the way: that they keep the registers the ABI calls callee-saved.

mod back;

use crate::Image;
use crate::code::insn::{Flow, Insn};
use crate::code::jump_table::{JumpTable, OpenJump};
use crate::code::surroundings::Surroundings;
use crate::code::symbolic::{Node, Path, Term};
use crate::elf::cursor::Cursor;
use crate::elf::is_among;
use crate::flow::cfg::{Cfg, Edge, EdgeKind};
use back::{Back, DEEPEST_SEARCH};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use units::Svma;

const LONGEST_TABLE: u64 = 1 << 16;
const LONGEST_PATH: usize = 10;

/// Looks at every indirect jump. `known` are the tables believed so far, which the control-flow
/// graph needs.
pub fn resolve(
    start: Svma,
    code: &[u8],
    insns: &[Insn],
    known: &[JumpTable],
    roots: &[u32],
    around: &Surroundings<'_, '_>,
) -> (Vec<JumpTable>, Vec<OpenJump>) {
    let cfg = Cfg::build(start, code, insns, known, roots);
    let extends = insns.iter().any(|insn| sign_extends(insn.bytes(code)));
    let entries_left = around.most_entries as u64;
    let back = Back::of(&cfg);
    let mut search = Search {
        start,
        code,
        insns,
        cfg: &cfg,
        back,
        image: around.image,
        data: around.data,
        extends,
        entries_left,
    };
    let (mut tables, mut open): (Vec<JumpTable>, _) = (Vec::new(), Vec::new());
    for (index, insn) in insns.iter().enumerate() {
        if insn.flow != Flow::JumpIndirect {
            continue;
        }
        match search.jump(index) {
            Ok(table) => {
                search.entries_left -= table.targets.len() as u64;
                tables.push(table);
            }
            Err(jump) => open.push(jump),
        }
    }
    // One load that feeds several jumps could be redirected only if all agreed; do not ask.
    let mut loads: Vec<u32> = tables.iter().map(|table| table.load_at).collect();
    loads.sort_unstable();
    let shared = |table: &JumpTable| {
        let first = loads.partition_point(|&load| load < table.load_at);
        loads.get(first + 1) == Some(&table.load_at)
    };
    open.extend(
        tables.iter().filter(|table| shared(table)).map(|t| OpenJump { at: t.jump_at, is_pointer: false }),
    );
    tables.retain(|table| !shared(table));
    (tables, open)
}

struct Search<'a, 'd> {
    start: Svma,
    code: &'a [u8],
    insns: &'a [Insn],
    cfg: &'a Cfg,
    back: Back,
    image: &'a Image<'d>,
    data: &'a [(u64, u64)],
    /// Whether the unit sign-extends anything from 32 to 64 bits, as every table of offsets needs.
    extends: bool,
    /// How many entries tables may still have.
    entries_left: u64,
}

/// The parts of a jump's target expression.
struct Shape {
    entry: Term,
    address: Term,
    entry_size: u8,
    base: Option<u64>,
}

impl Search<'_, '_> {
    fn jump(&self, index: usize) -> Result<JumpTable, OpenJump> {
        let insn = &self.insns[index];
        let block = self.cfg.block_of(index);
        let way = self.way_to(block);
        let jump = self.instruction(*insn);
        let mut known = [None; 16];
        let mut is_pointer = false;
        for attempt in 0..2 {
            let mut path = self.walk(&way, None, &known);
            let Some(target) = path.operand(&jump, 0) else { break };
            is_pointer = match path.node(target) {
                Node::Load(_, 64, _) => true,
                Node::Initial(_) | Node::Unknown(_) => !self.extends,
                _ => false,
            };
            if let Some(table) = self.table(&mut path, target, *insn, block, way[0]) {
                return Ok(table);
            }
            if attempt == 0 && !self.learn_constants(&path, target, way[0], &mut known) {
                break;
            }
        }
        Err(OpenJump { at: insn.at, is_pointer })
    }

    fn table(
        &self,
        path: &mut Path,
        target: Term,
        jump: Insn,
        block: usize,
        head: usize,
    ) -> Option<JumpTable> {
        let shape = shape(path, target)?;
        let load = (*path.loaded_by.get(&shape.entry)?)?;
        let load_at = (load - self.start.0) as u32;
        if load_at < self.insns[self.cfg.blocks[block].first as usize].at {
            return None;
        }
        let (scaled, mut table) = match path.node(shape.address) {
            Node::Offset(scaled, table) => (scaled, table as u64),
            _ => return None,
        };
        let Node::Scaled(index, factor) = path.node(scaled) else { return None };
        if factor != shape.entry_size {
            return None;
        }
        // The comparison may have been made with a constant subtracted that is folded into the
        // address here: then the table begins further on. There may be one of either kind; both
        // hold, and the closer one is meant.
        let subtracted = path.bounds.iter().filter_map(|&(term, bound)| match path.node(term) {
            Node::Offset(inner, offset) if inner == index => Some((offset, bound)),
            _ => None,
        });
        let closest = subtracted.min_by_key(|&(_, bound)| bound);
        let (bound, by_part) = match (self.bound(path, index, head), closest) {
            (Some(whole), None) => (whole, false),
            (Some(whole), Some((_, part))) if whole <= part => (whole, false),
            (_, Some((offset, bound))) => {
                table = table.wrapping_sub((offset as u64).wrapping_mul(u64::from(factor)));
                (bound, true)
            }
            (None, None) => return None,
        };
        if bound >= LONGEST_TABLE.min(self.entries_left) {
            return None;
        }
        let targets = self.targets(Svma(table), bound + 1, &shape)?;
        // A compiler that knows more about the index than its width makes a table shorter than the
        // width allows; what follows it is not part of it, and shows by leading astray.
        let inside = |target: &Svma| target.0.wrapping_sub(self.start.0) < self.code.len() as u64;
        // What a byte holds at most is no comparison's, on whichever way it came here.
        let looked_back = path.bound(index).is_none() && bound != u64::from(u8::MAX);
        let is_guarded = by_part || path.is_compared(index) || looked_back;
        if !is_guarded && !targets.iter().all(inside) {
            return None;
        }
        Some(JumpTable {
            jump_at: jump.at,
            load_at,
            table: Svma(table),
            entry_size: shape.entry_size,
            base: shape.base,
            is_guarded,
            targets,
        })
    }

    fn targets(&self, table: Svma, count: u64, shape: &Shape) -> Option<Vec<Svma>> {
        if !self.image.is_constant(table) {
            return None;
        }
        // Addresses in a position-independent module would be relocated.
        if shape.base.is_none() && self.image.is_position_independent() {
            return None;
        }
        let size = usize::from(shape.entry_size);
        let bytes = self.image.bytes_at(table, count as usize * size)?;
        bytes
            .chunks_exact(size)
            .map(|entry| {
                let mut cursor = Cursor::new(entry, 0);
                let target = match shape.base {
                    Some(base) => base.wrapping_add_signed(i64::from(cursor.u32()? as i32)),
                    None => cursor.u64()?,
                };
                // Clang fills the places of cases that cannot be with anything; then it is no table
                // to rely on.
                let is_code = self.image.is_code(Svma(target)) && !is_among(self.data, target);
                is_code.then_some(Svma(target))
            })
            .collect()
    }

    /// The largest index, looking back over joins of the control flow where needed.
    fn bound(&self, path: &mut Path, index: Term, head: usize) -> Option<u64> {
        if let Some(bound) = path.bound(index) {
            return Some(bound);
        }
        match path.node(index) {
            Node::Initial(register) => {
                let low = path.zext(index, 32);
                match path.bound(low) {
                    Some(bound) if self.upper_half_is_zero(head, register) => Some(bound),
                    _ => self.bound_on_entry(head, register, 64, DEEPEST_SEARCH),
                }
            }
            Node::Zext(inner, bits) => match path.node(inner) {
                Node::Initial(register) => self.bound_on_entry(head, register, bits, DEEPEST_SEARCH),
                _ => None,
            },
            Node::Sext(inner, bits) => match path.node(inner) {
                Node::Initial(register) => self
                    .bound_on_entry(head, register, bits, DEEPEST_SEARCH)
                    .filter(|&bound| bound < 1 << (bits - 1)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Finds constants for the registers that a target expression still depends on. Whether there
    /// were any.
    fn learn_constants(&self, path: &Path, target: Term, head: usize, known: &mut [Option<u64>; 16]) -> bool {
        let mut registers = Vec::new();
        initial_registers(path, target, &mut registers);
        for register in registers {
            known[usize::from(register)] = self.constant_on_entry(head, register);
        }
        known.iter().any(Option::is_some)
    }

    /// The blocks that control must have come through, one after the other, to reach a block; it is
    /// the last of them.
    fn way_to(&self, block: usize) -> Vec<usize> {
        let mut way = vec![block];
        while way.len() < LONGEST_PATH {
            let head = *way.last().unwrap_or(&block);
            let mut edges = self.cfg.edges_to(head);
            let only = if edges.len() == 1 { edges.next() } else { None };
            match only {
                Some(edge) if !self.cfg.blocks[head].is_root && !way.contains(&(edge.from as usize)) => {
                    way.push(edge.from as usize);
                }
                _ => break,
            }
        }
        way.reverse();
        way
    }

    /// The state after these blocks, but before the last block's jump; or, with an edge, after
    /// leaving by it.
    fn walk(&self, way: &[usize], leaving: Option<Edge>, known: &[Option<u64>; 16]) -> Path {
        let mut path = Path::starting_with(known);
        for (position, &block) in way.iter().enumerate() {
            let bounds = &self.cfg.blocks[block];
            let edge = match way.get(position + 1) {
                Some(&next) => self.cfg.edges_to(next).find(|edge| edge.from as usize == block),
                None => leaving,
            };
            for insn in &self.insns[bounds.first as usize..bounds.end as usize] {
                if matches!(insn.flow, Flow::JumpIndirect) {
                    continue;
                }
                let instruction = self.instruction(*insn);
                if let (Flow::Branch8 | Flow::Branch32, Some(edge)) = (insn.flow, edge) {
                    path.leave(&instruction, edge.kind == EdgeKind::Taken);
                }
                path.step(&instruction);
            }
        }
        path
    }

    fn instruction(&self, insn: Insn) -> Instruction {
        let ip = self.start.0 + u64::from(insn.at);
        Decoder::with_ip(64, insn.bytes(self.code), ip, DecoderOptions::NONE).decode()
    }
}

/// `movsxd` to 64 bits, or `cdqe`.
fn sign_extends(bytes: &[u8]) -> bool {
    let prefixes =
        bytes.iter().take_while(|&&b| matches!(b, 0x66 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x67));
    matches!(bytes[prefixes.count()..], [0x48..=0x4f, 0x63 | 0x98, ..])
}

fn shape(path: &Path, target: Term) -> Option<Shape> {
    match path.node(target) {
        Node::Load(address, 64, _) => Some(Shape { entry: target, address, entry_size: 8, base: None }),
        Node::Offset(entry, base) => {
            let Node::Sext(entry, 32) = path.node(entry) else { return None };
            let Node::Load(address, 32, _) = path.node(entry) else { return None };
            Some(Shape { entry, address, entry_size: 4, base: Some(base as u64) })
        }
        _ => None,
    }
}

fn initial_registers(path: &Path, term: Term, found: &mut Vec<u8>) {
    match path.node(term) {
        Node::Initial(register) => found.push(register),
        Node::Unknown(_) | Node::Constant(_) => {}
        Node::Add(a, b) => {
            initial_registers(path, a, found);
            initial_registers(path, b, found);
        }
        Node::Zext(inner, _)
        | Node::Sext(inner, _)
        | Node::Offset(inner, _)
        | Node::Scaled(inner, _)
        | Node::Masked(inner, _)
        | Node::Load(inner, _, _) => initial_registers(path, inner, found),
    }
}

//! The layout of a twin: the offset of each instruction. It needs no addresses, since every branch
//! that leaves the unit takes its longest form.
//!
//! Instructions keep the original's order, so that every fall-through stays one. Cold parts of
//! inserted code lie behind the last instruction, in the same order:
//!
//! ```text
//! unit              a        b        c
//! twin    [piece] a   [piece] b   c   jmp original   cold part of a's piece   cold part of b's
//! ```

pub(crate) mod emit;
pub(crate) mod insertions;
pub(crate) mod relay;
pub(crate) mod span;
pub(crate) mod thrown;

use crate::layout::insertions::Insertions;
use image::Module;
use image::code::insn::{Flow, Insn, index_at};
use image::code::jump_table::JumpTable;
use units::Svma;

/// The size of a jump to anywhere.
pub(crate) const JUMP_SIZE: u32 = 5;
/// The size of `call [rip + d]` and `jmp [rip + d]`.
const THROUGH_SLOT_SIZE: u32 = 6;
/// Behind bytes that have no twin, what follows lies as its original does in pieces of this many
/// bytes: compilers put the starts of loops where they fit, and fill up what is before them. A loop
/// that fits into a cache line stays within one, if its original does: a search in a tree that
/// crossed into the next line lost a twentieth.
const ALIGNED_AS: u32 = 16;
/// A cache line.
pub(crate) const LINE: u32 = 64;

/// The form an instruction takes in the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionForm {
    /// Of the same size.
    Same,
    /// A short branch that became a long one.
    Long,
    /// A jump table's load that got a 32-bit displacement.
    WideDisplacement,
    /// Another instruction in its place; its size in bytes.
    Replaced(u8),
    /// A call of or jump to a linkage stub that became one through the stub's slot.
    ThroughSlot,
}

/// The layout of one twin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Where the code put before each instruction begins, or the instruction itself if there is
    /// none.
    pub offsets: Vec<u32>,
    /// Indices of the instructions that do not keep their form, ascending.
    changed: Vec<(u32, InstructionForm)>,
    /// All of it, cold parts included.
    pub size: u32,
    /// Where the cold parts begin.
    hot: u32,
    /// Indices of the instructions whose pieces have cold parts, ascending, and where those begin.
    cold: Vec<(u32, u32)>,
    /// Indices of the instructions with padding before them, ascending, and how much.
    padding: Vec<(u32, u8)>,
    /// What comes between an instruction and the jump of its escape.
    before_escape: u32,
    /// Loops that may have to stay within a line: their first and last instructions, by index, by
    /// the first ones, ascending.
    loops: Vec<(u32, u32)>,
}

impl Layout {
    /// Where what holds from `at` (an offset in the original) on begins to hold in the twin.
    pub(crate) fn offset_of(&self, insns: &[Insn], at: u64) -> u32 {
        let index = insns.partition_point(|insn| u64::from(insn.at) < at);
        let offset = self.offsets.get(index).copied().unwrap_or(self.hot);
        match index.checked_sub(1) {
            // Also what begins to hold in the middle of an instruction holds behind it.
            Some(before) if u64::from(insns[before].end()) >= at && escapes_after(insns, before) => {
                offset - self.padding_before(index) - self.before_escape - JUMP_SIZE
            }
            _ => offset,
        }
    }
    pub(crate) fn cold(&self) -> &[(u32, u32)] {
        &self.cold
    }
    /// Where the cold part of an instruction's piece begins.
    pub(crate) fn cold_of(&self, index: u32) -> u32 {
        let found = self.cold.binary_search_by_key(&index, |&(of, _)| of);
        found.map_or(self.size, |nth| self.cold[nth].1)
    }
    /// As [`Self::offset_of`], among the cold parts.
    pub(crate) fn cold_offset_of(&self, insns: &[Insn], at: u64) -> u32 {
        let index = insns.partition_point(|insn| u64::from(insn.at) < at) as u32;
        let next = self.cold.partition_point(|&(of, _)| of < index);
        self.cold.get(next).map_or(self.size, |&(_, offset)| offset)
    }
    /// How many bytes before an instruction, by its index, nobody ever comes to.
    pub(crate) fn padding_before(&self, index: usize) -> u32 {
        let found = self.padding.binary_search_by_key(&(index as u32), |&(index, _)| index);
        found.map_or(0, |found| u32::from(self.padding[found].1))
    }
    /// Whether the twin has to lie in its cache lines as its original does.
    pub(crate) fn minds_lines(&self) -> bool {
        !self.loops.is_empty()
    }
    pub(crate) fn changed(&self) -> &[(u32, InstructionForm)] {
        &self.changed
    }
}

/// Whether the twin must jump to the original after this instruction: it may go on, but not to the
/// next one laid out.
pub(crate) fn escapes_after(insns: &[Insn], index: usize) -> bool {
    let insn = &insns[index];
    insn.flow.falls_through() && insns.get(index + 1).is_none_or(|next| next.at != insn.end())
}

/// How many bytes an instruction takes in a form.
pub(crate) fn size_in_form(insn: Insn, form: InstructionForm, code: &[u8]) -> u32 {
    let len = u32::from(insn.len);
    match (form, insn.flow) {
        (InstructionForm::Same, _) => len,
        (InstructionForm::Long, Flow::Jump8) => len + 3,
        (InstructionForm::Long, Flow::Branch8) => len + 4,
        // loop over; jmp past; over: jmp there
        (InstructionForm::Long, _) => len + 2 + JUMP_SIZE,
        (InstructionForm::Replaced(size), _) => u32::from(size),
        (InstructionForm::ThroughSlot, _) => THROUGH_SLOT_SIZE,
        (InstructionForm::WideDisplacement, _) => len + 4 - displacement_size(insn.bytes(code)) as u32,
    }
}

/// The size of the memory operand's displacement in the load of a jump table: 0, 1 or 4 bytes.
pub(crate) fn displacement_size(bytes: &[u8]) -> usize {
    match bytes.get(modrm_at(bytes)).map(|modrm| (modrm >> 6, modrm & 7)) {
        Some((0, 4)) => {
            let sib = bytes.get(modrm_at(bytes) + 1).copied().unwrap_or(0);
            if sib & 7 == 5 { 4 } else { 0 }
        }
        Some((0, 5) | (2, _)) => 4,
        Some((1, _)) => 1,
        _ => 0,
    }
}

/// Where the `ModRM` byte of a one-byte-opcode instruction lies.
pub(crate) fn modrm_at(bytes: &[u8]) -> usize {
    let prefixes = bytes.iter().take_while(|&&byte| {
        matches!(
            byte,
            0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f
        )
    });
    prefixes.count() + 1
}

/// The slot by which a call or jump of a unit gets where the linkage stub that it names would send
/// it. That is a jump less: many libraries call their own functions by such stubs, since others may
/// take their place, and the entries that the stubs lead to are patched.
pub(crate) fn slot_of(module: &Module<'_>, unit: usize, insn: Insn) -> Option<Svma> {
    let plain = matches!(insn.flow, Flow::Call32 | Flow::Jump32) && u32::from(insn.len) == JUMP_SIZE;
    let start = module.units[unit].start;
    let target = insn.target(start, module.code(unit)).filter(|_| plain)?;
    if module.units[unit].holds(target) {
        return None;
    }
    module.imports.slot_behind(&module.image, target)
}

/// Lays a unit out.
pub(crate) fn lay_out(
    module: &Module<'_>,
    unit: usize,
    tables: &[JumpTable],
    inserted: &Insertions,
    before_escape: u32,
) -> Layout {
    let insns = &module.decoded[unit].insns;
    let start = module.units[unit].start;
    let code = module.code(unit);
    let mut forms: Vec<(u32, InstructionForm)> = inserted
        .replaced()
        .iter()
        .map(|(index, bytes)| (*index, InstructionForm::Replaced(bytes.len() as u8)))
        .collect();
    for table in tables {
        if let Some(index) = index_at(insns, table.load_at) {
            if displacement_size(insns[index].bytes(code)) != 4 {
                forms.push((index as u32, InstructionForm::WideDisplacement));
            }
        }
    }
    // Short branches, and the index of what they lead to; those that leave the unit become long at
    // once.
    let mut short: Vec<(u32, u32)> = Vec::new();
    for (index, insn) in insns.iter().enumerate() {
        if slot_of(module, unit, *insn).is_some() {
            forms.push((index as u32, InstructionForm::ThroughSlot));
        }
        if insn.flow.displacement_size() != 1 {
            continue;
        }
        let target = insn
            .target(start, code)
            .map(|target| target.0.wrapping_sub(start.0))
            .filter(|&at| at < code.len() as u64)
            .and_then(|at| index_at(insns, at as u32));
        match target {
            Some(target) => short.push((index as u32, target as u32)),
            None => forms.push((index as u32, InstructionForm::Long)),
        }
    }
    forms.sort_unstable_by_key(|&(index, _)| index);
    let loops = loops(insns, start, code);
    let mut layout =
        Layout { offsets: vec![0; insns.len()], changed: forms, before_escape, loops, ..Layout::default() };
    for round in 0.. {
        place(&mut layout, insns, start, code, inserted);
        let mut grown = Vec::new();
        short.retain(|&(index, target)| {
            let insn = &insns[index as usize];
            let end =
                layout.offsets[index as usize] + inserted.size_before(index as usize) + u32::from(insn.len);
            let distance = i64::from(layout.offsets[target as usize]) - i64::from(end);
            // Each may push the next one out of reach: then there is no end to it for long.
            let fits = i8::try_from(distance).is_ok() && round < MOST_ROUNDS;
            if !fits {
                grown.push((index, InstructionForm::Long));
            }
            fits
        });
        if grown.is_empty() {
            break;
        }
        layout.changed.extend(grown);
        layout.changed.sort_unstable_by_key(|&(index, _)| index);
    }
    layout
}

/// How often it is looked again which short branches reach; those that are left then become long.
const MOST_ROUNDS: u32 = 24;

/// Loops that lie within one cache line and begin behind bytes that have no twin.
fn loops(insns: &[Insn], start: Svma, code: &[u8]) -> Vec<(u32, u32)> {
    let mut loops: Vec<(u32, u32)> = Vec::new();
    let line = |at: u32| (start.0 + u64::from(at)) / u64::from(LINE);
    for (last, insn) in insns.iter().enumerate() {
        let back = insn.target(start, code).map(|target| target.0.wrapping_sub(start.0));
        let Some(back) = back.filter(|&to| to > 0 && to <= u64::from(insn.at)) else { continue };
        let within = !matches!(insn.flow, Flow::Call32) && line(back as u32) == line(insn.end() - 1);
        let Some(first) = index_at(insns, back as u32).filter(|_| within) else { continue };
        if first > 0 && insns[first - 1].end() != insns[first].at {
            loops.push((first as u32, last as u32));
        }
    }
    // Of several with the same first instruction the longest.
    loops.sort_unstable_by_key(|&(first, last)| (first, std::cmp::Reverse(last)));
    loops.dedup_by_key(|&mut (first, _)| first);
    loops
}

/// How many bytes of padding are left before what follows a gap, if it could begin at `at`.
fn padding_before(
    layout: &Layout,
    (insns, start, code): (&[Insn], Svma, &[u8]),
    inserted: &Insertions,
    index: usize,
    at: u32,
) -> u32 {
    let usual = insns[index].at.wrapping_sub(at) % ALIGNED_AS;
    let found = layout.loops.binary_search_by_key(&(index as u32), |&(first, _)| first);
    let Ok(found) = found else { return usual };
    let (first, last) = layout.loops[found];
    let size: u32 = (first as usize..=last as usize)
        .map(|index| {
            let form = layout.changed.binary_search_by_key(&(index as u32), |&(index, _)| index);
            let form = form.map_or(InstructionForm::Same, |form| layout.changed[form].1);
            inserted.size_before(index) + size_in_form(insns[index], form, code)
        })
        .sum();
    let in_line = (start.0 as u32 % LINE + at) % LINE;
    let crosses = (in_line + usual) % LINE + size > LINE;
    if crosses && size <= LINE { (LINE - in_line) % LINE } else { usual }
}

fn place(layout: &mut Layout, insns: &[Insn], start: Svma, code: &[u8], inserted: &Insertions) {
    let (mut at, mut end) = (0u32, 0);
    let mut changed = layout.changed.iter().peekable();
    let (mut offsets, mut padding) = (std::mem::take(&mut layout.offsets), Vec::new());
    for (index, insn) in insns.iter().enumerate() {
        if insn.at != end {
            let filler = padding_before(layout, (insns, start, code), inserted, index, at);
            if filler > 0 {
                padding.push((index as u32, filler as u8));
                at += filler;
            }
        }
        end = insn.end();
        offsets[index] = at;
        let form = match changed.next_if(|&&(next, _)| next == index as u32) {
            Some(&(_, form)) => form,
            None => InstructionForm::Same,
        };
        at += inserted.size_before(index) + size_in_form(*insn, form, code);
        if escapes_after(insns, index) {
            at += layout.before_escape + JUMP_SIZE;
        }
    }
    (layout.offsets, layout.padding) = (offsets, padding);
    layout.hot = at;
    layout.cold.clear();
    for (index, size) in inserted.cold_sizes() {
        layout.cold.push((index, at));
        at += size;
    }
    layout.size = at;
}

/// Whether a branch from another unit may lead to this place of a twin: where the unit is known to
/// be entered.
pub(crate) fn is_enterable(module: &Module<'_>, unit: usize, at: u32) -> bool {
    (at == 0 || module.roots(unit).binary_search(&at).is_ok())
        && index_at(&module.decoded[unit].insns, at).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_in_the_middle_of_an_instruction_begins_behind_it() {
        let insn = Insn { at: 0, len: 3, flow: Flow::Next, rip_displacement: 0, never_returns: false };
        let layout = Layout { offsets: vec![0], hot: 3 + JUMP_SIZE, ..Layout::default() };
        // Into the instruction, behind it (where the escape is), and behind what was not decoded:
        // never back.
        let offsets: Vec<u32> = (0..5).map(|at| layout.offset_of(&[insn], at)).collect();
        assert_eq!(offsets, [0, 3, 3, 3, 8]);
    }

    #[test]
    fn what_follows_a_gap_lies_as_its_original_does() {
        let insn = |at, len, flow| Insn { at, len, flow, rip_displacement: 0, never_returns: false };
        // The return at 5 ends what is before the gap; the call at 0 is a byte longer in the twin.
        let insns = [insn(0, 5, Flow::Call32), insn(5, 1, Flow::Return), insn(16, 3, Flow::Next)];
        let mut layout = Layout {
            offsets: vec![0; 3],
            changed: vec![(0, InstructionForm::ThroughSlot)],
            ..Layout::default()
        };
        place(&mut layout, &insns, Svma(0x1000), &[0; 19], &Insertions::default());
        assert_eq!((layout.offsets.as_slice(), layout.padding_before(2)), (&[0, 6, 16][..], 9));
        assert_eq!(layout.size, 19 + JUMP_SIZE);
        // What ends with the return ends before the padding or behind it, but not in the code
        // behind it.
        assert_eq!(layout.offset_of(&insns, 6), 16);
    }

    #[test]
    fn a_small_loop_stays_within_its_line() {
        let insn = |at, len, flow| Insn { at, len, flow, rip_displacement: 0, never_returns: false };
        // A call that grows, a return; then, behind a gap, ten bytes that jump back to their first
        // one.
        let insns = [
            insn(0, 5, Flow::Call32),
            insn(5, 1, Flow::Return),
            insn(8, 8, Flow::Next),
            insn(16, 2, Flow::Branch8),
            insn(18, 1, Flow::Return),
        ];
        let mut code = [0x90; 19];
        code[16..18].copy_from_slice(&[0x75, -10_i8 as u8]);
        let lay_out = |start: u64, inserted: usize| {
            let start = Svma(start);
            let mut layout =
                Layout { offsets: vec![0; 5], loops: loops(&insns, start, &code), ..Layout::default() };
            let mut insertions = Insertions::default();
            for index in 0..insns.len() {
                insertions.push(&vec![0x90; if index == 2 { inserted } else { 0 }]);
            }
            place(&mut layout, &insns, start, &code, &insertions);
            (layout.offsets[2], layout.minds_lines())
        };
        // From 48 on in its line there is space for ten, and for sixteen, but not for seventeen.
        assert_eq!(lay_out(0x1028, 0), (8, true));
        assert_eq!(lay_out(0x1028, 6), (8, true));
        assert_eq!(lay_out(0x1028, 7), (24, true));
        // What never fits is left where it is; so is what did not fit from the first.
        assert_eq!(lay_out(0x1028, 60), (8, true));
        assert_eq!(lay_out(0x1030, 7), (8, false));
    }
}

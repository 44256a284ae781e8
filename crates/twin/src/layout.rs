//! Where each instruction of a twin goes, relative to the twin's start. Needs no addresses: whatever leaves the unit has
//! its longest form.
//!
//! The order is that of the original, so that what falls through still does.

use crate::insertions::Insertions;
use image::Module;
use image::insn::{Flow, Insn, index_at};
use image::tables::JumpTable;

/// The size of a jump to anywhere.
pub(crate) const JUMP_SIZE: u32 = 5;

/// The form an instruction takes in the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Of the same size.
    Same,
    /// A short branch that became a long one.
    Long,
    /// A jump table's load that got a 32-bit displacement.
    WideDisplacement,
    /// Another instruction in its place, of so many bytes.
    Replaced(u8),
}

/// The layout of one twin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Where the code put before each instruction begins, or the instruction itself if there is none.
    pub offsets: Vec<u32>,
    /// Indices of the instructions that do not keep their form, ascending.
    changed: Vec<(u32, Form)>,
    pub size: u32,
    /// What comes between an instruction and the jump of its escape.
    before_escape: u32,
}

impl Layout {
    /// Where what holds from `at` (an offset in the original) on begins to hold in the twin.
    pub(crate) fn offset_of(&self, insns: &[Insn], at: u64) -> u32 {
        let index = insns.partition_point(|insn| u64::from(insn.at) < at);
        let offset = self.offsets.get(index).copied().unwrap_or(self.size);
        match index.checked_sub(1) {
            Some(before) if u64::from(insns[before].end()) == at && escapes_after(insns, before) => {
                offset - self.before_escape - JUMP_SIZE
            }
            _ => offset,
        }
    }
    pub(crate) fn changed(&self) -> &[(u32, Form)] {
        &self.changed
    }
}

/// Whether the twin must jump to the original after this instruction: it may go on, but not to the next one laid out.
pub(crate) fn escapes_after(insns: &[Insn], index: usize) -> bool {
    let insn = &insns[index];
    insn.flow.falls_through() && insns.get(index + 1).is_none_or(|next| next.at != insn.end())
}

/// How many bytes an instruction takes in a form.
pub(crate) fn size_in_form(insn: Insn, form: Form, code: &[u8]) -> u32 {
    let len = u32::from(insn.len);
    match (form, insn.flow) {
        (Form::Same, _) => len,
        (Form::Long, Flow::Jump8) => len + 3,
        (Form::Long, Flow::Branch8) => len + 4,
        // loop over; jmp past; over: jmp there
        (Form::Long, _) => len + 2 + JUMP_SIZE,
        (Form::Replaced(size), _) => u32::from(size),
        (Form::WideDisplacement, _) => len + 4 - displacement_size(insn.bytes(code)) as u32,
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

/// A twin lies in its cache lines as its original does: what was aligned for speed stays so.
pub(crate) const LINE: u32 = 64;

/// Lays a unit out. If it is `aligned`, padding is inserted (and must be all that is) behind what became longer, where the
/// original has padding, so that the blocks that follow lie in their cache lines again.
pub(crate) fn lay_out(
    module: &Module<'_>,
    unit: usize,
    tables: &[JumpTable],
    inserted: &mut Insertions,
    before_escape: u32,
    aligned: bool,
) -> Layout {
    let mut pads = aligned.then(Vec::new);
    let layout = settle(module, unit, tables, inserted, before_escape, &mut pads);
    if let Some(pads) = pads.filter(|pads| !pads.is_empty()) {
        *inserted = Insertions::padding(&pads, module.decoded[unit].insns.len());
    }
    layout
}

fn settle(
    module: &Module<'_>,
    unit: usize,
    tables: &[JumpTable],
    inserted: &Insertions,
    before_escape: u32,
    pads: &mut Option<Vec<(u32, u8)>>,
) -> Layout {
    let insns = &module.decoded[unit].insns;
    let start = module.units[unit].start;
    let code = module.code(unit);
    let mut forms: Vec<(u32, Form)> = inserted
        .replaced()
        .iter()
        .map(|(index, bytes)| (*index, Form::Replaced(bytes.len() as u8)))
        .collect();
    for table in tables {
        if let Some(index) = index_at(insns, table.load_at) {
            if displacement_size(insns[index].bytes(code)) != 4 {
                forms.push((index as u32, Form::WideDisplacement));
            }
        }
    }
    // Short branches, and the index of what they lead to; those that leave the unit become long at once.
    let mut short: Vec<(u32, u32)> = Vec::new();
    for (index, insn) in insns.iter().enumerate() {
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
            None => forms.push((index as u32, Form::Long)),
        }
    }
    forms.sort_unstable_by_key(|&(index, _)| index);
    let mut layout = Layout { offsets: vec![0; insns.len()], changed: forms, size: 0, before_escape };
    loop {
        place(&mut layout, insns, code, inserted, pads);
        let mut grown = Vec::new();
        short.retain(|&(index, target)| {
            let insn = &insns[index as usize];
            let end =
                layout.offsets[index as usize] + inserted.size_before(index as usize) + u32::from(insn.len);
            let distance = i64::from(layout.offsets[target as usize]) - i64::from(end);
            let fits = i8::try_from(distance).is_ok();
            if !fits {
                grown.push((index, Form::Long));
            }
            fits
        });
        if grown.is_empty() {
            return layout;
        }
        layout.changed.extend(grown);
        layout.changed.sort_unstable_by_key(|&(index, _)| index);
    }
}

/// Gives instructions their offsets; `pads`, if wanted, are the indices of instructions that get padding before them.
fn place(
    layout: &mut Layout,
    insns: &[Insn],
    code: &[u8],
    inserted: &Insertions,
    pads: &mut Option<Vec<(u32, u8)>>,
) {
    if let Some(pads) = pads {
        pads.clear();
    }
    let mut at = 0u32;
    let mut changed = layout.changed.iter().peekable();
    for (index, insn) in insns.iter().enumerate() {
        layout.offsets[index] = at;
        let form = match changed.next_if(|&&(next, _)| next == index as u32) {
            Some(&(_, form)) => form,
            None => Form::Same,
        };
        let skew = insn.at.wrapping_sub(at) % LINE;
        if let Some(pads) = pads
            && skew != 0
            && index > 0
            && !insns[index - 1].flow.falls_through()
            && image::padding::nop(insn.bytes(code)).is_some()
        {
            pads.push((index as u32, skew as u8));
            at += skew;
        }
        at += inserted.size_before(index) + size_in_form(*insn, form, code);
        if escapes_after(insns, index) {
            at += layout.before_escape + JUMP_SIZE;
        }
    }
    layout.size = at;
}

//! Rules R1 and R3: the bytes and headers of the file around the twins.

pub(crate) mod elf;
pub(crate) mod mapping;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod relocations;
pub(crate) mod rest;
pub(crate) mod stream;

use crate::container::elf::{Elf, Section, Segment};
use crate::container::mapping::{Mapping, Note, RELAY_SIZE};
use crate::rule::{Findings, Rule};
use object::elf::{
    PF_R, PF_X, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS,
};
use rayon::prelude::*;

/// Fields of the ELF header that a rewrite may change: offset and size.
const HEADER_FIELDS: [(usize, usize); 4] = [(32, 8), (40, 8), (54, 4), (58, 6)];
const BLOCK: usize = 4096;

/// The segments that the rewrite added.
#[derive(Clone, Copy)]
pub(crate) struct Added {
    pub(crate) data: Segment,
    pub(crate) text: Segment,
}

/// R1: the original is still there, byte for byte, but for the ELF header and entry patches.
pub(crate) fn unchanged(
    original: &[u8],
    rewritten: &[u8],
    note: &Note,
    patches: &[(u64, u64)],
    findings: &Findings,
) {
    if note.original_size != original.len() as u64 {
        findings.in_file(Rule::Unchanged, 0, "the note states another size of the original");
    }
    if rewritten.len() < original.len() {
        findings.in_file(Rule::Unchanged, rewritten.len() as u64, "shorter than the original");
        return;
    }
    let allowed = |offset: usize| {
        let after = patches.partition_point(|&(start, _)| start <= offset as u64);
        patches[..after].last().is_some_and(|&(start, size)| offset as u64 - start < size)
            || HEADER_FIELDS.iter().any(|&(start, size)| offset.wrapping_sub(start) < size)
    };
    original.par_chunks(BLOCK).zip(rewritten.par_chunks(BLOCK)).enumerate().for_each(
        |(index, (old, new))| {
            let new = &new[..old.len()];
            if old == new {
                return;
            }
            let changed = (0..old.len()).filter(|&at| old[at] != new[at]).map(|at| index * BLOCK + at);
            if let Some(offset) = changed.into_iter().find(|&offset| !allowed(offset)) {
                findings.in_file(
                    Rule::Unchanged,
                    offset as u64,
                    "a byte of the original differs outside header fields and entry patches",
                );
            }
        },
    );
}

/// The largest hole that a file has for the sake of older kernels.
const LARGEST_HOLE: u64 = 64 << 20;

/// R3 for program headers: the original's, with what the format names changed, and two new segments
/// that are sound.
pub(crate) fn segments(original: &Elf<'_>, rewritten: &Elf<'_>, findings: &Findings) -> Option<Added> {
    let table = rewritten.segment_table();
    let wrong = |index: usize, what: &str| {
        findings.in_file(Rule::Headers, table.saturating_add(56 * index as u64), what);
        None
    };
    let (old, new) = (original.segments(), rewritten.segments());
    let Some(last_load) = old.iter().rposition(Segment::is_load) else {
        return wrong(0, "nothing is loaded");
    };
    let had_frames = old.iter().any(|segment| segment.kind == PT_GNU_EH_FRAME);
    let has_frames = new.iter().filter(|segment| segment.kind == PT_GNU_EH_FRAME).count();
    let more = 3 + usize::from(!had_frames && has_frames > 0);
    if new.len() != old.len() + more || has_frames > 1 {
        return wrong(new.len(), "the program headers are not the original's plus those that a rewrite adds");
    }
    let (data, text) = (new[last_load + 1], new[last_load + 2]);
    let kept = new[..=last_load].iter().chain(&new[last_load + 3..]);
    for (index, (was, is)) in old.iter().zip(kept).enumerate() {
        let moved = was.kind == PT_PHDR || was.kind == PT_GNU_EH_FRAME;
        let same = if moved {
            (is.kind, is.flags, is.align) == (was.kind, was.flags, was.align) && inside(is, &data)
        } else {
            is == was
        };
        if !same {
            return wrong(index, "a program header of the original has changed");
        }
        if was.kind == PT_PHDR && (is.offset, is.file_size) != (table, 56 * new.len() as u64) {
            return wrong(index, "PT_PHDR is not where the program headers are");
        }
    }
    let note = &new[new.len() - 1];
    if note.kind != PT_NOTE || note.flags != PF_R || note.align != 4 || !inside(note, &data) {
        return wrong(new.len() - 1, "the last program header is not the rewriter's note");
    }
    let is_sound = |frames: &Segment| {
        frames.kind == PT_GNU_EH_FRAME && frames.flags == PF_R && frames.align == 4 && inside(frames, &data)
    };
    if more == 4 && !is_sound(&new[new.len() - 2]) {
        return wrong(new.len() - 2, "the new unwind tables are not in the new data");
    }
    let size = original.data().len() as u64;
    for (index, segment, flags) in [(last_load + 1, &data, PF_R), (last_load + 2, &text, PF_R | PF_X)] {
        if segment.kind != PT_LOAD || segment.flags != flags {
            return wrong(index, "a new segment has wrong permissions");
        }
        if segment.align != 4096 {
            return wrong(index, "a new segment is not aligned to pages of 4 KiB");
        }
        if segment.offset % segment.align != segment.address % segment.align {
            return wrong(index, "a new segment's file offset and address do not agree");
        }
        if segment.physical != segment.address {
            return wrong(index, "a new segment's physical address is not its address");
        }
        if segment.offset < size || segment.file_size != segment.memory_size {
            return wrong(index, "a new segment does not come from the new part of the file");
        }
    }
    if data.offset.saturating_add(data.file_size) > text.offset {
        return wrong(last_load + 2, "the new segments overlap in the file");
    }
    // Whole pages, as the kernel maps them: what shares a page takes the permissions of the last
    // one mapped.
    let mut end_of_last = 0;
    for (index, load) in new.iter().enumerate().filter(|(_, segment)| segment.is_load()) {
        let added = index == last_load + 1 || index == last_load + 2;
        if added && load.address & !4095 < end_of_last {
            return wrong(index, "a new segment shares a page with another");
        }
        end_of_last = end_of_last.max((load.address + load.memory_size).next_multiple_of(4096));
    }
    let header =
        rewritten.bytes_at(units::Svma(data.address.wrapping_add(table.wrapping_sub(data.offset))), 56);
    if table < data.offset || header.is_none() {
        return wrong(0, "the program headers are not in the new data");
    }
    // Older kernels tell the program its headers' place by the first segment's distance. Newer ones
    // look where they are, which has to do where that would make a large hole in the file.
    let first = &new[old.iter().position(Segment::is_load).unwrap_or(0)];
    let same_distance = data.address.wrapping_sub(first.address.wrapping_sub(first.offset));
    let hole = same_distance.checked_sub(size.next_multiple_of(4096));
    if data.offset != same_distance && hole.is_none_or(|hole| hole <= LARGEST_HOLE) {
        return wrong(last_load + 1, "the new data's distance from the file is not the first segment's");
    }
    Some(Added { data, text })
}

fn inside(part: &Segment, load: &Segment) -> bool {
    let distance = part.address.wrapping_sub(load.address);
    part.address == part.physical
        && part.offset.wrapping_sub(load.offset) == distance
        && part.file_size == part.memory_size
        && distance.checked_add(part.file_size).is_some_and(|end| end <= load.file_size)
}

/// R3 for section headers: the original's, but for names, symbols and strings that moved; new ones
/// agree with segments.
pub(crate) fn sections(original: &Elf<'_>, rewritten: &Elf<'_>, added: &Added, findings: &Findings) {
    let table = rewritten.section_table();
    let (old, new) = (original.sections(), rewritten.sections());
    let wrong = |index: usize, what: &str| {
        findings.in_file(Rule::Headers, table.saturating_add(64 * index as u64), what);
    };
    if new.len() < old.len() {
        return wrong(new.len(), "section headers are missing");
    }
    let named = original.section_names();
    let moved = |index: usize, section: &Section<'_>| {
        let symbols = old.iter().find(|section| section.name == b".symtab");
        index == named || section.name == b".symtab" || symbols.is_some_and(|s| s.link as usize == index)
    };
    for (index, (was, is)) in old.iter().zip(new).enumerate() {
        let name =
            if rest::is_renamed(was.name) { [was.name, b".original"].concat() } else { was.name.to_vec() };
        let fixed = |s: &Section<'_>| (s.kind, s.flags, s.address, s.link, s.align, s.entry_size);
        let place = (is.offset, is.size, is.info) == (was.offset, was.size, was.info);
        // Sections without a name are not renamed in files whose names are damaged.
        if is.name != name && !(was.name.is_empty() && is.name.is_empty()) {
            return wrong(index, "a section's name has changed");
        }
        if is.name_at != was.name_at && !rest::is_renamed(was.name) {
            return wrong(index, "a section's name is another one of the same text");
        }
        if fixed(is) != fixed(was) || !(place || moved(index, was)) {
            return wrong(index, "a section header of the original has changed");
        }
    }
    let size = original.data().len() as u64;
    let whole = rewritten.data().len() as u64;
    for (index, section) in new.iter().enumerate() {
        let is_new = index >= old.len() || moved(index, section) && section.offset >= size;
        if !is_new || section.kind == SHT_NOBITS {
            continue;
        }
        let end = section.offset.checked_add(section.size);
        if section.offset < size && section.size > 0 || end.is_none_or(|end| end > whole) {
            return wrong(index, "a new section does not lie in the new part of the file");
        }
        let load = if section.flags.contains(SHF_EXECINSTR) { &added.text } else { &added.data };
        let loaded = section.flags.contains(SHF_ALLOC);
        let distance = section.address.wrapping_sub(load.address);
        if loaded
            && (section.offset.wrapping_sub(load.offset) != distance
                || distance.checked_add(section.size).is_none_or(|end| end > load.file_size)
                || section.flags.contains(SHF_WRITE))
        {
            return wrong(index, "a new section does not agree with its segment");
        }
    }
}

/// R3: what lies between the original, the new segments and the rest is zero; between twins, traps.
pub(crate) fn padding(
    original: &Elf<'_>,
    rewritten: &Elf<'_>,
    added: &Added,
    mapping: &Mapping<'_>,
    findings: &Findings,
) {
    let data = rewritten.data();
    for (from, to) in [
        (original.data().len() as u64, added.data.offset),
        (added.data.offset + added.data.file_size, added.text.offset),
    ] {
        let gap = data.get(from as usize..to as usize).unwrap_or(&[]);
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            findings.in_file(Rule::Headers, from + at as u64, "padding is not zero");
        }
    }
    let Some(text) = rewritten.segment_bytes(&added.text) else { return };
    let mut from = 0usize;
    let ends = mapping.units.iter().map(|unit| (unit.twin.wrapping_sub(added.text.address), unit.copy.len()));
    // Relays lie behind them all. Those upon another one, or upon a twin, leave no gap to look at.
    let mut relays: Vec<u64> = mapping.relays.iter().map(|relay| relay.at).collect();
    relays.sort_unstable();
    let relays = relays.into_iter().map(|at| (at.wrapping_sub(added.text.address), RELAY_SIZE as usize));
    for (start, size) in ends.chain(relays).chain([(text.len() as u64, 0)]) {
        let Some(gap) = text.get(from..start as usize) else {
            let what = "a twin or relay outside the new code, or overlapping another";
            findings.at(Rule::Mapping, added.text.address.wrapping_add(start), what);
            return;
        };
        if let Some(at) = gap.iter().position(|&byte| byte != 0xcc) {
            let address = added.text.address + (from + at) as u64;
            findings.at(Rule::Mapping, address, "new code that no mapping entry accounts for");
        }
        from = start as usize + size;
    }
}

/// R3: the fields of the ELF header that changed.
pub(crate) fn header(original: &Elf<'_>, rewritten: &Elf<'_>, findings: &Findings) {
    if rewritten.entry_sizes() != (56, 64) {
        findings.in_file(Rule::Headers, 54, "header entries of an unknown size");
    }
    let size = original.data().len() as u64;
    if rewritten.segment_table() < size || rewritten.section_table() < size {
        findings.in_file(Rule::Headers, 32, "headers do not lie in the new part of the file");
    }
}

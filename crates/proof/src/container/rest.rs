//! Rule R3 for what no other rule reads: sections that a rewrite adds are those of a closed list,
//! tables of strings are the original's plus the names of what was added, and between and behind
//! all that is accounted for stands nothing but padding.

use crate::container::Added;
use crate::container::elf::{Elf, Section, Segment};
use crate::container::mapping::Note;
use crate::rule::{Findings, Rule};
use object::elf::{
    PT_GNU_EH_FRAME, SHF_ALLOC, SHT_NOBITS, SHT_NOTE, SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB,
    SectionFlags, SectionType,
};

/// No padding is longer: nothing that is appended is aligned to more.
const ALIGNED_TO: u64 = 8;
const SECTION_HEADER_SIZE: u64 = 64;
const SYMBOL_SIZE: u64 = 24;
const PAGE: u64 = 4096;
const NOTE: &[u8] = b".note.gleaner";
const EH_FRAME_HEADER: &[u8] = b".eh_frame_hdr";
/// The section of the twins.
pub(crate) const TEXT: &[u8] = b".text.twin";
const MAP: &[u8] = b".gleaner.map";

/// Name, kind, flags and alignment.
type Form = (&'static [u8], SectionType, SectionFlags, u64);

const NO_FLAGS: SectionFlags = SectionFlags(0);
const CODE: SectionFlags = SectionFlags(0x2 | 0x4); // SHF_ALLOC and SHF_EXECINSTR
/// The sections of the new segments, and the mapping.
const ADDED: [Form; 7] = [
    (NOTE, SHT_NOTE, SHF_ALLOC, 4),
    (EH_FRAME_HEADER, SHT_PROGBITS, SHF_ALLOC, 4),
    (b".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8),
    (b".gcc_except_table.twin", SHT_PROGBITS, SHF_ALLOC, 4),
    (b".rodata.twin", SHT_PROGBITS, SHF_ALLOC, 8),
    (TEXT, SHT_PROGBITS, CODE, 64),
    (MAP, SHT_PROGBITS, NO_FLAGS, 8),
];
const SYMBOLS: [Form; 2] = [(b".symtab", SHT_SYMTAB, NO_FLAGS, 8), (b".strtab", SHT_STRTAB, NO_FLAGS, 1)];
const NAMES: Form = (b".shstrtab", SHT_STRTAB, NO_FLAGS, 1);

/// Whether a section keeps its contents under another name, so that readers find the new one.
pub(super) fn is_renamed(name: &[u8]) -> bool {
    matches!(name, b".eh_frame" | EH_FRAME_HEADER)
}

pub(crate) fn check(
    original: &Elf<'_>,
    rewritten: &Elf<'_>,
    added: &Added,
    note: &Note,
    findings: &Findings,
) {
    let found = added_sections(original, rewritten)
        .and_then(|()| named_places(original, rewritten, added, note))
        .and_then(|()| names(original, rewritten))
        .and_then(|()| symbols_names(original, rewritten))
        .and_then(|()| gaps(original, rewritten, added));
    if let Err((at, what)) = found {
        findings.in_file(Rule::Headers, at, what);
    }
}

/// Where in the file something is wrong, and what.
type Found = Result<(), (u64, &'static str)>;

/// The number of the first section that was added: a table of headers begins with an empty one.
fn first_added(original: &Elf<'_>) -> usize {
    original.sections().len().max(1)
}

fn header_at(rewritten: &Elf<'_>, index: usize) -> u64 {
    rewritten.section_table().saturating_add(SECTION_HEADER_SIZE * index as u64)
}

/// The sections that were added, by the list above.
fn added_sections(original: &Elf<'_>, rewritten: &Elf<'_>) -> Found {
    let (old, new) = (original.sections(), rewritten.sections());
    let wrong = |index: usize, what| Err((header_at(rewritten, index), what));
    let mut forms = ADDED.to_vec();
    if !has_symbols(original) {
        forms.extend(SYMBOLS);
    }
    if old.is_empty() {
        forms.push(NAMES);
    }
    let first = first_added(original);
    if new.len() != first + forms.len() {
        return wrong(new.len(), "not the sections that a rewrite adds");
    }
    if old.is_empty() && !is_null(&new[0]) {
        return wrong(0, "the first section header is not empty");
    }
    let names = if old.is_empty() { new.len() - 1 } else { original.section_names() };
    if rewritten.section_names() != names {
        return Err((62, "the sections' names are not where they were"));
    }
    // Of symbols, how many are local.
    let differ = |(was, is): (&Section<'_>, &Section<'_>)| was.info != is.info && was.size >= SYMBOL_SIZE;
    if let Some(index) = old.iter().zip(new).position(differ) {
        return wrong(index, "a section header of the original has changed");
    }
    for (index, (section, form)) in (first..).zip(new[first..].iter().zip(&forms)) {
        if (section.name, section.kind, section.flags, section.align) != *form {
            return wrong(index, "a section that no rewrite adds");
        }
        let is_table = section.kind == SHT_SYMTAB;
        let fields = if is_table { (index as u32 + 1, SYMBOL_SIZE, 1) } else { (0, 0, 0) };
        if (section.link, section.entry_size, section.info) != fields {
            return wrong(index, "a field of a new section header is not what it has to be");
        }
    }
    Ok(())
}

/// Whether the original has a symbol table that others can be added to.
fn has_symbols(original: &Elf<'_>) -> bool {
    let mut tables = original.sections().iter().filter(|section| section.kind == SHT_SYMTAB);
    tables.next().is_some_and(|table| {
        let strings = original.sections().get(table.link as usize);
        let symbols = original.section_bytes(table);
        symbols.is_some_and(|bytes| bytes.len() >= 4)
            && strings.is_some_and(|strings| original.section_bytes(strings).is_some())
    })
}

fn is_null(section: &Section<'_>) -> bool {
    let numbers = [section.address, section.offset, section.size, section.align, section.entry_size];
    section.kind == SHT_NULL
        && section.flags == NO_FLAGS
        && numbers == [0; 5]
        && (section.link, section.info, section.name_at) == (0, 0, 0)
}

/// Sections that stand for what other headers or the note name, too, are there.
fn named_places(original: &Elf<'_>, rewritten: &Elf<'_>, added: &Added, note: &Note) -> Found {
    let segments = rewritten.segments();
    let frames = segments.iter().find(|segment| segment.kind == PT_GNU_EH_FRAME);
    let of = |segment: &Segment| (segment.address, segment.offset, segment.file_size);
    let expected = [
        (NOTE, segments.last().map(of)),
        (EH_FRAME_HEADER, frames.map(of)),
        (TEXT, Some(of(&added.text))),
        (MAP, Some((0, note.map_offset, note.map_size))),
    ];
    let first = first_added(original);
    for (index, section) in rewritten.sections().iter().enumerate().skip(first) {
        let Some((_, place)) = expected.iter().find(|(name, _)| *name == section.name) else { continue };
        if *place != Some((section.address, section.offset, section.size)) {
            return Err((header_at(rewritten, index), "a new section is not where its contents are"));
        }
    }
    Ok(())
}

/// The names of sections are the original's, and behind them those of what is renamed or new.
fn names(original: &Elf<'_>, rewritten: &Elf<'_>) -> Found {
    let old = original.sections();
    let kept = old.get(original.section_names()).and_then(|section| original.section_bytes(section));
    let mut expected = kept.map_or_else(|| vec![0], <[u8]>::to_vec);
    let renamed = rewritten.sections().iter().zip(old).filter(|(_, was)| is_renamed(was.name));
    let new = rewritten.sections().iter().skip(first_added(original));
    for section in renamed.map(|(is, _)| is).chain(new) {
        expected.extend(section.name);
        expected.push(0);
    }
    same(rewritten, rewritten.section_names(), &expected, "names of sections that no section has")
}

/// The same of the names of symbols.
fn symbols_names(original: &Elf<'_>, rewritten: &Elf<'_>) -> Found {
    let old = original.symbol_tables(SHT_SYMTAB).next().filter(|_| has_symbols(original));
    let Some(new) = rewritten.symbol_tables(SHT_SYMTAB).last() else { return Ok(()) };
    let mut expected = old.as_ref().map_or_else(Vec::new, |old| old.strings().to_vec());
    let mut kept = old.map_or(0, |old| old.symbols.len());
    if kept == 0 {
        // A table of symbols begins with an empty one.
        expected.push(0);
        kept = 1;
    }
    for symbol in new.symbols.iter().skip(kept) {
        expected.extend(new.name(symbol));
        expected.push(0);
    }
    same(rewritten, new.link as usize, &expected, "names of symbols that no symbol has")
}

fn same(rewritten: &Elf<'_>, section: usize, expected: &[u8], what: &'static str) -> Found {
    let Some(section) = rewritten.sections().get(section) else { return Err((62, what)) };
    let found = rewritten.section_bytes(section).unwrap_or(&[]);
    if found == expected {
        return Ok(());
    }
    let differs = found.iter().zip(expected).position(|(is, expected)| is != expected);
    let at = differs.unwrap_or(found.len().min(expected.len()));
    Err((section.offset.saturating_add(at as u64), what))
}

/// Between and behind all that sections and headers account for is padding: as much as alignment
/// takes, and zero.
fn gaps(original: &Elf<'_>, rewritten: &Elf<'_>, added: &Added) -> Found {
    let size = original.data().len() as u64;
    let headers = 56 * rewritten.segments().len() as u64;
    let mut pieces = vec![
        (rewritten.segment_table(), headers),
        (rewritten.section_table(), SECTION_HEADER_SIZE * rewritten.sections().len() as u64),
    ];
    let is_piece = |section: &&Section<'_>| {
        section.kind != SHT_NOBITS && section.kind != SHT_NULL && section.offset >= size
    };
    let mut sections: Vec<&Section<'_>> = rewritten.sections().iter().filter(is_piece).collect();
    // What moved keeps its number, and may be empty at the end of the original.
    sections.retain(|section| section.size > 0);
    pieces.extend(sections.iter().map(|section| (section.offset, section.size)));
    pieces.sort_unstable();
    let mut end = added.data.offset;
    for (at, size) in pieces {
        let Some(gap) = at.checked_sub(end) else {
            return Err((at, "new parts of the file overlap"));
        };
        // The code begins on a page of its own.
        let is_page = at == added.text.offset && gap < PAGE;
        let padding = rewritten.data().get(end as usize..at as usize).unwrap_or(&[1]);
        if gap >= ALIGNED_TO && !is_page || padding.iter().any(|&byte| byte != 0) {
            return Err((end, "bytes that nothing accounts for"));
        }
        end = at.saturating_add(size);
    }
    if end != rewritten.data().len() as u64 {
        return Err((end, "bytes behind the end"));
    }
    Ok(())
}

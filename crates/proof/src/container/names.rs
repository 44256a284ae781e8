//! Rule R11: the symbol table is the original's and names twins.

use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::rule::{Findings, Rule};
use image::Image;
use image::elf::abi::{SHT_DYNSYM, SHT_SYMTAB};
use rayon::prelude::*;

struct Names<'d> {
    entries: &'d [u8],
    strings: &'d [u8],
    offset: u64,
}

impl<'d> Names<'d> {
    fn of(image: &Image<'d>, kind: u32) -> Option<Self> {
        let section = image.sections().iter().find(|section| section.kind == kind)?;
        let strings =
            image.sections().get(section.link as usize).and_then(|strings| image.section_bytes(strings));
        let entries = image.section_bytes(section)?;
        Some(Self { entries, strings: strings.unwrap_or(&[]), offset: section.offset })
    }
    fn name(&self, entry: &[u8]) -> &'d [u8] {
        let at = number(entry, 0, 4).unwrap_or(0) as usize;
        crate::container::read::Reader::new(self.strings, at).text().unwrap_or(&[])
    }
}

/// R11.
pub(crate) fn check(original: &Image<'_>, rewritten: &Image<'_>, mapping: &Mapping<'_>, findings: &Findings) {
    let old = Names::of(original, SHT_SYMTAB);
    let Some(new) = Names::of(rewritten, SHT_SYMTAB) else {
        findings.in_file(Rule::Symbols, 0, "no symbol table");
        return;
    };
    let kept = old.as_ref().map_or(0, |old| old.entries.len() / 24);
    if let Some(old) = &old {
        if new.entries.len() < 24 * kept {
            findings.in_file(Rule::Symbols, new.offset, "symbols of the original are missing");
            return;
        }
        old.entries.par_chunks_exact(24).zip(new.entries.par_chunks_exact(24)).enumerate().for_each(
            |(index, (was, is))| {
                if was[4..] != is[4..] || old.name(was) != new.name(is) {
                    let at = new.offset + 24 * index as u64;
                    findings.in_file(Rule::Symbols, at, "a symbol of the original has changed");
                }
            },
        );
    }
    let mut known: Vec<(u64, &[u8])> = Vec::new();
    let dynamic = Names::of(original, SHT_DYNSYM);
    for names in [old.as_ref(), dynamic.as_ref()].into_iter().flatten() {
        let code = names.entries.chunks_exact(24).filter(|entry| matches!(entry[4] & 0xf, 0 | 2 | 10));
        known.extend(code.map(|entry| (number(entry, 8, 8).unwrap_or(0), names.name(entry))));
    }
    known.par_sort_unstable();
    new.entries.par_chunks_exact(24).enumerate().skip(kept).for_each(|(index, entry)| {
        let wrong = |what: &str| findings.in_file(Rule::Symbols, new.offset + 24 * index as u64, what);
        if index == 0 && entry.iter().all(|&byte| byte == 0) {
            return;
        }
        let (address, size) = (number(entry, 8, 8).unwrap_or(0), number(entry, 16, 8).unwrap_or(0));
        let unit = mapping.at_twin(address).filter(|unit| unit.twin == address);
        let Some(unit) = unit.filter(|unit| unit.copy.len() as u64 == size && entry[4] & 0xf == 2) else {
            return wrong("a new symbol that is not a twin's");
        };
        let Some(name) = new.name(entry).strip_suffix(b".twin") else {
            return wrong("a twin's symbol with a name that is not one");
        };
        // Separate debug information may know names that the file does not; those cannot be checked.
        let first = known.partition_point(|&(address, _)| address < unit.start);
        let mut at = known[first..].iter().take_while(|&&(address, _)| address == unit.start).peekable();
        if at.peek().is_some() && !at.any(|&(_, known)| known == name) {
            wrong("a twin's symbol with the name of another function");
        }
    });
}

/// Where functions begin that compilers split off others, by name: `NAME.cold`. Ascending.
pub(crate) fn parts(original: &Image<'_>) -> Vec<u64> {
    let mut all: Vec<(u64, bool)> = Vec::new();
    for names in [SHT_SYMTAB, SHT_DYNSYM].into_iter().filter_map(|kind| Names::of(original, kind)) {
        for entry in names.entries.chunks_exact(24) {
            let (section, address) = (number(entry, 6, 2).unwrap_or(0), number(entry, 8, 8).unwrap_or(0));
            if section != 0 && matches!(entry[4] & 0xf, 0 | 2) {
                let name = names.name(entry);
                let is_part = name.ends_with(b".cold") || name.windows(6).any(|part| part == b".cold.");
                all.push((address, is_part));
            }
        }
    }
    all.sort_unstable();
    let same = all.chunk_by(|a, b| a.0 == b.0);
    same.filter(|names| names.iter().all(|name| name.1)).map(|names| names[0].0).collect()
}

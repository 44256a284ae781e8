//! Rule R11: the symbol table is the original's and names twins. And where functions begin, by
//! what names them.

use crate::container::elf::{self, Elf, Symbol};
use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::container::rest::TEXT;
use crate::rule::{Findings, Rule};
use object::LittleEndian as LE;
use object::elf::{
    DT_FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY,
    DT_PREINIT_ARRAYSZ, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
};
use rayon::prelude::*;
use units::Svma;

/// R11.
pub(crate) fn check(original: &Elf<'_>, rewritten: &Elf<'_>, mapping: &Mapping<'_>, findings: &Findings) {
    let old = original.symbol_tables(SHT_SYMTAB).next();
    let Some(new) = rewritten.symbol_tables(SHT_SYMTAB).next() else {
        findings.in_file(Rule::Symbols, 0, "no symbol table");
        return;
    };
    let kept = old.as_ref().map_or(0, |old| old.symbols.len());
    if let Some(old) = &old {
        if new.symbols.len() < kept {
            findings.in_file(Rule::Symbols, new.offset, "symbols of the original are missing");
            return;
        }
        old.symbols.par_iter().zip(new.symbols).enumerate().for_each(|(index, (was, is))| {
            if object::bytes_of(was) != object::bytes_of(is) || old.name(was) != new.name(is) {
                let at = new.offset + 24 * index as u64;
                findings.in_file(Rule::Symbols, at, "a symbol of the original has changed");
            }
        });
    }
    let mut known: Vec<(u64, &[u8])> = Vec::new();
    let dynamic = original.symbol_tables(SHT_DYNSYM).next();
    for names in [old.as_ref(), dynamic.as_ref()].into_iter().flatten() {
        let code = names
            .symbols
            .iter()
            .filter(|symbol| matches!(symbol.st_type(), STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC));
        known.extend(code.map(|symbol| (elf::value(symbol), names.name(symbol))));
    }
    known.par_sort_unstable();
    let code = rewritten.sections().iter().rposition(|section| section.name == TEXT);
    new.symbols.par_iter().enumerate().skip(kept).for_each(|(index, symbol)| {
        let wrong = |what: &str| findings.in_file(Rule::Symbols, new.offset + 24 * index as u64, what);
        if index == 0 && elf::is_null(symbol) {
            return;
        }
        let section = usize::from(symbol.st_shndx.get(LE).0);
        if (symbol.st_info.0, symbol.st_other.0, Some(section)) != (GLOBAL_FUNCTION, 0, code) {
            return wrong("a field of a twin's symbol is not what it has to be");
        }
        let (address, size) = (elf::value(symbol), elf::size(symbol));
        let unit = mapping.at_twin(address).filter(|unit| unit.twin == address);
        let Some(unit) = unit.filter(|unit| unit.copy.len() as u64 == size && symbol.st_type() == STT_FUNC)
        else {
            return wrong("a new symbol that is not a twin's");
        };
        let Some(name) = new.name(symbol).strip_suffix(b".twin") else {
            return wrong("a twin's symbol with a malformed name");
        };
        // Separate debug information may know names that the file does not; those cannot be
        // checked.
        let first = known.partition_point(|&(address, _)| address < unit.start);
        let mut at = known[first..].iter().take_while(|&&(address, _)| address == unit.start).peekable();
        if at.peek().is_some() && !at.any(|&(_, known)| known == name) {
            wrong("a twin's symbol with the name of another function");
        }
    });
}

/// `st_info` of twins' symbols: `STB_GLOBAL` and `STT_FUNC`.
const GLOBAL_FUNCTION: u8 = 0x12;

/// Where functions begin that compilers split off others, by name: `NAME.cold`. Ascending.
pub(crate) fn parts(original: &Elf<'_>) -> Vec<u64> {
    let mut all: Vec<(u64, bool)> = Vec::new();
    for names in [SHT_SYMTAB, SHT_DYNSYM].into_iter().filter_map(|kind| original.symbol_tables(kind).next()) {
        for symbol in names.symbols.iter().filter(|symbol| elf::is_defined(symbol)) {
            if matches!(symbol.st_type(), STT_NOTYPE | STT_FUNC) {
                let name = names.name(symbol);
                let is_part = name.ends_with(b".cold") || name.windows(6).any(|part| part == b".cold.");
                all.push((elf::value(symbol), is_part));
            }
        }
    }
    all.sort_unstable();
    let same = all.chunk_by(|a, b| a.0 == b.0);
    same.filter(|names| names.iter().all(|name| name.1)).map(|names| names[0].0).collect()
}

/// Where functions begin by what symbols, headers and relocations say. Ascending.
pub(crate) fn functions(original: &Elf<'_>, relocations: &Relocations) -> Vec<u64> {
    let mut found = vec![original.entry()];
    found.extend([DT_INIT, DT_FINI].into_iter().filter_map(|tag| original.dynamic_value(tag)));
    for (at, size) in [
        (DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
        (DT_FINI_ARRAY, DT_FINI_ARRAYSZ),
        (DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ),
    ] {
        let (Some(at), Some(size)) = (original.dynamic_value(at), original.dynamic_value(size)) else {
            continue;
        };
        let bytes = original.bytes_from(Svma(at)).unwrap_or(&[]);
        let bytes = &bytes[..bytes.len().min(size as usize)];
        found.extend(bytes.chunks_exact(8).filter_map(|word| number(word, 0, 8)));
    }
    found.extend(relocations.addresses.iter().map(|address| address.1));
    for table in original.symbol_tables(SHT_SYMTAB).chain(original.symbol_tables(SHT_DYNSYM)) {
        let is_function = |symbol: &&Symbol| matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
        let defined = table.symbols.iter().filter(|symbol| elf::is_defined(symbol));
        found.extend(defined.filter(is_function).map(elf::value));
    }
    found.sort_unstable();
    found.dedup();
    found
}

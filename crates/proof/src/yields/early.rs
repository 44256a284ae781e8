//! Rule R15: what may run before its thread has an area. Primaries yield in none of it.
//!
//! The loader asks resolvers before any constructor has run, and `.preinit_array` comes first; a library's constructors
//! may come before the runtime's. What these call or jump to directly is looked at too, linkage stubs that lead back
//! included. So is what a program exports in the place of the C library's memory and environment functions.

use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::container::relocations::{Holds, Relocations};
use crate::container::stream::{self, Item};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use image::Image;
use image::elf::abi::{
    DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, SHT_DYNSYM, SHT_SYMTAB,
};
use units::Svma;

const PT_INTERP: u32 = 3;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Names under which libraries call functions of a program, from their constructors too.
const BORROWED: &[&[u8]] =
    &[b"malloc", b"calloc", b"realloc", b"free", b"memalign", b"aligned_alloc", b"posix_memalign", b"getenv"];

/// For each unit, whether it may run early.
pub(crate) fn units(original: &Image<'_>, mapping: &Mapping<'_>, relocations: &Relocations) -> Vec<bool> {
    let mut early = vec![false; mapping.units.len()];
    let dynamic = Symbols::of(original, SHT_DYNSYM);
    let mut waiting = begins(original, relocations, &dynamic);
    let mut items: Vec<Item> = Vec::new();
    let mut insn = Instruction::default();
    while let Some(address) = waiting.pop() {
        let Some(index) = mapping.index_at(address) else {
            waiting.extend(behind_stub(original, relocations, &dynamic, address));
            continue;
        };
        let unit = &mapping.units[index];
        if std::mem::replace(&mut early[index], true) || stream::read(unit, &mut items).is_err() {
            continue;
        }
        for item in &items {
            let code = &unit.code[item.at as usize..item.end() as usize];
            let at = unit.start + u64::from(item.at);
            Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode_out(&mut insn);
            let direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
            if direct && !unit.holds(insn.near_branch64()) {
                waiting.push(insn.near_branch64());
            }
        }
    }
    early
}

fn begins(original: &Image<'_>, relocations: &Relocations, dynamic: &Symbols<'_>) -> Vec<u64> {
    let is_program = original.segments().iter().any(|segment| segment.kind == PT_INTERP);
    let resolved = |&&(place, _): &&(u64, u64)| relocations.slot(place) == Some(Holds::Resolved);
    let mut found: Vec<u64> = relocations.addresses.iter().filter(resolved).map(|&(_, to)| to).collect();
    for symbols in [dynamic, &Symbols::of(original, SHT_SYMTAB)] {
        for entry in symbols.entries.chunks_exact(24) {
            if entry[4] & 0xf == STT_GNU_IFUNC {
                found.extend(number(entry, 8, 8));
            }
        }
    }
    if is_program {
        for (at, entry) in dynamic.entries.chunks_exact(24).enumerate() {
            if entry[4] & 0xf == STT_FUNC && BORROWED.contains(&dynamic.name(entry)) {
                found.extend(dynamic.defined(at));
            }
        }
    }
    let mut array = |at: u64, size: u64| {
        let (Some(at), Some(size)) = (original.dynamic_value(at), original.dynamic_value(size)) else {
            return;
        };
        found.extend(
            (0..size.min(1 << 20) / 8)
                .filter_map(|index| original.read_u64(Svma(at.wrapping_add(8 * index)))),
        );
        let written = relocations.addresses.iter().filter(|(place, _)| place.wrapping_sub(at) < size);
        found.extend(written.map(|&(_, to)| to));
    };
    array(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
    if !is_program {
        array(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
        found.extend(original.dynamic_value(DT_INIT));
    }
    found
}

/// Where a linkage stub leads, if that is in this module.
fn behind_stub(
    original: &Image<'_>,
    relocations: &Relocations,
    dynamic: &Symbols<'_>,
    address: u64,
) -> Option<u64> {
    let code = original.bytes_at(Svma(address), 16)?;
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let jump = (0..2).map(|_| decoder.decode()).find(|insn| insn.mnemonic() != Mnemonic::Endbr64)?;
    if jump.mnemonic() != Mnemonic::Jmp || !jump.is_ip_rel_memory_operand() {
        return None;
    }
    match relocations.slot(jump.ip_rel_memory_address())? {
        Holds::Named(symbol) => dynamic.defined(symbol as usize),
        _ => None,
    }
}

struct Symbols<'d> {
    entries: &'d [u8],
    strings: &'d [u8],
}

impl<'d> Symbols<'d> {
    fn of(image: &Image<'d>, kind: u32) -> Self {
        let section = image.sections().iter().find(|section| section.kind == kind);
        let bytes = |index: Option<usize>| {
            let section = index.and_then(|index| image.sections().get(index));
            section.and_then(|section| image.section_bytes(section)).unwrap_or(&[])
        };
        Self {
            entries: section.and_then(|section| image.section_bytes(section)).unwrap_or(&[]),
            strings: bytes(section.map(|section| section.link as usize)),
        }
    }
    fn name(&self, entry: &[u8]) -> &'d [u8] {
        let at = number(entry, 0, 4).unwrap_or(0) as usize;
        crate::container::read::Reader::new(self.strings, at).text().unwrap_or(&[])
    }
    /// The address of a symbol that the module itself defines.
    fn defined(&self, index: usize) -> Option<u64> {
        let entry = self.entries.get(24 * index..24 * index + 24)?;
        (number(entry, 6, 2)? != 0).then(|| number(entry, 8, 8)).flatten()
    }
}

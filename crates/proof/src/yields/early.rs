//! Rule R15: what may run before its thread has an area. Primaries yield in none of it.
//!
//! The loader asks resolvers before any constructor has run, and `.preinit_array` comes first; a
//! library's constructors may come before the runtime's. What these call or jump to directly is
//! looked at too, linkage stubs that lead back included. So is what a program exports in the place
//! of the C library's memory and environment functions.

use crate::container::elf::{self, Elf, SymbolTable};
use crate::container::mapping::Mapping;
use crate::container::relocations::{Holds, Relocations};
use crate::container::stream::{self, Item};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::elf::{
    DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DynamicTag, PT_INTERP,
    SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use units::Svma;

/// Names under which libraries call functions of a program, from their constructors too.
const BORROWED: &[&[u8]] =
    &[b"malloc", b"calloc", b"realloc", b"free", b"memalign", b"aligned_alloc", b"posix_memalign", b"getenv"];

/// For each unit, whether it may run early.
pub(crate) fn units(original: &Elf<'_>, mapping: &Mapping<'_>, relocations: &Relocations) -> Vec<bool> {
    let mut early = vec![false; mapping.units.len()];
    let dynamic = original.symbol_tables(SHT_DYNSYM).next();
    let dynamic = dynamic.as_ref();
    let mut waiting = begins(original, relocations, dynamic);
    let mut items: Vec<Item> = Vec::new();
    let mut insn = Instruction::default();
    while let Some(address) = waiting.pop() {
        let Some(index) = mapping.index_at(address) else {
            waiting.extend(behind_stub(original, relocations, dynamic, address));
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

fn begins(original: &Elf<'_>, relocations: &Relocations, dynamic: Option<&SymbolTable<'_>>) -> Vec<u64> {
    let is_program = original.segments().iter().any(|segment| segment.kind == PT_INTERP);
    let resolved = |&&(place, _): &&(u64, u64)| relocations.slot(place) == Some(Holds::Resolved);
    let mut found: Vec<u64> = relocations.addresses.iter().filter(resolved).map(|&(_, to)| to).collect();
    for table in original.symbol_tables(SHT_DYNSYM).chain(original.symbol_tables(SHT_SYMTAB)) {
        let resolvers = table.symbols.iter().filter(|symbol| symbol.st_type() == STT_GNU_IFUNC);
        found.extend(resolvers.map(elf::value));
    }
    if let Some(dynamic) = dynamic.filter(|_| is_program) {
        let defined = dynamic.symbols.iter().filter(|symbol| elf::is_defined(symbol));
        let borrowed =
            defined.filter(|symbol| symbol.st_type() == STT_FUNC && BORROWED.contains(&dynamic.name(symbol)));
        found.extend(borrowed.map(elf::value));
    }
    let mut array = |at: DynamicTag, size: DynamicTag| {
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
    original: &Elf<'_>,
    relocations: &Relocations,
    dynamic: Option<&SymbolTable<'_>>,
    address: u64,
) -> Option<u64> {
    let code = original.bytes_at(Svma(address), 16)?;
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let jump = (0..2).map(|_| decoder.decode()).find(|insn| insn.mnemonic() != Mnemonic::Endbr64)?;
    if jump.mnemonic() != Mnemonic::Jmp || !jump.is_ip_rel_memory_operand() {
        return None;
    }
    match relocations.slot(jump.ip_rel_memory_address())? {
        Holds::Named(symbol) => dynamic?.defined(symbol as usize),
        _ => None,
    }
}

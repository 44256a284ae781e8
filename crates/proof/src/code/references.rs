//! What refers to code from outside the units that have twins (rule R2): other code, relocations,
//! data, symbols.

use crate::code::patches::Patched;
use crate::container::elf::{self, Elf};
use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::container::stream::Item;
use crate::liveness::descent;
use crate::rule::{Findings, Rule};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::LittleEndian as LE;
use object::elf::{DT_FINI, DT_INIT, SHN_ABS, SHT_DYNSYM, SHT_SYMTAB, STT_TLS};
use rayon::prelude::*;

/// Looks for whatever would lead into the inside of a patch. `functions` are described; others
/// begin at `named`, at least.
pub(crate) fn look(
    original: &Elf<'_>,
    mapping: &Mapping<'_>,
    functions: &[(u64, u64)],
    named: &[u64],
    relocations: &Relocations,
    patched: &Patched,
    findings: &Findings,
) {
    let check = |from: u64, to: u64, what: &str| refers(patched, findings, (from, to), what);
    check(0, original.entry(), "the ELF header");
    for tag in [DT_INIT, DT_FINI] {
        check(0, original.dynamic_value(tag).unwrap_or(0), "the dynamic section");
    }
    for &(place, to) in &relocations.addresses {
        check(place, to, "the relocation");
    }
    for table in original.symbol_tables(SHT_SYMTAB).chain(original.symbol_tables(SHT_DYNSYM)) {
        table.symbols.par_iter().for_each(|symbol| {
            // Undefined, absolute and thread-local symbols are no addresses.
            let is_absolute = symbol.st_shndx.get(LE) == SHN_ABS;
            if elf::is_defined(symbol) && !is_absolute && symbol.st_type() != STT_TLS {
                check(0, elf::value(symbol), "a symbol");
            }
        });
    }
    if !original.is_position_independent() {
        for load in original.loads().iter().filter(|load| !load.is_executable()) {
            let skip = load.address.wrapping_neg() % 8;
            let words =
                original.segment_bytes(load).and_then(|bytes| bytes.get(skip as usize..)).unwrap_or(&[]);
            words.par_chunks_exact(8).with_min_len(1 << 14).enumerate().for_each(|(index, word)| {
                let value = number(word, 0, 8).unwrap_or(0);
                check(load.address + skip + 8 * index as u64, value, "a word of data");
            });
        }
    }
    other_code(original, mapping, functions, named).into_par_iter().for_each(|(from, to)| {
        let Some(code) = original.bytes_at(units::Svma(from), (to - from) as usize) else { return };
        let known = functions.binary_search(&(from, to)).is_ok();
        let mut reached = Vec::new();
        if known || named.binary_search(&from).is_ok() {
            descent::follow(from, code, &[], &mut reached);
        }
        sweep(code, from, &reached, &mut |insn| {
            // What is not known to be a function may be data, in which any number may stand.
            if known || insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64 {
                let fixed = !original.is_position_independent();
                operands(insn, fixed, &check);
                reads(insn, fixed, patched, findings);
            }
        });
    });
}

/// Where branches and calls lead of code without twins that is none of `known` functions, gaps in
/// units included. It is read from each name on: out of step, it would lead to where it does not.
pub(crate) fn targets(
    original: &Elf<'_>,
    mapping: &Mapping<'_>,
    known: &[(u64, u64)],
    named: &[u64],
) -> Vec<u64> {
    let mut ranges = other_code(original, mapping, known, named);
    ranges.retain(|range| !hold(known, range.0));
    let mut items = Vec::new();
    for unit in &mapping.units {
        if crate::container::stream::read(unit, &mut items).is_err() {
            continue;
        }
        let mut from = 0;
        for (at, end) in items.iter().map(|item| (item.at, item.end())).chain([(unit.code.len() as u32, 0)]) {
            if from < at {
                ranges.push((unit.start + u64::from(from), unit.start + u64::from(at)));
            }
            from = end;
        }
    }
    let found = ranges.into_par_iter().map(|(from, to)| {
        let found = std::cell::RefCell::new(Vec::new());
        let code = original.bytes_at(units::Svma(from), (to - from) as usize).unwrap_or(&[]);
        let mut reached = Vec::new();
        if named.binary_search(&from).is_ok() {
            descent::follow(from, code, &[], &mut reached);
        }
        sweep(code, from, &reached, &mut |insn| {
            if insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64 {
                found.borrow_mut().push(insn.near_branch64());
            }
        });
        found.into_inner()
    });
    found.flatten_iter().collect()
}

/// Whether one of the ranges holds an address.
pub(crate) fn hold(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|range| range.0 <= address);
    ranges[..after].last().is_some_and(|range| address < range.1)
}

/// The executable ranges that have no twins and that no section says is data, cut where functions
/// begin and end; and where there is a name outside of them, for data may stand before it, that
/// ends in the middle of an instruction.
fn other_code(
    original: &Elf<'_>,
    mapping: &Mapping<'_>,
    functions: &[(u64, u64)],
    named: &[u64],
) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let data = original.data_among_code();
    let mut cuts: Vec<u64> = functions.iter().chain(&data).flat_map(|&(start, end)| [start, end]).collect();
    cuts.extend(named.iter().filter(|&&start| !hold(functions, start)));
    cuts.sort_unstable();
    cuts.dedup();
    for load in original.loads().iter().filter(|load| load.is_executable()) {
        let end = load.address + load.file_size;
        let mut from = load.address;
        let first = mapping.units.partition_point(|unit| unit.start < load.address);
        let inside = mapping.units[first..].iter().take_while(|unit| unit.start < end);
        let stops = inside.map(|unit| (unit.start, unit.start + unit.code.len() as u64));
        for (stop, next) in stops.chain([(end, end)]) {
            let first = cuts.partition_point(|&cut| cut <= from);
            for &cut in cuts[first..].iter().take_while(|&&cut| cut < stop) {
                ranges.push((from, cut));
                from = cut;
            }
            if from < stop {
                ranges.push((from, stop));
            }
            from = next;
        }
    }
    ranges.retain(|range| !hold(&data, range.0));
    ranges
}

/// Decodes from the first byte on, whatever it is; from the next byte where there is no
/// instruction. `reached` are instructions by ascending offset that control is known to meet. The
/// sweep meets each of them, too, even if what stands before it would decode as an instruction that
/// ends inside of it, as a table between instructions may.
pub(crate) fn sweep(code: &[u8], address: u64, reached: &[Item], look: &mut impl FnMut(&Instruction)) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    let mut reached = reached.iter().peekable();
    while decoder.can_decode() {
        let mut at = decoder.position();
        while reached.next_if(|item| item.end() as usize <= at).is_some() {}
        if let Some(met) = reached.peek().map(|item| item.at as usize).filter(|&met| met < at) {
            at = met;
            decoder.set_ip(address + at as u64);
            if decoder.set_position(at).is_err() {
                return;
            }
        }
        decoder.decode_out(&mut insn);
        if !insn.is_invalid() {
            look(&insn);
            continue;
        }
        decoder.set_ip(address + at as u64 + 1);
        if decoder.set_position(at + 1).is_err() {
            return;
        }
    }
}

/// What leads into the inside of a patch is wrong.
pub(crate) fn refers(patched: &Patched, findings: &Findings, (from, to): (u64, u64), what: &str) {
    if patched.holds(to) {
        findings.at(Rule::Entry, to, format!("{what} at {from:#x} refers to the inside of an entry patch"));
    }
}

/// Nothing of a patch, nor its first byte, is among what an instruction reads where it says itself.
pub(crate) fn reads(insn: &Instruction, fixed: bool, patched: &Patched, findings: &Findings) {
    // Those that are not told restore a whole state.
    const LONGEST: u64 = 1 << 14;
    let Some(place) = operand(insn, fixed).filter(|_| insn.mnemonic() != Mnemonic::Lea) else { return };
    let size = Some(insn.memory_size().size() as u64).filter(|&size| size > 0).unwrap_or(LONGEST);
    if let Some(byte) = patched.first_among(place, size) {
        findings.at(Rule::Entry, byte, format!("an entry patch is read at {:#x}", insn.ip()));
    }
}

/// The address of an operand in memory that is the same whenever the instruction runs.
fn operand(insn: &Instruction, fixed: bool) -> Option<u64> {
    let is_alone = |register: Register| matches!(register, Register::None | Register::RIP);
    let is_in_memory = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory);
    let is_fixed = is_in_memory
        && is_alone(insn.memory_base())
        && insn.memory_index() == Register::None
        && !matches!(insn.segment_prefix(), Register::FS | Register::GS);
    // The decoder gives the whole address, not the distance.
    (insn.is_ip_rel_memory_operand() || is_fixed && fixed).then(|| insn.memory_displacement64())
}

/// The addresses that an instruction names: of a branch, of an operand, as a constant.
pub(crate) fn operands(insn: &Instruction, fixed: bool, check: &impl Fn(u64, u64, &str)) {
    if insn.op_count() == 0 {
        return;
    }
    if insn.op0_kind() == OpKind::NearBranch64 {
        check(insn.ip(), insn.near_branch64(), "the branch");
        return;
    }
    if let Some(place) = operand(insn, fixed) {
        check(insn.ip(), place, "the operand");
    }
    if fixed {
        let last = insn.op_count() - 1;
        if matches!(insn.op_kind(last), OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) {
            check(insn.ip(), insn.immediate(last), "the constant");
        }
    }
}

/// Whatever would be a branch if code began at some byte of `code`, a gap in the known code of a
/// unit.
pub(crate) fn hidden(code: &[u8], size: usize, address: u64, check: &impl Fn(u64, u64, &str)) {
    for at in 0..size.min(code.len()) {
        let (length, displacement) = match code[at..] {
            [0xe8 | 0xe9, ..] => (5, 4),
            [0x0f, 0x80..=0x8f, ..] | [0xc7, 0xf8, ..] => (6, 4),
            [0x70..=0x7f | 0xeb | 0xe0..=0xe3, ..] => (2, 1),
            _ => continue,
        };
        let distance =
            crate::container::read::Reader::new(code, at + length - displacement).signed(displacement);
        if let Some(distance) = distance {
            let from = address + at as u64;
            check(from, (from + length as u64).wrapping_add_signed(distance), "a possible branch");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_does_not_put_the_sweep_out_of_step() {
        // test edi, edi; jne +2; ret; a byte of a table; mov qword [rbp-16], 0x5be0; ret
        let code = [0x85, 0xff, 0x75, 0x02, 0xc3, 0x05, 0x48, 0xc7, 0x45, 0xf0, 0xe0, 0x5b, 0, 0, 0xc3];
        let mut reached = Vec::new();
        descent::follow(0x1000, &code, &[], &mut reached);
        let begins = |reached: &[Item]| {
            let mut found = Vec::new();
            sweep(&code, 0x1000, reached, &mut |insn| found.push(insn.ip() - 0x1000));
            found
        };
        assert_eq!(begins(&[]), [0, 2, 4, 5, 10, 12, 14], "a loop instruction inside of a constant");
        assert_eq!(begins(&reached), [0, 2, 4, 5, 6, 14]);
    }
}

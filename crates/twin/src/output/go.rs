//! Go's tables for twins: a second `moduledata`, with tables of functions, of values by program
//! counter and of where to look for a function, all for the twins' code. The runtime knows how to
//! have several such modules, for plugins. What hangs on no place in code (names, files, lines'
//! units, pointer maps) is shared with the original's.
//!
//! The new module lies in memory that nobody writes: the two fields that the runtime would fill in
//! are filled in already, with what says "done" and is never looked at, since the module has
//! neither data nor types of its own.

use crate::error::TwinError;
use crate::layout::emit::{Twin, Twins};
use crate::layout::span::Span;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use image::code::insn::{Insn, index_at};
use image::elf::Segment;
use image::elf::bytes::{u32_at, u64_at};
use image::go::layout::{HEADER_SIZE, at};
use image::go::tables::{self, Run};
use image::go::{Function, Go, INLINING_TREE, UNSAFE_POINTS};
use image::{Image, Module};
use rayon::prelude::*;
use std::collections::HashMap;
use units::Svma;

/// How many bytes one piece of the table of where to look is for, one entry of it, and how many
/// those entries are.
const BUCKET: u64 = 4096;
const PART: u64 = 256;
const PARTS: usize = (BUCKET / PART) as usize;
/// Unsafe points below this are ones that are begun anew, by how far they have got.
const UNSAFE: i32 = -2;
/// Zeros that stand for what the module has not: an empty map, of whatever kind, and places of
/// nothing.
const EMPTY_MAP: usize = 64;

/// Whether all that the tables say of a unit can be said of its twin.
pub(crate) fn is_portable(module: &Module<'_>, go: &Go<'_>, unit: usize, function: &Function<'_>) -> bool {
    let insns = &module.decoded[unit].insns;
    let begins = |at: u32| index_at(insns, at).is_some();
    let is_boundary = |at: u32| {
        let before = insns.partition_point(|insn| insn.at < at).checked_sub(1);
        before.is_none_or(|before| insns[before].end() <= at)
    };
    let table = |number: usize| {
        if function.tables[number] == 0 {
            return true;
        }
        go.runs(function, number).is_some_and(|runs| {
            runs.last().is_some_and(|run| run.end == function.size)
                && runs.iter().all(|run| is_boundary(run.end))
                && (number != UNSAFE_POINTS || runs.iter().all(|run| run.value >= UNSAFE))
        })
    };
    let tree = go.inlining_tree(&module.image, function).is_some_and(|tree| {
        let mut rows = tree.chunks_exact(go.layout.inlined);
        rows.all(|row| u32_at(row, go.layout.parent_pc).is_some_and(begins))
    });
    tree && (function.deferreturn == 0 || begins(function.deferreturn))
        && (0..function.tables.len()).all(table)
        && module.units[unit].size == function.size
}

/// Whether the program may itself append modules to the list, where the twins' one shall
/// be: code that does more than load the pointer to the last one, or takes its address. (So do
/// plugins, and compilers that a program brings along.)
pub(crate) fn may_be_appended_to(module: &Module<'_>, go: &Go<'_>) -> bool {
    let words = |load: &Segment| {
        let bytes = module.image.segment_bytes(load).unwrap_or(&[]);
        let skew = (load.address.wrapping_neg() & 7) as usize;
        let first = load.address + skew as u64;
        let words = bytes.get(skew..).unwrap_or(&[]).chunks_exact(8).zip((first..).step_by(8));
        words.filter_map(|(word, address)| Some((address, u64_at(word, 0)?)))
    };
    let loads = || module.image.loads().iter().filter(|load| !load.is_executable());
    let mut pointers: Vec<u64> =
        loads().flat_map(words).filter(|word| word.1 == go.module.0).map(|word| word.0).collect();
    if loads().flat_map(words).any(|word| pointers.contains(&word.1)) {
        return true;
    }
    pointers.push(go.module.0 + go.layout.next as u64);
    let does_more = |bytes: &[u8]| {
        let insn = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        let loads = insn.mnemonic() == Mnemonic::Mov && insn.op0_kind() == OpKind::Register;
        !loads && !matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
    };
    (0..module.units.len()).into_par_iter().with_min_len(256).any(|unit| {
        let (start, code) = (module.units[unit].start, module.code(unit));
        module.decoded[unit].insns.iter().any(|insn| {
            let to = insn.rip_target(start, code);
            to.is_some_and(|to| pointers.contains(&to.0)) && does_more(insn.bytes(code))
        })
    })
}

/// The tables before they have a place.
pub(crate) struct Tables<'a, 'd> {
    go: &'a Go<'d>,
    count: usize,
    /// Where the first twin begins, and the last one ends, from the start of all twins.
    range: (u64, u64),
    /// What is said of each function, behind the index of them.
    functions: Vec<u8>,
    find: Vec<u8>,
    /// Inlining trees, and where in `functions` each is referred to.
    trees: Vec<u8>,
    references: Vec<(usize, u32)>,
    pctab: Vec<u8>,
}

/// What one twin's tables are made of.
struct Carried {
    tables: Vec<Vec<u8>>,
    tree: Vec<u8>,
    deferreturn: u32,
}

impl<'a, 'd> Tables<'a, 'd> {
    /// `None` where nothing of Go has a twin; twins lie where they will, relative to the first byte
    /// of all.
    pub(crate) fn plan(twins: &Twins<'a, 'd>) -> Result<Option<Self>, TwinError> {
        let module = twins.module;
        let Ok(Some(go)) = &module.go else { return Ok(None) };
        let function = |unit: usize| Some(&go.functions[module.units[unit].go? as usize]);
        let units = twins.twins.iter().enumerate();
        let all: Vec<(usize, &Function<'_>, &Twin)> =
            units.filter_map(|(unit, twin)| Some((unit, function(unit)?, twin.as_ref()?))).collect();
        let (Some(first), Some(last)) = (all.first(), all.last()) else { return Ok(None) };
        let range = (first.2.address, last.2.address + u64::from(last.2.layout.size));
        let carried: Vec<Carried> = all
            .par_iter()
            .with_min_len(64)
            .map(|&(unit, function, twin)| carry_over(module, go, unit, function, twin))
            .collect::<Option<_>>()
            .ok_or(TwinError::GoTables("have entries that twins cannot have"))?;

        // An offset of 0 says that there is no table.
        let mut pctab = vec![0];
        let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut place = |table: Vec<u8>| {
            if table.is_empty() {
                return 0;
            }
            *known.entry(table).or_insert_with_key(|table| {
                let at = pctab.len() as u32;
                pctab.extend_from_slice(table);
                at
            })
        };
        let mut functions = vec![0; 8 * (all.len() + 1)];
        let (mut trees, mut references) = (Vec::new(), Vec::new());
        for (nth, (&(_, function, twin), carried)) in all.iter().zip(carried).enumerate() {
            let entry = (twin.address - range.0) as u32;
            let begin = functions.len();
            put_u32(&mut functions, 8 * nth, entry);
            put_u32(&mut functions, 8 * nth + 4, begin as u32);
            functions.extend_from_slice(function.record);
            put_u32(&mut functions, begin, entry);
            put_u32(&mut functions, begin + 12, carried.deferreturn);
            let head = go.layout.record;
            for (number, table) in carried.tables.into_iter().enumerate() {
                let at = if number < 3 { 16 + 4 * number } else { head + 4 * (number - 3) };
                put_u32(&mut functions, begin + at, place(table));
            }
            if !carried.tree.is_empty() {
                let at = begin + head + 4 * (function.tables.len() - 3 + INLINING_TREE);
                references.push((at, trees.len() as u32));
                trees.extend_from_slice(&carried.tree);
            }
        }
        put_u32(&mut functions, 8 * all.len(), (range.1 - range.0) as u32);
        let starts: Vec<u64> = all.iter().map(|(_, _, twin)| twin.address - range.0).collect();
        let find = find_functions(&starts, range.1 - range.0)?;
        Ok(Some(Self { go, count: all.len(), range, functions, find, trees, references, pctab }))
    }

    /// Where each piece begins, and how large they are together: head, module, empty map,
    /// functions, where to look, trees, pctab.
    fn offsets(&self) -> ([usize; 7], usize) {
        let sizes = [
            HEADER_SIZE,
            self.go.layout.size,
            EMPTY_MAP,
            self.functions.len(),
            self.find.len(),
            self.trees.len(),
            self.pctab.len(),
        ];
        let mut at = 0usize;
        let begin = sizes.map(|size| {
            let begin = at.next_multiple_of(8);
            at = begin + size;
            begin
        });
        (begin, at)
    }

    pub(crate) fn size(&self) -> u64 {
        self.offsets().1 as u64
    }

    /// All of it as bytes, for this place; `text` is where twins lie.
    pub(crate) fn write(&self, place: Span, text: Span) -> Result<Vec<u8>, TwinError> {
        let ([head, module, map, functions, find, trees, pctab], size) = self.offsets();
        let layout = &self.go.layout;
        let mut out = vec![0; size];
        let address = |offset: usize| place.address + offset as u64;
        let (from, to) = (text.address + self.range.0, text.address + self.range.1);

        out[head..][..HEADER_SIZE].copy_from_slice(self.go.header);
        put_u64(&mut out, head + 8, self.count as u64);
        if u64_at(self.go.header, 24) != Some(0) {
            put_u64(&mut out, head + 24, from);
        }
        out[functions..][..self.functions.len()].copy_from_slice(&self.functions);
        for &(at, tree) in &self.references {
            let distance = address(trees + tree as usize).wrapping_sub(self.go.functions_data);
            let distance = u32::try_from(distance).ok().filter(|&distance| distance != u32::MAX);
            put_u32(&mut out, functions + at, distance.ok_or(TwinError::OutOfReach("Go's tables"))?);
        }
        out[find..][..self.find.len()].copy_from_slice(&self.find);
        out[trees..][..self.trees.len()].copy_from_slice(&self.trees);
        out[pctab..][..self.pctab.len()].copy_from_slice(&self.pctab);

        let bytes = &mut out[module..][..layout.size];
        let kept = |bytes: &mut [u8], from: usize, to: usize| {
            bytes[from..to].copy_from_slice(&self.go.module_bytes[from..to]);
        };
        kept(bytes, at::NAMES, at::PCTAB);
        kept(bytes, layout.read_only, layout.sections);
        for (field, offset, len) in [
            (at::PCTAB, pctab, self.pctab.len()),
            (at::FUNCTIONS, functions, self.functions.len()),
            (at::INDEX, functions, self.count + 1),
        ] {
            put_u64(bytes, field, address(offset));
            put_u64(bytes, field + 8, len as u64);
            put_u64(bytes, field + 16, len as u64);
        }
        for (field, value) in [
            (at::HEADER, address(head)),
            (at::FIND, address(find)),
            (at::MIN_PC, from),
            (at::MAX_PC, to),
            (at::TEXT, from),
            (at::END_OF_TEXT, to),
            // Not nothing, so nobody makes one: of no bits, at an address that nobody reads.
            (layout.mask + 8, address(map)),
            (layout.type_map, address(map)),
        ] {
            put_u64(bytes, field, value);
        }
        // Ranges of data that end where they begin, and not at null: some comparisons let the end
        // belong to a range.
        for field in (at::DATA..at::END_OF_DATA).step_by(8) {
            put_u64(bytes, field, address(map));
        }
        Ok(out)
    }

    /// Puts the new module behind the original's, in the file.
    pub(crate) fn link(&self, image: &Image<'_>, place: Span, out: &mut [u8]) -> Result<(), TwinError> {
        let ([_, module, ..], _) = self.offsets();
        let next = Svma(self.go.module.0 + self.go.layout.next as u64);
        let next = image.file_offset(next).ok_or(TwinError::GoTables("are out of place"))?;
        put_u64(out, next.0 as usize, place.address + module as u64);
        Ok(())
    }
}

fn carry_over(
    module: &Module<'_>,
    go: &Go<'_>,
    unit: usize,
    function: &Function<'_>,
    twin: &Twin,
) -> Option<Carried> {
    let insns = &module.decoded[unit].insns;
    let table = |number: usize| {
        if function.tables[number] == 0 {
            return Some(Vec::new());
        }
        let mut out = Vec::new();
        tables::write(&moved(&go.runs(function, number)?, function.size, twin, insns), &mut out);
        Some(out)
    };
    let copy = |at: u32| {
        let index = index_at(insns, at)?;
        Some(twin.layout.offsets[index] + twin.inserted.size_before(index))
    };
    let mut tree = go.inlining_tree(&module.image, function)?.to_vec();
    for row in tree.chunks_exact_mut(go.layout.inlined) {
        let parent = copy(u32_at(row, go.layout.parent_pc)?)?;
        put_u32(row, go.layout.parent_pc, parent);
    }
    Some(Carried {
        tables: (0..function.tables.len()).map(table).collect::<Option<_>>()?,
        tree,
        deferreturn: if function.deferreturn == 0 { 0 } else { copy(function.deferreturn)? },
    })
}

/// Runs in a twin: a value holds from in front of what is inserted before an instruction to behind
/// its copy; behind that, for the jump of an escape, holds what holds where that leads.
fn moved(runs: &[Run], size: u32, twin: &Twin, insns: &[Insn]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        let end =
            if run.end >= size { twin.layout.size } else { twin.layout.offset_of(insns, u64::from(run.end)) };
        match out.last_mut() {
            Some(last) if end <= last.end => {}
            Some(last) if last.value == run.value => last.end = end,
            None if end == 0 => {}
            _ => out.push(Run { end, value: run.value }),
        }
    }
    out
}

/// For each part of a bucket, the last function that begins at or before its first byte: numbers
/// from that of the bucket's first part.
fn find_functions(starts: &[u64], size: u64) -> Result<Vec<u8>, TwinError> {
    let mut out = Vec::new();
    for bucket in 0..size.div_ceil(BUCKET) {
        let number = |part: usize| {
            let at = bucket * BUCKET + part as u64 * PART;
            (starts.partition_point(|&start| start <= at) - 1) as u32
        };
        let first = number(0);
        out.extend(first.to_le_bytes());
        for part in 0..PARTS {
            let more = u8::try_from(number(part) - first);
            out.push(more.map_err(|_| TwinError::GoTables("list too many functions in one page"))?);
        }
    }
    Ok(out)
}

fn put_u32(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

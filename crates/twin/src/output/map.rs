//! The mapping from original to twin, as a section of the result that is not loaded: what a checker
//! needs, and what translates addresses. [`twin_format`] writes it; here it is put together.

use crate::layout::emit::{Twin, Twins};
use crate::layout::insertions::Spot;
use crate::layout::{InstructionForm, escapes_after, size_in_form};
use crate::modes::mode::Mode;
use crate::select::{EntryChoice, UnitChoice};
use rayon::prelude::*;
use twin_format::stream::{Gap, Item, encode_cold_parts};
use twin_format::{LabelTable, Mapping, Note, Table, Unit, YieldRow, Yields};

/// The note: where the mapping lies in the file.
pub(crate) fn note(mode: Mode<'_>, offset: u64, size: u64, original_size: u64) -> Vec<u8> {
    let vector_bytes = mode.sites().map_or(0, |sites| sites.width.bytes() as u32);
    let quantum = mode.bounds().map_or(0, |bounds| bounds.quantum);
    let mode = mode.number();
    Note { mode, map_offset: offset, map_size: size, original_size, vector_bytes, quantum }.encode().to_vec()
}

/// The section.
pub(crate) fn write(twins: &Twins<'_, '_>, choices: &[UnitChoice], mode: Mode<'_>) -> Vec<u8> {
    let listed: Vec<(usize, &Twin)> =
        twins.twins.iter().enumerate().filter_map(|(unit, twin)| Some((unit, twin.as_ref()?))).collect();
    let streams: Vec<Vec<u8>> =
        listed.par_iter().with_min_len(64).map(|&(unit, twin)| stream(twins, unit, twin)).collect();
    let units = listed.iter().zip(&streams).map(|(&(unit, twin), stream)| Unit {
        start: twins.module.units[unit].start.0,
        twin: twin.address,
        size: twins.module.units[unit].size,
        twin_size: twin.layout.size,
        instructions: twins.module.decoded[unit].insns.len() as u32,
        patch: match choices[unit] {
            UnitChoice::Twin(EntryChoice::Patched(at)) => Some(at),
            _ => None,
        },
        stream,
    });
    let tables = listed.iter().flat_map(|&(unit, twin)| tables(twins, unit, twin));
    let labels = listed.iter().flat_map(|&(unit, _)| {
        let start = twins.module.units[unit].start.0;
        twins.labels(unit).map(move |at| start + u64::from(at))
    });
    let label_table =
        |&(unit, twin): &(usize, &Twin)| Some((twins.module.units[unit].start.0, twin.label_table?));
    let label_tables = listed.iter().filter_map(label_table).map(|(unit, at)| LabelTable { unit, at });
    Mapping {
        mode: mode.number(),
        units: units.collect(),
        tables: tables.collect(),
        yields: yields(&listed),
        labels: labels.collect(),
        label_tables: label_tables.collect(),
    }
    .encode()
}

fn tables<'t>(twins: &'t Twins<'_, '_>, unit: usize, twin: &'t Twin) -> impl Iterator<Item = Table> + 't {
    let start = twins.module.units[unit].start.0;
    twin.tables.iter().map(move |table| Table {
        jump: start + u64::from(table.table.jump_at),
        load: start + u64::from(table.table.load_at),
        original: table.table.table.0,
        twin: table.address,
        base: table.table.base.unwrap_or(0),
        count: table.table.targets.len() as u32,
        entry: u32::from(table.table.entry_size),
    })
}

/// Twins ascend and do not overlap; within one, yields in line come before those in cold parts.
fn yields(listed: &[(usize, &Twin)]) -> Yields {
    let mut yields = Yields::default();
    for (_, twin) in listed {
        let mut rows: Vec<(YieldRow, &[u64])> = Vec::with_capacity(twin.inserted.yields().len());
        for (index, listed) in twin.inserted.yields() {
            let hot = twin.layout.offsets[*index as usize];
            let address = |spot: Spot| {
                let begin = if spot.cold { twin.layout.cold_of(*index) } else { hot };
                twin.address + u64::from(begin + spot.at)
            };
            let row = YieldRow {
                place: address(listed.jump),
                resume: address(listed.resume),
                switch: listed.switch.map(|switch| address(Spot { cold: false, at: switch.at })),
            };
            rows.push((row, &listed.origins));
        }
        rows.sort_by_key(|(row, _)| row.place);
        for (row, origins) in rows {
            yields.push(row, origins);
        }
    }
    yields
}

fn stream(twins: &Twins<'_, '_>, unit: usize, twin: &Twin) -> Vec<u8> {
    let insns = &twins.module.decoded[unit].insns;
    let code = twins.module.code(unit);
    let mut out = Vec::with_capacity(insns.len() + 8);
    let mut changed = twin.layout.changed().iter().peekable();
    let mut end = 0;
    for (index, insn) in insns.iter().enumerate() {
        let form = match changed.next_if(|&&(next, _)| next == index as u32) {
            Some(&(_, form)) => form,
            None => InstructionForm::Same,
        };
        let gap = (insn.at != end).then(|| Gap {
            bytes: u64::from(insn.at - end),
            padding: u64::from(twin.layout.padding_before(index)),
        });
        let item = Item {
            len: insn.len,
            gap,
            inserted: u64::from(twin.inserted.size_before(index)),
            twin_len: u64::from(size_in_form(*insn, form, code)),
            escape: escapes_after(insns, index),
        };
        item.encode(&mut out);
        end = insn.end();
    }
    let cold: Vec<(u32, u32)> = twin.inserted.cold_sizes().collect();
    encode_cold_parts(&mut out, cold.into_iter());
    out
}

//! Rule R8: jump tables of twins.

use crate::code::unit::{Scratch, View};
use crate::container::elf::Elf;
use crate::container::mapping::{Mapping, Table};
use crate::rule::{Findings, Rule};
use units::Svma;

/// R8 for all tables together: those of twins lie in the new data, apart from each other.
pub(crate) fn apart(mapping: &Mapping<'_>, added: (u64, u64), findings: &Findings) -> bool {
    let mut spans: Vec<(u64, u64, u64, u64)> = Vec::with_capacity(mapping.tables.len());
    for table in &mapping.tables {
        if table.count == 0 || !matches!(table.entry, 4 | 8) || (table.entry == 8) != (table.base == 0) {
            findings.at(Rule::Tables, table.jump, "a jump table of an impossible shape");
            return false;
        }
        if table.twin < added.0 || table.twin.saturating_add(table.size()) > added.1 {
            findings.at(Rule::Tables, table.twin, "a twin's jump table lies outside the new data");
            return false;
        }
        spans.push((table.twin, table.size(), table.original, table.base));
    }
    spans.sort_unstable();
    spans.dedup();
    if let Some(pair) = spans.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
        findings.at(Rule::Tables, pair[1].0, "jump tables of twins overlap");
        return false;
    }
    true
}

impl View<'_, '_> {
    /// R8 for the tables of this unit.
    pub(crate) fn jump_tables(&self, scratch: &mut Scratch) {
        for (index, table) in self.tables.iter().enumerate() {
            scratch.counts.tables += 1;
            let earlier = &self.tables[..index];
            if earlier.iter().any(|other| other.load == table.load && other.delta() != table.delta()) {
                self.context.findings.at(Rule::Tables, table.load, "one instruction reads two tables");
            }
            self.jump_table(table, scratch);
        }
    }

    /// R8 for the unit's label table: whatever byte of the unit a computed jump leads to, the table
    /// leads to the twin of the label there, or says that there is none.
    pub(crate) fn label_table(&self, range: (u64, u64), scratch: &Scratch) {
        let context = self.context;
        let Some(table) = context.mapping.label_table(self.unit) else { return };
        let wrong = |at: u64, what: &str| context.findings.at(Rule::Tables, at, what);
        let size = 4 * self.unit.code.len();
        if !table.is_multiple_of(4) || table < range.0 || table.saturating_add(size as u64) > range.1 {
            return wrong(table, "a label table that lies outside the new data");
        }
        let Some(bytes) = context.rewritten.bytes_at(Svma(table), size) else {
            return wrong(table, "a label table that is not in the file");
        };
        let labels = context.mapping.labels_of(self.unit);
        for (at, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
            let distance = i64::from(i32::from_le_bytes(*word));
            if distance == 0 {
                continue;
            }
            let place = scratch.place(at as u32).map(|place| self.unit.twin + u64::from(place));
            let is_label = labels.binary_search(&(self.unit.start + at as u64)).is_ok();
            if !is_label || place != Some(table.wrapping_add_signed(distance)) {
                wrong(table + 4 * at as u64, "a word of a label table that leads to no label's twin");
            }
        }
    }

    fn jump_table(&self, table: &Table, scratch: &mut Scratch) {
        let context = self.context;
        let wrong = |at: u64, what: &str| context.findings.at(Rule::Tables, at, what);
        let item = |address: u64| {
            let at = address.checked_sub(self.unit.start)?;
            scratch.items.binary_search_by_key(&at, |item| u64::from(item.at)).ok()
        };
        let (Some(jump), Some(load)) = (item(table.jump), item(table.load)) else {
            return wrong(table.jump, "a jump table of no instruction with a twin");
        };
        let decode = |index: usize| {
            let item = scratch.items[index];
            let code = &self.unit.code[item.at as usize..];
            iced_x86::Decoder::with_ip(64, code, self.unit.start + u64::from(item.at), 0).decode()
        };
        let (jump, load) = (decode(jump), decode(load));
        if jump.flow_control() != iced_x86::FlowControl::IndirectBranch {
            return wrong(table.jump, "a jump table of an instruction that is no indirect jump");
        }
        if load.memory_size().size() != table.entry as usize {
            return wrong(table.load, "does not read entries of the table's size");
        }
        if !context.original.is_constant(Svma(table.original)) {
            return wrong(table.original, "a twin of a jump table that the program may change");
        }
        let size = table.size() as usize;
        let old = context.original.bytes_at(Svma(table.original), size);
        let new = context.rewritten.bytes_at(Svma(table.twin), size);
        let (Some(old), Some(new)) = (old, new) else {
            return wrong(table.original, "a jump table that is not in the file");
        };
        if table.entry == 8 && context.position_independent {
            return wrong(table.twin, "a table of addresses in a module that may be loaded anywhere");
        }
        let size = table.entry as usize;
        for (index, (old, new)) in old.chunks_exact(size).zip(new.chunks_exact(size)).enumerate() {
            let target = |entry: &[u8]| {
                let value = crate::container::read::Reader::new(entry, 0).signed(size).unwrap_or(0);
                table.base.wrapping_add_signed(value)
            };
            let from = table.twin + (index * size) as u64;
            let to = target(old);
            if context.patched.holds(to) {
                let what =
                    format!("the jump table at {:#x} refers to the inside of an entry patch", table.original);
                context.findings.at(Rule::Entry, to, what);
            }
            self.leads(Rule::Tables, from, to, target(new), scratch);
        }
    }
}

/// The part of the new data where tables may lie.
pub(crate) fn range(rewritten: &Elf<'_>, data: &crate::container::elf::Segment) -> (u64, u64) {
    let span = |address: u64, size: u64| (address, address.saturating_add(size));
    let section = rewritten.section(".rodata.twin").map(|section| span(section.address, section.size));
    section.unwrap_or_else(|| span(data.address, data.file_size))
}

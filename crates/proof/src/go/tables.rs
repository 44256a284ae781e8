//! Rule R20 for one function: its record and its tables.

use super::Go;
use super::original::{Run, numbered, place, run_at, runs};
use crate::code::unit::View;
use crate::container::read::number;
use crate::container::stream::Item;
use crate::rule::Rule;
use units::Svma;

/// Numbers of tables, behind those of frames, files and lines.
const UNSAFE_POINTS: usize = 3;
const INLINED: usize = 5;
/// The number, in the list behind the tables, of the inlining tree.
const TREE: usize = 3;
/// Nothing, in that list.
const NONE: u64 = 0xffff_ffff;
/// The least that is known of unsafe points: what is below is begun anew where it began, by how far
/// that is.
const UNSAFE: i32 = -2;

impl View<'_, '_> {
    /// R20 for a unit that is a function of Go.
    pub(crate) fn go(&self, go: &Go<'_>, index: usize, items: &[Item]) {
        let unit = self.unit;
        let wrong = |at: u64, what: &str| self.context.findings.at(Rule::Go, at, what);
        let Some((function, record)) = go.records(index, unit.start) else {
            return wrong(unit.twin, "Go's tables have no record of this twin");
        };
        if self
            .context
            .original
            .load_at(Svma(unit.start))
            .is_none_or(crate::container::elf::Segment::is_writable)
        {
            wrong(unit.start, "a function of Go in memory that may be written to");
        }
        let old = function.record;
        if !is_same_record(go, old, record) {
            return wrong(unit.twin, "the record of a twin differs from its original's");
        }
        let deferred = number(old, 12, 4).unwrap_or(0);
        let wanted = if deferred == 0 { Some(0) } else { copy(items, deferred).map(u64::from) };
        if number(record, 12, 4) != wanted {
            wrong(unit.twin, "a twin that resumes at another place after a panic");
        }
        for table in 0..3 + numbered(old) {
            let shape = go.original.shape;
            let places = (place(old, shape, table), place(record, shape, table));
            let (Some(was), Some(is)) = places else { return wrong(unit.twin, "a record without tables") };
            if was == 0 && is == 0 {
                continue;
            }
            let sizes = (unit.code.len() as u32, unit.copy.len() as u32);
            let both = (runs(go.original.pctab, was, sizes.0), runs(go.pctab, is, sizes.1));
            let (Some(was), Some(is), true) = (both.0, both.1, was != 0 && is != 0) else {
                wrong(unit.twin, &format!("table {table} of a twin cannot be read, or its original's"));
                continue;
            };
            if table == UNSAFE_POINTS && was.iter().any(|&(_, value)| value < UNSAFE) {
                wrong(unit.start, "a function with restartable sequences");
            }
            // Some look at whole tables: for the largest frame.
            let is_of_original = |&(_, value): &Run| was.iter().any(|&(_, other)| other == value);
            if is.last().map(|run| run.0 as usize) != Some(unit.copy.len()) || !is.iter().all(is_of_original)
            {
                wrong(
                    unit.twin,
                    &format!("table {table} has entries that the original's has not, or ends elsewhere"),
                );
            }
            if let Some(at) = differ(items, unit.code.len() as u32, &was, &is) {
                let what = format!("table {table} differs from that of the original");
                wrong(unit.twin + u64::from(at), &what);
            }
        }
        if self.tree(go, (old, record), items).is_none() {
            wrong(unit.twin, "a twin's inlining tree is not its original's");
        }
    }

    /// Rows that something refers to: the same function, called from the same place.
    fn tree(&self, go: &Go<'_>, (old, new): (&[u8], &[u8]), items: &[Item]) -> Option<()> {
        let shape = go.original.shape;
        let at = shape.record() + 4 * numbered(old) + 4 * TREE;
        let (Some(was), Some(is)) = (number(old, at, 4), number(new, at, 4)) else { return Some(()) };
        let used = match place(old, shape, INLINED).filter(|&place| place != 0) {
            Some(table) => runs(go.original.pctab, table, self.unit.code.len() as u32)?,
            None => Vec::new(),
        };
        let mut waiting: Vec<i32> = used.iter().map(|&(_, row)| row).filter(|&row| row >= 0).collect();
        if was == NONE || waiting.is_empty() {
            return (was == is).then_some(());
        }
        let (size, parent, around) = shape.row();
        let address = |place: u64| go.original.functions_data.wrapping_add(place);
        let base = address(was);
        let image = &self.context.original;
        image.load_at(Svma(base)).filter(|load| !load.is_writable())?;
        let was = image.bytes_from(Svma(base))?;
        let is = go.data.1.get(usize::try_from(address(is).checked_sub(go.data.0)?).ok()?..)?;
        let mut seen = std::collections::HashSet::new();
        while let Some(row) = waiting.pop() {
            if !seen.insert(row) {
                continue;
            }
            let from = usize::try_from(row).ok()?.checked_mul(size)?;
            let (was, is) = (was.get(from..from + size)?, is.get(from..from + size)?);
            let call = number(was, parent, 4)?;
            let is_same = was[..parent] == is[..parent] && was[parent + 4..] == is[parent + 4..];
            if !is_same || number(is, parent, 4) != copy(items, call).map(u64::from) {
                return None;
            }
            if let Some(around) = around {
                let number = number(was, around, 2)? as u16 as i16;
                waiting.extend((number >= 0).then_some(i32::from(number)));
            }
        }
        Some(())
    }
}

/// Whether all that hangs on no place in code is the original's.
fn is_same_record(go: &Go<'_>, old: &[u8], new: &[u8]) -> bool {
    let lists = go.original.shape.record();
    let data = lists + 4 * numbered(old);
    let tree = (data + 4 * TREE).min(old.len());
    let is_same = |from: usize, to: usize| old.get(from..to) == new.get(from..to);
    old.len() == new.len()
        && is_same(4, 12)
        && is_same(28, lists)
        && is_same(data, tree)
        && is_same((tree + 4).min(old.len()), old.len())
}

/// Where in the twin the instruction lies that begins at an offset of the original.
fn copy(items: &[Item], at: u64) -> Option<u32> {
    let found = items.binary_search_by_key(&at, |item| u64::from(item.at)).ok()?;
    Some(items[found].copy())
}

/// The first byte of a twin of which something else is said than of its original: of inserted code
/// what is said of the instruction behind it, of the jump of an escape what is said of where it
/// leads.
fn differ(items: &[Item], size: u32, was: &[Run], is: &[Run]) -> Option<u32> {
    const ESCAPE: u32 = 5;
    for item in items {
        let old = run_at(was, item.at);
        // All of an instruction has one value: a call is looked up by its last byte.
        let Some((_, value)) = old.filter(|&(end, _)| item.end() <= end) else { return Some(item.place) };
        let holds = |from: u32, to: u32, value: i32| {
            run_at(is, from).is_some_and(|(end, found)| found == value && to <= end)
        };
        if !holds(item.place, item.copy_end(), value) {
            return Some(item.place);
        }
        if item.escape {
            let behind = if item.end() < size { run_at(was, item.end())?.1 } else { value };
            if !holds(item.copy_end(), item.copy_end() + ESCAPE, behind) {
                return Some(item.copy_end());
            }
        }
    }
    None
}

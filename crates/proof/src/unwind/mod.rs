//! Rule R9: unwinding finds in a twin what it finds in its original.

#[cfg(test)]
mod against_gimli;
pub(crate) mod cfa;
pub(crate) mod frames;
pub(crate) mod lsda;

use crate::code::unit::{Scratch, View};
use crate::container::elf::Elf;
use crate::container::mapping::{Mapping, RELAY_SIZE};
use crate::rule::{Findings, Rule};
use crate::unwind::cfa::Rows;
use crate::unwind::frames::{Fde, Frames};
use crate::unwind::lsda::{Lsda, Site, Sites};
use rayon::prelude::*;
use std::collections::HashSet;
use units::Svma;

/// Descriptions of a unit and of its twin, by their numbers.
type Pair = (u32, u32);

/// The unwind tables of both files, side by side.
#[derive(Default)]
pub(crate) struct Tables<'d> {
    old: Frames<'d>,
    new: Frames<'d>,
    /// For each unit, the description of its original in `old` and of its twin in `new`.
    of_unit: Vec<Pair>,
    /// Of each relay, the description in `new`.
    of_relays: Vec<u32>,
    /// Where descriptions of the original begin with another frame than that of a function just
    /// called.
    odd: HashSet<u64>,
}

impl<'d> Tables<'d> {
    /// R9 for the tables as a whole: old entries kept, one more for each twin, the index sorted and
    /// complete.
    pub(crate) fn read(
        original: &Elf<'d>,
        rewritten: &Elf<'d>,
        mapping: &Mapping<'_>,
        findings: &Findings,
    ) -> Option<Self> {
        let read = |image| Frames::of(image).map_err(|(at, what)| findings.at(Rule::Unwind, at, what)).ok();
        let (old, new) = (read(original)?, read(rewritten)?);
        let address = new.address;
        let few = || {
            findings.at(
                Rule::Unwind,
                address,
                "the frame descriptions are not the original's plus one for each twin and one for each relay",
            );
            None
        };
        if new.list.len() < old.list.len() {
            return few();
        }
        let (kept, twins) = new.list.split_at(old.list.len());
        for (was, is) in old.list.iter().zip(kept) {
            let same = (was.start, was.size, was.exceptions) == (is.start, is.size, is.exceptions)
                && was.bare_program() == is.bare_program()
                && old.shared[was.shared as usize].same(&new.shared[is.shared as usize]);
            if !same {
                findings.at(Rule::Unwind, is.at, "a frame description of the original has changed");
                return None;
            }
        }
        let mut order: Vec<u32> = (0..old.list.len() as u32).collect();
        order.sort_by_key(|&index| old.list[index as usize].start);
        let mut of_unit = Vec::with_capacity(mapping.units.len());
        let mut next = 0;
        let mut twins = twins.iter().zip(old.list.len() as u32..);
        for unit in &mapping.units {
            next += order[next..].partition_point(|&at| old.list[at as usize].start < unit.start);
            let size = unit.code.len() as u64;
            // Empty descriptions are not in the index, so nobody finds them.
            let mut here = order[next..]
                .iter()
                .copied()
                .take_while(|&at| old.list[at as usize].start < unit.start.saturating_add(size));
            let here = here.by_ref().filter(|&at| old.list[at as usize].size > 0).take(2).collect::<Vec<_>>();
            let exact = |&at: &u32| {
                let fde = &old.list[at as usize];
                fde.start == unit.start && fde.size == size
            };
            let one = match here.as_slice() {
                [one] if exact(one) => *one,
                _ => {
                    findings.at(
                        Rule::Mapping,
                        unit.start,
                        "a unit that is not the range of one frame description",
                    );
                    return None;
                }
            };
            let Some((fde, number)) = twins.next() else { return few() };
            of_unit.push((one, number));
            if (fde.start, fde.size) != (unit.twin, unit.copy.len() as u64) {
                findings.at(Rule::Unwind, fde.at, "a twin's frame description does not cover that twin");
                return None;
            }
        }
        let mut of_relays = Vec::with_capacity(mapping.relays.len());
        for relay in &mapping.relays {
            let Some((fde, number)) = twins.next() else { return few() };
            of_relays.push(number);
            if (fde.start, fde.size) != (relay.at, RELAY_SIZE) {
                findings.at(
                    Rule::Unwind,
                    fde.at,
                    "a relay's frame description does not cover that relay alone",
                );
                return None;
            }
        }
        if twins.next().is_some() {
            return few();
        }
        let is_odd =
            |fde: &&Fde| Rows::new(&old.shared[fde.shared as usize], fde).is_some_and(|rows| !rows.is_bare());
        let odd =
            old.list.par_iter().filter(|fde| fde.size > 0).filter(is_odd).map(|fde| fde.start).collect();
        let tables = Self { old, new, of_unit, of_relays, odd };
        tables.index(rewritten, findings);
        Some(tables)
    }

    fn index(&self, rewritten: &Elf<'d>, findings: &Findings) {
        let Some(index) = &self.new.index else {
            if !self.new.list.is_empty() {
                findings.at(Rule::Unwind, self.new.address, "no sorted index of frame descriptions");
            }
            return;
        };
        let header = rewritten.section(".eh_frame").map(|section| section.address);
        if header.is_some_and(|address| address != self.new.address) {
            findings.at(Rule::Unwind, index.address, "the index belongs to another unwind table");
        }
        let mut wanted: Vec<(u64, u64)> =
            self.new.list.iter().filter(|fde| fde.size > 0).map(|fde| (fde.start, fde.at)).collect();
        wanted.sort_unstable();
        if index.len() != wanted.len() {
            findings.at(Rule::Unwind, index.address, "the index does not list every frame description once");
            return;
        }
        let mut found: Vec<(u64, u64)> = (0..index.len()).map(|at| index.entry(at)).collect();
        if !found.is_sorted_by_key(|entry| entry.0) {
            findings.at(Rule::Unwind, index.address, "the index is not sorted");
            return;
        }
        found.sort_unstable();
        if let Some((entry, _)) = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted) {
            let what = format!("the index leads from {:#x} to a wrong frame description", entry.0);
            findings.at(Rule::Unwind, index.address, what);
        }
    }

    /// Landing pads of every unit, with or without twin: where unwinding may enter code (rule R2).
    pub(crate) fn pads(&self, image: &Elf<'d>, fde: usize) -> Vec<u64> {
        let fde = &self.old.list[fde];
        let table = exceptions(image, fde, fde.start, fde.size);
        let Some(Ok(table)) = table else { return Vec::new() };
        table.sites.iter().map(|site| site.pad).filter(|&pad| pad != 0).collect()
    }
    pub(crate) fn with_exceptions(&self) -> Vec<usize> {
        (0..self.old.list.len()).filter(|&at| self.old.list[at].exceptions != 0).collect()
    }
    /// The description that covers a unit's original.
    pub(crate) fn of_unit(&self, unit: usize) -> u32 {
        self.of_unit[unit].0
    }
    /// Whether what begins here does so in a frame that is not that of a function just called.
    pub(crate) fn is_odd(&self, start: u64) -> bool {
        self.odd.contains(&start)
    }
    /// All descriptions of the original that cover something: start, size, index.
    pub(crate) fn covering(&self) -> Vec<(u64, u64, u32)> {
        let list = self.old.list.iter().enumerate().filter(|(_, fde)| fde.size > 0);
        let mut all: Vec<(u64, u64, u32)> =
            list.map(|(index, fde)| (fde.start, fde.size, index as u32)).collect();
        all.sort_unstable();
        all
    }
    /// What one of the original's descriptions says, row by row.
    pub(crate) fn rows(&self, fde: u32) -> Option<Rows<'d>> {
        let fde = &self.old.list[fde as usize];
        Rows::new(&self.old.shared[fde.shared as usize], fde)
    }
    /// Where exceptions land by one of the original's descriptions; `None` if that cannot be read.
    pub(crate) fn sites(&self, image: &Elf<'d>, fde: u32) -> Option<Vec<Site>> {
        let fde = &self.old.list[fde as usize];
        exceptions(image, fde, fde.start, fde.size).map_or(Some(Vec::new()), |table| Some(table.ok()?.sites))
    }
    /// Functions that the unwinder calls by their addresses in the table.
    pub(crate) fn personalities(&self) -> impl Iterator<Item = u64> + '_ {
        const INDIRECT: u8 = 0x80;
        let named = self.old.shared.iter().filter_map(|cie| cie.personality);
        named.filter(|(encoding, _)| encoding & INDIRECT == 0).map(|(_, address)| address)
    }
    /// Where functions begin and end, ascending.
    pub(crate) fn functions(&self) -> Vec<(u64, u64)> {
        let range = |fde: &Fde<'_>| (fde.start, fde.start.saturating_add(fde.size));
        let mut functions: Vec<(u64, u64)> = self.old.list.iter().map(range).collect();
        functions.sort_unstable();
        functions
    }
}

fn exceptions<'d>(
    image: &Elf<'d>,
    fde: &Fde<'d>,
    start: u64,
    size: u64,
) -> Option<Result<Lsda<'d>, &'static str>> {
    if fde.exceptions == 0 {
        return None;
    }
    let bytes = image.bytes_from(Svma(fde.exceptions));
    Some(
        bytes
            .ok_or("no exception table where there should be one")
            .and_then(|bytes| Lsda::read(bytes, fde.exceptions, start, size)),
    )
}

impl View<'_, '_> {
    /// R9 for this unit.
    pub(crate) fn unwinding(&self, index: usize, scratch: &mut Scratch) {
        let tables = &self.context.unwind;
        let (old, new) = tables.of_unit[index];
        let (old, new) = (tables.old.list[old as usize], tables.new.list[new as usize]);
        if let Err((at, what)) = rows(tables, &old, &new, scratch, self.unit.lead) {
            self.context.findings.at(Rule::Unwind, self.unit.twin + at, what);
        }
        self.relays(&old, scratch);
        let image = &self.context.original;
        let was = exceptions(image, &old, old.start, old.size);
        let is = exceptions(&self.context.rewritten, &new, new.start, new.size);
        let wrong = |at: u64, what: &str| self.context.findings.at(Rule::Unwind, at, what);
        match (was, is) {
            (None, None) => {}
            (Some(Ok(was)), Some(Ok(is))) => {
                if self.context.relocations.touch(old.exceptions, was.span()) {
                    let what = "a twin of an exception table that the loader relocates";
                    self.context.findings.at(Rule::Relocations, old.exceptions, what);
                }
                self.call_sites(&was, &is, scratch);
            }
            (_, Some(Err(what))) => wrong(new.exceptions, what),
            (Some(Err(what)), _) => wrong(old.exceptions, what),
            _ => wrong(new.at, "a twin and its original do not both have an exception table"),
        }
    }

    /// What interrupts a relay finds the frame of its switch.
    fn relays(&self, old: &Fde<'_>, scratch: &Scratch) {
        let tables = &self.context.unwind;
        let mapping = &self.context.mapping;
        let (begin, end) = (self.unit.twin, self.unit.twin + self.unit.copy.len() as u64);
        let first = mapping.relays.partition_point(|relay| relay.switch < begin);
        let of_unit = mapping.relays_of(begin, end);
        if of_unit.is_empty() {
            return;
        }
        let was = exceptions(&self.context.original, old, old.start, old.size);
        let mut sites = was.as_ref().and_then(|was| Some(Sites::new(&was.as_ref().ok()?.sites)));
        for (relay, &number) in of_unit.iter().zip(&tables.of_relays[first..]) {
            let wrong = |what| self.context.findings.at(Rule::Unwind, relay.at, what);
            let at = (relay.switch - begin) as u32;
            let next = scratch.items.partition_point(|item| item.place <= at);
            let Some(item) = next.checked_sub(1).map(|item| &scratch.items[item]) else { continue };
            let new = &tables.new.list[number as usize];
            if let Err(what) = one_row(tables, old, new, item.at) {
                wrong(what);
            }
            let is = exceptions(&self.context.rewritten, new, new.start, new.size);
            let found = match (&was, &mut sites) {
                (None, _) => Some(None),
                (_, Some(sites)) => Some(sites.at(u64::from(item.at)).map(|site| site.pad)),
                (_, None) => None,
            };
            // No table, and a place listed without a pad: it goes on to the caller. A place that a
            // table does not list is another matter.
            let same = match (found, was.is_some(), &is) {
                (Some(None), false, None) | (Some(Some(0)), _, None) => true,
                (Some(None), true, Some(Ok(is))) => is.sites.is_empty(),
                _ => false,
            };
            if !same {
                wrong("an exception in a relay is not handled as one at the relay's instruction");
            }
        }
    }

    fn call_sites(&self, was: &Lsda<'_>, is: &Lsda<'_>, scratch: &mut Scratch) {
        let (mut old, mut new) = (Sites::new(&was.sites), Sites::new(&is.sites));
        let mut seen: Vec<u64> = Vec::new();
        let mut last = (None, None);
        let items = std::mem::take(&mut scratch.items);
        // A fault is looked up where the instruction begins, a call by the byte before its return
        // address.
        let copies =
            items.iter().map(|item| ([(item.at, item.copy()), (item.end() - 1, item.copy_end() - 1)], false));
        // Cold parts lie behind all copies; what may interrupt them finds the same.
        let cold = items.iter().filter(|item| item.cold.1 > 0).map(|item| {
            let (begin, size) = item.cold;
            ([(item.at, begin), (item.at, begin + size - 1)], true)
        });
        let mut again = false;
        for (places, is_cold) in copies.chain(cold) {
            if is_cold && !again {
                again = true;
                old = Sites::new(&was.sites);
            }
            for (original, twin) in places {
                let pair = (old.at(u64::from(original)), new.at(u64::from(twin)));
                let is_new = !same_site(pair.0, last.0) || !same_site(pair.1, last.1);
                last = pair;
                if !is_new {
                    continue;
                }
                scratch.counts.call_sites += 1;
                let at = self.unit.twin + u64::from(twin);
                let wrong = |what: &str| self.context.findings.at(Rule::Unwind, at, what);
                let (Some(old), Some(new)) = pair else {
                    if pair.0.is_some() || pair.1.is_some() {
                        wrong("a call site that twin and original do not share");
                    }
                    continue;
                };
                if old.action != new.action || (old.pad == 0) != (new.pad == 0) {
                    wrong("a call site with another action than its original");
                    continue;
                }
                if old.pad != 0 {
                    self.landing(at, old.pad, new.pad, scratch);
                }
                if let Err(place) = seen.binary_search(&new.action) {
                    seen.insert(place, new.action);
                    if !was.same_action(is, new.action) {
                        wrong("a call site whose action catches something else");
                    }
                }
            }
        }
        scratch.items = items;
    }

    /// A landing pad may be the original's or the twin of it: the frame is the same.
    fn landing(&self, from: u64, pad: u64, to: u64, scratch: &mut Scratch) {
        if to == pad {
            if self.context.patched.holds(to) {
                self.context.findings.at(Rule::Unwind, from, "lands inside an entry patch");
            }
            return;
        }
        self.leads(Rule::Unwind, from, pad, to, scratch);
    }
}

fn same_site(a: Option<&Site>, b: Option<&Site>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a description of one jump says of all of it what another one says of an instruction.
fn one_row(tables: &Tables<'_>, old: &Fde<'_>, new: &Fde<'_>, at: u32) -> Result<(), &'static str> {
    let (was, is) = (&tables.old.shared[old.shared as usize], &tables.new.shared[new.shared as usize]);
    if !was.same(is) {
        return Err("a relay's frame description belongs to another kind than its original's");
    }
    let malformed = "call frame instructions that cannot be decoded";
    let (mut was, mut is) = (Rows::new(was, old).ok_or(malformed)?, Rows::new(is, new).ok_or(malformed)?);
    was.advance(u64::from(at)).ok_or(malformed)?;
    is.advance(0).ok_or(malformed)?;
    if !was.same(&is) || is.until() < RELAY_SIZE {
        return Err("unwinding finds another frame than at the original");
    }
    if was.depends_on_place() || is.depends_on_place() {
        return Err("the frame depends on where the code lies");
    }
    Ok(())
}

/// Runs both programs side by side; says where in the twin they differ.
fn rows(
    tables: &Tables<'_>,
    old: &Fde<'_>,
    new: &Fde<'_>,
    scratch: &Scratch,
    lead: u8,
) -> Result<(), (u64, &'static str)> {
    let (old_shared, new_shared) =
        (&tables.old.shared[old.shared as usize], &tables.new.shared[new.shared as usize]);
    if !old_shared.same(new_shared) {
        return Err((0, "a twin's frame description belongs to another kind than its original's"));
    }
    let malformed = (0, "call frame instructions that cannot be decoded");
    let originals = || Rows::new(old_shared, old).ok_or(malformed);
    let mut is = Rows::new(new_shared, new).ok_or(malformed)?;
    let mut compare = |was: &mut Rows<'_>, first: bool, original: u32, from: u32, to: u32| {
        let at = u64::from(from);
        let moved = was.advance(u64::from(original)).ok_or((at, malformed.1))?;
        let also_moved = is.advance(at).ok_or((at, malformed.1))?;
        if (moved || also_moved || first) && !was.same(&is) {
            return Err((at, "unwinding finds another frame than at the original"));
        }
        if is.until() < u64::from(to) {
            return Err((is.until(), "the frame changes in the middle of an instruction"));
        }
        if was.depends_on_place() || is.depends_on_place() {
            return Err((at, "the frame depends on where the code lies"));
        }
        Ok(())
    };
    let mut was = originals()?;
    let mut first = true;
    let lead = u32::from(lead);
    for item in &scratch.items {
        compare(&mut was, first, item.at, if first { 0 } else { item.place }, item.copy_end())?;
        first = false;
        if item.escape {
            compare(&mut was, false, item.end(), item.copy_end(), item.copy_end() + lead + 5)?;
        }
    }
    let mut cold = scratch.items.iter().filter(|item| item.cold.1 > 0).peekable();
    if cold.peek().is_some() {
        was = originals()?;
        first = true;
    }
    for item in cold {
        compare(&mut was, first, item.at, item.cold.0, item.cold.0 + item.cold.1)?;
        first = false;
    }
    Ok(())
}

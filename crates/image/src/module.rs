//! Everything known about a module, put together: the one thing other crates start from.

use crate::code::code_units::{self, Unit};
use crate::code::descend::{Decoded, Scratch, decode};
use crate::code::insn::{Flow, index_at};
use crate::code::instructions::Instructions;
use crate::code::jump_table::JumpTable;
use crate::code::labels;
use crate::code::never_returns;
use crate::code::surroundings::Surroundings;
use crate::elf::Segment;
use crate::elf::abi;
use crate::elf::imports::{Import, Imports};
use crate::elf::relocations::{Relocation, dynamic_relocations};
use crate::elf::symbols::Symbols;
use crate::flow::cfg::Cfg;
use crate::unwind::{frames::Frames, lsda};
use crate::{Image, ImageError};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Svma;

/// A module, read and decoded.
pub struct Module<'d> {
    pub image: Image<'d>,
    pub frames: Frames<'d>,
    pub symbols: Symbols<'d>,
    pub relocations: Vec<Relocation>,
    /// Whether it finds thread-local variables by descriptors.
    pub(crate) has_tls_descriptors: bool,
    pub imports: Imports<'d>,
    /// By ascending start.
    pub units: Vec<Unit>,
    /// One for each unit.
    pub decoded: Vec<Decoded>,
    /// Where a unit may be entered besides its first byte, as sorted offsets: landing pads, and
    /// what other units jump to or call. Units without any are not listed.
    roots: BTreeMap<usize, Vec<u32>>,
    /// Those of them that indirect jumps may lead to: unit and offset, ascending.
    labels: Vec<(usize, u32)>,
    /// Addresses of functions that never return, by name.
    dead_ends: HashSet<u64>,
    unseen_branches: OnceLock<Vec<Svma>>,
}

impl<'d> Module<'d> {
    /// Reads and decodes a module. `debug` is its separate debug information, if any.
    pub fn analyse(data: &'d [u8], debug: Option<&'d [u8]>) -> Result<Self, ImageError> {
        let mut module = Self::without_code(data, debug)?;
        module.decode_all()?;
        never_returns::propagate(&mut module);
        Ok(module)
    }

    /// Reads a module, and decodes only the units that hold these addresses: for questions about a
    /// few functions of a large file. All other units have no instructions. Where units enter each
    /// other in the middle is not looked for.
    pub fn around(
        data: &'d [u8],
        debug: Option<&'d [u8]>,
        wanted: impl IntoIterator<Item = Svma>,
    ) -> Result<Self, ImageError> {
        let mut module = Self::without_code(data, debug)?;
        let wanted: BTreeSet<usize> =
            wanted.into_iter().filter_map(|address| module.unit_at(address)).collect();
        let wanted: Vec<usize> = wanted.into_iter().collect();
        module.decoded = vec![Decoded::default(); module.units.len()];
        let pads = module.landing_pads(&wanted)?;
        module.add_roots(pads);
        module.decode_units(&wanted)?;
        module.look_for_labels()?;
        Ok(module)
    }

    fn without_code(data: &'d [u8], debug: Option<&'d [u8]>) -> Result<Self, ImageError> {
        let image = Image::parse(data)?;
        let debug = debug.map(Image::parse).transpose()?;
        let frames = Frames::of(&image)?;
        let relocations = dynamic_relocations(&image);
        let imports = Imports::of(&image, &frames, &relocations);
        let has_tls_descriptors =
            relocations.iter().any(|relocation| relocation.kind == abi::R_X86_64_TLSDESC);
        let symbols = Symbols::of(&image, debug.as_ref());
        let units = code_units::discover(&image, &frames, &symbols, &relocations);
        let dead_ends = symbols
            .all()
            .iter()
            .filter(|symbol| never_returns::is_known_by_own_name(symbol.name, symbol.is_global))
            .map(|symbol| symbol.address.0)
            .collect();
        Ok(Self {
            image,
            frames,
            symbols,
            relocations,
            has_tls_descriptors,
            imports,
            units,
            decoded: Vec::new(),
            roots: BTreeMap::new(),
            labels: Vec::new(),
            dead_ends,
            unseen_branches: OnceLock::new(),
        })
    }

    /// The bytes of a unit.
    pub fn code(&self, unit: usize) -> &'d [u8] {
        let unit = &self.units[unit];
        self.image.bytes_at(unit.start, unit.size as usize).unwrap_or(&[])
    }
    /// The instructions of a unit, with their operands.
    pub fn instructions(&self, unit: usize) -> Instructions<'_> {
        Instructions::of(self.units[unit].start, self.code(unit), &self.decoded[unit].insns)
    }
    /// The control-flow graph of a unit, by all jump tables that were recognised.
    pub fn cfg(&self, unit: usize) -> Cfg {
        self.cfg_by(unit, &self.decoded[unit].tables)
    }
    /// The same, by these jump tables of the unit and no others.
    pub fn cfg_by(&self, unit: usize, tables: &[JumpTable]) -> Cfg {
        let insns = &self.decoded[unit].insns;
        Cfg::build(self.units[unit].start, self.code(unit), insns, tables, self.roots(unit))
    }
    /// The unit that holds an address.
    pub fn unit_at(&self, address: Svma) -> Option<usize> {
        code_units::unit_at(&self.units, address)
    }
    /// Where indirect jumps through no known table may lead to in a unit, by the file's data.
    pub fn labels(&self, unit: usize) -> impl Iterator<Item = u32> + '_ {
        let first = self.labels.partition_point(|label| label.0 < unit);
        self.labels[first..].iter().take_while(move |label| label.0 == unit).map(|label| label.1)
    }
    /// Where a unit may be entered besides its first byte.
    pub fn roots(&self, unit: usize) -> &[u32] {
        self.roots.get(&unit).map_or(&[], Vec::as_slice)
    }
    pub fn name(&self, unit: usize) -> Option<&'d [u8]> {
        self.symbols.name(self.units[unit].start)
    }
    /// Whether a call to this address is known not to return, by the name of what is called.
    pub fn is_known_not_to_return(&self, target: Svma) -> bool {
        self.dead_ends.contains(&target.0) || is_dead_end(self.imports.stub(target))
    }

    fn decode_all(&mut self) -> Result<(), ImageError> {
        let all: Vec<usize> = (0..self.units.len()).collect();
        let pads = self.landing_pads(&all)?;
        self.add_roots(pads);
        self.decode_units(&all)?;
        self.look_for_labels()?;
        // Units enter each other in the middle: hand-written code, split functions. What is entered
        // must be known.
        for _ in 0..ROUNDS_OF_ENTRIES {
            let entered = self.entered_from_outside();
            let changed = self.add_roots(entered);
            if changed.is_empty() {
                break;
            }
            self.decode_units(&changed)?;
        }
        Ok(())
    }

    /// Finds the labels of units, and decodes what is behind them.
    fn look_for_labels(&mut self) -> Result<(), ImageError> {
        let mut labels = labels::candidates(&self.image, &self.relocations, &self.units, &self.decoded);
        if labels.is_empty() {
            return Ok(());
        }
        let before = self.roots.clone();
        let changed = self.add_roots(labels.clone());
        let without: Vec<Decoded> =
            changed.iter().map(|&unit| std::mem::take(&mut self.decoded[unit])).collect();
        self.decode_units(&changed)?;
        let mut misfits = Vec::new();
        for (&unit, without) in changed.iter().zip(&without) {
            if labels::fit(without, &self.decoded[unit]) {
                continue;
            }
            misfits.push(unit);
            let stays = |label: &(usize, u32)| label.0 != unit || index_at(&without.insns, label.1).is_some();
            labels.retain(stays);
            match before.get(&unit) {
                Some(roots) => self.roots.insert(unit, roots.clone()),
                None => self.roots.remove(&unit),
            };
        }
        self.add_roots(labels.iter().copied().filter(|label| misfits.contains(&label.0)).collect());
        self.decode_units(&misfits)?;
        self.labels = labels;
        Ok(())
    }

    fn decode_units(&mut self, wanted: &[usize]) -> Result<(), ImageError> {
        let never_returns = |target: Svma| self.is_known_not_to_return(target);
        let slot_never_returns = |slot: Svma| is_dead_end(self.imports.slot(slot));
        // An entry of a jump table is four bytes of the file at least. Several jumps may go by one
        // table, but a number without end is not a compiler's work.
        let most_entries = self.image.data().len() / 8 + (1 << 17);
        let entries = AtomicUsize::new(0);
        let executable = || self.image.loads().iter().filter(|load| load.is_executable());
        let data = self.image.data_among_code();
        let around = Surroundings {
            image: &self.image,
            data: &data,
            code: (
                executable().map(|load| load.address).min().unwrap_or(0),
                executable().map(|load| load.address + load.file_size).max().unwrap_or(0),
            ),
            never_returns: &never_returns,
            slot_never_returns: &slot_never_returns,
            most_entries,
        };
        let decoded: Vec<Decoded> = wanted
            .par_iter()
            .with_min_len(16)
            .map_init(Scratch::default, |scratch, &unit| {
                if entries.load(Ordering::Relaxed) > most_entries {
                    return Decoded::default();
                }
                let decoded =
                    decode(self.units[unit].start, self.code(unit), self.roots(unit), &around, scratch);
                let more = decoded.tables.iter().map(|table| table.targets.len()).sum();
                entries.fetch_add(more, Ordering::Relaxed);
                decoded
            })
            .collect();
        if entries.into_inner() > most_entries {
            return Err(ImageError::Malformed("jump tables overlap"));
        }
        if self.decoded.is_empty() {
            self.decoded = decoded;
        } else {
            for (&unit, decoded) in wanted.iter().zip(decoded) {
                self.decoded[unit] = decoded;
            }
        }
        Ok(())
    }

    /// The exception table of a unit; `None` if it has none, `Some(None)` if it has one that cannot
    /// be read.
    pub fn exceptions(&self, unit: usize) -> Option<Option<lsda::Lsda<'d>>> {
        let fde = &self.frames.fdes[self.units[unit].fde? as usize];
        Some(lsda::parse(&self.image, fde.lsda?, fde.start, fde.length))
    }

    fn landing_pads(&self, units: &[usize]) -> Result<Vec<(usize, u32)>, ImageError> {
        // A call site is four bytes of the file at least.
        let most = self.image.data().len() / 4;
        let sites = AtomicUsize::new(0);
        let pads = units
            .par_iter()
            .with_min_len(64)
            .flat_map_iter(|&unit| {
                let known = sites.load(Ordering::Relaxed) <= most;
                let table = known.then(|| self.exceptions(unit)).flatten().flatten();
                let found = table.map(|lsda| lsda.call_sites).unwrap_or_default();
                sites.fetch_add(found.len(), Ordering::Relaxed);
                found.into_iter().filter_map(|site| self.place(site.landing_pad?))
            })
            .collect();
        if sites.into_inner() > most {
            return Err(ImageError::Malformed("exception tables overlap"));
        }
        Ok(pads)
    }

    fn entered_from_outside(&self) -> Vec<(usize, u32)> {
        self.decoded
            .par_iter()
            .with_min_len(64)
            .flat_map_iter(|decoded| decoded.jumps_out.iter().chain(&decoded.calls))
            .filter_map(|&target| self.place(target))
            .filter(|&(_, at)| at != 0)
            .collect()
    }

    fn place(&self, target: Svma) -> Option<(usize, u32)> {
        let unit = self.unit_at(target)?;
        Some((unit, (target.0 - self.units[unit].start.0) as u32))
    }

    /// Adds entries to units; which units got new ones.
    fn add_roots(&mut self, mut entries: Vec<(usize, u32)>) -> Vec<usize> {
        entries.sort_unstable();
        entries.dedup();
        let mut changed = Vec::new();
        for of_unit in entries.chunk_by(|a, b| a.0 == b.0) {
            let unit = of_unit[0].0;
            let roots = self.roots.entry(unit).or_default();
            let known = roots.len();
            for &(_, at) in of_unit {
                if roots[..known].binary_search(&at).is_err() {
                    roots.push(at);
                }
            }
            if roots.len() > known {
                roots.sort_unstable();
                changed.push(unit);
            }
        }
        changed
    }

    /// Addresses inside units, but not at their starts, that something refers to or may jump to:
    /// branches of every decoded instruction, constants in code, relocations, pointers anywhere in
    /// data, and, in code that was not decoded, everything that would be a branch if a branch began
    /// there. Sorted.
    pub fn odd_targets(&self) -> Vec<Svma> {
        let is_odd = |target: Svma| self.unit_at(target).is_some_and(|unit| self.units[unit].start != target);
        let mut odd: Vec<Svma> = self
            .decoded
            .par_iter()
            .with_min_len(64)
            .flat_map_iter(|d| d.jumps_out.iter().chain(&d.calls).chain(&d.code_references))
            .copied()
            .filter(|&target| is_odd(target))
            .collect();
        odd.extend(self.relocations.iter().map(|r| Svma(r.addend)).filter(|&target| is_odd(target)));
        odd.par_extend(self.image.words_of_data().map(|(_, value)| value).filter(|&value| is_odd(value)));
        odd.par_extend(self.unseen_branches().par_iter().copied().filter(|&target| is_odd(target)));
        odd.extend(self.symbols.all().iter().map(|symbol| symbol.address).filter(|&target| is_odd(target)));
        odd.par_sort_unstable();
        odd.dedup();
        odd
    }

    /// Starts of units that undecoded bytes may call or jump to, if they are code.
    pub fn possible_entries(&self) -> Vec<Svma> {
        let is_start = |target: &Svma| self.units.binary_search_by_key(target, |unit| unit.start).is_ok();
        self.unseen_branches().iter().copied().filter(is_start).collect()
    }

    /// Where everything would lead to, inside of units, that would be a branch if code began at any
    /// undecoded byte; ascending.
    pub fn unseen_branches(&self) -> &[Svma] {
        self.unseen_branches.get_or_init(|| {
            let mut found = self.branches_of_undecoded();
            found.par_sort_unstable();
            found.dedup();
            found
        })
    }

    /// Those into one unit.
    pub(crate) fn unseen_branches_into(&self, unit: usize) -> &[Svma] {
        let (all, unit) = (self.unseen_branches(), &self.units[unit]);
        let first = all.partition_point(|&target| target < unit.start);
        &all[first..first + all[first..].partition_point(|&target| target < unit.end())]
    }

    /// What everything would lead to, inside of units, that would be a branch if code began at any
    /// undecoded byte.
    fn branches_of_undecoded(&self) -> Vec<Svma> {
        let mut found = Vec::new();
        let data = self.image.data_among_code();
        for load in self.image.loads().iter().filter(|load| load.is_executable()) {
            let first = self.units.partition_point(|unit| unit.start.0 < load.address);
            let last = self.units.partition_point(|unit| unit.start.0 < load.address + load.file_size);
            if first == last {
                let whole = (load.address, load.address + load.file_size);
                found.extend(
                    without(whole, &data).into_iter().flat_map(|gap| self.possible_targets(load, gap)),
                );
            }
            found.par_extend((first..last).into_par_iter().with_min_len(64).flat_map_iter(|unit| {
                let gaps = self.undecoded(unit, load).into_iter().flat_map(|gap| without(gap, &data));
                gaps.flat_map(|gap| self.possible_targets(load, gap)).collect::<Vec<_>>()
            }));
        }
        found
    }

    /// What branches in undecoded bytes of a segment would lead to; but for what sections say is
    /// data.
    fn possible_targets(&self, load: &Segment, unknown: (u64, u64)) -> Vec<Svma> {
        let bytes = self.image.segment_bytes(load).unwrap_or(&[]);
        let (from, to) = (unknown.0 - load.address, (unknown.1 - load.address).min(bytes.len() as u64));
        let mut found = Vec::new();
        for at in from as usize..to as usize {
            let end = match bytes[at..] {
                [0x70..=0x7f | 0xe0..=0xe3 | 0xeb, ..] => at + 2,
                [0xe8 | 0xe9, ..] => at + 5,
                [0x0f, 0x80..=0x8f, ..] | [0xc7, 0xf8, ..] => at + 6,
                _ => continue,
            };
            if end > bytes.len() {
                continue;
            }
            let distance = match end - at {
                2 => i64::from(bytes[end - 1] as i8),
                _ => crate::elf::bytes::u32_at(bytes, end - 4).map_or(0, |d| i64::from(d as i32)),
            };
            let target = Svma((load.address + end as u64).wrapping_add_signed(distance));
            if self.unit_at(target).is_some() {
                found.push(target);
            }
        }
        found
    }

    /// What was not decoded from a unit's start to the next one's, and before the first one of a
    /// segment.
    fn undecoded(&self, unit: usize, load: &Segment) -> Vec<(u64, u64)> {
        let start = self.units[unit].start.0;
        let next = self.units.get(unit + 1).map_or(u64::MAX, |next| next.start.0);
        let end = next.max(self.units[unit].end().0).min(load.address + load.file_size);
        let is_first = unit == 0 || self.units[unit - 1].start.0 < load.address;
        let mut reached = if is_first { load.address } else { start };
        let mut ranges = Vec::new();
        let insns = self.decoded[unit].insns.iter();
        let known = insns.map(|insn| (start + u64::from(insn.at), start + u64::from(insn.end())));
        for (from, to) in known.chain([(end, end)]) {
            if reached < from {
                ranges.push((reached, from));
            }
            reached = reached.max(to);
        }
        ranges
    }

    /// Whether any instruction of a unit starts at this offset.
    pub fn is_decoded(&self, unit: usize, at: u32) -> bool {
        index_at(&self.decoded[unit].insns, at).is_some()
    }
    /// How many indirect jumps of the module there are, and how many lead through a recognised
    /// table.
    pub fn indirect_jumps(&self) -> (usize, usize) {
        let all = |d: &Decoded| d.insns.iter().filter(|insn| insn.flow == Flow::JumpIndirect).count();
        (self.decoded.iter().map(all).sum(), self.decoded.iter().map(|d| d.tables.len()).sum())
    }
}

/// The parts of a range that none of the others (ascending) covers.
fn without((from, to): (u64, u64), others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let first = others.partition_point(|other| other.1 <= from);
    let mut parts = Vec::new();
    let mut reached = from;
    for &(start, end) in others[first..].iter().take_while(|other| other.0 < to) {
        if reached < start {
            parts.push((reached, start));
        }
        reached = reached.max(end);
    }
    if reached < to {
        parts.push((reached, to));
    }
    parts
}

/// How often units are decoded anew because others were found to enter them.
const ROUNDS_OF_ENTRIES: usize = 8;

fn is_dead_end(import: Option<Import<'_>>) -> bool {
    matches!(import, Some(Import::Named(name)) if never_returns::is_known_by_name(name))
}

//! The note and the mapping of a rewritten file (rule R12): what the file says it is. Nothing said here is believed
//! before another rule has looked at it; here it is only made sure that it hangs together.

use crate::code::relays::Relay;
use crate::container::elf::Elf;
use crate::container::read::{Reader, number};
use crate::rule::{Findings, Rule};

pub(crate) const IDENTITY: u32 = 1;
pub(crate) const POISON: u32 = 2;
pub(crate) const PRIMARY: u32 = 3;
pub(crate) const SCAVENGER: u32 = 4;
/// As a scavenger, of a program whose threads are each other's guests.
pub(crate) const SIBLING: u32 = 5;
/// The leave before the jump of every escape of a scavenger.
const LEAD: u8 = 63;
/// Of note and mapping.
const VERSION: u32 = 4;
/// The size of the mapping's head.
const HEADER: usize = 64;
const MOST_QUANTUM: u32 = i32::MAX as u32;

/// The contents of the note.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    pub(crate) mode: u32,
    pub(crate) map_offset: u64,
    pub(crate) map_size: u64,
    pub(crate) original_size: u64,
    /// How many bytes wide the vector registers are that harvest twins save.
    pub(crate) width: u32,
    /// What scavengers set their budget to.
    pub(crate) quantum: u32,
}

impl Note {
    pub(crate) fn mode_is_known(&self) -> bool {
        matches!(self.mode, IDENTITY | POISON | PRIMARY | SCAVENGER | SIBLING)
    }

    /// Whether there are yields in its twins.
    pub(crate) fn harvests(&self) -> bool {
        self.goes_aboard() || self.mode == PRIMARY
    }

    /// Whether its twins may run on another's kernel thread.
    pub(crate) fn goes_aboard(&self) -> bool {
        matches!(self.mode, SCAVENGER | SIBLING)
    }

    /// `None`: there is no such note, so the file is no rewritten one.
    pub(crate) fn of(rewritten: &Elf<'_>, findings: &Findings) -> Option<Self> {
        let mut ours = rewritten.notes().filter(|(owner, kind, _)| *owner == b"Gleaner\0" && *kind == 1);
        let (_, _, contents) = ours.next()?;
        let word = |at| number(contents, at, 4).unwrap_or(0) as u32;
        let long = |at| number(contents, at, 8).unwrap_or(0);
        if ours.next().is_some() {
            findings.in_file(Rule::Mapping, 0, "two notes of a rewriter");
        }
        let (width, quantum) = (word(32), word(36));
        if contents.len() != 48 || word(0) != VERSION || long(40) != 0 {
            findings.in_file(Rule::Mapping, 0, "the note is of no known version");
        }
        let goes_aboard = matches!(word(4), SCAVENGER | SIBLING);
        let harvests = goes_aboard || word(4) == PRIMARY;
        if harvests != matches!(width, 16 | 32 | 64) || goes_aboard != (1..=MOST_QUANTUM).contains(&quantum) {
            findings.in_file(Rule::Mapping, 0, "a width or quantum that does not go with the mode");
        }
        Some(Self {
            mode: word(4),
            map_offset: long(8),
            map_size: long(16),
            original_size: long(24),
            width,
            quantum,
        })
    }
}

/// A unit and its twin. Offsets inside of it are 32 bits wide.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'d> {
    pub(crate) start: u64,
    pub(crate) twin: u64,
    pub(crate) count: u32,
    pub(crate) patch: Option<u32>,
    pub(crate) code: &'d [u8],
    pub(crate) copy: &'d [u8],
    pub(crate) stream: &'d [u8],
    /// How many bytes of inserted code stand before the jump of each escape.
    pub(crate) lead: u8,
    /// Its jump tables, in [`Mapping::tables`].
    pub(crate) tables: (u32, u32),
}

impl Unit<'_> {
    pub(crate) fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.code.len() as u64
    }
    pub(crate) fn twin_holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.twin) < self.copy.len() as u64
    }
    /// Whether the first byte is an instruction with a twin.
    pub(crate) fn begins_with_item(&self) -> bool {
        self.stream.first().is_some_and(|head| head & 0x10 == 0)
    }
}

/// A jump table and its twin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) jump: u64,
    pub(crate) load: u64,
    pub(crate) original: u64,
    pub(crate) twin: u64,
    pub(crate) base: u64,
    pub(crate) count: u32,
    pub(crate) entry: u32,
}

impl Table {
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.count) * u64::from(self.entry)
    }
    pub(crate) fn delta(&self) -> u64 {
        self.twin.wrapping_sub(self.original)
    }
}

pub(crate) struct Mapping<'d> {
    pub(crate) units: Vec<Unit<'d>>,
    starts: Vec<u64>,
    pub(crate) tables: Vec<Table>,
    /// The places whose bytes may change while the program runs, and where each of their yields goes on; as they are listed.
    pub(crate) switches: Vec<(u64, u64)>,
    /// Of the switches that need one, in their order.
    pub(crate) relays: Vec<Relay>,
}

impl<'d> Mapping<'d> {
    /// The unit whose original holds this address.
    pub(crate) fn at(&self, address: u64) -> Option<&Unit<'d>> {
        self.index_at(address).map(|index| &self.units[index])
    }
    pub(crate) fn index_at(&self, address: u64) -> Option<usize> {
        let last = self.starts.partition_point(|&start| start <= address).checked_sub(1)?;
        self.units[last].holds(address).then_some(last)
    }
    /// The relays of switches from one address up to another.
    pub(crate) fn relays_of(&self, from: u64, to: u64) -> &[Relay] {
        let first = self.relays.partition_point(|relay| relay.switch < from);
        let end = self.relays.partition_point(|relay| relay.switch < to);
        &self.relays[first..end.max(first)]
    }
    /// The unit whose twin holds this address; twins ascend like units.
    pub(crate) fn at_twin(&self, address: u64) -> Option<&Unit<'d>> {
        let after = self.units.partition_point(|unit| unit.twin <= address);
        self.units[..after].last().filter(|unit| unit.twin_holds(address))
    }

    /// Reads the mapping; `None` if nothing more can be said about the file.
    pub(crate) fn read(
        original: &Elf<'d>,
        rewritten: &Elf<'d>,
        note: &Note,
        findings: &Findings,
    ) -> Option<Self> {
        let wrong = |at: u64, what: &str| {
            findings.in_file(Rule::Mapping, note.map_offset.wrapping_add(at), what);
            None
        };
        let end = note.map_offset.checked_add(note.map_size);
        let bytes = end.and_then(|end| rewritten.data().get(note.map_offset as usize..end as usize));
        let Some(map) = bytes else { return wrong(0, "the mapping lies outside the file") };
        let long = |at| number(map, at, 8).unwrap_or(0);
        if !map.starts_with(b"GLNRTWIN")
            || number(map, 8, 4) != Some(u64::from(VERSION))
            || map.len() < HEADER
        {
            return wrong(0, "no mapping of a known version");
        }
        if number(map, 12, 4) != Some(u64::from(note.mode)) {
            return wrong(12, "the mapping's mode is not the note's");
        }
        let (unit_count, table_count, units_at, tables_at) = (long(16), long(24), long(32), long(40));
        let part = |at: u64, count: u64, size: u64| {
            let end = count.checked_mul(size)?.checked_add(at)?;
            map.get(at as usize..end as usize)
        };
        let Some(unit_bytes) = part(units_at, unit_count, 40).filter(|_| units_at == HEADER as u64) else {
            return wrong(16, "the units are not where the mapping says");
        };
        let after_units = units_at + unit_bytes.len() as u64;
        let Some(table_bytes) = part(tables_at, table_count, 48).filter(|_| tables_at >= after_units) else {
            return wrong(24, "the jump tables are not where the mapping says");
        };
        let tables: Vec<Table> = table_bytes.chunks_exact(48).map(table).collect();
        let after_tables = tables_at + table_bytes.len() as u64;
        let switches_at = long(56);
        let Some(switch_bytes) = part(switches_at, long(48), 16).filter(|_| switches_at >= after_tables)
        else {
            return wrong(48, "the switches are not where the mapping says");
        };
        let row = |row: &[u8]| (number(row, 0, 8).unwrap_or(0), number(row, 8, 8).unwrap_or(0));
        let switches: Vec<(u64, u64)> = switch_bytes.chunks_exact(16).map(row).collect();
        if !switches.is_sorted_by(|a, b| a.0 < b.0) || note.mode != PRIMARY && !switches.is_empty() {
            return wrong(switches_at, "switches that do not ascend, or of what has none");
        }
        let streams_from = switches_at + switch_bytes.len() as u64;
        let mut mapping =
            Self { units: Vec::new(), starts: Vec::new(), tables, switches, relays: Vec::new() };
        let mut next_stream = streams_from;
        let mut next_table = 0;
        let (mut last_end, mut last_twin_end) = (0, 0);
        for (index, bytes) in unit_bytes.chunks_exact(40).enumerate() {
            let at = units_at + 40 * index as u64;
            let mut fields = Reader::new(bytes, 0);
            let mut field = |size| fields.fixed(size).unwrap_or(0);
            let (start, twin, stream) = (field(8), field(8), field(8));
            let (size, twin_size, count, patch) = (field(4), field(4), field(4) as u32, field(4) as u32);
            if size == 0 || twin_size == 0 || count == 0 {
                return wrong(at, "an empty unit or twin");
            }
            if start < last_end {
                return wrong(at, "units do not ascend, or one is listed twice");
            }
            if twin < last_twin_end {
                return wrong(at, "twins do not ascend, or overlap");
            }
            if stream < next_stream {
                return wrong(at, "instruction streams overlap");
            }
            let code = original.load_at(units::Svma(start)).filter(|load| load.is_executable());
            let code = code.and_then(|_| original.bytes_at(units::Svma(start), size as usize));
            let copy = rewritten.load_at(units::Svma(twin)).filter(|load| load.is_executable());
            let copy = copy.and_then(|_| rewritten.bytes_at(units::Svma(twin), twin_size as usize));
            let (Some(code), Some(copy)) = (code, copy) else {
                return wrong(at, "a unit or its twin does not lie in code");
            };
            let Some((items, stream_size)) =
                map.get(stream as usize..).and_then(|rest| stream_end(rest, count))
            else {
                return wrong(at, "an instruction stream reaches beyond the mapping");
            };
            next_stream = stream + stream_size as u64;
            let first_table = next_table;
            while mapping.tables.get(next_table).is_some_and(|table| {
                let offset = table.jump.wrapping_sub(start);
                offset < size
            }) {
                next_table += 1;
            }
            (last_end, last_twin_end) = (start + size, twin + twin_size);
            mapping.starts.push(start);
            mapping.units.push(Unit {
                start,
                twin,
                count,
                patch: (patch != u32::MAX).then_some(patch),
                code,
                copy,
                stream: items,
                lead: if note.goes_aboard() { LEAD } else { 0 },
                tables: (first_table as u32, next_table as u32),
            });
        }
        if next_table != mapping.tables.len() {
            return wrong(tables_at, "jump tables are not grouped by unit");
        }
        Some(mapping)
    }
}

/// The stream of `count` items and of their cold parts, and its size.
fn stream_end(bytes: &[u8], count: u32) -> Option<(&[u8], usize)> {
    let mut at = 0;
    let skip = |at: &mut usize| {
        *at += bytes.get(*at..)?.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
        Some(())
    };
    for _ in 0..count {
        let numbers = (bytes.get(at)? >> 4 & 7).count_ones();
        at += 1;
        for _ in 0..numbers {
            skip(&mut at)?;
        }
    }
    let cold = Reader::new(bytes, at).uleb()?;
    skip(&mut at)?;
    for _ in 0..cold.checked_mul(2)? {
        skip(&mut at)?;
    }
    Some((&bytes[..at], at))
}

fn table(bytes: &[u8]) -> Table {
    let long = |at| number(bytes, at, 8).unwrap_or(0);
    let word = |at| number(bytes, at, 4).unwrap_or(0) as u32;
    Table {
        jump: long(0),
        load: long(8),
        original: long(16),
        twin: long(24),
        base: long(32),
        count: word(40),
        entry: word(44),
    }
}

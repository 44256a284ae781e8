//! The mapping: units, jump tables, yields, and the instruction streams of units.

use crate::number::{long, word};
use crate::stream::StreamReader;
use crate::yields::{YieldRow, Yields};
use crate::{FormatError, MAGIC, VERSION, mode};
use std::ops::Range;

const HEADER_SIZE: usize = 112;
const UNIT_SIZE: usize = 40;
const TABLE_SIZE: usize = 48;
const YIELD_SIZE: usize = 32;
const ORIGIN_SIZE: usize = 8;
const LABEL_SIZE: usize = 8;
const LABEL_TABLE_SIZE: usize = 16;
/// In place of a patch's offset: the unit's entry is as it was.
const NO_PATCH: u32 = u32::MAX;
/// In place of a switch's address: the yield is always on.
const NO_SWITCH: u64 = 0;
/// The kind of all yields that are listed: before a load. 2 and 3 were those of parked ones.
const SITE: u32 = 1;

/// Where the header says how many rows a table has, and where in the mapping they begin.
#[derive(Clone, Copy)]
struct TableFields {
    count: usize,
    begin: usize,
}
const UNITS: TableFields = TableFields { count: 16, begin: 32 };
const TABLES: TableFields = TableFields { count: 24, begin: 40 };
const YIELDS: TableFields = TableFields { count: 48, begin: 56 };
const ORIGINS: TableFields = TableFields { count: 64, begin: 72 };
const LABELS: TableFields = TableFields { count: 80, begin: 88 };
const LABEL_TABLES: TableFields = TableFields { count: 96, begin: 104 };

/// A unit that has a twin. Addresses are those of the file, before it is loaded anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'s> {
    pub start: u64,
    pub twin: u64,
    pub size: u32,
    pub twin_size: u32,
    /// How many items its instruction stream has.
    pub instructions: u32,
    /// Where in the original the entry patch is; `None`: its entry is untouched.
    pub patch: Option<u32>,
    /// Read it with [`StreamReader`].
    pub stream: &'s [u8],
}

/// A jump table and its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The indirect jump, and the instruction that reads the table, in the original.
    pub jump: u64,
    pub load: u64,
    /// The table and its twin.
    pub original: u64,
    pub twin: u64,
    /// What is added to an entry of four bytes; 0 for entries of eight bytes.
    pub base: u64,
    /// How many entries, and the bytes of each: 4 or 8.
    pub count: u32,
    pub entry: u32,
}

impl Table {
    /// In bytes.
    pub fn size(&self) -> u64 {
        u64::from(self.count) * u64::from(self.entry)
    }

    /// From the original table to its twin.
    pub fn delta(&self) -> u64 {
        self.twin.wrapping_sub(self.original)
    }
}

/// By what the computed jumps of a unit's twin find the twins of its labels: a signed number of
/// four bytes for each byte of the unit, zero where there is no label, else the distance of the
/// label's twin from the table's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelTable {
    /// Where the unit begins.
    pub unit: u64,
    /// Where the table lies.
    pub at: u64,
}

/// What a rewritten file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'s> {
    /// One of [`mode`].
    pub mode: u32,
    /// By ascending address; so do their twins and streams.
    pub units: Vec<Unit<'s>>,
    /// Grouped by unit, in the order of the units.
    pub tables: Vec<Table>,
    pub yields: Yields,
    /// Addresses of instructions inside units whose twins may be entered there, from anywhere, as
    /// by a computed `goto`: ascending.
    pub labels: Vec<u64>,
    /// By ascending unit.
    pub label_tables: Vec<LabelTable>,
}

impl<'s> Mapping<'s> {
    pub fn encode(&self) -> Vec<u8> {
        let units_at = HEADER_SIZE;
        let tables_at = units_at + UNIT_SIZE * self.units.len();
        let yields_at = tables_at + TABLE_SIZE * self.tables.len();
        let origins_at = yields_at + YIELD_SIZE * self.yields.len();
        let labels_at = origins_at + ORIGIN_SIZE * self.yields.origin_count();
        let label_tables_at = labels_at + LABEL_SIZE * self.labels.len();
        let streams_at = label_tables_at + LABEL_TABLE_SIZE * self.label_tables.len();
        let size = streams_at + self.units.iter().map(|unit| unit.stream.len()).sum::<usize>();
        let mut out = Vec::with_capacity(size);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.mode.to_le_bytes());
        for number in [self.units.len(), self.tables.len(), units_at, tables_at] {
            out.extend((number as u64).to_le_bytes());
        }
        for number in [self.yields.len(), yields_at, self.yields.origin_count(), origins_at] {
            out.extend((number as u64).to_le_bytes());
        }
        for number in [self.labels.len(), labels_at, self.label_tables.len(), label_tables_at] {
            out.extend((number as u64).to_le_bytes());
        }
        let mut stream_at = streams_at as u64;
        for unit in &self.units {
            for number in [unit.start, unit.twin, stream_at] {
                out.extend(number.to_le_bytes());
            }
            for number in [unit.size, unit.twin_size, unit.instructions, unit.patch.unwrap_or(NO_PATCH)] {
                out.extend(number.to_le_bytes());
            }
            stream_at += unit.stream.len() as u64;
        }
        for table in &self.tables {
            for number in [table.jump, table.load, table.original, table.twin, table.base] {
                out.extend(number.to_le_bytes());
            }
            for number in [table.count, table.entry] {
                out.extend(number.to_le_bytes());
            }
        }
        for (row, origins) in self.yields.iter() {
            for number in [row.place, row.resume, row.switch.unwrap_or(NO_SWITCH)] {
                out.extend(number.to_le_bytes());
            }
            for number in [SITE, origins.len() as u32] {
                out.extend(number.to_le_bytes());
            }
        }
        for origin in self.yields.all_origins() {
            out.extend(origin.to_le_bytes());
        }
        for label in &self.labels {
            out.extend(label.to_le_bytes());
        }
        for number in self.label_tables.iter().flat_map(|table| [table.unit, table.at]) {
            out.extend(number.to_le_bytes());
        }
        for unit in &self.units {
            out.extend_from_slice(unit.stream);
        }
        out
    }

    /// Reads a mapping, and makes sure that it hangs together.
    pub fn decode(map: &'s [u8]) -> Result<Self, FormatError> {
        let error = |at: u64, what| FormatError { at, what };
        if !map.starts_with(&MAGIC) || word(map, 8) != Some(VERSION) || map.len() < HEADER_SIZE {
            return Err(error(0, "no mapping of a known version"));
        }
        let mode = word(map, 12).unwrap_or(0);
        let part = |fields: TableFields, size: usize, from: u64, what| {
            let wrong = error(fields.count as u64, what);
            let (count, begin) = (long(map, fields.count), long(map, fields.begin));
            let (count, begin) = count.zip(begin).filter(|&(_, begin)| begin >= from).ok_or(wrong)?;
            let end = count.checked_mul(size as u64).and_then(|size| size.checked_add(begin)).ok_or(wrong)?;
            let rows = map.get(begin as usize..end as usize).ok_or(wrong)?;
            Ok((rows.chunks_exact(size), begin..end))
        };
        let first = HEADER_SIZE as u64;
        let (unit_rows, units_in) =
            part(UNITS, UNIT_SIZE, first, "the units are not where the mapping says")?;
        if units_in.start != first {
            return Err(error(UNITS.count as u64, "the units are not where the mapping says"));
        }
        let what = "the jump tables are not where the mapping says";
        let (table_rows, tables_in) = part(TABLES, TABLE_SIZE, units_in.end, what)?;
        let what = "the yields are not where the mapping says";
        let (yield_rows, yields_in) = part(YIELDS, YIELD_SIZE, tables_in.end, what)?;
        let what = "the yields' origins are not where the mapping says";
        let (origin_rows, origins_in) = part(ORIGINS, ORIGIN_SIZE, yields_in.end, what)?;
        let what = "the labels are not where the mapping says";
        let (label_rows, labels_in) = part(LABELS, LABEL_SIZE, origins_in.end, what)?;
        let what = "the label tables are not where the mapping says";
        let (label_table_rows, label_tables_in) = part(LABEL_TABLES, LABEL_TABLE_SIZE, labels_in.end, what)?;

        let tables: Vec<Table> = table_rows.map(table).collect();
        let origins: Vec<u64> = origin_rows.map(|row| long(row, 0).unwrap_or(0)).collect();
        let yields = yields(yield_rows, &origins, mode, &yields_in)?;
        let units = units(map, unit_rows, &units_in, label_tables_in.end)?;
        let labels = labels(label_rows, &units, &labels_in)?;
        let label_tables = label_tables(label_table_rows, &units, &label_tables_in)?;
        let mut next_table = 0;
        for unit in &units {
            let of_unit = |table: &&Table| table.jump.wrapping_sub(unit.start) < u64::from(unit.size);
            next_table += tables[next_table..].iter().take_while(of_unit).count();
        }
        if next_table != tables.len() {
            return Err(error(tables_in.start, "jump tables are not grouped by unit"));
        }
        Ok(Self { mode, units, tables, yields, labels, label_tables })
    }
}

fn table(row: &[u8]) -> Table {
    let (u32_at, u64_at) = (|at| word(row, at).unwrap_or(0), |at| long(row, at).unwrap_or(0));
    Table {
        jump: u64_at(0),
        load: u64_at(8),
        original: u64_at(16),
        twin: u64_at(24),
        base: u64_at(32),
        count: u32_at(40),
        entry: u32_at(44),
    }
}

fn units<'s, 'r>(
    map: &'s [u8],
    rows: impl Iterator<Item = &'r [u8]>,
    at: &Range<u64>,
    streams_from: u64,
) -> Result<Vec<Unit<'s>>, FormatError> {
    let mut units = Vec::new();
    let mut next_stream = streams_from;
    let (mut last_end, mut last_twin_end) = (0, 0);
    for (index, row) in rows.enumerate() {
        let wrong = |what| Err(FormatError { at: at.start + (UNIT_SIZE * index) as u64, what });
        let (u32_at, u64_at) = (|at| word(row, at).unwrap_or(0), |at| long(row, at).unwrap_or(0));
        let (start, twin, stream) = (u64_at(0), u64_at(8), u64_at(16));
        let (size, twin_size, instructions) = (u32_at(24), u32_at(28), u32_at(32));
        if size == 0 || twin_size == 0 || instructions == 0 {
            return wrong("an empty unit or twin");
        }
        if start < last_end {
            return wrong("units do not ascend, or one is listed twice");
        }
        if twin < last_twin_end {
            return wrong("twins do not ascend, or overlap");
        }
        let ends = start.checked_add(u64::from(size)).zip(twin.checked_add(u64::from(twin_size)));
        let Some(ends) = ends else { return wrong("a unit or its twin reaches beyond all addresses") };
        (last_end, last_twin_end) = ends;
        if stream < next_stream {
            return wrong("instruction streams overlap");
        }
        let rest = map.get(stream as usize..);
        let stream = rest.and_then(|rest| rest.get(..StreamReader::size(rest, instructions)?));
        let Some(bytes) = stream else {
            return wrong("an instruction stream reaches beyond the mapping");
        };
        next_stream = u64_at(16) + bytes.len() as u64;
        let patch = Some(u32_at(36)).filter(|&patch| patch != NO_PATCH);
        units.push(Unit { start, twin, size, twin_size, instructions, patch, stream: bytes });
    }
    Ok(units)
}

fn labels<'r>(
    rows: impl Iterator<Item = &'r [u8]>,
    units: &[Unit<'_>],
    at: &Range<u64>,
) -> Result<Vec<u64>, FormatError> {
    let labels: Vec<u64> = rows.map(|row| long(row, 0).unwrap_or(0)).collect();
    let wrong = |what| Err(FormatError { at: at.start, what });
    if !labels.is_sorted_by(|a, b| a < b) {
        return wrong("labels do not ascend, or one is listed twice");
    }
    let is_inside = |label: &u64| {
        let after = units.partition_point(|unit| unit.start < *label);
        units[..after].last().is_some_and(|unit| label - unit.start < u64::from(unit.size))
    };
    if !labels.iter().all(is_inside) {
        return wrong("a label that lies inside no unit");
    }
    Ok(labels)
}

fn label_tables<'r>(
    rows: impl Iterator<Item = &'r [u8]>,
    units: &[Unit<'_>],
    at: &Range<u64>,
) -> Result<Vec<LabelTable>, FormatError> {
    let (unit, place) = (|row| long(row, 0).unwrap_or(0), |row| long(row, 8).unwrap_or(0));
    let tables: Vec<LabelTable> = rows.map(|row| LabelTable { unit: unit(row), at: place(row) }).collect();
    let wrong = |what| Err(FormatError { at: at.start, what });
    if !tables.is_sorted_by(|a, b| a.unit < b.unit) {
        return wrong("label tables do not ascend, or a unit has two of them");
    }
    if !tables.iter().all(|table| units.binary_search_by_key(&table.unit, |unit| unit.start).is_ok()) {
        return wrong("a label table of no unit");
    }
    Ok(tables)
}

fn yields<'r>(
    rows: impl Iterator<Item = &'r [u8]>,
    origins: &[u64],
    mode: u32,
    at: &Range<u64>,
) -> Result<Yields, FormatError> {
    let mut yields = Yields::default();
    let mut next_origin = 0;
    for (index, row) in rows.enumerate() {
        let at = at.start + (YIELD_SIZE * index) as u64;
        let wrong = |what| Err(FormatError { at, what });
        let (u32_at, u64_at) = (|at| word(row, at).unwrap_or(0), |at| long(row, at).unwrap_or(0));
        if u32_at(24) != SITE {
            return wrong("a yield of no known kind");
        }
        let switch = Some(u64_at(16)).filter(|&switch| switch != NO_SWITCH);
        if !mode::harvests(mode) || switch.is_some() && !mode::hosts(mode) {
            return wrong("a yield that this mode does not have");
        }
        let count = u32_at(28) as usize;
        let Some(of_row) = origins[next_origin..].get(..count).filter(|origins| !origins.is_empty()) else {
            return wrong("a yield without origins, or with more than there are");
        };
        next_origin += count;
        let row = YieldRow { place: u64_at(0), resume: u64_at(8), switch };
        if yields.rows().last().is_some_and(|last| last.place >= row.place) {
            return wrong("yields do not ascend, or one is listed twice");
        }
        yields.push(row, of_row);
    }
    if next_origin != origins.len() {
        return Err(FormatError { at: at.end, what: "origins of no yield" });
    }
    Ok(yields)
}

//! Rule R20: what Go's runtime finds about a twin in Go's tables is what it finds about the
//! original.
//!
//! The runtime knows a list of modules, each with its tables. The original's is the first, and what
//! it leads to (`next`, which is null in the original) is the only word of the original's data that
//! a rewrite changes.

mod checked;
pub(crate) mod original;
mod shape;
mod tables;

use crate::container::Added;
use crate::container::elf::Elf;
use crate::container::mapping::{IDENTITY, Mapping, POISON};
use crate::container::read::number;
use crate::container::relocations::Relocations;
use crate::rule::{Findings, Rule};
use original::{Function, HEADER, Original, whole_record};
use shape::Field;
use units::Svma;

/// Both files' tables, when they hang together.
pub(crate) struct Go<'d> {
    original: Original<'d>,
    /// The new tables.
    pctab: &'d [u8],
    functions: &'d [u8],
    /// What may be referred to: the new segment of data.
    data: (u64, &'d [u8]),
    /// For each unit, the number of its twin in the new tables.
    of_unit: Vec<Option<u32>>,
}

/// For lookups, code comes in buckets of this many bytes, and each in parts.
const BUCKET: u64 = 4096;
const PARTS: u64 = 16;
/// As many zeros as the head of a map has bytes, or more.
const EMPTY: u64 = 64;

impl<'d> Go<'d> {
    /// R20 for what the program compares with a checksum.
    pub(crate) fn checked(original: &Elf<'d>, rewritten: &Elf<'d>, findings: &Findings) {
        for (from, to) in checked::ranges(original) {
            let bytes = |image: &Elf<'d>| image.bytes_at(Svma(from), to.checked_sub(from)?.try_into().ok()?);
            let (old, new) = (bytes(original), bytes(rewritten));
            if old.is_none() || old != new {
                findings.at(Rule::Go, from, "code or data that the program checksums has changed");
            }
        }
    }

    /// R20 for all but what is said of single functions. `None` where there is nothing of Go, or
    /// nothing more to be said.
    pub(crate) fn of(
        original: &Elf<'d>,
        rewritten: &Elf<'d>,
        mapping: &Mapping<'_>,
        added: &Added,
        relocations: &Relocations,
        (mode, findings): (u32, &Findings),
    ) -> Option<Self> {
        let wrong = |at: u64, what: &str| -> Option<()> {
            findings.at(Rule::Go, at, what);
            None
        };
        let first = mapping.units.first()?;
        let found = match Original::of(original) {
            Ok(found) => found?,
            Err(what) => {
                wrong(first.start, what)?;
                return None;
            }
        };
        if !matches!(mode, IDENTITY | POISON) {
            wrong(first.start, "a Go program with yields")?;
        }
        let mut count = 0;
        let of_unit: Vec<Option<u32>> = mapping
            .units
            .iter()
            .map(|unit| {
                let function = found.function(unit.start)?;
                let is_whole = function.size == unit.code.len() as u64 && !function.is_special;
                is_whole.then(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        // Other code in between would be taken for that of the function before, and of assembly
        // there is no word.
        let among = |start: u64| found.range.0 <= start && start < found.range.1;
        let other =
            (0..of_unit.len()).find(|&unit| of_unit[unit].is_none() && among(mapping.units[unit].start));
        if let Some(other) = other {
            wrong(
                mapping.units[other].start,
                "a twin of code that is not one whole function compiled by Go",
            )?;
        }
        let first = of_unit.iter().position(Option::is_some)?;
        let last = of_unit.iter().rposition(Option::is_some)?;
        let size = found.shape.size() as u64;
        let load = original.load_at(Svma(found.module));
        if load.is_none_or(|load| !load.is_writable()) || relocations.touch(found.module, size) {
            wrong(found.module, "Go's list of modules is relocated")?;
        }
        let next = found.module + found.shape.offset(Field::Next) as u64;
        let place = rewritten.read_u64(Svma(next))?;
        let data = (added.data.address, rewritten.segment_bytes(&added.data)?);
        let text = (mapping.units[first].twin, {
            let unit = &mapping.units[last];
            unit.twin + unit.copy.len() as u64
        });
        let mut new = New { data, place, found: &found, text, count: count as usize, wrong: &wrong };
        let (pctab, functions) = new.module()?;
        new.index(functions, &mapping.units[first..=last])?;
        Some(Self { original: found, pctab, functions, data, of_unit })
    }

    /// Where the one word of data lies that is changed, in the file.
    pub(crate) fn link(&self, original: &Elf<'_>) -> Option<(u64, u64)> {
        let next = self.original.module + self.original.shape.offset(Field::Next) as u64;
        original.file_offset(Svma(next)).map(|place| (place.0, 8))
    }

    pub(crate) fn is_of_unit(&self, unit: usize) -> bool {
        self.of_unit[unit].is_some()
    }

    /// Where functions of Go begin and end, ascending.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.original.functions.iter().map(|function| (function.start, function.start + function.size))
    }

    /// The records of a unit, the original's and its twin's.
    fn records(&self, unit: usize, start: u64) -> Option<(&Function<'d>, &'d [u8])> {
        let at = number(self.functions, 8 * self.of_unit[unit]? as usize + 4, 4)? as usize;
        let record = whole_record(self.functions.get(at..)?, self.original.shape)?;
        Some((self.original.function(start)?, record))
    }
}

/// The new module while it is looked at.
struct New<'g, 'd> {
    data: (u64, &'d [u8]),
    place: u64,
    found: &'g Original<'d>,
    text: (u64, u64),
    count: usize,
    wrong: &'g dyn Fn(u64, &str) -> Option<()>,
}

impl<'d> New<'_, 'd> {
    fn wrong<T>(&self, at: u64, what: &str) -> Option<T> {
        (self.wrong)(at, what);
        None
    }

    /// Bytes of the new data.
    fn bytes(&self, address: u64, size: u64) -> Option<&'d [u8]> {
        let at = address.checked_sub(self.data.0)?;
        self.data.1.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(size)?).ok()?)
    }

    /// Field by field; the pctab and the functions.
    fn module(&mut self) -> Option<(&'d [u8], &'d [u8])> {
        let shape = self.found.shape;
        let Some(bytes) = self.bytes(self.place, shape.size() as u64).filter(|_| self.place % 8 == 0) else {
            return self.wrong(self.place, "Go's list of modules does not continue in the new data");
        };
        let word = |at| number(bytes, at, 8).unwrap_or(0);
        // A slice of the new data: as long as it can be.
        let slice = |at: usize, of: u64| {
            let size = word(at + 8).checked_mul(of).filter(|_| word(at + 8) == word(at + 16))?;
            self.bytes(word(at), size)
        };
        let nothing = word(shape.offset(Field::Map));
        let (mut pctab, mut functions) = (None, None);
        for (field, at, size) in shape.fields() {
            let (old, new) = (&self.found.bytes[at..at + size], &bytes[at..at + size]);
            let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
            let is_right = match field {
                Field::Kept => old == new,
                Field::Zero | Field::Unset | Field::HasMain | Field::Next => is_zero(new),
                Field::Header => self.header(word(at)),
                Field::Pctab => {
                    pctab = slice(at, 1);
                    pctab.is_some()
                }
                Field::Functions => {
                    functions = slice(at, 1).filter(|_| word(at) % 4 == 0);
                    functions.is_some()
                }
                Field::Index => {
                    let functions = shape.offset(Field::Functions);
                    word(at) == word(functions)
                        && word(at + 8) == self.count as u64 + 1
                        && word(at + 16) == word(at + 8)
                        && slice(at, 8).is_some_and(|index| index.len() as u64 <= word(functions + 8))
                }
                Field::Find => self.find(word(at)),
                Field::From => word(at) == self.text.0,
                Field::To => word(at) == self.text.1,
                Field::Empty => (at..at + size).step_by(8).all(|at| word(at) == nothing),
                Field::Mask => word(at) == 0 && word(at + 8) == nothing,
                Field::Map => self.bytes(nothing, EMPTY).is_some_and(is_zero),
            };
            if !is_right {
                let what = format!("the module of Go's twins has a wrong field: {field:?}, at {at}");
                return self.wrong(self.place + at as u64, &what);
            }
        }
        pctab.zip(functions)
    }

    /// The original's head, but for the number of functions and, where that is told, the place of
    /// the code.
    fn header(&self, place: u64) -> bool {
        let Some(new) = self.bytes(place, HEADER as u64).filter(|_| place % 8 == 0) else { return false };
        let old = self.found.header;
        let begin = if number(old, 24, 8) == Some(0) { 0 } else { self.text.0 };
        new[..8] == old[..8]
            && number(new, 8, 8) == Some(self.count as u64)
            && new[16..24] == old[16..24]
            && number(new, 24, 8) == Some(begin)
            && new[32..] == old[32..]
    }

    /// There is a bucket for every byte of the twins.
    fn find(&self, place: u64) -> bool {
        place % 4 == 0 && self.bytes(place, self.buckets() * (4 + PARTS)).is_some()
    }
    fn buckets(&self) -> u64 {
        (self.text.1 - self.text.0).div_ceil(BUCKET)
    }

    /// The list of functions is that of the twins, and the way to it never leads beyond the
    /// function that is looked for.
    fn index(&mut self, functions: &[u8], units: &[crate::container::mapping::Unit<'_>]) -> Option<()> {
        let entry = |nth: usize| number(functions, 8 * nth, 4).unwrap_or(u64::MAX);
        for (nth, unit) in units.iter().enumerate() {
            if entry(nth) != unit.twin - self.text.0 {
                return self.wrong(unit.twin, "Go's function table does not list this twin at its place");
            }
            let record = number(functions, 8 * nth + 4, 4).and_then(|at| functions.get(at as usize..));
            if record.and_then(|record| number(record, 0, 4)) != Some(entry(nth)) {
                return self.wrong(unit.twin, "the record of a twin has another start address");
            }
        }
        if entry(self.count) != self.text.1 - self.text.0 {
            return self.wrong(self.text.1, "Go's function table does not end with the last twin");
        }
        let place = self.found.shape.offset(Field::Find) as u64;
        let place = self.bytes(self.place + place, 8).and_then(|word| number(word, 0, 8))?;
        let find = self.bytes(place, self.buckets() * (4 + PARTS))?;
        for bucket in 0..self.buckets() {
            let at = (bucket * (4 + PARTS)) as usize;
            for part in 0..PARTS {
                let first = number(find, at, 4)?;
                let number = (first + u64::from(find[at + 4 + part as usize])) as usize;
                let code = bucket * BUCKET + part * (BUCKET / PARTS);
                // From there on, the runtime goes up to the last function that does not begin
                // behind what it looks for.
                if code < self.text.1 - self.text.0 && (number >= self.count || entry(number) > code) {
                    return self
                        .wrong(self.text.0 + code, "Go's lookup of this code starts behind its function");
                }
            }
        }
        Some(())
    }
}

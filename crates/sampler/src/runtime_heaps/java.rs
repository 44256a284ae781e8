//! The heap of Java's virtual machine (`HotSpot`).
//!
//! The machine exports a table of its own variables and fields, made for debuggers
//! (`gHotSpotVMStructs`). By that its heap is found:
//!
//! ```text
//! Universe::_collectedHeap → CollectedHeap::_reserved: MemRegion::_start, MemRegion::_word_size
//! ```

use crate::files;
use crate::memory::{Read, half, word};
use image::Image;
use insight::samples::Mapped;
use std::collections::HashMap;
use std::ops::Range;
use units::FileOffset;

/// A table that cannot be read this many times is none.
const MOST_TRIES: u32 = 64;

/// A Java virtual machine.
#[derive(Debug)]
pub(super) struct Java {
    /// The address of the variable that says where its table is.
    table: u64,
    /// What the table says, once it is there.
    fields: Option<Fields>,
    tries: u32,
}

/// Where in a machine's file the address of its table is.
pub(super) fn table_of(mapped: &Mapped) -> Option<FileOffset> {
    let file = files::partly(mapped, &[".dynsym", ".dynstr"])?;
    let image = Image::parse(file.data()).ok()?;
    image.file_offset(files::exported(&image, "gHotSpotVMStructs")?)
}

impl Java {
    pub(super) fn new(table: u64) -> Self {
        Self { table, fields: None, tries: 0 }
    }

    /// Whether it may tell its heap later.
    pub(super) fn is_worth_asking(&self) -> bool {
        self.tries < MOST_TRIES
    }

    /// Its heap, if it has one by now.
    pub(super) fn heap(&mut self, read: Read<'_>) -> Option<Range<u64>> {
        if self.fields.is_none() {
            // It is zero until the file is linked.
            let table = word(self.table, 0, read).filter(|table| *table > 0)?;
            self.tries += 1;
            self.fields = Fields::read(table, read);
        }
        let fields = self.fields?;
        let heap = word(fields.heap, 0, read).filter(|heap| *heap > 0)?;
        let region = heap.checked_add(fields.reserved)?;
        let (start, words) = (word(region, fields.start, read)?, word(region, fields.words, read)?);
        let end = words.checked_mul(8).and_then(|bytes| start.checked_add(bytes))?;
        (start > 0 && end > start).then_some(start..end)
    }
}

/// A row of the table: names of a type and of its field, the field's type, whether it is of the
/// type itself, where it is in an object, or its address.
const ROW: usize = 48;
const FIELD: usize = 8;
const OFFSET: usize = 32;
const ADDRESS: usize = 40;
const MOST_ROWS: usize = 8 << 10;
const LONGEST_NAME: usize = 32;

/// What is needed of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    /// Address of the variable.
    heap: u64,
    /// Places in objects.
    reserved: u64,
    start: u64,
    words: u64,
}

impl Fields {
    fn read(table: u64, read: Read<'_>) -> Option<Self> {
        let mut names: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut found = [None; 4];
        for number in 0..MOST_ROWS {
            let mut row = [0; ROW];
            read(table.checked_add((number * ROW) as u64)?, &mut row)?;
            let at = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap_or_default());
            if at(0) == 0 {
                break;
            }
            let kind = names.entry(at(0)).or_insert_with(|| name(at(0), read)).clone();
            let (which, from) = match &kind[..] {
                b"Universe" if name(at(FIELD), read) == b"_collectedHeap" => (0, ADDRESS),
                b"CollectedHeap" if name(at(FIELD), read) == b"_reserved" => (1, OFFSET),
                b"MemRegion" if name(at(FIELD), read) == b"_start" => (2, OFFSET),
                b"MemRegion" if name(at(FIELD), read) == b"_word_size" => (3, OFFSET),
                _ => continue,
            };
            found[which] = Some(at(from));
            if let [Some(heap), Some(reserved), Some(start), Some(words)] = found {
                return Some(Self { heap, reserved, start, words });
            }
        }
        None
    }
}

/// A name of the table, as far as it is worth comparing.
fn name(at: u64, read: Read<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < LONGEST_NAME {
        let Some(four) = half(at, text.len() as u64, read) else { break };
        let bytes = four.to_le_bytes();
        let end = bytes.iter().position(|&byte| byte == 0);
        text.extend(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that holds a table with these rows, and its names.
    fn table(rows: &[(&str, &str, u64, u64)]) -> Vec<u8> {
        const NAMES: usize = 1 << 10;
        let mut memory = vec![0; NAMES];
        for (number, (kind, field, offset, address)) in rows.iter().enumerate() {
            let mut named = |name: &str| {
                let at = memory.len() as u64;
                memory.extend(name.bytes().chain([0; 8]));
                at
            };
            let words = [named(kind), named(field), 0, 0, *offset, *address];
            for (index, word) in words.iter().enumerate() {
                memory[number * ROW + 8 * index..][..8].copy_from_slice(&word.to_le_bytes());
            }
        }
        memory
    }

    fn read(memory: &[u8]) -> Option<Fields> {
        let mut read = |at: u64, bytes: &mut [u8]| {
            bytes.copy_from_slice(memory.get(at as usize..at as usize + bytes.len())?);
            Some(())
        };
        Fields::read(0, &mut read)
    }

    #[test]
    fn the_table_tells_where_the_heap_is() {
        let rows = [
            ("Universe", "_narrow_oop", 9, 9),
            ("MemRegion", "_start", 0, 0),
            ("MemRegion", "_word_size", 8, 0),
            ("CollectedHeap", "_reserved", 24, 0),
            ("Universe", "_collectedHeap", 0, 0x5000),
        ];
        let fields = Fields { heap: 0x5000, reserved: 24, start: 0, words: 8 };
        let whole = table(&rows);
        assert_eq!(read(&whole), Some(fields));
        assert_eq!(read(&table(&rows[..4])), None, "a machine that does not tell it");
        for length in (0..whole.len()).step_by(7) {
            let _ = read(&whole[..length]);
        }
    }
}

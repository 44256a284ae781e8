//! Where a runtime keeps the objects that it allocates itself: one range of memory that it asks
//! the kernel for, so that no call of `malloc` tells of them.
//!
//! Java's virtual machine (HotSpot) exports a table of its own variables and fields, made for
//! debuggers (`gHotSpotVMStructs`). By that its heap is found:
//!
//! ```text
//! Universe::_collectedHeap → CollectedHeap::_reserved: MemRegion::_start, MemRegion::_word_size
//! ```
//!
//! V8 tells nothing of the kind. Its heap is made of pages of 256 KiB, each of them at a multiple
//! of that, and begun by a word of its own; memory of others has no reason to be so. Where the
//! program is started by the profiler, the calls that map these pages are known and tell it
//! (`insight::data::site_names`); of one that runs already, its mappings do.

use crate::files;
use crate::memory::{Read, half, word};
use crate::target::mappings_of;
use image::Image;
use insight::samples::{Mapped, RuntimeHeap, Tally};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use units::FileOffset;

/// Runtimes whose heap is not known yet, by process.
#[derive(Debug, Default)]
pub(crate) struct RuntimeHeaps {
    java: BTreeMap<u32, Java>,
    /// Where the table of itself is named in the file of a machine.
    tables: HashMap<Vec<u8>, Option<FileOffset>>,
    v8: BTreeSet<u32>,
}

/// A Java virtual machine.
#[derive(Debug)]
struct Java {
    /// The address of the variable that says where its table is.
    table: u64,
    /// What the table says, once it is there.
    fields: Option<Fields>,
}

/// V8's pages.
const PAGE: u64 = 256 << 10;
/// What such a page begins with is a size or flags.
const MOST_FLAGS: u64 = 1 << 40;

impl RuntimeHeaps {
    /// A process has mapped a file, from this place in it on.
    pub(crate) fn mapped(&mut self, process: u32, mapped: &Mapped, (start, bytes, offset): (u64, u64, u64)) {
        let name = mapped.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        match name {
            b"libjvm.so" => {
                let table = self.tables.entry(mapped.name.clone()).or_insert_with(|| table_of(mapped));
                let into = table.and_then(|place| place.0.checked_sub(offset)).filter(|into| *into < bytes);
                if let Some(into) = into {
                    self.java.insert(process, Java { table: start + into, fields: None });
                }
            }
            b"node" | b"nodejs" | b"libnode.so" => drop(self.v8.insert(process)),
            _ => {}
        }
    }

    /// The process has executed another program, or ended.
    pub(crate) fn forget(&mut self, process: u32) {
        self.java.remove(&process);
        self.v8.remove(&process);
    }

    /// Asks machines for their heaps; each has one soon after it began.
    pub(crate) fn look(&mut self, tally: &mut Tally) {
        self.java.retain(|&process, java| {
            let Some(heap) = java.heap(process) else { return true };
            tally.processes.entry(process).or_default().heaps.push(heap);
            false
        });
    }

    /// Notes which memory V8 has now. Heaps of a process that has ended are not found.
    pub(crate) fn look_at_v8(&mut self, tally: &mut Tally) {
        for &process in &self.v8 {
            let Ok(memory) = File::open(format!("/proc/{process}/mem")) else { continue };
            let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
            let mappings = mappings_of(process).unwrap_or_default();
            let heaps = &mut tally.processes.entry(process).or_default().heaps;
            for mapping in
                mappings.iter().filter(|mapping| mapping.name == b"//anon" || mapping.name.is_empty())
            {
                if mapping.start % PAGE == 0 && is_begun(mapping.start, &mut read) {
                    heaps.push(RuntimeHeap::of_v8(mapping.start, mapping.start + mapping.bytes));
                }
            }
        }
    }
}

/// Whether a page of V8's begins here.
fn is_begun(start: u64, read: Read<'_>) -> bool {
    word(start, read).is_some_and(|word| (1..MOST_FLAGS).contains(&word))
}

/// Where in a machine's file the address of its table is.
fn table_of(mapped: &Mapped) -> Option<FileOffset> {
    let file = files::partly(mapped, &[".dynsym", ".dynstr"])?;
    let image = Image::parse(file.data()).ok()?;
    image.file_offset(files::exported(&image, "gHotSpotVMStructs")?)
}

/// A row of the table: names of a type and of its field, the field's type, whether it is of the
/// type itself, where it is in an object, or its address.
const ROW: usize = 48;
const FIELD: usize = 8;
const OFFSET: usize = 32;
const ADDRESS: usize = 40;
const MOST_ROWS: usize = 16 << 10;
const LONGEST_NAME: usize = 32;

impl Java {
    /// Its heap, if it has one by now.
    fn heap(&mut self, process: u32) -> Option<RuntimeHeap> {
        let memory = File::open(format!("/proc/{process}/mem")).ok()?;
        let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
        if self.fields.is_none() {
            self.fields = Fields::read(word(self.table, &mut read)?, &mut read);
        }
        let fields = self.fields?;
        let heap = word(fields.heap, &mut read).filter(|heap| *heap > 0)?;
        let region = heap.checked_add(fields.reserved)?;
        let (start, words) =
            (word(region + fields.start, &mut read)?, word(region + fields.words, &mut read)?);
        let end = words.checked_mul(8).and_then(|bytes| start.checked_add(bytes))?;
        (start > 0 && end > start).then(|| RuntimeHeap::of_java(start, end))
    }
}

/// What is needed of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        let (mut fields, mut found) = (Self::default(), 0);
        for number in 0..MOST_ROWS {
            let mut row = [0; ROW];
            read(table + (number * ROW) as u64, &mut row)?;
            let at = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap_or_default());
            if at(0) == 0 || found == 4 {
                break;
            }
            let kind = names.entry(at(0)).or_insert_with(|| name(at(0), read)).clone();
            let (place, from) = match &kind[..] {
                b"Universe" if name(at(FIELD), read) == b"_collectedHeap" => (&mut fields.heap, ADDRESS),
                b"CollectedHeap" if name(at(FIELD), read) == b"_reserved" => (&mut fields.reserved, OFFSET),
                b"MemRegion" if name(at(FIELD), read) == b"_start" => (&mut fields.start, OFFSET),
                b"MemRegion" if name(at(FIELD), read) == b"_word_size" => (&mut fields.words, OFFSET),
                _ => continue,
            };
            *place = at(from);
            found += 1;
        }
        (found == 4).then_some(fields)
    }
}

/// A name of the table, as far as it is worth comparing.
fn name(at: u64, read: Read<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < LONGEST_NAME {
        let Some(four) = half(at + text.len() as u64, read) else { break };
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

    #[test]
    fn pages_of_v8_have_a_word_at_their_begin() {
        let is_page = |first: u64| {
            let mut read = |_: u64, bytes: &mut [u8]| {
                bytes.copy_from_slice(&first.to_le_bytes());
                Some(())
            };
            is_begun(PAGE, &mut read)
        };
        assert_eq!([0, PAGE, 0x18, MOST_FLAGS, u64::MAX].map(is_page), [false, true, true, false, false]);
        assert!(!is_begun(PAGE, &mut |_, _| None));
    }
}

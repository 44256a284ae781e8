//! Correct rewritten programs, and ways to find things in them. Reads the mapping on its own: a
//! mistake in the checker's reader must not hide in its tests.

use image::Image;
use std::process::Command;
use units::Svma;

/// A program and its correct rewriting.
pub(crate) struct Specimen {
    pub(crate) name: String,
    pub(crate) original: Vec<u8>,
    pub(crate) rewritten: Vec<u8>,
    pub(crate) units: Vec<Unit>,
    pub(crate) tables: Vec<Table>,
    pub(crate) map: usize,
    pub(crate) note: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// File offset of its record in the mapping.
    pub(crate) record: usize,
    pub(crate) start: u64,
    pub(crate) twin: u64,
    pub(crate) size: u32,
    pub(crate) twin_size: u32,
    pub(crate) patch: Option<u32>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// File offset in the mapping.
    pub(crate) record: usize,
    /// Addresses of original and copy.
    pub(crate) at: u64,
    pub(crate) copy: u64,
    pub(crate) len: usize,
    pub(crate) twin_len: usize,
    pub(crate) escape: bool,
    pub(crate) gap: u64,
    /// Bytes of inserted code before the copy.
    pub(crate) inserted: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) record: usize,
    pub(crate) load: u64,
    pub(crate) twin: u64,
    pub(crate) count: usize,
    pub(crate) entry: usize,
}

/// Little-endian numbers.
pub(crate) fn get(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut value = [0; 8];
    value[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(value)
}
pub(crate) fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}
/// Adds to a number in place.
pub(crate) fn add(bytes: &mut [u8], at: usize, size: usize, delta: i64) {
    let value = get(bytes, at, size).wrapping_add_signed(delta);
    put(bytes, at, size, value);
}

fn uleb(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

impl Specimen {
    pub(crate) fn of(name: &str, original: Vec<u8>, mode: twin::Mode) -> Self {
        let rewritten = twin::rewrite(&original, None, mode).expect("a program that can be rewritten").bytes;
        let sign = [b"Gleaner\0", &twin_format::VERSION.to_le_bytes()[..]].concat();
        let note = find(&rewritten, &sign).expect("a note") + 8;
        let map = get(&rewritten, note + 8, 8) as usize;
        let mut specimen =
            Self { name: name.into(), original, rewritten, units: Vec::new(), tables: Vec::new(), map, note };
        specimen.read();
        specimen
    }

    fn read(&mut self) {
        let (bytes, map) = (&self.rewritten, self.map);
        for index in 0..get(bytes, map + 16, 8) as usize {
            let record = map + get(bytes, map + 32, 8) as usize + 40 * index;
            let mut unit = Unit {
                record,
                start: get(bytes, record, 8),
                twin: get(bytes, record + 8, 8),
                size: get(bytes, record + 24, 4) as u32,
                twin_size: get(bytes, record + 28, 4) as u32,
                patch: Some(get(bytes, record + 36, 4) as u32).filter(|&patch| patch != u32::MAX),
                items: Vec::new(),
            };
            let mut stream = map + get(bytes, record + 16, 8) as usize;
            let (mut original, mut place) = (unit.start, unit.twin);
            let count = get(bytes, record + 32, 4);
            while (unit.items.len() as u64) < count {
                let item = stream;
                let head = bytes[stream];
                stream += 1;
                let mut number = |bit: u8| if head & bit != 0 { uleb(bytes, &mut stream) } else { 0 };
                let (gap, inserted, resized) = (number(0x10), number(0x20), number(0x40));
                let len = usize::from(head & 15);
                let twin_len = if head & 0x40 != 0 { resized as usize } else { len };
                original += gap >> 6;
                if gap > 0 {
                    place += gap & 63;
                }
                place += inserted;
                unit.items.push(Item {
                    record: item,
                    at: original,
                    copy: place,
                    len,
                    twin_len,
                    escape: head & 0x80 != 0,
                    gap: gap >> 6,
                    inserted: inserted as usize,
                });
                original += len as u64;
                place += twin_len as u64 + if head & 0x80 != 0 { 5 } else { 0 };
            }
            self.units.push(unit);
        }
        let tables = map + get(bytes, map + 40, 8) as usize;
        for index in 0..get(bytes, map + 24, 8) as usize {
            let record = tables + 48 * index;
            self.tables.push(Table {
                record,
                load: get(bytes, record + 8, 8),
                twin: get(bytes, record + 24, 8),
                count: get(bytes, record + 40, 4) as usize,
                entry: get(bytes, record + 44, 4) as usize,
            });
        }
    }

    /// The file offset of an address in the rewritten file; the same as in the original for the
    /// original's addresses.
    pub(crate) fn offset(&self, address: u64) -> usize {
        let image = Image::parse(&self.rewritten).expect("a sound file");
        image.file_offset(Svma(address)).expect("an address of the file").0 as usize
    }
    /// File offset and size of a section of the rewritten file.
    pub(crate) fn section(&self, name: &str) -> Option<(usize, usize)> {
        let image = Image::parse(&self.rewritten).expect("a sound file");
        image
            .section(name)
            .map(|section| (section.offset as usize, section.size as usize))
            .filter(|&(_, size)| size > 0)
    }
    /// File offset of the nth program header of a kind in the rewritten file.
    pub(crate) fn segment(&self, kind: u32, nth: usize) -> Option<usize> {
        let image = Image::parse(&self.rewritten).expect("a sound file");
        let mut found = image.segments().iter().enumerate().filter(|(_, segment)| segment.kind == kind);
        found.nth(nth).map(|(index, _)| image.header().program_headers.0 as usize + 56 * index)
    }
    /// The two segments that rewriting added: of data, of code.
    pub(crate) fn added(&self) -> (usize, usize) {
        let image = Image::parse(&self.original).expect("a sound file");
        let loads = image.loads().len();
        (self.segment(1, loads).expect("new data"), self.segment(1, loads + 1).expect("new code"))
    }
    pub(crate) fn items(&self) -> impl Iterator<Item = (&Unit, &Item)> {
        self.units.iter().flat_map(|unit| unit.items.iter().map(move |item| (unit, item)))
    }
    /// Original and copy of an instruction.
    pub(crate) fn pair(&self, item: &Item) -> (&[u8], &[u8]) {
        let (old, new) = (self.offset(item.at), self.offset(item.copy));
        (&self.original[old..old + item.len], &self.rewritten[new..new + item.twin_len])
    }
    /// The file offset of the copy of the first instruction whose original and copy are such.
    pub(crate) fn copy(&self, wanted: impl Fn(&[u8], &[u8]) -> bool) -> Option<(usize, Item)> {
        let found = self.items().find(|(_, item)| {
            let (old, new) = self.pair(item);
            wanted(old, new)
        });
        found.map(|(_, item)| (self.offset(item.copy), *item))
    }
    /// Where a function begins.
    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        let image = Image::parse(&self.original).expect("a sound file");
        let symbols = image::elf::symbols::Symbols::of(&image, None);
        symbols.all().iter().find(|symbol| symbol.name == name.as_bytes()).map(|symbol| symbol.address.0)
    }
    /// The first unit with a patch, but not the very first: its neighbours are of use.
    pub(crate) fn patched(&self) -> Option<(usize, &Unit)> {
        let unit = self.units.iter().skip(1).find(|unit| unit.patch.is_some())?;
        Some((self.offset(unit.start) + unit.patch? as usize, unit))
    }
    /// File offsets of the entries of the new unwind table: of each description of a twin, in
    /// order.
    pub(crate) fn descriptions(&self) -> Vec<usize> {
        let all = |bytes: &[u8]| {
            let image = Image::parse(bytes).expect("a sound file");
            let section = image.section(".eh_frame").expect("an unwind table");
            let (start, size) = (section.offset as usize, section.size as usize);
            let mut found = Vec::new();
            let mut at = start;
            while at + 4 < start + size {
                let length = get(bytes, at, 4) as usize;
                if length != 0 && get(bytes, at + 4, 4) != 0 {
                    found.push(at);
                }
                at += 4 + length;
            }
            found
        };
        all(&self.rewritten).split_off(all(&self.original).len())
    }
}

pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Compiles one of the programs that try what rewriting might break.
pub(crate) fn compile(source: &str, options: &[&str]) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/rewriter/");
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("program");
    let compiler = if source.contains(".cpp") { "g++" } else { "gcc" };
    let mut command = Command::new(compiler);
    command.arg(format!("{root}{source}")).args(options).arg("-pthread").arg("-o").arg(&to);
    let done = command.output().expect("a compiler");
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was compiled")
}

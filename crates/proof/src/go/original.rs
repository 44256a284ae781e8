//! Reading what Go's linker wrote for Go's runtime, as the runtime reads it.

use super::shape::{Field, Shape};
use crate::container::elf::Elf;
use crate::container::read::{Reader, number};
use units::Svma;

/// The tables of the original.
pub(crate) struct Original<'d> {
    pub(crate) shape: Shape,
    /// The address and the bytes of its `moduledata`.
    pub(crate) module: u64,
    pub(crate) bytes: &'d [u8],
    pub(crate) header: &'d [u8],
    pub(crate) pctab: &'d [u8],
    pub(crate) functions_data: u64,
    /// Where its code begins and ends.
    pub(crate) range: (u64, u64),
    /// Ascending.
    pub(crate) functions: Vec<Function<'d>>,
}

/// A function whose extent is known by its table of frames.
#[derive(Clone, Copy)]
pub(crate) struct Function<'d> {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) record: &'d [u8],
    /// Of assembly, or with something else that the runtime minds.
    pub(crate) is_special: bool,
}

/// The size of the head of all tables.
pub(crate) const HEADER: usize = 72;
const BUILD: &[u8] = b"\xff Go buildinf:";

impl<'d> Original<'d> {
    /// `None` of what has nothing of Go; why it is not understood, if so.
    pub(crate) fn of(image: &Elf<'d>) -> Result<Option<Self>, &'static str> {
        if !is_marked(image) {
            return Ok(None);
        }
        if image.is_position_independent() {
            return Err("a Go program whose tables are relocated");
        }
        let shape = version(image).and_then(Shape::of).ok_or("a Go program of an unknown version")?;
        let (module, head) = one_module(image, shape).ok_or("a Go program without the one module")?;
        Self::read(image, shape, module, head).map(Some).ok_or("a Go program with tables of an unknown form")
    }

    fn read(image: &Elf<'d>, shape: Shape, module: u64, head: u64) -> Option<Self> {
        let bytes = image.bytes_at(Svma(module), shape.size())?;
        let word = |at| number(bytes, at, 8);
        let constant = |address: u64, size: usize| {
            image.load_at(Svma(address)).filter(|load| !load.is_writable())?;
            image.bytes_at(Svma(address), size)
        };
        let slice = |field| {
            let at = shape.offset(field);
            constant(word(at)?, usize::try_from(word(at + 8)?).ok()?)
        };
        let header = constant(head, HEADER)?;
        let (pctab, functions) = (slice(Field::Pctab)?, slice(Field::Functions)?);
        let index = shape.offset(Field::Index);
        let count = usize::try_from(word(index + 8)?).ok()?.checked_sub(1)?;
        let list = constant(word(index)?, count.checked_mul(8)?.checked_add(4)?)?;
        // What is not what the linker leaves there is none of its modules, or one of several.
        for (field, at, size) in shape.fields() {
            let part = &bytes[at..at + size];
            let is_right = match field {
                Field::Unset | Field::Mask | Field::Map | Field::Next => part.iter().all(|&byte| byte == 0),
                Field::HasMain => part[0] == 1 && part[1] == 0,
                _ => true,
            };
            if !is_right {
                return None;
            }
        }
        // Text in several sections is counted in another way.
        let sections = shape.functions_data() + if shape.minor >= 26 { 16 } else { 8 };
        let text = word(shape.offset(Field::From) + 16)?;
        let from = number(list, 0, 4)?.checked_add(text)?;
        let to = number(list, 8 * count, 4)?.checked_add(text)?;
        let begin = number(header, 24, 8)?;
        if word(sections + 8)? > 1
            || number(header, 8, 8)? != count as u64
            || begin != 0 && begin != text
            || word(shape.offset(Field::From))? != from
            || word(shape.offset(Field::To))? != to
        {
            return None;
        }
        // A program that loads plugins puts them where the twins' module is.
        let names = {
            let at = shape.offset(Field::Header) + 8;
            constant(word(at)?, usize::try_from(word(at + 8)?).ok()?)?
        };
        if names
            .split(|&byte| byte == 0)
            .any(|name| name.ends_with(b"plugin_lastmoduleinit") || name == b"plugin.lastmoduleinit")
        {
            return None;
        }
        let mut found = Self {
            shape,
            module,
            bytes,
            header,
            pctab,
            functions_data: word(shape.functions_data())?,
            range: (from, to),
            functions: Vec::new(),
        };
        let mut last = 0;
        for nth in 0..count {
            let entry = number(list, 8 * nth, 4)?;
            let next = number(list, 8 * nth + 8, 4)?;
            let at = number(list, 8 * nth + 4, 4)? as usize;
            let record = whole_record(functions.get(at..)?, shape)?;
            if entry < last || next < entry || number(record, 0, 4)? != entry {
                return None;
            }
            last = entry;
            let Some(frames) = found.runs(record, 0, (next - entry) as u32) else { continue };
            let size = frames.last().map_or(0, |run| u64::from(run.0));
            let flags = record[shape.record() - 3];
            let has_locals = number(record, shape.record() + 4 * numbered(record) + 4, 4);
            let has_locals = record[shape.record() - 1] > 1 && has_locals != Some(0xffff_ffff);
            found.functions.push(Function {
                start: text + entry,
                size,
                record,
                is_special: flags & 6 != 0 || !has_locals,
            });
        }
        Some(found)
    }

    /// The function that begins at an address.
    pub(crate) fn function(&self, start: u64) -> Option<&Function<'d>> {
        let found = self.functions.binary_search_by_key(&start, |function| function.start).ok()?;
        Some(&self.functions[found])
    }

    /// One of a function's tables as runs; `None` without it, or if it is not for that number of
    /// bytes of code at the most.
    fn runs(&self, record: &[u8], table: usize, most: u32) -> Option<Vec<Run>> {
        runs(self.pctab, place(record, self.shape, table).filter(|&place| place != 0)?, most)
    }
}

/// Where a value ends to hold, and the value.
pub(crate) type Run = (u32, i32);

/// The table at an offset in `pctab`, read as `step` in `runtime/symtab.go` does; it must not go
/// beyond `most` bytes of code.
pub(crate) fn runs(pctab: &[u8], place: u32, most: u32) -> Option<Vec<Run>> {
    let mut reader = Reader::new(pctab, place as usize);
    let mut found = Vec::new();
    let (mut pc, mut value) = (0u32, -1i32);
    loop {
        let change = u32::try_from(reader.uleb()?).ok()?;
        if change == 0 && pc != 0 {
            return Some(found);
        }
        let change = if change & 1 == 1 { !(change >> 1) } else { change >> 1 };
        value = value.wrapping_add(change as i32);
        let by = u32::try_from(reader.uleb()?).ok().filter(|&by| by > 0)?;
        pc = pc.checked_add(by).filter(|&pc| pc <= most)?;
        found.push((pc, value));
    }
}

/// The run that holds at an offset.
pub(crate) fn run_at(runs: &[Run], at: u32) -> Option<Run> {
    runs.get(runs.partition_point(|&(end, _)| end <= at)).copied()
}

/// How many tables a record numbers.
pub(crate) fn numbered(record: &[u8]) -> usize {
    number(record, 28, 4).map_or(0, |count| count as usize)
}

/// Where a record says that a table is: of frames, files, lines, then those that are numbered.
pub(crate) fn place(record: &[u8], shape: Shape, table: usize) -> Option<u32> {
    let at = if table < 3 { 16 + 4 * table } else { shape.record() + 4 * (table - 3) };
    (table < 3 + numbered(record)).then(|| number(record, at, 4).map(|place| place as u32))?
}

/// A record with its lists.
pub(crate) fn whole_record(bytes: &[u8], shape: Shape) -> Option<&[u8]> {
    let more = usize::from(*bytes.get(shape.record() - 1)?);
    let size = numbered(bytes).checked_add(more)?.checked_mul(4)?.checked_add(shape.record())?;
    bytes.get(..size)
}

/// Whether anything says that there is code of Go.
pub(super) fn is_marked(image: &Elf<'_>) -> bool {
    let is_named = |name: &[u8]| {
        name.ends_with(b".gopclntab") || name.starts_with(b".go.") || name == b".note.go.buildid"
    };
    image.sections().iter().any(|section| is_named(section.name))
        || image.notes().any(|(owner, kind, _)| owner == b"Go\0\0" && kind == 4)
}

fn version(image: &Elf<'_>) -> Option<u32> {
    let mut all = Vec::new();
    for load in image.loads().iter().filter(|load| !load.is_executable()) {
        let bytes = image.segment_bytes(load)?;
        let first = (load.address.wrapping_neg() % 16) as usize;
        for found in bytes.get(first..).unwrap_or(&[]).chunks(16).zip((first..).step_by(16)) {
            if !found.0.starts_with(BUILD) || found.0.get(15).is_none_or(|flags| flags & 2 == 0) {
                continue;
            }
            let mut reader = Reader::new(bytes, found.1 + 32);
            let size = usize::try_from(reader.uleb()?).ok()?;
            let rest = reader.bytes(size)?.strip_prefix(b"go1.")?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !matches!(rest.get(digits), None | Some(b'.' | b' ' | b'-')) {
                return None;
            }
            all.push(std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?);
        }
    }
    // Programs in its data may be of another version than it is itself.
    all.dedup();
    <[u32; 1]>::try_from(all).ok().map(|[one]| one)
}

/// The address of the only module there is, and that of its head.
fn one_module(image: &Elf<'_>, shape: Shape) -> Option<(u64, u64)> {
    let mut heads = Vec::new();
    let mut found = None;
    for is_written in [false, true] {
        for load in image.loads().iter().filter(|load| load.is_writable() == is_written) {
            let bytes = image.segment_bytes(load)?;
            let first = (load.address.wrapping_neg() % 8) as usize;
            for (at, word) in (first..).step_by(8).zip(bytes.get(first..).unwrap_or(&[]).chunks_exact(8)) {
                let (address, value) = (load.address + at as u64, number(word, 0, 8)?);
                if !is_written {
                    if value == shape.magic() {
                        heads.push(address);
                    }
                    continue;
                }
                let names = || image.read_u64(Svma(value + 32)).map(|distance| value.wrapping_add(distance));
                if heads.contains(&value) && image.read_u64(Svma(address + 8)) == names() {
                    if found.is_some() {
                        return None;
                    }
                    found = Some((address, value));
                }
            }
        }
    }
    found
}

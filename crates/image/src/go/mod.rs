//! What Go's linker wrote about a program for Go's runtime: where functions are, and of each of
//! their instructions how large the frame is, where pointers lie, which line it comes from. The
//! runtime walks stacks by it, so it must hold for twins, too.
//!
//! It is found by what is in it, so stripped files will do: a head with a known number, exactly one
//! `moduledata` in written memory that points to it, and fields that agree with each other.
//! Anything else is nothing that is understood.

mod checked;
pub mod layout;
pub mod tables;

use crate::Image;
use crate::elf::Segment;
use crate::elf::bytes::{u32_at, u64_at};
use layout::{HEADER_SIZE, Layout, at};
use tables::Run;
use units::Svma;

/// What is known of a Go program.
#[derive(Clone, Debug)]
pub struct Go<'d> {
    pub layout: Layout,
    /// Where its `moduledata` lies, and the bytes of it.
    pub module: Svma,
    pub module_bytes: &'d [u8],
    pub header: &'d [u8],
    pub pctab: &'d [u8],
    /// The base of what functions refer to beside `pclntab`.
    pub functions_data: u64,
    /// What it may compare with a checksum: where each range begins and ends.
    pub checked: Vec<(u64, u64)>,
    /// By ascending start, none empty.
    pub functions: Vec<Function<'d>>,
}

/// One function that the tables know the extent of.
#[derive(Clone, Debug)]
pub struct Function<'d> {
    pub start: Svma,
    pub size: u32,
    /// Its record, lists included.
    pub record: &'d [u8],
    /// The tables that it has, by their places in the pctab: of frames, files and lines, then those
    /// that are numbered; 0 is none.
    pub tables: Vec<u32>,
    /// What else is known, by number, relative to [`Go::functions_data`]; `u32::MAX` is nothing.
    pub data: Vec<u32>,
    /// Where a panic that was recovered from goes on; 0 is nowhere.
    pub deferreturn: u32,
    /// Made by the compiler, so nothing but its tables minds where it lies.
    pub is_compiled: bool,
}

/// Numbers of tables, as they stand in [`Function::tables`].
pub const FIRST_NUMBERED: usize = 3;
pub const UNSAFE_POINTS: usize = FIRST_NUMBERED;
pub const INLINED: usize = FIRST_NUMBERED + 2;
/// Numbers of what else is known.
pub const LOCALS: usize = 1;
pub const INLINING_TREE: usize = 3;

/// There are four today.
const MOST_TABLES: usize = 64;
const SP_WRITE: u8 = 2;
const ASSEMBLY: u8 = 4;

/// Whether a module is a Go program, or has Go code in it, by whatever says so.
pub fn is_go(image: &Image<'_>) -> bool {
    let sections =
        [".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid", ".go.buildinfo", ".go.module"];
    sections.iter().any(|name| image.section(name).is_some())
        || image.notes().any(|(owner, kind, _)| owner == b"Go\0\0" && kind == 4)
}

impl<'d> Go<'d> {
    /// Reads all of it; `None` of what is no Go program, or why it is not understood.
    pub fn of(image: &Image<'d>) -> Result<Option<Self>, &'static str> {
        if !is_go(image) {
            return Ok(None);
        }
        if image.is_position_independent() {
            return Err("is position-independent");
        }
        let minor = version(image).ok_or("does not state its Go version")?;
        let layout = Layout::of(minor).ok_or("was built by an unsupported version of Go")?;
        let mut found = modules(image, layout);
        let (Some((module, header)), None) = (found.next(), found.next()) else {
            return Err("does not have exactly one function table (pclntab)");
        };
        let bytes =
            image.bytes_at(Svma(module), layout.size).ok_or("has its table of modules out of place")?;
        Self::read(image, layout, module, bytes, header).map(Some)
    }

    fn read(
        image: &Image<'d>,
        layout: Layout,
        module: u64,
        bytes: &'d [u8],
        header: u64,
    ) -> Result<Self, &'static str> {
        const ODD: &str = "has a function table of an unknown form";
        let word = |at: usize| u64_at(bytes, at).unwrap_or(0);
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(u8::MAX);
        let slice = |at: usize, of: u64| {
            let (start, len) = (word(at), word(at + 8));
            let size = len.checked_mul(of).filter(|_| word(at + 16) == len)?;
            let is_constant = image.is_constant(Svma(start));
            image.bytes_at(Svma(start), usize::try_from(size).ok()?).filter(|_| is_constant)
        };
        if word(layout.next) != 0 || byte(layout.has_main) != 1 || word(layout.plugin_path + 8) != 0 {
            return Err("is a plugin, or one file of a program in several files");
        }
        if word(layout.hashes + 8) != 0 || word(layout.sections + 8) > 1 {
            return Err("is one file of a program in several files");
        }
        let unset = (layout.mask..layout.next).step_by(8).all(|at| word(at) == 0);
        let head = image.bytes_at(Svma(header), HEADER_SIZE).ok_or(ODD)?;
        let (names, pctab, functions, index) =
            (slice(at::NAMES, 1), slice(at::PCTAB, 1), slice(at::FUNCTIONS, 1), slice(at::INDEX, 8));
        let (Some(names), Some(pctab), Some(functions)) = (names, pctab, functions) else { return Err(ODD) };
        let count =
            usize::try_from(word(at::INDEX + 8)).ok().and_then(|len| len.checked_sub(1)).ok_or(ODD)?;
        // The last entry is the end of the last function, and half of one.
        let index = index.or_else(|| image.bytes_at(Svma(word(at::INDEX)), 8 * count + 4)).ok_or(ODD)?;
        let text = word(at::TEXT);
        let entry = |nth: usize| u32_at(index, 8 * nth).map(u64::from);
        let first = entry(0).ok_or(ODD)?;
        let last = entry(count).ok_or(ODD)?;
        let start = u64_at(head, 24).unwrap_or(0);
        if !unset
            || byte(layout.bad) != 0
            || u64_at(head, 8) != Some(count as u64)
            || start != 0 && start != text
            || word(at::MIN_PC) != text.wrapping_add(first)
            || word(at::MAX_PC) != text.wrapping_add(last)
            || text > word(at::MIN_PC)
            || text > 1 << 47
            || !image.is_constant(Svma(header))
        {
            return Err(ODD);
        }
        // Plugins put themselves behind the last module that the linker knew of.
        if [&b"plugin.lastmoduleinit\0"[..], b"runtime.plugin_lastmoduleinit\0"]
            .iter()
            .any(|name| holds(names, name))
        {
            return Err("may load plugins");
        }
        let checked = checked::ranges(image).ok_or("has what it checks at its start out of place")?;
        let link = module + layout.next as u64;
        if checked.iter().any(|range| range.0 < link + 8 && link < range.1) {
            return Err("has its table of modules among what it checks at its start");
        }
        let mut go = Self {
            layout,
            module: Svma(module),
            module_bytes: bytes,
            header: head,
            pctab,
            functions_data: word(layout.functions_data),
            checked,
            functions: Vec::new(),
        };
        let mut reached = 0;
        for nth in 0..count {
            let (Some(from), Some(to), Some(place)) =
                (entry(nth), entry(nth + 1), u32_at(index, 8 * nth + 4))
            else {
                return Err(ODD);
            };
            if from < reached || to < from {
                return Err(ODD);
            }
            reached = from;
            let record = functions.get(place as usize..).ok_or(ODD)?;
            if u32_at(record, 0).map(u64::from) != Some(from) {
                return Err(ODD);
            }
            let function = go.function(text + from, to - from, record).ok_or(ODD)?;
            go.functions.extend((function.size > 0).then_some(function));
        }
        Ok(go)
    }

    /// Of what has no extent, of size 0: marks that the linker leaves in the code.
    fn function(&self, start: u64, extent: u64, record: &'d [u8]) -> Option<Function<'d>> {
        let head = self.layout.record;
        let word = |at: usize| u32_at(record, at);
        let flags = *record.get(head - 3)?;
        let (tables, data) = (word(28)? as usize, usize::from(*record.get(head - 1)?));
        if tables > MOST_TABLES {
            return None;
        }
        let size = head + 4 * (tables + data);
        let record = record.get(..size)?;
        let places = [16, 20, 24].into_iter().chain((0..tables).map(|nth| head + 4 * nth));
        let mut function = Function {
            start: Svma(start),
            size: u32::try_from(extent).ok()?,
            record,
            tables: places.map(|at| u32_at(record, at)).collect::<Option<_>>()?,
            data: (0..data).map(|nth| u32_at(record, head + 4 * (tables + nth))).collect::<Option<_>>()?,
            deferreturn: word(12)?,
            is_compiled: flags & (SP_WRITE | ASSEMBLY) == 0,
        };
        let frames = self.runs(&function, 0).unwrap_or_default();
        function.size = frames.last().map_or(0, |run| run.end);
        function.is_compiled &= function.data.get(LOCALS).is_some_and(|&data| data != u32::MAX);
        Some(function)
    }

    /// The runs of one of a function's tables, by number; `None` if it has none such, or none that
    /// can be read.
    pub fn runs(&self, function: &Function<'_>, table: usize) -> Option<Vec<Run>> {
        let place = *function.tables.get(table).filter(|&&place| place != 0)?;
        tables::read(self.pctab.get(place as usize..)?, function.size)
    }

    /// The function that holds an address.
    pub fn function_at(&self, address: Svma) -> Option<&Function<'d>> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions[..after].last()?;
        (address.0 - function.start.0 < u64::from(function.size)).then_some(function)
    }

    /// A function's inlining tree, as bytes; empty without one. `None` if it cannot be read.
    pub fn inlining_tree(&self, image: &Image<'d>, function: &Function<'_>) -> Option<&'d [u8]> {
        let Some(&place) = function.data.get(INLINING_TREE).filter(|&&place| place != u32::MAX) else {
            return Some(&[]);
        };
        let Some(runs) = self.runs(function, INLINED) else { return Some(&[]) };
        let address = Svma(self.functions_data.checked_add(u64::from(place))?);
        let all = image.bytes_from(address).filter(|_| image.is_constant(address))?;
        let mut most = runs.iter().map(|run| run.value).max().unwrap_or(-1);
        // No call is inlined but for its instructions, or those of what is inlined in it.
        let most_rows = i64::from(function.size) * 4 + 64;
        let mut row = 0;
        // Older ones name their parents by number.
        while self.layout.inlined == 20 && row <= most && i64::from(row) <= most_rows {
            let parent = u32_at(all, row as usize * self.layout.inlined)? as u16 as i16;
            most = most.max(i32::from(parent));
            row += 1;
        }
        let rows = i64::from(most) + 1;
        all.get(..usize::try_from(rows).ok().filter(|_| rows <= most_rows)? * self.layout.inlined)
    }
}

/// The version as the linker wrote it: the 19 of "go1.19.8". A file that contains other programs in
/// its data may have several; if they differ, its own is not known.
fn version(image: &Image<'_>) -> Option<u32> {
    const MAGIC: &[u8] = b"\xff Go buildinf:";
    let is_inline =
        |found: &&[u8]| found.starts_with(MAGIC) && found.get(15).is_some_and(|&flags| flags & 2 != 0);
    let pieces = image.loads().iter().filter(|load| !load.is_executable());
    let places =
        pieces.filter_map(|load| Some((load, image.segment_bytes(load)?))).flat_map(|(load, bytes)| {
            let skew = (load.address.wrapping_neg() & 15) as usize;
            (skew..bytes.len()).step_by(16).map(move |at| &bytes[at..])
        });
    let mut told = places.filter(is_inline).map(minor);
    let first = told.next()??;
    told.all(|other| other == Some(first)).then_some(first)
}

/// Of a version with its head, as it lies in memory.
fn minor(found: &[u8]) -> Option<u32> {
    let length = usize::from(*found.get(32)?);
    let text = std::str::from_utf8(found.get(33..33 + length).filter(|_| length < 128)?).ok()?;
    let rest = text.strip_prefix("go1.")?;
    let digits = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
    // Release candidates and development versions are no versions.
    rest[digits..].chars().next().is_none_or(|next| matches!(next, '.' | ' ' | '-')).then_some(())?;
    rest[..digits].parse().ok()
}

/// Every place in written memory that may be a `moduledata`, and the address of the head that it
/// points to.
fn modules<'a>(image: &'a Image<'_>, layout: Layout) -> impl Iterator<Item = (u64, u64)> + 'a {
    let words = |load: &'a Segment| {
        let bytes = image.segment_bytes(load).unwrap_or(&[]);
        let skew = (load.address.wrapping_neg() & 7) as usize;
        let words = bytes.get(skew..).unwrap_or(&[]).chunks_exact(8).enumerate();
        words.map(move |(nth, word)| (load.address + (skew + 8 * nth) as u64, word))
    };
    let magic = layout.magic();
    let is_head = move |word: &[u8]| u32_at(word, 0) == Some(magic) && word[4..8] == [0, 0, 1, 8];
    let constant = image.loads().iter().filter(|load| !load.is_writable());
    let heads: Vec<u64> =
        constant.flat_map(words).filter(|(_, word)| is_head(word)).map(|(address, _)| address).collect();
    let written = image.loads().iter().filter(|load| load.is_writable());
    written.flat_map(words).filter_map(move |(address, word)| {
        let head = u64_at(word, 0).filter(|head| heads.contains(head))?;
        // The names lie behind the head, as it says itself.
        let names = image.read_u64(Svma(address + 8))?;
        let behind = image.read_u64(Svma(head + 32))?;
        (names == head.wrapping_add(behind)).then_some((address, head))
    })
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

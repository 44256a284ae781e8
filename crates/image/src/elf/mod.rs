//! The ELF container: headers, segments, sections, and bytes by address. Nothing is copied but the
//! header tables.
//!
//! The next fact about the container goes here; facts about its contents (symbols, relocations,
//! unwind tables) have files of their own.

pub mod abi;
pub mod bytes;
pub mod cursor;
pub mod data_symbols;
pub mod imports;
pub mod partial;
pub mod relocations;
pub mod symbols;

use crate::ImageError;
use crate::elf::bytes::{u16_at, u32_at, u64_at};
use rayon::prelude::*;
use units::{FileOffset, Svma};

/// One program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub physical: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

impl Segment {
    pub fn is_load(&self) -> bool {
        self.kind == abi::PT_LOAD
    }
    pub fn is_executable(&self) -> bool {
        self.is_load() && self.flags & abi::PF_X != 0
    }
    pub fn is_writable(&self) -> bool {
        self.flags & abi::PF_W != 0
    }
    /// Whether the address lies in the part of the segment that comes from the file.
    pub fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.file_size
    }
}

/// One section header, its name resolved.
#[derive(Clone, Copy, Debug)]
pub struct Section<'d> {
    pub name: &'d [u8],
    pub name_offset: u32,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub info: u32,
    pub align: u64,
    pub entry_size: u64,
}

/// An x86-64 ELF executable or shared object.
pub struct Image<'d> {
    data: &'d [u8],
    position_independent: bool,
    entry: Svma,
    segments: Vec<Segment>,
    sections: Vec<Section<'d>>,
    header: Header,
    loads: Vec<Segment>,
}

/// The numbers of the ELF header that a writer needs.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub program_headers: FileOffset,
    pub program_header_count: usize,
    pub section_headers: FileOffset,
    pub section_header_count: usize,
    pub section_names: usize,
}

impl<'d> Image<'d> {
    /// Reads the headers. Contents are looked at only when asked for.
    pub fn parse(data: &'d [u8]) -> Result<Self, ImageError> {
        if data.len() < 4 || data[..4] != *b"\x7fELF" {
            return Err(ImageError::NotElf);
        }
        if data.len() < 64 {
            return Err(ImageError::Truncated("the ELF header"));
        }
        if data[4] != 2 {
            return Err(ImageError::Not64Bit);
        }
        if data[5] != 1 {
            return Err(ImageError::BigEndian);
        }
        let machine = u16_at(data, 18).unwrap_or(0);
        if machine != abi::EM_X86_64 {
            return Err(ImageError::WrongMachine(machine));
        }
        let kind = u16_at(data, 16).unwrap_or(0);
        if kind != abi::ET_EXEC && kind != abi::ET_DYN {
            return Err(ImageError::NotLoadable(kind));
        }
        let field = |at| u64_at(data, at).unwrap_or(0);
        let segments = program_headers(data)?;
        let (sections, section_names) = section_headers(data)?;
        let mut loads: Vec<Segment> = segments.iter().copied().filter(Segment::is_load).collect();
        if loads.is_empty() {
            return Err(ImageError::Malformed("no loadable segment"));
        }
        for load in &loads {
            let end = load.offset.checked_add(load.file_size);
            if end.is_none_or(|end| end > data.len() as u64) {
                return Err(ImageError::Truncated("loadable segments"));
            }
            let memory_end = load.address.checked_add(load.memory_size);
            if load.memory_size < load.file_size || memory_end.is_none_or(|end| end > 1 << 47) {
                return Err(ImageError::Malformed("a loadable segment has impossible sizes"));
            }
        }
        if !loads.is_sorted_by(|a, b| a.address + a.memory_size <= b.address) {
            return Err(ImageError::Malformed("loadable segments overlap or are out of order"));
        }
        loads.shrink_to_fit();
        Ok(Self {
            data,
            position_independent: kind == abi::ET_DYN,
            entry: Svma(field(24)),
            header: Header {
                program_headers: FileOffset(field(32)),
                program_header_count: segments.len(),
                section_headers: FileOffset(field(40)),
                section_header_count: sections.len(),
                section_names,
            },
            segments,
            sections,
            loads,
        })
    }

    /// The whole file.
    pub fn data(&self) -> &'d [u8] {
        self.data
    }
    /// Whether the module may be loaded anywhere (PIE, shared object, static PIE).
    pub fn is_position_independent(&self) -> bool {
        self.position_independent
    }
    /// Where execution starts; 0 in most shared objects.
    pub fn entry(&self) -> Svma {
        self.entry
    }
    pub fn header(&self) -> Header {
        self.header
    }
    /// All program headers, in file order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
    /// The loadable segments, by ascending address.
    pub fn loads(&self) -> &[Segment] {
        &self.loads
    }
    pub fn sections(&self) -> &[Section<'d>] {
        &self.sections
    }
    pub fn section(&self, name: &str) -> Option<&Section<'d>> {
        self.sections.iter().find(|section| section.name == name.as_bytes())
    }
    /// The bytes of a section; `None` if it has none or they lie outside the file.
    pub fn section_bytes(&self, section: &Section<'d>) -> Option<&'d [u8]> {
        if section.kind == abi::SHT_NOBITS {
            return None;
        }
        range(self.data, section.offset, section.size)
    }
    pub fn segment_bytes(&self, segment: &Segment) -> Option<&'d [u8]> {
        range(self.data, segment.offset, segment.file_size)
    }
    /// The segment whose file bytes hold this address.
    pub fn load_at(&self, address: Svma) -> Option<&Segment> {
        let after = self.loads.partition_point(|load| load.address <= address.0);
        self.loads[..after].last().filter(|load| load.holds(address.0))
    }
    /// The file bytes from this address to the end of its segment.
    pub fn bytes_from(&self, address: Svma) -> Option<&'d [u8]> {
        let load = self.load_at(address)?;
        let skip = (address.0 - load.address) as usize;
        self.segment_bytes(load)?.get(skip..)
    }
    /// Exactly `size` bytes at this address.
    pub fn bytes_at(&self, address: Svma, size: usize) -> Option<&'d [u8]> {
        self.bytes_from(address)?.get(..size)
    }
    pub fn read_u32(&self, address: Svma) -> Option<u32> {
        u32_at(self.bytes_from(address)?, 0)
    }
    pub fn read_u64(&self, address: Svma) -> Option<u64> {
        u64_at(self.bytes_from(address)?, 0)
    }
    /// Where in the file the byte at this address lies.
    pub fn file_offset(&self, address: Svma) -> Option<FileOffset> {
        let load = self.load_at(address)?;
        Some(FileOffset(load.offset + (address.0 - load.address)))
    }
    /// The address of the byte that lies there in the file, if it is loaded.
    pub fn address_of(&self, offset: FileOffset) -> Option<Svma> {
        let inside = |load: &&Segment| offset.0.wrapping_sub(load.offset) < load.file_size;
        let load = self.loads.iter().find(inside)?;
        Some(Svma(load.address + (offset.0 - load.offset)))
    }
    pub fn is_code(&self, address: Svma) -> bool {
        self.load_at(address).is_some_and(Segment::is_executable)
    }
    /// Whether the word at this address is the same for the whole life of the process as it is in
    /// the file, but for relocations: in a segment that is not writable.
    pub fn is_constant(&self, address: Svma) -> bool {
        self.load_at(address).is_some_and(|load| !load.is_writable())
    }
    /// Those parts of executable segments that sections say are data, by ascending address and
    /// apart: linkers at times put headers, relocations and constants into the segment of the code.
    pub fn data_among_code(&self) -> Vec<(u64, u64)> {
        self.ranges(|section| {
            section.flags & (abi::SHF_ALLOC | abi::SHF_EXECINSTR) == abi::SHF_ALLOC
                && section.kind != abi::SHT_NOBITS
                && section.size > 0
                && self.is_code(Svma(section.address))
        })
    }
    /// Where the sections lie that are wanted: where each begins and ends, ascending and apart.
    pub fn ranges(&self, wanted: impl Fn(&Section<'_>) -> bool) -> Vec<(u64, u64)> {
        let sections = self.sections.iter().filter(|section| wanted(section));
        joined(
            sections.map(|section| (section.address, section.address.saturating_add(section.size))).collect(),
        )
    }
    /// The lowest loaded address, and the first one after everything loaded.
    pub fn span(&self) -> (u64, u64) {
        let first = self.loads.first().map_or(0, |load| load.address);
        (first, self.loads.last().map_or(0, |load| load.address + load.memory_size))
    }

    /// Aligned words of the data that may be addresses of the file's: where each stands, and what
    /// it holds.
    pub fn words_of_data(&self) -> impl ParallelIterator<Item = (Svma, Svma)> + '_ {
        let span = self.span();
        self.loads.par_iter().filter(|load| !load.is_executable()).flat_map(move |load| {
            let skew = load.address.wrapping_neg() & 7;
            let bytes = self.segment_bytes(load).and_then(|bytes| bytes.get(skew as usize..)).unwrap_or(&[]);
            let words = bytes.par_chunks_exact(8).enumerate().with_min_len(4096);
            words.filter_map(move |(index, word)| {
                let value = u64_at(word, 0).filter(|value| (span.0..span.1).contains(value))?;
                Some((Svma(load.address + skew + 8 * index as u64), Svma(value)))
            })
        })
    }

    /// The entries of the dynamic section, up to its end mark.
    pub fn dynamic(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let bytes = self
            .segments
            .iter()
            .find(|segment| segment.kind == abi::PT_DYNAMIC)
            .and_then(|segment| self.segment_bytes(segment))
            .unwrap_or(&[]);
        bytes
            .chunks_exact(16)
            .filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
            .take_while(|&(tag, _)| tag != 0)
    }
    pub fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic().find(|&(found, _)| found == tag).map(|(_, value)| value)
    }

    /// The notes of every `PT_NOTE` segment: owner, type, contents.
    pub fn notes(&self) -> impl Iterator<Item = (&'d [u8], u32, &'d [u8])> + '_ {
        let segments = self.segments.iter().filter(|segment| segment.kind == abi::PT_NOTE);
        let pieces = segments.filter_map(|segment| Some((segment.align, self.segment_bytes(segment)?)));
        self.no_more_than_all(pieces, |(_, bytes)| bytes.len())
            .flat_map(|(align, bytes)| Notes { bytes, align: if align == 8 { 8 } else { 4 } })
    }
    /// Of pieces of the file with their sizes: those until they are more than the whole file. Where
    /// they lie upon each other, which they have no reason to, reading them all could take any
    /// time.
    pub(crate) fn no_more_than_all<T>(
        &self,
        pieces: impl Iterator<Item = T>,
        size: impl Fn(&T) -> usize,
    ) -> impl Iterator<Item = T> {
        let mut left = self.data.len();
        pieces.take_while(move |piece| {
            let fits = size(piece) <= left;
            left = left.saturating_sub(size(piece));
            fits
        })
    }
    /// The linker's build id, by which separate debug information is found.
    pub fn build_id(&self) -> Option<&'d [u8]> {
        self.notes()
            .find(|&(owner, kind, _)| owner == b"GNU\0" && kind == abi::NT_GNU_BUILD_ID)
            .map(|(_, _, id)| id)
    }
    /// The file name and checksum of separate debug information.
    pub fn debug_link(&self) -> Option<(&'d [u8], u32)> {
        let bytes = self.section_bytes(self.section(".gnu_debuglink")?)?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        Some((&bytes[..end], u32_at(bytes, (end + 4) & !3)?))
    }
}

fn range(data: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    data.get(offset as usize..offset.checked_add(size)? as usize)
}

fn program_headers(data: &[u8]) -> Result<Vec<Segment>, ImageError> {
    let count = usize::from(u16_at(data, 56).unwrap_or(0));
    if count > 0 && u16_at(data, 54) != Some(56) {
        return Err(ImageError::Malformed("program headers of an unknown size"));
    }
    if count == 0xffff {
        return Err(ImageError::Malformed("more program headers than can be counted"));
    }
    let table = range(data, u64_at(data, 32).unwrap_or(0), count as u64 * 56);
    let table = table.ok_or(ImageError::Truncated("the program headers"))?;
    let segment = |p: &[u8]| {
        let field = |at| u64_at(p, at).unwrap_or(0);
        Segment {
            kind: u32_at(p, 0).unwrap_or(0),
            flags: u32_at(p, 4).unwrap_or(0),
            offset: field(8),
            address: field(16),
            physical: field(24),
            file_size: field(32),
            memory_size: field(40),
            align: field(48),
        }
    };
    Ok(table.chunks_exact(56).map(segment).collect())
}

fn section_headers(data: &[u8]) -> Result<(Vec<Section<'_>>, usize), ImageError> {
    let offset = u64_at(data, 40).unwrap_or(0);
    if offset == 0 {
        return Ok((Vec::new(), 0));
    }
    if u16_at(data, 58) != Some(64) {
        return Err(ImageError::Malformed("section headers of an unknown size"));
    }
    let truncated = ImageError::Truncated("the section headers");
    let first = range(data, offset, 64).ok_or(truncated.clone())?;
    // With very many sections the true numbers stand in the first section header.
    let count = match u16_at(data, 60).unwrap_or(0) {
        0 => u64_at(first, 32).unwrap_or(0),
        count => u64::from(count),
    };
    let names = match u16_at(data, 62).unwrap_or(0) {
        0xffff => u32_at(first, 40).unwrap_or(0) as usize,
        index => usize::from(index),
    };
    let size = count.checked_mul(64).ok_or(truncated.clone())?;
    let table = range(data, offset, size).ok_or(truncated)?;
    let strings = table
        .get(names.saturating_mul(64)..)
        .and_then(|s| range(data, u64_at(s, 24)?, u64_at(s, 32)?))
        .unwrap_or(&[]);
    let section = |s: &[u8]| {
        let field = |at| u64_at(s, at).unwrap_or(0);
        let half = |at| u32_at(s, at).unwrap_or(0);
        Section {
            name: string(strings, half(0)),
            name_offset: half(0),
            kind: half(4),
            flags: field(8),
            address: field(16),
            offset: field(24),
            size: field(32),
            link: half(40),
            info: half(44),
            align: field(48),
            entry_size: field(56),
        }
    };
    Ok((table.chunks_exact(64).map(section).collect(), names))
}

/// The zero-terminated string at an offset; empty when there is none, or none of a length that
/// names have.
pub(crate) fn string(strings: &[u8], offset: u32) -> &[u8] {
    const LONGEST: usize = 1 << 16;
    let rest = strings.get(offset as usize..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(LONGEST)];
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
    &rest[..end]
}

/// The notes of one segment.
struct Notes<'d> {
    bytes: &'d [u8],
    align: usize,
}

impl<'d> Iterator for Notes<'d> {
    type Item = (&'d [u8], u32, &'d [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let up = |size: u32| (size as usize).checked_next_multiple_of(self.align);
        let bytes = std::mem::take(&mut self.bytes);
        let (name_size, size, kind) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?, u32_at(bytes, 8)?);
        let start = up(12 + name_size.min(1 << 20))?;
        let owner = bytes.get(12..12 + name_size as usize)?;
        let contents = bytes.get(start..)?.get(..size as usize)?;
        self.bytes = up(size).and_then(|size| bytes.get(start + size..)).unwrap_or(&[]);
        Some((owner, kind, contents))
    }
}

/// Ranges by ascending address, those that meet made one.
pub(crate) fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        last.1 = if joins { last.1.max(next.1) } else { last.1 };
        joins
    });
    ranges
}

/// Whether an address lies in one of these ranges, which ascend and are apart.
pub(crate) fn is_among(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|&(start, _)| start <= address);
    ranges[..after].last().is_some_and(|&(_, end)| address < end)
}

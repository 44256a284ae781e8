//! The resulting file: the original, byte for byte but for its header and the patched entries, and
//! behind it
//!
//! - a read-only segment: program headers, our note, unwind tables, jump tables;
//! - an executable segment: the twins;
//! - what is not loaded: the mapping, symbols, section headers.
//!
//! Where the program headers go is delicate. Old kernels tell a program that they are at the first
//! segment's address plus their file offset, newer ones look for the segment that holds them; both
//! are right if the new segments keep the distance between address and file offset that the first
//! segment has. That may leave a hole in the file where the module has much zeroed memory; a very
//! large hole is not made, and such a file needs Linux 5.18 ([`Places::need_new_kernel`]).

use crate::error::TwinError;
use crate::layout::emit::Twins;
use crate::layout::span::Span;
use crate::output::symbols::SymbolTable;
use image::Image;
use image::elf::Segment;
use image::elf::abi;

pub(crate) const PAGE: u64 = 0x1000;
const PROGRAM_HEADER_SIZE: u64 = 56;
const SECTION_HEADER_SIZE: usize = 64;
const LARGEST_HOLE: u64 = 64 << 20;
/// With the new ones there are fewer than the numbers that mean something else.
const MOST_SECTIONS: usize = 0xfe00;

/// Where everything that is loaded goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub program_headers: Span,
    pub note: Span,
    pub unwind_header: Span,
    pub frames: Span,
    pub exceptions: Span,
    pub tables: Span,
    pub text: Span,
}

/// The sizes that places are chosen for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub unwind_header: u64,
    pub frames: u64,
    pub exceptions: u64,
    pub tables: u64,
    pub text: u64,
}

impl Places {
    pub(crate) fn choose(image: &Image<'_>, sizes: &Sizes) -> Result<Self, TwinError> {
        let base = image.loads().first().map_or(0, |load| load.address.wrapping_sub(load.offset));
        let after_memory = image.span().1.next_multiple_of(PAGE);
        let after_file = (image.data().len() as u64).next_multiple_of(PAGE);
        let same_distance = after_memory.wrapping_sub(base);
        let (address, offset) = if same_distance < after_file {
            (after_file.wrapping_add(base), after_file)
        } else if same_distance - after_file <= LARGEST_HOLE {
            (after_memory, same_distance)
        } else {
            (after_memory, after_file)
        };
        let mut at = 0u64;
        let mut span = |size: u64, align: u64| {
            at = at.next_multiple_of(align);
            let span = Span { address: address + at, offset: offset + at, size };
            at += size;
            span
        };
        let places = Self {
            program_headers: span(PROGRAM_HEADER_SIZE * new_header_count(image) as u64, 8),
            note: span(twin_format::NOTE_SIZE as u64, 8),
            unwind_header: span(sizes.unwind_header, 4),
            frames: span(sizes.frames, 8),
            exceptions: span(sizes.exceptions, 4),
            tables: span(sizes.tables, 8),
            text: span(sizes.text, PAGE),
        };
        let lowest = image.span().0;
        if places.text.address + places.text.size - lowest > i32::MAX as u64 {
            return Err(TwinError::OutOfReach("the twins"));
        }
        Ok(places)
    }

    /// Whether a program is told where its headers are by kernels only that look for the segment
    /// which holds them.
    pub(crate) fn need_new_kernel(&self, image: &Image<'_>) -> bool {
        let has_loader = image.segments().iter().any(|segment| segment.kind == abi::PT_INTERP);
        let is_program = has_loader || !image.is_position_independent() || image.entry().0 != 0;
        let first = image.loads().first().map_or(0, |load| load.address.wrapping_sub(load.offset));
        is_program && self.program_headers.address.wrapping_sub(self.program_headers.offset) != first
    }

    fn read_only(&self) -> Span {
        let first = self.program_headers;
        Span { size: self.tables.address + self.tables.size - first.address, ..first }
    }
    pub(crate) fn end_of_loaded(&self) -> u64 {
        self.text.offset + self.text.size
    }
}

fn has_unwind_segment(image: &Image<'_>) -> bool {
    image.segments().iter().any(|segment| segment.kind == abi::PT_GNU_EH_FRAME)
}

fn new_header_count(image: &Image<'_>) -> usize {
    image.segments().len() + 3 + usize::from(!has_unwind_segment(image))
}

fn segment(kind: u32, flags: u32, span: Span, align: u64) -> Segment {
    Segment {
        kind,
        flags,
        offset: span.offset,
        address: span.address,
        physical: span.address,
        file_size: span.size,
        memory_size: span.size,
        align,
    }
}

/// The program headers: those of the original, the moved ones moved, and the new ones where the
/// rules want them.
pub(crate) fn program_headers(image: &Image<'_>, places: &Places) -> Vec<u8> {
    let mut all = Vec::new();
    let last_load = image.segments().iter().rposition(Segment::is_load);
    for (index, old) in image.segments().iter().enumerate() {
        all.push(match old.kind {
            abi::PT_PHDR => segment(old.kind, old.flags, places.program_headers, old.align),
            abi::PT_GNU_EH_FRAME => segment(old.kind, old.flags, places.unwind_header, 4),
            _ => *old,
        });
        if Some(index) == last_load {
            all.push(segment(abi::PT_LOAD, abi::PF_R, places.read_only(), PAGE));
            all.push(segment(abi::PT_LOAD, abi::PF_R | abi::PF_X, places.text, PAGE));
        }
    }
    if !has_unwind_segment(image) {
        all.push(segment(abi::PT_GNU_EH_FRAME, abi::PF_R, places.unwind_header, 4));
    }
    all.push(segment(abi::PT_NOTE, abi::PF_R, places.note, 4));
    let mut out = Vec::new();
    for s in all {
        out.extend(s.kind.to_le_bytes());
        out.extend(s.flags.to_le_bytes());
        for word in [s.offset, s.address, s.physical, s.file_size, s.memory_size, s.align] {
            out.extend(word.to_le_bytes());
        }
    }
    out
}

/// Which section the twins' symbols belong to.
pub(crate) fn text_section(image: &Image<'_>) -> u16 {
    (image.sections().len().max(1) + 5) as u16
}

/// A section header in the making.
struct Header {
    name: u32,
    kind: u32,
    flags: u64,
    span: Span,
    link: u32,
    info: u32,
    align: u64,
    entry_size: u64,
}

/// Refuses section headers to which new ones cannot be added: before the result is made, in which
/// there may be a hole.
pub(crate) fn refuse_sections(image: &Image<'_>, symbols: &SymbolTable) -> Result<(), TwinError> {
    let (old, names_at) = (image.sections().len(), image.header().section_names);
    if old > MOST_SECTIONS {
        return Err(TwinError::OutOfReach("the section headers"));
    }
    // Both get new contents, each its own.
    let are_symbols = symbols.replaces.is_some_and(|(table, strings)| [table, strings].contains(&names_at));
    if old > 0 && (names_at == 0 || names_at >= old || are_symbols) {
        return Err(TwinError::SectionNames);
    }
    Ok(())
}

impl Header {
    /// What of it is not loaded may have an address all the same, and keeps it.
    fn moves_to(&mut self, span: Span) {
        self.span = Span { address: self.span.address, ..span };
    }
}

/// Appends what is not loaded (mapping, symbols, names, section headers) to the file and points its
/// header there. There has to be space for it ([`refuse_sections`]).
pub(crate) fn finish(
    out: &mut Vec<u8>,
    twins: &Twins<'_, '_>,
    places: &Places,
    mapping: &[u8],
    symbols: &SymbolTable,
) {
    let image = &twins.module.image;
    let old = image.sections();
    let mut names = old
        .get(image.header().section_names)
        .and_then(|section| image.section_bytes(section))
        .map_or_else(|| vec![0], <[u8]>::to_vec);
    let mut name = |text: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(text.as_bytes());
        names.push(0);
        at
    };
    let mut headers: Vec<Header> = old
        .iter()
        .map(|s| Header {
            // Readers that go by names shall find the new tables.
            name: match s.name {
                b".eh_frame" => name(".eh_frame.original"),
                b".eh_frame_hdr" => name(".eh_frame_hdr.original"),
                _ => s.name_offset,
            },
            kind: s.kind,
            flags: s.flags,
            span: Span { address: s.address, offset: s.offset, size: s.size },
            link: s.link,
            info: s.info,
            align: s.align,
            entry_size: s.entry_size,
        })
        .collect();
    let plain = |name, kind, flags, span, align| Header {
        name,
        kind,
        flags,
        span,
        link: 0,
        info: 0,
        align,
        entry_size: 0,
    };
    if headers.is_empty() {
        headers.push(plain(0, 0, 0, Span::default(), 0));
    }
    let data = abi::SHF_ALLOC;
    headers.extend([
        plain(name(".note.gleaner"), abi::SHT_NOTE, data, places.note, 4),
        plain(name(".eh_frame_hdr"), abi::SHT_PROGBITS, data, places.unwind_header, 4),
        plain(name(".eh_frame"), abi::SHT_PROGBITS, data, places.frames, 8),
        plain(name(".gcc_except_table.twin"), abi::SHT_PROGBITS, data, places.exceptions, 4),
        plain(name(".rodata.twin"), abi::SHT_PROGBITS, data, places.tables, 8),
        plain(name(".text.twin"), abi::SHT_PROGBITS, data | abi::SHF_EXECINSTR, places.text, 64),
    ]);
    let mapping = append(out, mapping, 8);
    headers.push(plain(name(".gleaner.map"), abi::SHT_PROGBITS, 0, mapping, 8));
    let symbol_span = append(out, &symbols.symbols, 8);
    let string_span = append(out, &symbols.strings, 1);
    let (symbols_at, strings_at) = symbols.replaces.unwrap_or((headers.len(), headers.len() + 1));
    if symbols.replaces.is_none() {
        headers.push(plain(name(".symtab"), abi::SHT_SYMTAB, 0, symbol_span, 8));
        headers.push(plain(name(".strtab"), abi::SHT_STRTAB, 0, string_span, 1));
    }
    headers[symbols_at].moves_to(symbol_span);
    headers[symbols_at].link = strings_at as u32;
    headers[symbols_at].info = symbols.first_global;
    headers[symbols_at].entry_size = 24;
    headers[strings_at].moves_to(string_span);
    let names_at = if old.is_empty() {
        headers.push(plain(name(".shstrtab"), abi::SHT_STRTAB, 0, Span::default(), 1));
        headers.len() - 1
    } else {
        image.header().section_names
    };
    headers[names_at].moves_to(append(out, &names, 1));

    out.resize(out.len().next_multiple_of(8), 0);
    let headers_at = out.len() as u64;
    let count = headers.len() as u16;
    for header in headers {
        put_section_header(out, &header);
    }
    let program_headers = places.program_headers;
    out[32..40].copy_from_slice(&program_headers.offset.to_le_bytes());
    out[40..48].copy_from_slice(&headers_at.to_le_bytes());
    out[54..56].copy_from_slice(&(PROGRAM_HEADER_SIZE as u16).to_le_bytes());
    out[56..58].copy_from_slice(&((program_headers.size / PROGRAM_HEADER_SIZE) as u16).to_le_bytes());
    out[58..60].copy_from_slice(&(SECTION_HEADER_SIZE as u16).to_le_bytes());
    out[60..62].copy_from_slice(&count.to_le_bytes());
    out[62..64].copy_from_slice(&(names_at as u16).to_le_bytes());
}

fn append(out: &mut Vec<u8>, bytes: &[u8], align: usize) -> Span {
    out.resize(out.len().next_multiple_of(align), 0);
    let offset = out.len() as u64;
    out.extend_from_slice(bytes);
    Span { address: 0, offset, size: bytes.len() as u64 }
}

fn put_section_header(out: &mut Vec<u8>, header: &Header) {
    out.extend(header.name.to_le_bytes());
    out.extend(header.kind.to_le_bytes());
    for word in [header.flags, header.span.address, header.span.offset, header.span.size] {
        out.extend(word.to_le_bytes());
    }
    out.extend(header.link.to_le_bytes());
    out.extend(header.info.to_le_bytes());
    out.extend(header.align.to_le_bytes());
    out.extend(header.entry_size.to_le_bytes());
}

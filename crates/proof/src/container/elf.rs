//! The ELF container as the checker reads it: headers, segments, sections, symbols, and bytes by
//! address. The crate `object` decodes the structures; nothing here is shared with the rewriter,
//! which reads the same files by code of its own.
//!
//! A fact of the container goes here. What a rule makes of it goes to the file of that rule.

use object::elf::{
    self, DynamicTag, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, FileType, PF_W, PF_X, PT_DYNAMIC, PT_LOAD,
    PT_NOTE, ProgramFlags, ProgramType, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SectionFlags, SectionType,
    Sym64,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{LittleEndian, Pod, slice_from_bytes};
use units::{FileOffset, Svma};

const LE: LittleEndian = LittleEndian;
/// Every address of a user's program lies below.
const ADDRESS_SPACE: u64 = 1 << 47;
/// No name is longer; without a bound, damaged tables of names would take quadratic time.
const LONGEST_NAME: usize = 1 << 16;

/// Why a file is not read as an x86-64 ELF module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("not an ELF file")]
    NotElf,
    #[error("a 32-bit ELF file; only 64-bit x86-64 is supported")]
    Not64Bit,
    #[error("a big-endian ELF file; only x86-64 is supported")]
    BigEndian,
    #[error("an ELF file for machine {0}; only x86-64 (62) is supported")]
    WrongMachine(u16),
    #[error("an ELF file of type {0}; only executables and shared objects are supported")]
    NotLoadable(u16),
    #[error("truncated: {0} reach beyond the end of the file")]
    Truncated(&'static str),
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

/// One program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: ProgramType,
    pub(crate) flags: ProgramFlags,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) physical: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) align: u64,
}

impl Segment {
    pub(crate) fn is_load(&self) -> bool {
        self.kind == PT_LOAD
    }
    pub(crate) fn is_executable(&self) -> bool {
        self.is_load() && self.flags.contains(PF_X)
    }
    pub(crate) fn is_writable(&self) -> bool {
        self.flags.contains(PF_W)
    }
    /// Whether the address lies in the part of the segment that comes from the file.
    pub(crate) fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.file_size
    }
}

/// One section header, its name resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'d> {
    pub(crate) name: &'d [u8],
    /// Where among the names it is.
    pub(crate) name_at: u32,
    pub(crate) kind: SectionType,
    pub(crate) flags: SectionFlags,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) align: u64,
    pub(crate) entry_size: u64,
}

/// An entry of a symbol table.
pub(crate) type Symbol = Sym64<LittleEndian>;

/// A symbol table with its strings.
#[derive(Clone, Copy)]
pub(crate) struct SymbolTable<'d> {
    pub(crate) symbols: &'d [Symbol],
    strings: &'d [u8],
    /// Where in the file the table begins.
    pub(crate) offset: u64,
    /// The number of the section with its strings.
    pub(crate) link: u32,
}

impl<'d> SymbolTable<'d> {
    pub(crate) fn name(&self, symbol: &Symbol) -> &'d [u8] {
        text(self.strings, symbol.st_name.get(LE))
    }
    pub(crate) fn strings(&self) -> &'d [u8] {
        self.strings
    }
    /// The address of a symbol that the module itself defines.
    pub(crate) fn defined(&self, index: usize) -> Option<u64> {
        self.symbols.get(index).filter(|symbol| is_defined(symbol)).map(value)
    }
}

pub(crate) fn value(symbol: &Symbol) -> u64 {
    symbol.st_value.get(LE)
}
pub(crate) fn size(symbol: &Symbol) -> u64 {
    symbol.st_size.get(LE)
}
/// Whether all its bytes are zero, as those of a table's first entry are.
pub(crate) fn is_null(symbol: &Symbol) -> bool {
    object::bytes_of(symbol).iter().all(|&byte| byte == 0)
}
pub(crate) fn is_defined(symbol: &Symbol) -> bool {
    symbol.st_shndx.get(LE) != elf::SHN_UNDEF
}

/// One relocation with its addend.
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    pub(crate) place: u64,
    pub(crate) kind: elf::RelocationType,
    pub(crate) symbol: u32,
    pub(crate) addend: u64,
}

/// Reads a table of `Elf64_Rela`.
pub(crate) fn relocations(bytes: &[u8]) -> impl Iterator<Item = Relocation> + '_ {
    let table: &[elf::Rela64<LittleEndian>] = entries(bytes);
    table.iter().map(|entry| Relocation {
        place: entry.r_offset.get(LE),
        kind: entry.r_type(LE, false),
        symbol: entry.r_sym(LE, false),
        addend: entry.r_addend.get(LE) as u64,
    })
}

/// An x86-64 ELF executable or shared object.
pub(crate) struct Elf<'d> {
    data: &'d [u8],
    header: &'d FileHeader64<LittleEndian>,
    segments: Vec<Segment>,
    loads: Vec<Segment>,
    sections: Vec<Section<'d>>,
    section_names: usize,
    dynamic: Vec<(DynamicTag, u64)>,
}

impl<'d> Elf<'d> {
    /// Reads the headers. Contents are looked at only when asked for.
    pub(crate) fn parse(data: &'d [u8]) -> Result<Self, ElfError> {
        if !data.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        let (header, _) = object::from_bytes::<FileHeader64<LittleEndian>>(data)
            .map_err(|()| ElfError::Truncated("the ELF header"))?;
        if header.e_ident.class != elf::ELFCLASS64 {
            return Err(ElfError::Not64Bit);
        }
        if header.e_ident.data != elf::ELFDATA2LSB {
            return Err(ElfError::BigEndian);
        }
        let machine = header.e_machine(LE);
        if machine != EM_X86_64 {
            return Err(ElfError::WrongMachine(machine.0));
        }
        let kind: FileType = header.e_type(LE);
        if kind != ET_EXEC && kind != ET_DYN {
            return Err(ElfError::NotLoadable(kind.0));
        }
        let segments = segments(header, data)?;
        let (sections, section_names) = sections(header, data)?;
        let loads = loads(&segments, data)?;
        let mut elf = Self { data, header, segments, loads, sections, section_names, dynamic: Vec::new() };
        elf.dynamic = elf.read_dynamic()?;
        Ok(elf)
    }

    /// The whole file.
    pub(crate) fn data(&self) -> &'d [u8] {
        self.data
    }
    /// Whether the module may be loaded anywhere (PIE, shared object, static PIE).
    pub(crate) fn is_position_independent(&self) -> bool {
        self.header.e_type(LE) == ET_DYN
    }
    /// Where execution starts; 0 in most shared objects.
    pub(crate) fn entry(&self) -> u64 {
        self.header.e_entry(LE)
    }
    /// Where the program headers lie in the file.
    pub(crate) fn segment_table(&self) -> u64 {
        self.header.e_phoff(LE)
    }
    /// Where the section headers lie in the file.
    pub(crate) fn section_table(&self) -> u64 {
        self.header.e_shoff(LE)
    }
    /// The sizes of one program header and of one section header, as the file gives them.
    pub(crate) fn entry_sizes(&self) -> (u16, u16) {
        (self.header.e_phentsize(LE), self.header.e_shentsize(LE))
    }
    /// The number of the section that holds the sections' names.
    pub(crate) fn section_names(&self) -> usize {
        self.section_names
    }
    /// All program headers, in file order.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }
    /// The loadable segments, by ascending address.
    pub(crate) fn loads(&self) -> &[Segment] {
        &self.loads
    }
    pub(crate) fn sections(&self) -> &[Section<'d>] {
        &self.sections
    }
    pub(crate) fn section(&self, name: &str) -> Option<&Section<'d>> {
        self.sections.iter().find(|section| section.name == name.as_bytes())
    }
    /// The bytes of a section; `None` if it has none or they lie outside the file.
    pub(crate) fn section_bytes(&self, section: &Section<'d>) -> Option<&'d [u8]> {
        if section.kind == SHT_NOBITS {
            return None;
        }
        range(self.data, section.offset, section.size)
    }
    pub(crate) fn segment_bytes(&self, segment: &Segment) -> Option<&'d [u8]> {
        range(self.data, segment.offset, segment.file_size)
    }
    /// The segment whose file bytes hold this address.
    pub(crate) fn load_at(&self, address: Svma) -> Option<&Segment> {
        let after = self.loads.partition_point(|load| load.address <= address.0);
        self.loads[..after].last().filter(|load| load.holds(address.0))
    }
    /// The file bytes from this address to the end of its segment.
    pub(crate) fn bytes_from(&self, address: Svma) -> Option<&'d [u8]> {
        let load = self.load_at(address)?;
        let skip = (address.0 - load.address) as usize;
        self.segment_bytes(load)?.get(skip..)
    }
    /// Exactly `size` bytes at this address.
    pub(crate) fn bytes_at(&self, address: Svma, size: usize) -> Option<&'d [u8]> {
        self.bytes_from(address)?.get(..size)
    }
    pub(crate) fn read_u64(&self, address: Svma) -> Option<u64> {
        self.bytes_from(address)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
    /// Where in the file the byte at this address lies.
    pub(crate) fn file_offset(&self, address: Svma) -> Option<FileOffset> {
        let load = self.load_at(address)?;
        Some(FileOffset(load.offset + (address.0 - load.address)))
    }
    pub(crate) fn is_code(&self, address: Svma) -> bool {
        self.load_at(address).is_some_and(Segment::is_executable)
    }
    /// Whether no program writes the bytes at this address: only relocations may.
    pub(crate) fn is_constant(&self, address: Svma) -> bool {
        self.load_at(address).is_some_and(|load| !load.is_writable())
    }
    /// Those parts of executable segments that sections say are data, ascending and apart:
    /// linkers at times put headers, relocations and constants into the segment of the code.
    pub(crate) fn data_among_code(&self) -> Vec<(u64, u64)> {
        let data = self.sections.iter().filter(|section| {
            section.flags & (SHF_ALLOC | SHF_EXECINSTR) == SHF_ALLOC
                && section.kind != SHT_NOBITS
                && section.size > 0
                && self.is_code(Svma(section.address))
        });
        let mut ranges: Vec<(u64, u64)> =
            data.map(|section| (section.address, section.address.saturating_add(section.size))).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let meets = next.0 <= last.1;
            if meets {
                last.1 = last.1.max(next.1);
            }
            meets
        });
        ranges
    }
    /// The value of an entry of the dynamic section.
    pub(crate) fn dynamic_value(&self, tag: DynamicTag) -> Option<u64> {
        self.dynamic.iter().find(|entry| entry.0 == tag).map(|entry| entry.1)
    }
    /// The table that two entries of the dynamic section describe: its address and its bytes.
    pub(crate) fn dynamic_table(&self, start: DynamicTag, size: DynamicTag) -> Option<(u64, &'d [u8])> {
        let (start, size) = (self.dynamic_value(start)?, self.dynamic_value(size)?);
        Some((start, self.bytes_at(Svma(start), usize::try_from(size).ok()?)?))
    }
    /// The symbol tables of one type, of which there is one at most in sound files.
    pub(crate) fn symbol_tables(&self, kind: SectionType) -> impl Iterator<Item = SymbolTable<'d>> + '_ {
        self.sections.iter().filter(move |section| section.kind == kind).map(|section| {
            let strings = self.sections.get(section.link as usize);
            let strings = strings.and_then(|strings| self.section_bytes(strings)).unwrap_or(&[]);
            let symbols = entries(self.section_bytes(section).unwrap_or(&[]));
            SymbolTable { symbols, strings, offset: section.offset, link: section.link }
        })
    }
    /// The notes of every `PT_NOTE` segment: owner (with its final zero), type, contents.
    pub(crate) fn notes(&self) -> impl Iterator<Item = (&'d [u8], u32, &'d [u8])> + '_ {
        let segments = self.segments.iter().filter(|segment| segment.kind == PT_NOTE);
        // Segments that lie upon each other could take any time: together, no more than the file.
        let mut left = self.data.len();
        let pieces = segments.filter_map(|segment| Some((segment.align, self.segment_bytes(segment)?)));
        let pieces = pieces.take_while(move |(_, bytes)| {
            let fits = bytes.len() <= left;
            left = left.saturating_sub(bytes.len());
            fits
        });
        let notes = pieces.filter_map(|(align, bytes)| {
            let align = if align == 8 { 8 } else { 4 };
            NoteIterator::<FileHeader64<LittleEndian>>::new(LE, align, bytes).ok()
        });
        notes.flat_map(|notes| {
            notes.map_while(Result::ok).map(|note| (note.name_bytes(), note.n_type(LE).0, note.desc()))
        })
    }

    fn read_dynamic(&self) -> Result<Vec<(DynamicTag, u64)>, ElfError> {
        let Some(segment) = self.segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
            return Ok(Vec::new());
        };
        let bytes = self.segment_bytes(segment).ok_or(ElfError::Truncated("the dynamic sections"))?;
        let table: &[elf::Dyn64<LittleEndian>] = entries(bytes);
        let entries = table.iter().map(|entry| (entry.d_tag.get(LE), entry.d_val.get(LE)));
        Ok(entries.take_while(|entry| entry.0 != elf::DT_NULL).collect())
    }
}

fn range(data: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    data.get(offset as usize..offset.checked_add(size)? as usize)
}

/// A table's entries; bytes at its end that are no whole entry are none.
fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
}

fn segments(header: &FileHeader64<LittleEndian>, data: &[u8]) -> Result<Vec<Segment>, ElfError> {
    let count = header.e_phnum(LE);
    if count == elf::PN_XNUM {
        return Err(ElfError::Malformed("more program headers than can be counted"));
    }
    if count > 0 && usize::from(header.e_phentsize(LE)) != size_of::<elf::ProgramHeader64<LittleEndian>>() {
        return Err(ElfError::Malformed("program headers of an unknown size"));
    }
    let table = header.program_headers(LE, data).map_err(|_| ElfError::Truncated("the program headers"))?;
    let segment = |header: &elf::ProgramHeader64<LittleEndian>| Segment {
        kind: header.p_type(LE),
        flags: header.p_flags(LE),
        offset: header.p_offset(LE),
        address: header.p_vaddr(LE),
        physical: header.p_paddr(LE),
        file_size: header.p_filesz(LE),
        memory_size: header.p_memsz(LE),
        align: header.p_align(LE),
    };
    Ok(table.iter().map(segment).collect())
}

/// The loadable segments, if they are such as the kernel maps one after the other.
fn loads(segments: &[Segment], data: &[u8]) -> Result<Vec<Segment>, ElfError> {
    let loads: Vec<Segment> = segments.iter().copied().filter(Segment::is_load).collect();
    if loads.is_empty() {
        return Err(ElfError::Malformed("no loadable segment"));
    }
    for load in &loads {
        if range(data, load.offset, load.file_size).is_none() {
            return Err(ElfError::Truncated("loadable segments"));
        }
        let end = load.address.checked_add(load.memory_size);
        if load.memory_size < load.file_size || end.is_none_or(|end| end > ADDRESS_SPACE) {
            return Err(ElfError::Malformed("a loadable segment has impossible sizes"));
        }
    }
    if !loads.is_sorted_by(|a, b| a.address + a.memory_size <= b.address) {
        return Err(ElfError::Malformed("loadable segments overlap or are out of order"));
    }
    Ok(loads)
}

/// The section headers, and the number of the section that holds their names.
fn sections<'d>(
    header: &FileHeader64<LittleEndian>,
    data: &'d [u8],
) -> Result<(Vec<Section<'d>>, usize), ElfError> {
    if header.e_shoff(LE) == 0 {
        return Ok((Vec::new(), 0));
    }
    if usize::from(header.e_shentsize(LE)) != size_of::<elf::SectionHeader64<LittleEndian>>() {
        return Err(ElfError::Malformed("section headers of an unknown size"));
    }
    let truncated = |_| ElfError::Truncated("the section headers");
    let table = header.section_headers(LE, data).map_err(truncated)?;
    let names = header.shstrndx(LE, data).unwrap_or(0) as usize;
    let strings = table.get(names);
    let strings = strings.and_then(|section| range(data, section.sh_offset(LE), section.sh_size(LE)));
    let strings = strings.unwrap_or(&[]);
    let section = |header: &elf::SectionHeader64<LittleEndian>| Section {
        name: text(strings, header.sh_name(LE)),
        name_at: header.sh_name(LE),
        kind: header.sh_type(LE),
        flags: header.sh_flags(LE),
        address: header.sh_addr(LE),
        offset: header.sh_offset(LE),
        size: header.sh_size(LE),
        link: header.sh_link(LE),
        info: header.sh_info(LE),
        align: header.sh_addralign(LE),
        entry_size: header.sh_entsize(LE),
    };
    Ok((table.iter().map(section).collect(), names))
}

/// The string at an offset, up to its zero; empty when there is none.
pub(crate) fn text(strings: &[u8], offset: u32) -> &[u8] {
    let rest = strings.get(offset as usize..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(LONGEST_NAME)];
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
    &rest[..end]
}

//! The headers of an ELF file, as far as loading needs them. Pure.

/// An ELF header, of which only what is used has a name.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileHeader {
    magic: [u8; 4],
    class: u8,
    order: u8,
    rest: [u8; 10],
    pub(crate) kind: u16,
    machine: u16,
    version: u32,
    pub(crate) entry: u64,
    pub(crate) headers_at: u64,
    sections_at: u64,
    flags: u32,
    size: u16,
    pub(crate) header_size: u16,
    pub(crate) headers: u16,
    sections: [u16; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    physical: u64,
    pub(crate) in_file: u64,
    pub(crate) in_memory: u64,
    pub(crate) align: u64,
}

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_INTERP: u32 = 3;
pub(crate) const PT_GNU_STACK: u32 = 0x6474e551;
pub(crate) const PF_X: u32 = 1;
pub(crate) const PF_W: u32 = 2;
pub(crate) const PF_R: u32 = 4;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const X86_64: u16 = 62;

/// Most program headers of a file that is loaded.
pub(crate) const HEADERS: usize = 64;
const PAGE: u64 = 4096;

impl FileHeader {
    /// Whether it is an x86-64 executable or shared object, its headers of the size we know and not
    /// too many.
    pub(crate) fn is_loadable(&self) -> bool {
        self.magic == *b"\x7fELF"
            && (self.class, self.order) == (2, 1)
            && self.machine == X86_64
            && matches!(self.kind, ET_EXEC | ET_DYN)
            && self.header_size as usize == size_of::<ProgramHeader>()
            && (1..=HEADERS).contains(&(self.headers as usize))
    }

    /// Whether it may lie anywhere.
    pub(crate) fn is_movable(&self) -> bool {
        self.kind == ET_DYN
    }
}

/// The addresses that a file asks for, in whole pages, and the alignment of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressSpan {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) align: u64,
}

/// None where no segment is loaded or one makes no sense.
pub(crate) fn span(headers: &[ProgramHeader]) -> Option<AddressSpan> {
    let mut span = AddressSpan { first: u64::MAX, end: 0, align: PAGE };
    for header in headers.iter().filter(|header| header.kind == PT_LOAD) {
        let end = header.address.checked_add(header.in_memory)?;
        let fits = header.in_file <= header.in_memory
            && header.address % PAGE == header.offset % PAGE
            && end < 1 << 47;
        if !fits {
            return None;
        }
        span.first = span.first.min(header.address & !(PAGE - 1));
        span.end = span.end.max(end.next_multiple_of(PAGE));
        if header.align.is_power_of_two() {
            span.align = span.align.max(header.align);
        }
    }
    (span.first < span.end && span.align <= 1 << 30).then_some(span)
}

/// Where the program headers themselves are mapped, without the base.
pub(crate) fn headers_address(file: &FileHeader, headers: &[ProgramHeader]) -> Option<u64> {
    let end = file.headers_at + u64::from(file.headers) * size_of::<ProgramHeader>() as u64;
    headers
        .iter()
        .find(|h| h.kind == PT_LOAD && h.offset <= file.headers_at && end <= h.offset + h.in_file)
        .map(|h| h.address + (file.headers_at - h.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(offset: u64, address: u64, in_file: u64, in_memory: u64) -> ProgramHeader {
        ProgramHeader {
            kind: PT_LOAD,
            offset,
            address,
            in_file,
            in_memory,
            align: 4096,
            ..ProgramHeader::default()
        }
    }

    #[test]
    fn spans_are_whole_pages() {
        let headers = [load(0, 0x400000, 0x123, 0x123), load(0x1f00, 0x402f00, 0x200, 0x3000)];
        assert_eq!(span(&headers), Some(AddressSpan { first: 0x400000, end: 0x406000, align: 4096 }));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(span(&[]), None);
        assert_eq!(span(&[load(0, 0x1000, 0x200, 0x100)]), None, "more in the file than in memory");
        assert_eq!(span(&[load(0x10, 0x1000, 0x100, 0x100)]), None, "offset and address disagree");
        assert_eq!(span(&[load(0, u64::MAX - 0xfff, 0x100, 0x2000)]), None, "beyond the end");
        assert_eq!(span(&[load(0, 1 << 47, 0x100, 0x100)]), None, "the kernel's half");
    }

    #[test]
    fn headers_are_found_where_they_are_mapped() {
        // SAFETY: plain numbers.
        let mut file: FileHeader = unsafe { core::mem::zeroed() };
        file.headers_at = 0x2040;
        file.headers = 2;
        let headers = [load(0, 0x1000, 0x1000, 0x1000), load(0x2000, 0x8000, 0x800, 0x800)];
        assert_eq!(headers_address(&file, &headers), Some(0x8040));
        assert_eq!(headers_address(&file, &headers[..1]), None);
    }
}

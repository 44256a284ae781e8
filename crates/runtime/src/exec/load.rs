//! Maps an executable or its interpreter into this address space.

use crate::exec::elf::{
    self, FileHeader, HEADERS, PF_R, PF_W, PF_X, PT_GNU_STACK, PT_INTERP, PT_LOAD, ProgramHeader,
};
use crate::layout::area::Area;
use crate::mappings::hook;
use crate::mappings::spans;
use crate::mappings::{PAGE, memory};
use crate::sys;
use core::ffi::CStr;
use runtime_abi::control::failure;

/// What could not be done, and the kernel's word on it.
pub(crate) type LoadFailure = (u32, i32);

const EEXIST: i32 = 17;
const INTERPRETER: usize = 256;

/// A file that is mapped.
pub(crate) struct Image {
    pub(crate) base: usize,
    pub(crate) entry: usize,
    pub(crate) headers: usize,
    pub(crate) header_count: usize,
    /// First address and the one behind the last.
    pub(crate) range: (usize, usize),
    /// The same of its first segment of code.
    code: (usize, usize),
    pub(crate) executable_stack: bool,
    interpreter: [u8; INTERPRETER],
}

impl Image {
    /// The path of the interpreter that the file names.
    pub(crate) fn interpreter(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.interpreter).ok().filter(|path| !path.is_empty())
    }
}

/// A value read from a file at an offset.
fn read_at<T: Copy>(fd: i32, offset: u64, into: &mut [T]) -> Result<(), i32> {
    let size = size_of_val(into);
    // SAFETY: used for headers and bytes, which are plain numbers: any bytes are values of them.
    let bytes = unsafe { core::slice::from_raw_parts_mut(into.as_mut_ptr().cast::<u8>(), size) };
    match sys::pread(fd, bytes, offset) {
        n if n == size as isize => Ok(()),
        n if n < 0 => Err(-n as i32),
        _ => Err(0),
    }
}

pub(crate) fn load(home: &Area, path: &CStr) -> Result<Image, LoadFailure> {
    load_with(home, path, 0)
}

/// The same; what it maps is marked, too, if that is possible.
pub(crate) fn load_interpreter(home: &Area, path: &CStr) -> Result<Image, LoadFailure> {
    let image = load_with(home, path, PAGE)?;
    let (start, end) = image.code;
    let flags = sys::MAP_FIXED;
    if home.mappings().are_marked() && start < end {
        // SAFETY: the page behind its last one, which was reserved, and code that is mapped; it
        // does not run yet.
        unsafe {
            if memory(home, image.range.1, PAGE, sys::PROT_READ | sys::PROT_EXEC, flags).is_ok() {
                hook::loader(
                    home,
                    core::slice::from_raw_parts(start as *const u8, end - start),
                    image.range.1,
                );
            }
        }
    }
    Ok(image)
}

/// What a file says of itself; error 0 where it is none that can be loaded.
fn read_headers(fd: i32, into: &mut [ProgramHeader; HEADERS]) -> Result<(FileHeader, &[ProgramHeader]), i32> {
    // SAFETY: plain numbers.
    let mut file: [FileHeader; 1] = unsafe { core::mem::zeroed() };
    read_at(fd, 0, &mut file)?;
    let [file] = file;
    if !file.is_loadable() {
        return Err(0);
    }
    let headers = &mut into[..file.headers as usize];
    read_at(fd, file.headers_at, headers)?;
    Ok((file, headers))
}

/// The addresses that a program is linked to for good, if it has no loader.
pub(super) fn fixed_span(fd: i32) -> Option<elf::AddressSpan> {
    let mut headers = [ProgramHeader::default(); HEADERS];
    let (file, headers) = read_headers(fd, &mut headers).ok()?;
    let is_alone = !headers.iter().any(|header| header.kind == PT_INTERP);
    (!file.is_movable() && is_alone).then(|| elf::span(headers)).flatten()
}

/// Maps it with `spare` unused bytes behind it.
fn load_with(home: &Area, path: &CStr, spare: usize) -> Result<Image, LoadFailure> {
    let fd = sys::open(path, sys::O_RDONLY | sys::O_CLOEXEC);
    if fd < 0 {
        return Err((failure::FILE, -fd as i32));
    }
    let image = load_open(home, fd as i32, spare);
    sys::close(fd as i32);
    if let Ok(image) = &image {
        spans::note(home, image.range);
    }
    image
}

fn load_open(home: &Area, fd: i32, spare: usize) -> Result<Image, LoadFailure> {
    let mut headers = [ProgramHeader::default(); HEADERS];
    let (file, headers) = read_headers(fd, &mut headers).map_err(|errno| (failure::FORMAT, errno))?;
    let file = &file;
    let mut interpreter = [0; INTERPRETER];
    if let Some(header) = headers.iter().find(|header| header.kind == PT_INTERP) {
        let size = (header.in_file as usize).min(INTERPRETER - 1);
        read_at(fd, header.offset, &mut interpreter[..size]).map_err(|errno| (failure::FORMAT, errno))?;
    }
    let span = elf::span(headers).ok_or((failure::FORMAT, 0))?;
    let base = reserve(home, file, span, spare)?;
    for header in headers.iter().filter(|header| header.kind == PT_LOAD) {
        // SAFETY: inside what was reserved.
        unsafe { segment(home, fd, base, header) }.map_err(|errno| (failure::MEMORY, errno))?;
    }
    let headers_at = elf::headers_address(file, headers).ok_or((failure::FORMAT, 0))?;
    Ok(Image {
        base,
        entry: base.wrapping_add(file.entry as usize),
        headers: base.wrapping_add(headers_at as usize),
        header_count: headers.len(),
        range: (base.wrapping_add(span.first as usize), base.wrapping_add(span.end as usize)),
        code: headers.iter().find(|h| h.kind == PT_LOAD && h.flags & (PF_X | PF_W) == PF_X).map_or(
            (0, 0),
            |h| {
                let start = base.wrapping_add(h.address as usize);
                (start, start + h.in_file as usize)
            },
        ),
        executable_stack: headers.iter().any(|h| h.kind == PT_GNU_STACK && h.flags & PF_X != 0),
        interpreter,
    })
}

/// Reserves the addresses, and `more` bytes behind them; returns what is to be added to those in
/// the file.
fn reserve(
    home: &Area,
    file: &FileHeader,
    span: elf::AddressSpan,
    more: usize,
) -> Result<usize, LoadFailure> {
    let size = (span.end - span.first) as usize + more;
    let flags = sys::MAP_NORESERVE;
    if !file.is_movable() {
        let at = span.first as usize;
        // SAFETY: replaces nothing.
        let got = unsafe { memory(home, at, size, sys::PROT_NONE, flags | sys::MAP_FIXED_NOREPLACE) };
        return match got {
            Ok(got) if got == at => Ok(0),
            Ok(elsewhere) => {
                // A kernel that takes the flag for a hint. SAFETY: just mapped, and not used yet.
                unsafe { sys::munmap(elsewhere, size) };
                Err((failure::OCCUPIED, EEXIST))
            }
            Err(EEXIST) => Err((failure::OCCUPIED, EEXIST)),
            Err(errno) => Err((failure::MEMORY, errno)),
        };
    }
    let align = span.align as usize;
    let spare = if align > PAGE { align } else { 0 };
    // SAFETY: a new mapping.
    let got = unsafe { memory(home, 0, size + spare, sys::PROT_NONE, flags) };
    let got = got.map_err(|errno| (failure::MEMORY, errno))?;
    let at = got.next_multiple_of(align);
    // SAFETY: what alignment left over, at both ends.
    unsafe {
        if at > got {
            sys::munmap(got, at - got);
        }
        if got + spare > at {
            sys::munmap(at + size, got + spare - at);
        }
    }
    Ok(at.wrapping_sub(span.first as usize))
}

/// # Safety
/// The segment's addresses must be ours.
unsafe fn segment(home: &Area, fd: i32, base: usize, header: &ProgramHeader) -> Result<(), i32> {
    let has = |flag: u32, protection: usize| if header.flags & flag != 0 { protection } else { 0 };
    let protection = has(PF_R, sys::PROT_READ) | has(PF_W, sys::PROT_WRITE) | has(PF_X, sys::PROT_EXEC);
    let address = base.wrapping_add(header.address as usize);
    let lead = address % PAGE;
    let file_end = address + header.in_file as usize;
    let end = (address + header.in_memory as usize).next_multiple_of(PAGE);
    let mut mapped = address - lead;
    let flags = sys::MAP_PRIVATE | sys::MAP_FIXED;
    // SAFETY: all of it lies in the reserved span, see the caller; the zeroed bytes are writable
    // and the file's last page's.
    unsafe {
        if header.in_file > 0 {
            let (size, offset) = (header.in_file as usize + lead, header.offset - lead as u64);
            sys::mmap(mapped, size, protection, flags, fd, offset)?;
            mapped = file_end.next_multiple_of(PAGE);
            // To the page's end: a loader takes what is behind its own bss for its first heap, and
            // wants zeros.
            if header.flags & PF_W != 0 && header.in_memory > header.in_file {
                core::ptr::write_bytes(file_end as *mut u8, 0, mapped - file_end);
            }
        }
        if end > mapped {
            memory(home, mapped, end - mapped, protection, flags)?;
        }
    }
    Ok(())
}

//! Lines of `/proc/self/maps`, a byte at a time: nothing is allocated and no line is too long.

use super::layout::{NO_NAME, with_byte};

/// A part of a file, or other memory, in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// The hash of the file's name, as `Call` has it.
    pub(crate) file: u64,
    /// It can be executed and read, and not written to.
    pub(crate) is_code: bool,
}

/// The fields of a line that count.
const RANGE: u32 = 0;
const ACCESS: u32 = 1;
const OFFSET: u32 = 2;
const PATH: u32 = 5;

/// A line that is being read.
pub(crate) struct Line {
    field: u32,
    was_space: bool,
    /// And never written to.
    is_read: bool,
    mapping: Mapping,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self {
            field: RANGE,
            was_space: false,
            is_read: false,
            mapping: Mapping { start: 0, end: 0, offset: 0, file: NO_NAME, is_code: false },
        }
    }

    /// The mapping, when its line ends.
    pub(crate) fn byte(&mut self, byte: u8) -> Option<Mapping> {
        if byte == b'\n' {
            return Some(core::mem::replace(self, Self::new()).mapping);
        }
        let is_space = byte == b' ' && self.field < PATH;
        self.field += u32::from(self.was_space && !is_space);
        self.was_space = is_space;
        let mapping = &mut self.mapping;
        match (self.field, byte) {
            (RANGE, b'-') => mapping.start = core::mem::take(&mut mapping.end),
            (RANGE, _) if !is_space => mapping.end = digit(mapping.end, byte),
            (ACCESS, b'r') => self.is_read = true,
            (ACCESS, b'w') => self.is_read = false,
            (ACCESS, b'x') => mapping.is_code = self.is_read,
            (OFFSET, _) if !is_space => mapping.offset = digit(mapping.offset, byte),
            (PATH, b'/') => mapping.file = NO_NAME,
            (PATH, _) => mapping.file = with_byte(mapping.file, byte),
            _ => {}
        }
        None
    }
}

/// Hands on each mapping of this process.
#[cfg(all(freestanding, changes))]
pub(super) fn each(take: &mut dyn FnMut(&Mapping)) {
    use crate::sys::{nr, syscall};
    const AT_FDCWD: usize = -100_isize as usize;
    const O_CLOEXEC: usize = 0o2000000;
    let path = c"/proc/self/maps".as_ptr() as usize;
    // SAFETY: a string with its zero.
    let file = unsafe { syscall(nr::OPENAT, [AT_FDCWD, path, O_CLOEXEC, 0, 0, 0]) };
    let Ok(file) = usize::try_from(file) else { return };
    let mut line = Line::new();
    let mut buffer = [0_u8; 1024];
    loop {
        // SAFETY: the kernel writes at most the buffer.
        let read = unsafe { syscall(nr::READ, [file, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) };
        let Some(bytes) = usize::try_from(read).ok().and_then(|read| buffer.get(..read)) else { break };
        if bytes.is_empty() {
            break;
        }
        for mapping in bytes.iter().filter_map(|&byte| line.byte(byte)) {
            take(&mapping);
        }
    }
    // SAFETY: the file was opened above.
    unsafe { syscall(nr::CLOSE, [file, 0, 0, 0, 0, 0]) };
}

fn digit(value: u64, byte: u8) -> u64 {
    value << 4 | u64::from((byte as char).to_digit(16).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::layout::Call;

    #[test]
    fn lines_are_read() {
        let text = "7f12000-7f14000 r-xp 0000a000 fe:00 1234     /usr/lib/a b.so\n\
                    7ffd000-7ffe000 rw-p 00000000 00:00 0 \n\
                    7fff000-8000000 rw-p 00000000 00:00 0    [stack]\n";
        let mut line = Line::new();
        let found: Vec<Mapping> = text.bytes().filter_map(|byte| line.byte(byte)).collect();
        let file = Call::new(b"a b.so", 0).file;
        assert_eq!(
            found[0],
            Mapping { start: 0x7f12000, end: 0x7f14000, offset: 0xa000, file, is_code: true }
        );
        assert_eq!((found[1].start, found[1].file, found[1].is_code), (0x7ffd000, NO_NAME, false));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn this_process_is_read() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let mut line = Line::new();
        let here = lines_are_read as *const () as u64;
        let found = text.iter().filter_map(|&byte| line.byte(byte));
        let own: Vec<Mapping> = found.filter(|at| at.start <= here && here < at.end).collect();
        let path = std::env::current_exe().unwrap();
        let name = path.file_name().unwrap().as_encoded_bytes();
        assert_eq!((own.len(), own[0].file), (1, Call::new(name, 0).file));
    }
}

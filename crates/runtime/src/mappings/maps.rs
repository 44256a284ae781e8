//! What the kernel tells of the mappings of this address space: `/proc/self/maps`, line by line.

use crate::sys;

/// As the kernel names a file there; inode 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapsLine {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) readable: bool,
    pub(crate) offset: u64,
    pub(crate) file: FileId,
    /// The kernel's own name stands there, in brackets: a heap, a stack, code of the kernel's.
    pub(crate) special: bool,
}

impl MapsLine {
    pub(crate) fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Shows all of them, in the order of their addresses. Whether the kernel told all.
pub(crate) fn each(mut look: impl FnMut(&MapsLine)) -> bool {
    let fd = sys::open(c"/proc/self/maps", sys::O_RDONLY | sys::O_CLOEXEC) as i32;
    if fd < 0 {
        return false;
    }
    let mut text = [0_u8; 1024];
    let mut reader = MapsReader::default();
    let result = loop {
        match sys::read(fd, &mut text) {
            size if size > 0 => {
                text[..size as usize]
                    .iter()
                    .filter_map(|byte| reader.take(*byte))
                    .for_each(|line| look(&line));
            }
            result => break result,
        }
    };
    sys::close(fd);
    result == 0
}

/// The parts of a line, in their order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum MapsField {
    #[default]
    Start,
    End,
    Rights,
    Offset,
    Major,
    Minor,
    Inode,
    Blanks,
    Name,
}

/// Of a line: what was read of it.
#[derive(Default)]
struct MapsReader {
    part: MapsField,
    number: u64,
    line: MapsLine,
}

impl MapsReader {
    /// One byte more; the line, if that ends it.
    fn take(&mut self, byte: u8) -> Option<MapsLine> {
        use MapsField::{Blanks, End, Inode, Major, Minor, Name, Offset, Rights, Start};
        if byte == b'\n' {
            if self.part == Inode {
                self.line.file.inode = self.number;
            }
            return Some(core::mem::take(self).line);
        }
        let ends = match self.part {
            Start => byte == b'-',
            Major => byte == b':',
            _ => byte == b' ',
        };
        match self.part {
            Blanks => {
                if !ends {
                    self.line.special = byte == b'[';
                    self.part = Name;
                }
            }
            Name => {}
            Rights if !ends => self.line.readable |= byte == b'r',
            part if !ends => {
                let base = if part == Inode { 10 } else { 16 };
                let digit = char::from(byte).to_digit(base).unwrap_or(0);
                self.number = self.number.wrapping_mul(u64::from(base)).wrapping_add(u64::from(digit));
            }
            part => {
                let number = core::mem::take(&mut self.number);
                let line = &mut self.line;
                self.part = match part {
                    Start => {
                        line.start = number as usize;
                        End
                    }
                    End => {
                        line.end = number as usize;
                        Rights
                    }
                    Rights => Offset,
                    Offset => {
                        line.offset = number;
                        Major
                    }
                    Major => {
                        line.file.device = number << 32;
                        Minor
                    }
                    Minor => {
                        line.file.device |= number;
                        Inode
                    }
                    Inode | Blanks | Name => {
                        line.file.inode = number;
                        Blanks
                    }
                };
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<MapsLine> {
        let mut reader = MapsReader::default();
        text.bytes().filter_map(|byte| reader.take(byte)).collect()
    }

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let lines = read(
            "00400000-0040b000 r-xp 00002000 fd:1e 1234567890123                      /usr/bin/a - b: [c]\n\
             7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n\
             7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n\
             ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
        );
        let file = FileId { device: 0xfd << 32 | 0x1e, inode: 1_234_567_890_123 };
        let first = MapsLine {
            start: 0x40_0000,
            end: 0x40_b000,
            readable: true,
            offset: 0x2000,
            file,
            special: false,
        };
        assert_eq!(lines[0], first);
        let second = MapsLine { start: 0x7f00_0000_0000, end: 0x7f00_0000_1000, ..MapsLine::default() };
        assert_eq!(lines[1], second);
        assert!(lines[2].special && lines[2].readable && lines[3].special && !lines[3].readable);
        assert_eq!((lines[3].start, lines.len()), (0xffff_ffff_ff60_0000, 4));
    }

    #[test]
    fn this_process_is_told() {
        let local = 0_u8;
        let here = &raw const local as usize;
        let code = read as *const () as usize;
        let (mut stack, mut text, mut before) = (false, false, 0);
        assert!(each(|line| {
            assert!(before <= line.start && line.start < line.end);
            before = line.end;
            stack |= line.holds(here);
            text |= line.holds(code) && line.file.inode != 0;
        }));
        assert!(stack && text);
    }
}

//! Functions of `CPython`, from 3.11 on: their code objects, read from the memory of a process.
//!
//! A code object ends with its bytecode. From an address in it the object is found by its type, in
//! front of it:
//!
//! ```text
//! references | type | count of code units | … | file | … | qualified name | lines | … | bytecode
//! ```
//!
//! The distance from its begin to its bytecode is what the type says is the size of such an object
//! without any. The other distances are the same in all builds of a version.
//!
//! To add a version: `Layout::of`, and a run of `interpreted::` in the tests with it.

use crate::memory::{Read, half, word};
use image::Image;
use insight::samples::ScriptLine;

/// Longer texts are cut off.
const LONGEST_TEXT: u64 = 512;
/// Functions with more bytecode are not found.
const LONGEST_CODE: u64 = 64 << 10;
const LONGEST_TABLE: u64 = 1 << 20;
/// What is read at a time on the way to a function's begin.
const PIECE: u64 = 4096;

/// Where things are in the objects of a version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    first_line: u64,
    /// Of a text: where the bytes of a short one begin, and where those of others do.
    ascii: u64,
    compact: u64,
    /// Where in the word behind its hash a text says that it is compact, and that it is ASCII.
    is_compact: u32,
    is_ascii: u32,
}

/// In code objects.
const COUNT: u64 = 16;
const FILE: u64 = 112;
const NAME: u64 = 128;
const LINES: u64 = 136;
/// In types.
const BASIC_SIZE: u64 = 32;
/// In texts.
const LENGTH: u64 = 16;
const STATE: u64 = 32;
/// In bytes.
const BYTES: u64 = 32;

impl Layout {
    /// That of a version, as `0x30c` for 3.12.
    pub(super) fn of(version: u32) -> Option<Self> {
        let bits = Self { first_line: 68, ascii: 40, compact: 56, is_compact: 1 << 5, is_ascii: 1 << 6 };
        match version {
            0x30b => Some(Self { first_line: 72, ascii: 48, compact: 72, ..bits }),
            0x30c | 0x30d => Some(bits),
            // Half of the word says whether it is interned.
            0x30e => Some(Self { is_compact: 1 << 19, is_ascii: 1 << 20, ..bits }),
            _ => None,
        }
    }
}

/// The version of an interpreter, by what it exports.
pub(super) fn version(image: &Image<'_>) -> Option<u32> {
    let version = image.read_u64(crate::files::exported(image, "Py_Version")?)?;
    u32::try_from(version >> 16).ok()
}

/// Whether a function executes bytecode.
pub(super) fn is_eval_loop(name: &[u8]) -> bool {
    name.starts_with(b"_PyEval_EvalFrameDefault") || name.starts_with(b"_TAIL_CALL_")
}

/// Bytes of an instruction, or of a part of a longer one.
pub(super) const UNIT: u64 = 2;

/// Whether bytecode may be at an address: nothing is mapped at the low ones, nor above all.
pub(super) fn may_be_code(at: u64) -> bool {
    at.is_multiple_of(UNIT) && (1 << 16..1 << 47).contains(&at)
}

/// A function of a script.
#[derive(Debug)]
pub(super) struct Function {
    /// Where its bytecode begins.
    pub start: u64,
    bytes: u64,
    name: String,
    file: String,
    first_line: u32,
    lines: Vec<u8>,
}

impl Function {
    /// The function whose bytecode holds an address; `kind` is the address of the type of
    /// functions.
    pub(super) fn around(layout: &Layout, kind: u64, at: u64, read: Read<'_>) -> Option<Self> {
        let code = word(kind, BASIC_SIZE, read).filter(|size| (LINES + 8..1024).contains(size))?;
        let lowest = at.saturating_sub(LONGEST_CODE);
        // The type is the second word of the object.
        let mut to = (at - code + 16) & !7;
        while to > lowest {
            let from = (to - 1) / PIECE * PIECE;
            let mut piece = vec![0; (to - from) as usize];
            read(from, &mut piece)?;
            let words = piece.chunks_exact(8).enumerate().rev();
            for (index, _) in words.filter(|(_, word)| **word == kind.to_le_bytes()) {
                let object = from + 8 * index as u64 - 8;
                if let Some(function) = Self::of(layout, object, code, at, read) {
                    return Some(function);
                }
            }
            to = from;
        }
        None
    }

    fn of(layout: &Layout, object: u64, code: u64, at: u64, read: Read<'_>) -> Option<Self> {
        let units = word(object, COUNT, read)?;
        let (start, bytes) = (object + code, units.checked_mul(UNIT).filter(|bytes| *bytes <= LONGEST_CODE)?);
        if !(start..=start + bytes).contains(&at) {
            return None;
        }
        let name = text(layout, word(object, NAME, read)?, read)?;
        let file = text(layout, word(object, FILE, read)?, read)?;
        let table = word(object, LINES, read)?;
        let length = word(table, LENGTH, read).filter(|length| *length <= LONGEST_TABLE)?;
        let mut lines = vec![0; length as usize];
        read(table.checked_add(BYTES)?, &mut lines)?;
        let first_line = half(object, layout.first_line, read)?;
        Some(Self { start, bytes, name, file, first_line, lines })
    }

    /// Whether the next instruction may be here.
    pub(super) fn holds(&self, at: u64) -> bool {
        (self.start..=self.start + self.bytes).contains(&at)
    }

    /// The line of the instruction in front of an address: the next one is kept, not that which
    /// runs.
    pub(super) fn line(&self, next: u64) -> Option<ScriptLine> {
        let unit = (next.checked_sub(self.start)? / UNIT).checked_sub(1)?;
        let line = line_at(&self.lines, self.first_line, unit)?;
        Some(ScriptLine { language: "Python", function: self.name.clone(), file: self.file.clone(), line })
    }
}

/// The line of a unit of bytecode, by a table of locations.
fn line_at(table: &[u8], first: u32, unit: u64) -> Option<u32> {
    const NO_COLUMN: u8 = 13;
    const LONG: u8 = 14;
    const NO_LINE: u8 = 15;
    let (mut line, mut from, mut at) = (i64::from(first), 0, 0);
    while let Some(&head) = table.get(at) {
        let (kind, units) = (head >> 3 & 15, u64::from(head & 7) + 1);
        let has_line = kind != NO_LINE;
        if kind == NO_COLUMN || kind == LONG {
            line += signed(table.get(at + 1..)?)?;
        } else if (10..=12).contains(&kind) {
            line += i64::from(kind - 10);
        }
        if (from..from + units).contains(&unit) {
            return u32::try_from(line).ok().filter(|line| has_line && *line > 0);
        }
        from += units;
        // What begins an entry has its highest bit set, and nothing else has.
        at += 1;
        while table.get(at).is_some_and(|byte| byte & 0x80 == 0) {
            at += 1;
        }
    }
    None
}

/// A number in parts of six bits, the lowest first; its lowest bit is its sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0_u64, 0);
    for &byte in bytes {
        value |= u64::from(byte & 63).checked_shl(shift)?;
        shift += 6;
        if byte & 64 == 0 {
            let size = (value >> 1) as i64;
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

/// A text; letters beyond Latin-1 in one of them are not asked for.
fn text(layout: &Layout, at: u64, read: Read<'_>) -> Option<String> {
    let length = word(at, LENGTH, read)?.min(LONGEST_TEXT);
    let state = half(at, STATE, read)?;
    if state & layout.is_compact == 0 {
        return None;
    }
    let kind_shift = layout.is_compact.trailing_zeros() - 3;
    let (width, begin) = match state >> kind_shift & 7 {
        _ if state & layout.is_ascii != 0 => (1, layout.ascii),
        width @ (1 | 2 | 4) => (width as usize, layout.compact),
        _ => return None,
    };
    let mut bytes = vec![0; length as usize * width];
    read(at.checked_add(begin)?, &mut bytes)?;
    let letter = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).filter(|letter| !letter.is_control()).unwrap_or('?')
    };
    Some(bytes.chunks_exact(width).map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_a_table_of_locations() {
        // Of `def f(a):` in line 1, `b = a` in line 2, `return b` in line 4, as CPython writes it.
        let table = [
            0x80,
            0x00, // one unit, the first line, short form
            0xd9,
            0x08,
            0x09, // two units, the next line
            0xe8 | 1,
            0x04, // two units, two lines on, no column
            0xf8, // one unit without a line
            0xea,
            0x03, // three units, one line back
        ];
        let line = |unit| line_at(&table, 1, unit);
        assert_eq!(
            [line(0), line(1), line(2), line(3), line(4)],
            [Some(1), Some(2), Some(2), Some(4), Some(4)]
        );
        assert_eq!([line(5), line(6), line(8), line(9)], [None, Some(3), Some(3), None]);
        for length in 0..table.len() {
            let _ = line_at(&table[..length], 1, 9);
        }
    }

    #[test]
    fn numbers_have_their_sign_in_the_lowest_bit() {
        assert_eq!(signed(&[0x04]), Some(2));
        assert_eq!(signed(&[0x05]), Some(-2));
        assert_eq!(signed(&[0x40, 0x01]), Some(32));
        assert_eq!(signed(&[0x40]), None);
        assert_eq!(signed(&[0x7f; 30]), None);
    }
}

//! Methods and blocks of Ruby 3.1: their instruction sequences, read from the memory of a process.
//!
//! The eval loop keeps the address of the next instruction in `r14` and its frame in `r15`. What
//! it calls gives both back as they were, so they are known in its frame on the stack:
//!
//! ```text
//! frame → sequence → body: count of words | the instructions | … | path, label | … | lines
//! ```
//!
//! Frames are used again by the next call, so one may be another's by the time it is read: it
//! counts if the sampled address is in its instructions.
//!
//! To add a version: `Layout::of`, and a run of `interpreted::` in the tests with it.

use crate::memory::{self, Read, half, word};
use image::Image;
use insight::samples::ScriptLine;

/// The registers of the next instruction and of the frame.
pub(super) const NEXT: usize = 14;
pub(super) const FRAME: usize = 15;

/// Longer texts are cut off.
const LONGEST_TEXT: u64 = 512;
/// Longer sequences are not found: in words.
const LONGEST_CODE: u32 = 64 << 10;
const MOST_LINES: u32 = 64 << 10;

/// Where things are in the body of a sequence of a version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    lines: u64,
}

/// In frames.
const SEQUENCE: u64 = 16;
/// In sequences.
const BODY: u64 = 16;
/// In bodies.
const WORDS: u64 = 4;
const CODE: u64 = 8;
const PATH: u64 = 64;
const LABEL: u64 = 80;
/// In what is said of lines: the entries, their count, and the index of instructions.
const COUNT: u64 = 16;
const INDEX: u64 = 24;
/// Bytes of an entry: line, node, events.
const ENTRY: usize = 12;
/// In the first word of each object: what it is, and whether a text or list has its content
/// elsewhere.
const KIND: u64 = 0x1f;
const TEXT: u64 = 5;
const LIST: u64 = 7;
const INTERNAL: u64 = 0x1a;
const IS_SEQUENCE: u64 = 7 << 12;
const INTERNAL_KIND: u64 = 15 << 12;
const HAS_FLAG: u64 = 1 << 13;

impl Layout {
    /// That of the interpreter in a file, by the version that it exports.
    pub(super) fn of(image: &Image<'_>) -> Option<Self> {
        let version = image.bytes_from(crate::files::exported(image, "ruby_version")?)?;
        version.starts_with(b"3.1.").then_some(Self { lines: 120 })
    }
}

/// A method or block of a script.
#[derive(Debug)]
pub(super) struct Function {
    /// Where its instructions begin.
    pub start: u64,
    name: String,
    file: String,
    /// Of each word of its instructions.
    lines: Vec<u32>,
}

impl Function {
    /// What runs in a frame, if the next instruction is in it.
    pub(super) fn of(layout: Layout, frame: u64, next: u64, read: Read<'_>) -> Option<Self> {
        let sequence = word(frame, SEQUENCE, read)?;
        let kind = word(sequence, 0, read)?;
        if kind & KIND != INTERNAL || kind & INTERNAL_KIND != IS_SEQUENCE {
            return None;
        }
        let body = word(sequence, BODY, read)?;
        let (words, start) = (half(body, WORDS, read)?, word(body, CODE, read)?);
        if words == 0 || words > LONGEST_CODE || !is_in(start, words as usize, next) {
            return None;
        }
        let name = text(word(body, LABEL, read)?, read)?;
        let path = word(body, PATH, read)?;
        let file = text(path, read).or_else(|| path_of(path, read))?;
        Some(Self { start, name, file, lines: lines(body.checked_add(layout.lines)?, words, read)? })
    }

    /// Whether the next instruction may be here.
    pub(super) fn holds(&self, next: u64) -> bool {
        is_in(self.start, self.lines.len(), next)
    }

    /// The line of the instruction in front of an address: the next one is kept, not that which
    /// runs.
    pub(super) fn line(&self, next: u64) -> Option<ScriptLine> {
        let at = (next.checked_sub(self.start)? / 8).saturating_sub(1);
        let line = *self.lines.get(at as usize)?;
        let (function, file) = (self.name.clone(), self.file.clone());
        (line > 0).then_some(ScriptLine { language: "Ruby", function, file, line })
    }
}

/// Whether a word may be at an address: nothing is mapped at the low ones, nor above all.
pub(super) fn may_be_word(at: u64) -> bool {
    at.is_multiple_of(8) && (1 << 16..1 << 47).contains(&at)
}

fn is_in(start: u64, words: usize, next: u64) -> bool {
    let into = next.checked_sub(start);
    next.is_multiple_of(8) && into.is_some_and(|into| into <= 8 * words as u64)
}

/// The line of each word of instructions.
fn lines(told: u64, words: u32, read: Read<'_>) -> Option<Vec<u32>> {
    let (entries, count) = (word(told, 0, read)?, half(told, COUNT, read)?);
    if count == 0 || count > MOST_LINES {
        return None;
    }
    let mut bytes = vec![0; count as usize * ENTRY];
    read(entries, &mut bytes)?;
    let entries: Vec<u32> = bytes
        .chunks_exact(ENTRY)
        .filter_map(|entry| Some(u32::from_le_bytes(entry[..4].try_into().ok()?)))
        .collect();
    if count == 1 {
        return Some(vec![entries[0]; words as usize]);
    }
    let mut bytes = vec![0; index_words(words as usize) * 8];
    let at = word(told, INDEX, read)?;
    read(at, &mut bytes)?;
    let index: Vec<u64> = memory::words(&bytes).collect();
    (0..words as usize).map(|at| entries.get(entry_of(&index, at)?.checked_sub(1)?).copied()).collect()
}

/// The index counts, for each word of instructions, the entries that begin at it or before. Of the
/// first words it has the counts themselves, in seven bits each; of the others a bit for each, in
/// blocks with the counts in front of them and in front of each of their words.
const IN_A_WORD: usize = 9;
const FIRST: usize = 6 * IN_A_WORD;
const BLOCK_BITS: usize = 512;
const BLOCK_WORDS: usize = 10;

fn index_words(words: usize) -> usize {
    if words < FIRST {
        words.div_ceil(IN_A_WORD)
    } else {
        FIRST / IN_A_WORD + (words - FIRST).div_ceil(BLOCK_BITS) * BLOCK_WORDS
    }
}

/// How many entries begin at this word of instructions or before.
fn entry_of(index: &[u64], at: usize) -> Option<usize> {
    let Some(at) = at.checked_sub(FIRST) else {
        return Some((index.get(at / IN_A_WORD)? >> (at % IN_A_WORD * 7) & 0x7f) as usize);
    };
    let from = FIRST / IN_A_WORD + at / BLOCK_BITS * BLOCK_WORDS;
    let block = index.get(from..from + BLOCK_WORDS)?;
    let (part, bit) = (at % BLOCK_BITS / 64, at % 64);
    let before = part.checked_sub(1).map_or(0, |part| block[1] >> (part * 9) & 0x1ff);
    Some(block[0] as u32 as usize + before as usize + (block[2 + part] << (63 - bit)).count_ones() as usize)
}

/// The path of a list of two: as the program was told it, and from the root on, if there is a file.
fn path_of(list: u64, read: Read<'_>) -> Option<String> {
    let kind = word(list, 0, read)?;
    if kind & KIND != LIST {
        return None;
    }
    let elements = if kind & HAS_FLAG != 0 { list.checked_add(16)? } else { word(list, 32, read)? };
    let real = text(word(elements, 8, read)?, read);
    real.or_else(|| text(word(elements, 0, read)?, read))
}

fn text(at: u64, read: Read<'_>) -> Option<String> {
    let kind = word(at, 0, read)?;
    if kind & KIND != TEXT {
        return None;
    }
    let (length, begin) = if kind & HAS_FLAG != 0 {
        (word(at, 16, read)?, word(at, 24, read)?)
    } else {
        (kind >> 14 & 0x1f, at.checked_add(16)?)
    };
    let mut bytes = vec![0; length.min(LONGEST_TEXT) as usize];
    read(begin, &mut bytes)?;
    Some(insight::shown_name(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index as Ruby makes it, of entries that begin at these words of instructions.
    fn index(begins: &[usize], words: usize) -> Vec<u64> {
        let mut index = vec![0; index_words(words)];
        let before = |at: usize| begins.iter().filter(|begin| **begin <= at).count() as u64;
        for at in 0..words.min(FIRST) {
            index[at / IN_A_WORD] |= before(at) << (at % IN_A_WORD * 7);
        }
        for at in FIRST..words {
            let (block, bit) = ((at - FIRST) / BLOCK_BITS, (at - FIRST) % BLOCK_BITS);
            let from = FIRST / IN_A_WORD + block * BLOCK_WORDS;
            if bit == 0 {
                index[from] = before(at - 1);
                for part in 0..7 {
                    index[from + 1] |= (before(at + 64 * part + 63) - before(at - 1)) << (9 * part);
                }
            }
            if begins.contains(&at) {
                index[from + 2 + bit / 64] |= 1 << (bit % 64);
            }
        }
        index
    }

    #[test]
    fn the_index_tells_the_entry_of_each_word() {
        let begins = [0, 3, 8, 9, 53, 54, 60, 118, 119, 182, 565, 566, 567, 1000];
        for words in [9, 10, 53, 54, 55, 118, 119, 566, 567, 1200] {
            let index = index(&begins, words);
            for at in 0..words {
                let entries = begins.iter().filter(|begin| **begin <= at).count();
                assert_eq!(entry_of(&index, at), Some(entries), "{at} of {words}");
            }
            assert_eq!(entry_of(&index, 5000), None);
        }
    }

    #[test]
    fn a_line_is_that_of_the_instruction_in_front() {
        let function = Function {
            start: 0x1000,
            name: "sum".to_owned(),
            file: "/srv/sum.rb".to_owned(),
            lines: vec![4, 4, 5, 0],
        };
        let line = |next: u64| function.line(next).map(|line| line.line);
        assert_eq!([line(0x1000), line(0x1010), line(0x1018)], [Some(4), Some(4), Some(5)]);
        assert_eq!([line(0x1020), line(0x1030), line(0xff8)], [None; 3]);
        assert!(function.holds(0x1020) && !function.holds(0x1028) && !function.holds(0x1004));
    }
}

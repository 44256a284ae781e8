//! Where the eval loop of `CPython` keeps its place in the bytecode.
//!
//! Which register or word of its frame it is differs from build to build. It is learned: of those
//! that point into bytecode, the one that moves most often from frame to frame. Others were left
//! there earlier, and stay.
//!
//! For some operations a compiler needs that register for something else, and keeps the place in
//! another one. Then whatever points right behind an operation that runs at this place of the loop
//! counts, if all of that is one line. Where the loop itself was sampled, any register counts, if
//! all that point into bytecode point to one line. Else the frame has no line.

use super::Process;
use super::operations::Table;
use super::python::{self, Layout};
use crate::{files, memory};
use image::Image;
use image::elf::symbols::{Symbol, Symbols};
use insight::samples::{KnownRegisters, ScriptLine};
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use units::{FileOffset, Svma};

const RSP: usize = 4;
/// Words of an interpreter's frame that are looked at.
const MOST_WORDS: u64 = 128;
/// Frames by which it is learned where the bytecode's address is; words cost more to look at.
const LEARNED_BY: u64 = 512;
const WORDS_LEARNED_BY: u64 = 64;
/// What moved less often is not known to be it.
const LEAST_MOVES: u64 = 4;
/// A register that moves more often than this part of the best word's moves is preferred.
const PREFERRED: u64 = 4;
/// Registers that functions give back as they found them: those of callers are known.
const PRESERVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

/// Where an interpreter keeps its place in the bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kept {
    Register(usize),
    /// At this distance below the end of its frame, in bytes.
    Word(u64),
}

/// A file that holds the interpreter.
pub(super) struct EvalLoop {
    layout: Layout,
    /// Its code, by stated address.
    code: Vec<Range<u64>>,
    /// Where it begins.
    start: (FileOffset, Svma),
    /// What functions have as their type.
    kind: Svma,
    operations: Table,
    frames: u64,
    seen: HashMap<Kept, Seen>,
    /// The best of them, once it is learned.
    kept: Option<Kept>,
}

/// What was seen of a register or word.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    last: u64,
    /// How often it pointed into bytecode, and to another place than before.
    moves: u64,
}

/// A frame of the loop.
pub(super) struct Frame<'s> {
    pub process: u32,
    /// Its place in the file, and where the process has the loop.
    pub place: FileOffset,
    pub start: u64,
    pub registers: &'s KnownRegisters,
    /// Where it ends on the stack.
    pub end: Option<u64>,
    /// The bytes of the stack, from this address on.
    pub stack: (u64, &'s [u8]),
}

impl Frame<'_> {
    fn value(&self, kept: Kept) -> Option<u64> {
        match kept {
            Kept::Register(register) => self.registers[register],
            Kept::Word(below) => word(self.stack, self.end?.checked_sub(below)?),
        }
    }

    /// Its registers, and its words if these are asked for.
    fn all(&self, with_words: bool) -> impl Iterator<Item = Kept> {
        let from = self.registers[RSP].filter(|_| with_words);
        let words = self.end.zip(from).map_or(0, |(end, from)| end.saturating_sub(from) / 8);
        let words = (1..=words.min(MOST_WORDS)).map(|word| Kept::Word(8 * word));
        PRESERVED.map(Kept::Register).into_iter().chain(words)
    }
}

/// A word of a stack of which the first byte is at an address.
fn word((from, stack): (u64, &[u8]), address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(from)?).ok()?;
    Some(u64::from_le_bytes(stack.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl EvalLoop {
    pub(super) fn of(image: &Image<'_>) -> Option<Self> {
        let layout = Layout::of(python::version(image)?)?;
        let symbols = Symbols::of(image, None);
        let is_part = |symbol: &&Symbol<'_>| python::is_eval_loop(symbol.name) && symbol.size > 0;
        let parts: Vec<&Symbol<'_>> = symbols.all().iter().filter(is_part).collect();
        let largest = parts.iter().max_by_key(|symbol| symbol.size)?;
        let code = image.bytes_at(largest.address, usize::try_from(largest.size).ok()?)?;
        Some(Self {
            layout,
            code: parts.iter().map(|part| part.address.0..part.address.0.saturating_add(part.size)).collect(),
            start: (image.file_offset(largest.address)?, largest.address),
            kind: files::exported(image, "PyCode_Type")?,
            operations: Table::of(code, largest.address),
            frames: 0,
            seen: HashMap::new(),
            kept: None,
        })
    }

    /// Where it begins in its file.
    pub(super) fn start(&self) -> FileOffset {
        self.start.0
    }

    /// The stated address of a place, if that is in the loop: all of its code is in one segment.
    fn stated(&self, place: FileOffset) -> Option<Svma> {
        let at = place.0.wrapping_sub(self.start.0.0).wrapping_add(self.start.1.0);
        self.code.iter().any(|code| code.contains(&at)).then_some(Svma(at))
    }

    pub(super) fn holds(&self, place: FileOffset) -> bool {
        self.stated(place).is_some()
    }

    /// The line that a frame of the loop runs.
    pub(super) fn line(&mut self, process: &mut Process, frame: &Frame<'_>) -> Option<ScriptLine> {
        let moved = frame.start.wrapping_sub(self.start.1.0);
        let kind = self.kind.0.wrapping_add(moved);
        self.frames += 1;
        if self.frames <= LEARNED_BY {
            for kept in frame.all(self.frames <= WORDS_LEARNED_BY) {
                let Some(at) = frame.value(kept) else { continue };
                if process.function(frame.process, kind, &self.layout, at).is_some() {
                    let seen = self.seen.entry(kept).or_default();
                    seen.moves += u64::from(seen.last != at);
                    seen.last = at;
                }
            }
            self.learn();
        }
        if let Some(at) = self.kept.and_then(|kept| frame.value(kept))
            && let Some(function) = process.function(frame.process, kind, &self.layout, at)
        {
            return function.line(at);
        }
        self.line_of_operation(process, frame, moved)
    }

    /// Chooses the one that moved most often.
    fn learn(&mut self) {
        let weight = |(kept, seen): (&Kept, &Seen)| match kept {
            Kept::Register(_) => (seen.moves * PREFERRED, std::cmp::Reverse(*kept)),
            Kept::Word(_) => (seen.moves, std::cmp::Reverse(*kept)),
        };
        let moved = self.seen.iter().filter(|(_, seen)| seen.moves >= LEAST_MOVES);
        self.kept = moved.map(weight).max().map(|(_, std::cmp::Reverse(kept))| kept);
    }

    /// The line that all point to which point right behind an operation that runs at this place.
    fn line_of_operation(
        &mut self,
        process: &mut Process,
        frame: &Frame<'_>,
        moved: u64,
    ) -> Option<ScriptLine> {
        let at = self.stated(frame.place)?;
        let memory = memory::opened(&mut process.memory, frame.process)?;
        let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
        let operations = self.operations.at(at, &self.code, moved, &mut read)?;
        let is_behind = |next: &u64| {
            let mut operation = [0];
            let at = next.checked_sub(python::UNIT).filter(|at| python::may_be_code(*at));
            let is_read = at.is_some_and(|at| read(at, &mut operation).is_some());
            is_read && operations.holds(operation[0])
        };
        let values = frame.all(true).filter_map(|kept| frame.value(kept));
        let next: Vec<u64> = values.filter(is_behind).collect();
        let kind = self.kind.0.wrapping_add(moved);
        let mut lines = next
            .into_iter()
            .filter_map(|next| process.function(frame.process, kind, &self.layout, next)?.line(next));
        let first = lines.next()?;
        lines.all(|other| other == first).then_some(first)
    }
}

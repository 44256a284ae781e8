//! Lines of scripts, beside the frames of the interpreter that runs them.
//!
//! An interpreter keeps in a register, or in a word of its frame, where it is in a function's
//! bytecode. A sample with a stack holds both as they were at that moment; functions themselves
//! stay where they are, so they may be read a little later. Nothing else of the interpreter is
//! read: its own list of frames would be that of another moment.
//!
//! ```text
//!   sampled   dict lookup          registers, stack
//!   called by the eval loop        its registers, by the unwind tables: one of them points
//!                                  into the bytecode of `join`, at what line 8 became
//! ```
//!
//! Which register or word it is differs from build to build. It is learned: of those that
//! point into bytecode, the one that moves most often from frame to frame. Others were left
//! there earlier, and stay. Where the eval loop itself was sampled, and needs that register
//! for something else, any other counts, if all that point into bytecode point to one line.
//! Else the frame has no line.
//!
//! Ruby says in its source which registers these are, so nothing is learned of it.
//!
//! ```text
//! python   functions of `CPython`: their bytecode, names and lines
//! ruby     the same of Ruby
//! ```

mod python;
mod ruby;

use crate::{files, memory};
use image::Image;
use image::elf::symbols::{Symbol, Symbols};
use insight::samples::{KnownRegisters, Mapped, MappedId, Place, ScriptLine, Tally};
use python::{Function, Layout};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
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
/// Values that are known to be no bytecode's address.
const MOST_OTHERS: usize = 64 << 10;

/// Where an interpreter keeps its place in the bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kept {
    Register(usize),
    /// At this distance below the end of its frame, in bytes.
    Word(u64),
}

/// A file that holds an interpreter.
enum Holds {
    Python(Python),
    Ruby(ruby::Layout),
}

/// Python's.
struct Python {
    layout: Layout,
    /// The code of its eval loop, by place in the file.
    eval: Vec<Range<u64>>,
    /// A place of it, with its stated address, by which others are found in a process.
    known: (FileOffset, Svma),
    /// The stated address of what functions have as their type.
    kind: Svma,
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

/// What is known of a process that runs scripts.
#[derive(Default)]
struct Process {
    memory: Option<File>,
    /// By the address of their bytecode.
    functions: BTreeMap<u64, Function>,
    /// Of Ruby, by the address of their instructions.
    sequences: BTreeMap<u64, ruby::Function>,
    others: HashSet<u64>,
}

/// All interpreters.
#[derive(Default)]
pub(crate) struct Interpreters {
    files: HashMap<MappedId, Option<Holds>>,
    processes: HashMap<u32, Process>,
}

impl Interpreters {
    /// Whether a process has an interpreter mapped, so that registers of callers are worth knowing.
    pub(crate) fn runs_scripts(&mut self, tally: &Tally, process: u32) -> bool {
        let Some(process) = tally.processes.get(&process) else { return false };
        process.space.all().any(|mapping| self.file(tally.mapped(mapping.what), mapping.what).is_some())
    }

    fn file(&mut self, mapped: &Mapped, what: MappedId) -> Option<&mut Holds> {
        self.files.entry(what).or_insert_with(|| Holds::of(mapped)).as_mut()
    }

    /// The process has executed another program, or ended.
    pub(crate) fn forget(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// The lines that the frames of a stack run, by the number of the frame. `places` are those of
    /// the frames, the sampled one first; `stack` are the bytes from its stack pointer on.
    pub(crate) fn lines(
        &mut self,
        tally: &Tally,
        process: u32,
        places: &[Place],
        registers: &[KnownRegisters],
        stack: (u64, &[u8]),
    ) -> Vec<(usize, ScriptLine)> {
        let mut found = Vec::new();
        for (number, (place, known)) in places.iter().zip(registers).enumerate() {
            let python = match self.files.get_mut(&place.what).and_then(Option::as_mut) {
                Some(Holds::Python(python)) => python,
                Some(Holds::Ruby(layout)) => {
                    let line =
                        ruby_line(&mut self.processes, process, *layout, known, registers.get(number + 1));
                    found.extend(line.map(|line| (number, line)));
                    continue;
                }
                None => continue,
            };
            if !python.eval.iter().any(|range| range.contains(&place.offset.0)) {
                continue;
            }
            let Some(known_at) = address_of(tally, process, place.what, python.known.0) else {
                continue;
            };
            let kind = python.kind.0.wrapping_sub(python.known.1.0).wrapping_add(known_at);
            let end = registers.get(number + 1).and_then(|caller| caller[RSP]);
            let read = self.processes.entry(process).or_default();
            let line = python.line(read, process, kind, known, end, stack);
            let line = line.or_else(|| if number == 0 { read.line_of_registers(known) } else { None });
            found.extend(line.map(|line| (number, line)));
        }
        found
    }
}

/// Where what is at this place in a file is in a process.
fn address_of(tally: &Tally, process: u32, what: MappedId, at: FileOffset) -> Option<u64> {
    let space = &tally.processes.get(&process)?.space;
    let holds = |offset: u64, bytes: u64| at.0.checked_sub(offset).filter(|into| *into < bytes);
    space
        .all()
        .filter(|mapping| mapping.what == what)
        .find_map(|mapping| Some(mapping.start.0 + holds(mapping.offset.0, mapping.end.0 - mapping.start.0)?))
}

/// The line that a frame of Ruby's eval loop runs. Functions that it calls do not always use its
/// registers, so what the next frame has, too, is that one's.
fn ruby_line(
    processes: &mut HashMap<u32, Process>,
    process: u32,
    layout: ruby::Layout,
    known: &KnownRegisters,
    caller: Option<&KnownRegisters>,
) -> Option<ScriptLine> {
    let kept = |known: &KnownRegisters| known[ruby::NEXT].zip(known[ruby::FRAME]);
    let (next, frame) = kept(known)?;
    if caller.and_then(kept) == Some((next, frame)) {
        return None;
    }
    processes.entry(process).or_default().sequence(process, &layout, frame, next)?.line(next)
}

impl Holds {
    fn of(mapped: &Mapped) -> Option<Self> {
        let name = String::from_utf8_lossy(&mapped.name).into_owned();
        let name = name.rsplit('/').next()?;
        let is_named = |word: &str| name.strip_prefix("lib").unwrap_or(name).starts_with(word);
        if !is_named("python") && !is_named("ruby") {
            return None;
        }
        let file = files::bytes_of(mapped)?;
        let image = Image::parse(&file).ok()?;
        if is_named("ruby") {
            ruby::Layout::of(&image).map(Self::Ruby)
        } else {
            Python::of(&image).map(Self::Python)
        }
    }
}

impl Python {
    fn of(image: &Image<'_>) -> Option<Self> {
        let layout = Layout::of(python::version(image)?)?;
        let symbols = Symbols::of(image, None);
        let eval = symbols.all().iter().filter(|symbol| python::is_eval_loop(symbol.name) && symbol.size > 0);
        let placed =
            |symbol: &Symbol<'_>| Some((image.file_offset(symbol.address)?, symbol.address, symbol.size));
        let eval: Vec<(FileOffset, Svma, u64)> = eval.filter_map(placed).collect();
        let &(offset, address, _) = eval.first()?;
        Some(Self {
            layout,
            eval: eval.iter().map(|(offset, _, size)| offset.0..offset.0 + size).collect(),
            known: (offset, address),
            kind: files::exported(image, "PyCode_Type")?,
            frames: 0,
            seen: HashMap::new(),
            kept: None,
        })
    }

    /// The line that one frame of the eval loop runs.
    fn line(
        &mut self,
        process: &mut Process,
        number: u32,
        kind: u64,
        known: &KnownRegisters,
        end: Option<u64>,
        stack: (u64, &[u8]),
    ) -> Option<ScriptLine> {
        let value = |kept: Kept| match kept {
            Kept::Register(register) => known[register],
            Kept::Word(below) => word(stack, end?.checked_sub(below)?),
        };
        self.frames += 1;
        if self.frames <= LEARNED_BY {
            let words = end.zip(known[RSP]).map_or(0, |(end, from)| end.saturating_sub(from) / 8);
            let words = if self.frames <= WORDS_LEARNED_BY { words.min(MOST_WORDS) } else { 0 };
            let words = (1..=words).map(|word| Kept::Word(8 * word));
            for kept in PRESERVED.map(Kept::Register).into_iter().chain(words) {
                let Some(at) = value(kept) else { continue };
                if process.function(number, kind, &self.layout, at).is_some() {
                    let seen = self.seen.entry(kept).or_default();
                    seen.moves += u64::from(seen.last != at);
                    seen.last = at;
                }
            }
            self.learn();
        }
        let at = value(self.kept?)?;
        process.function(number, kind, &self.layout, at)?.line(at)
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
}

/// A word of a stack of which the first byte is at an address.
fn word((from, stack): (u64, &[u8]), address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(from)?).ok()?;
    Some(u64::from_le_bytes(stack.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl Process {
    /// The line that all of these registers point to that point into bytecode that is known.
    fn line_of_registers(&self, known: &KnownRegisters) -> Option<ScriptLine> {
        let line = |at: u64| {
            let (_, function) = self.functions.range(..=at).next_back().filter(|(_, it)| it.holds(at))?;
            function.line(at)
        };
        let mut lines = known.iter().flatten().filter_map(|&at| line(at));
        let first = lines.next()?;
        lines.all(|other| other == first).then_some(first)
    }

    /// The function whose bytecode holds an address, read now or before.
    fn function(&mut self, process: u32, kind: u64, layout: &Layout, at: u64) -> Option<&Function> {
        // Bytecode is in pairs of bytes, and nothing is mapped down here.
        if at % 2 != 0 || !(1 << 16..1 << 47).contains(&at) || self.others.contains(&at) {
            return None;
        }
        let known = self.functions.range(..=at).next_back().filter(|(_, function)| function.holds(at));
        let start = if let Some((start, _)) = known {
            *start
        } else {
            let memory = memory::opened(&mut self.memory, process)?;
            let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
            let Some(function) = Function::around(layout, kind, at, &mut read) else {
                if self.others.len() < MOST_OTHERS {
                    self.others.insert(at);
                }
                return None;
            };
            let start = function.start;
            self.functions.insert(start, function);
            start
        };
        self.functions.get(&start)
    }

    /// The method or block of Ruby that runs in a frame, read now or before.
    fn sequence(
        &mut self,
        process: u32,
        layout: &ruby::Layout,
        frame: u64,
        next: u64,
    ) -> Option<&ruby::Function> {
        if [frame, next].iter().any(|at| at % 8 != 0 || !(1 << 16..1 << 47).contains(at)) {
            return None;
        }
        let known = self.sequences.range(..=next).next_back().filter(|(_, function)| function.holds(next));
        let start = if let Some((start, _)) = known {
            *start
        } else {
            let memory = memory::opened(&mut self.memory, process)?;
            let mut read = |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).ok();
            let function = ruby::Function::of(layout, frame, next, &mut read)?;
            let start = function.start;
            self.sequences.insert(start, function);
            start
        };
        self.sequences.get(&start)
    }
}

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
//! ```text
//! eval_loop   where `CPython` keeps its place: that differs from build to build
//! operations  which operation the code of its eval loop executes
//! python      functions of `CPython`: their bytecode, names and lines
//! ruby        the same of Ruby, whose source says where it keeps its place
//! ```

mod eval_loop;
mod operations;
mod python;
mod ruby;

use crate::{files, memory};
use eval_loop::{EvalLoop, Frame};
use image::Image;
use insight::samples::{KnownRegisters, Mapped, MappedId, Place, ScriptLine, Tally};
use python::{Function, Layout};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use units::FileOffset;

const RSP: usize = 4;
/// Values that are known to be no bytecode's address.
const MOST_OTHERS: usize = 64 << 10;

/// A file that holds an interpreter.
enum Interpreter {
    Python(Box<EvalLoop>),
    Ruby(ruby::Layout),
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
    files: HashMap<MappedId, Option<Interpreter>>,
    processes: HashMap<u32, Process>,
}

impl Interpreters {
    /// Whether a process has an interpreter mapped, so that registers of callers are worth knowing.
    pub(crate) fn runs_scripts(&mut self, tally: &Tally, process: u32) -> bool {
        let Some(process) = tally.processes.get(&process) else { return false };
        process.space.all().any(|mapping| self.file(tally.mapped(mapping.what), mapping.what).is_some())
    }

    fn file(&mut self, mapped: &Mapped, what: MappedId) -> Option<&mut Interpreter> {
        self.files.entry(what).or_insert_with(|| Interpreter::of(mapped)).as_mut()
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
            let caller = registers.get(number + 1);
            let line = match self.files.get_mut(&place.what).and_then(Option::as_mut) {
                Some(Interpreter::Python(python)) if python.holds(place.offset) => {
                    let Some(start) = address_of(tally, process, place.what, python.start()) else {
                        continue;
                    };
                    let end = caller.and_then(|caller| caller[RSP]);
                    let frame = Frame { process, place: place.offset, start, registers: known, end, stack };
                    let read = self.processes.entry(process).or_default();
                    let line = python.line(read, &frame);
                    line.or_else(|| if number == 0 { read.line_of_registers(known) } else { None })
                }
                Some(Interpreter::Ruby(layout)) => {
                    let read = self.processes.entry(process).or_default();
                    read.line_of_ruby(process, *layout, known, caller)
                }
                _ => None,
            };
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

impl Interpreter {
    fn of(mapped: &Mapped) -> Option<Self> {
        let name = String::from_utf8_lossy(&mapped.name).into_owned();
        let name = name.rsplit('/').next()?;
        let name = name.strip_prefix("lib").unwrap_or(name);
        let (is_python, is_ruby) = (name.starts_with("python"), name.starts_with("ruby"));
        if !is_python && !is_ruby {
            return None;
        }
        let file = files::bytes_of(mapped)?;
        let image = Image::parse(&file).ok()?;
        if is_python {
            EvalLoop::of(&image).map(|python| Self::Python(Box::new(python)))
        } else {
            ruby::Layout::of(&image).map(Self::Ruby)
        }
    }
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
        if !python::may_be_code(at) || self.others.contains(&at) {
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

    /// The line that a frame of Ruby's eval loop runs. Functions that it calls do not always use
    /// its registers, so what the next frame has, too, is that one's.
    fn line_of_ruby(
        &mut self,
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
        self.sequence(process, layout, frame, next)?.line(next)
    }

    /// The method or block of Ruby that runs in a frame, read now or before.
    fn sequence(
        &mut self,
        process: u32,
        layout: ruby::Layout,
        frame: u64,
        next: u64,
    ) -> Option<&ruby::Function> {
        if ![frame, next].into_iter().all(ruby::may_be_word) {
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

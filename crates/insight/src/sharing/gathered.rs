//! Accesses from the samples that were kept: of all loads and stores that the core waited for.

use super::access::{Access, Moment, in_shared};
use crate::code::cause::{Code, accesses, writes};
use crate::code::source::Source;
use crate::data::data_address::{DataAddress, address_ahead, data_address};
use crate::data::objects::{Found, Object, Objects};
use crate::samples::heap;
use crate::samples::tally::Kept;
use iced_x86::{Instruction, Mnemonic, OpAccess, Register, UsedMemory};
use std::collections::{BTreeMap, HashMap};
use units::{Avma, Estimate, Svma};

/// An instruction that accesses are by.
#[derive(Clone, Debug, Default)]
pub(crate) struct By {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Its function: the module's number and the unit's.
    pub unit: Option<(u32, usize)>,
    /// Samples behind it.
    pub samples: u64,
    /// The number of the load among those that are listed.
    pub listed: Option<usize>,
    pub each: Option<Estimate>,
    /// What it reads fits into a cache of the core's own, and comes from farther all the same.
    pub is_farther: bool,
    /// It locks its line: it waits for all stores before it, even if the line is private.
    pub locks: bool,
    /// It exchanges what is there, as is done to take a lock.
    pub exchanges: bool,
}

impl By {
    /// An instruction by its function and its line.
    pub(crate) fn named(source: Option<&Source<'_>>, address: Svma) -> Self {
        let frames = source.map(|source| source.frames(address)).unwrap_or_default();
        let line = frames.first().and_then(|frame| frame.line.as_ref());
        Self {
            function: frames.last().and_then(|frame| frame.function.clone()),
            file: line.map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            ..Self::default()
        }
    }
}

/// The object that an address lies in, with where it begins if it is one of several of its name.
pub(crate) fn object_at(objects: &Objects<'_, '_>, kept: &Kept, at: Avma) -> Option<(Object, u64)> {
    match objects.found(kept, at) {
        Found::Object(object) => Some((object, 0)),
        Found::Allocation(object, _) | Found::OneOfMany(object, _) => {
            Some((object, heap::holder(&kept.near, at.0).map_or(0, heap::Near::start)))
        }
        Found::NotChosen(object) => Some((object?, 0)),
        Found::Nothing => None,
    }
}

/// Memory that was not there when a thread accessed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub process: u32,
    pub thread: u32,
    pub object: u32,
    pub by: u32,
    pub weight: f64,
}

/// Everything that was seen of accesses.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub accesses: Vec<Access>,
    pub faults: Vec<Fault>,
    pub by: Vec<By>,
    /// Objects, each with where it begins if it is one of several of its name.
    pub objects: Vec<(Object, u64)>,
    numbers: HashMap<(Object, u64), u32>,
    /// All samples of each function that accesses are in.
    pub moments: BTreeMap<(u32, usize), Vec<Moment>>,
}

/// Instructions before and behind a load among which a store to the same address is looked for.
const NEARBY: usize = 16;

impl Gathered {
    /// Takes in the samples behind an instruction; `is_chased` as for [`data_address`].
    pub(crate) fn add(
        &mut self,
        source: &Source<'_>,
        objects: &Objects<'_, '_>,
        address: Svma,
        kept: &[Kept],
        samples: u64,
        is_chased: Option<bool>,
    ) -> Option<u32> {
        let instruction = source.code.instruction(address)?;
        let [memory] = accesses(&instruction)[..] else { return None };
        let is_written = is_write(&memory) || is_stored_nearby(&source.code, address, &memory);
        let number = self.named(source, address, samples);
        let told = |kept: &Kept| match data_address(&instruction, &kept.sample.registers?, is_chased) {
            // The next step along a list is as good: it is about to be read.
            Ok(DataAddress::Read(at) | DataAddress::Next(at)) => Some((*kept, at)),
            _ => None,
        };
        let known: Vec<(Kept, u64)> = kept.iter().filter_map(told).collect();
        let weight = samples as f64 / known.len().max(1) as f64;
        for (kept, at) in known {
            let object = self.object(objects, &kept, at);
            self.accesses.push(Access {
                process: kept.sample.process,
                thread: kept.sample.thread,
                time_ns: kept.sample.time_ns,
                address: at,
                shared: in_shared(objects.tally, kept.sample.process, at),
                bytes: u32::try_from(memory.memory_size().size()).unwrap_or(64).clamp(1, 64),
                writes: is_written,
                weight,
                by: number,
                object,
            });
        }
        Some(number)
    }

    /// Takes in the samples of faults at an instruction.
    pub(crate) fn add_faults(
        &mut self,
        source: &Source<'_>,
        objects: &Objects<'_, '_>,
        address: Svma,
        kept: &[Kept],
        samples: u64,
    ) {
        let Some(instruction) = source.code.instruction(address) else { return };
        // These registers are those in front of it: what it overwrites is as it was.
        let told = |kept: &Kept| Some((*kept, address_ahead(&instruction, &kept.sample.registers?).ok()?));
        let known: Vec<(Kept, u64)> = kept.iter().filter_map(told).collect();
        if known.is_empty() {
            return;
        }
        let by = self.named(source, address, samples);
        let weight = samples as f64 / known.len() as f64;
        for (kept, at) in known {
            let Some(object) = self.object(objects, &kept, at) else { continue };
            let (process, thread) = (kept.sample.process, kept.sample.thread);
            self.faults.push(Fault { process, thread, object, by, weight });
        }
    }

    /// Takes in that threads ran a function.
    pub(crate) fn ran(&mut self, unit: (u32, usize), kept: &[Kept], samples: u64) {
        let weight = samples as f64 / kept.len().max(1) as f64;
        let moment = |kept: &Kept| Moment {
            process: kept.sample.process,
            thread: kept.sample.thread,
            time_ns: kept.sample.time_ns,
            weight,
            registers: kept.sample.registers,
        };
        self.moments.entry(unit).or_default().extend(kept.iter().map(moment));
    }

    fn named(&mut self, source: &Source<'_>, address: Svma, samples: u64) -> u32 {
        let instruction = source.code.instruction(address);
        self.by.push(By {
            unit: source.code.module.unit_at(address).map(|unit| (source.file.what, unit)),
            samples,
            locks: locks(instruction),
            exchanges: exchanges(instruction),
            ..By::named(Some(source), address)
        });
        self.by.len() as u32 - 1
    }

    fn object(&mut self, objects: &Objects<'_, '_>, kept: &Kept, at: u64) -> Option<u32> {
        let key = object_at(objects, kept, Avma(at))?;
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let number = self.objects.len() as u32;
        self.objects.push(key.clone());
        self.numbers.insert(key, number);
        Some(number)
    }
}

/// Whether an instruction is atomic: by its prefix, or as an exchange with memory always is.
fn locks(instruction: Option<Instruction>) -> bool {
    instruction.is_some_and(|instruction| {
        let exchanges = instruction.mnemonic() == Mnemonic::Xchg && !accesses(&instruction).is_empty();
        instruction.has_lock_prefix() || exchanges
    })
}

/// Whether an instruction is atomic and puts a value in the place of another one.
fn exchanges(instruction: Option<Instruction>) -> bool {
    let exchanges = |mnemonic| matches!(mnemonic, Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Bts);
    locks(instruction) && instruction.is_some_and(|instruction| exchanges(instruction.mnemonic()))
}

fn is_write(memory: &UsedMemory) -> bool {
    matches!(
        memory.access(),
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Whether an instruction nearby stores to what this one reads: the same registers with the same
/// displacement, which nothing between them changes.
fn is_stored_nearby(code: &Code<'_>, load: Svma, memory: &UsedMemory) -> bool {
    let Some(unit) = code.unit_at(load) else { return false };
    let Ok(at) = unit.instructions.binary_search_by_key(&load.0, Instruction::ip) else { return false };
    let same = |other: &UsedMemory| {
        (other.base(), other.index(), other.scale(), other.displacement(), other.segment())
            == (memory.base(), memory.index(), memory.scale(), memory.displacement(), memory.segment())
    };
    let stores =
        |instruction: &&Instruction| accesses(instruction).iter().any(|other| is_write(other) && same(other));
    let changes = |instruction: &Instruction| {
        [memory.base(), memory.index()]
            .iter()
            .any(|&register| register != Register::None && writes(instruction, register))
    };
    // A load that replaces its own base reads elsewhere the next time.
    if changes(&unit.instructions[at]) {
        return false;
    }
    let keeps = |instruction: &&Instruction| !changes(instruction);
    let behind = unit.instructions[at + 1..].iter().take(NEARBY).take_while(keeps).any(|i| stores(&i));
    let before = unit.instructions[..at].iter().rev().take(NEARBY).take_while(keeps).any(|i| stores(&i));
    behind || before
}

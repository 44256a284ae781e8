//! From what twins wrote down to what the caches make of it, counted by instruction.

use crate::memory::{Told, Writer};
use crate::places::{Operand, Places};
use crate::slices::{Slice, Slices};
use caches::{Access, Hierarchy, LINE, Outcome, Served, Traffic};
use std::collections::HashMap;
use twin_format::trace::{COUNT, Place};

/// What one instruction's accesses came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub accesses: u64,
    pub l2: u64,
    pub l3: u64,
    pub memory: u64,
    /// Of those beyond L2.
    pub expected: u64,
    pub walks: u64,
    /// Lines that memory was asked for.
    pub lines: u64,
}

impl Counts {
    #[inline]
    fn add(&mut self, outcome: Outcome) {
        self.accesses += 1;
        self.walks += u64::from(outcome.walks);
        match outcome.served {
            Served::L1 => return,
            Served::L2 => {
                self.l2 += 1;
                return;
            }
            Served::L3 => self.l3 += 1,
            Served::Memory => self.memory += 1,
        }
        self.expected += u64::from(outcome.is_expected);
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.accesses += other.accesses;
        self.l2 += other.l2;
        self.l3 += other.l3;
        self.memory += other.memory;
        self.expected += other.expected;
        self.walks += other.walks;
        self.lines += other.lines;
        self
    }
}

/// A module whose accesses are told.
pub(crate) struct Module {
    pub places: Places,
    /// By place.
    pub counts: Vec<Counts>,
    /// The number of its first unit among the functions of all modules.
    pub functions: u32,
}

pub(crate) struct Feed {
    caches: Hierarchy,
    /// By number.
    pub modules: Vec<Module>,
    slices: Slices,
    cores: HashMap<Writer, usize>,
    /// Entries that no place of a module fits: a chunk was written by two, or by a process of its
    /// own mind.
    pub strange: u64,
}

impl Feed {
    pub(crate) fn new(caches: Hierarchy, places: Vec<Places>) -> Self {
        let mut functions = 0;
        let mut modules = Vec::new();
        for places in places {
            let counts = vec![Counts::default(); places.all.len()];
            let units = places.units.len() as u32;
            modules.push(Module { places, counts, functions });
            functions += units;
        }
        let slices = Slices::new(functions as usize);
        Self { caches, modules, slices, cores: HashMap::new(), strange: 0 }
    }

    /// Threads that were seen.
    pub(crate) fn threads(&self) -> usize {
        self.cores.len()
    }

    /// The accesses of a thread, in their order.
    pub(crate) fn told(&mut self, writer: Writer, told: &[Told]) {
        let (known, cores) = (self.cores.len(), self.caches.cores());
        let core = *self.cores.entry(writer).or_insert(known) % cores;
        let mut repeat = 0;
        for told in told {
            let place = Place::decode(told.place);
            let found = self.modules.get_mut(usize::from(place.module)).and_then(|module| {
                let number = module.places.at(place.address)?;
                Some((module, number))
            });
            let Some((module, number)) = found else {
                self.strange += 1;
                continue;
            };
            if place.access == COUNT {
                repeat = told.address;
                continue;
            }
            let Some(operand) = module.places.operand(number, place.access) else {
                self.strange += 1;
                continue;
            };
            let counts = &mut module.counts[number];
            let lines = if operand.is_repeated {
                repeated(&mut self.caches, core, told.address, *operand, repeat, counts)
            } else {
                let outcome =
                    self.caches.access(core, told.address, u64::from(operand.bytes), operand.access);
                counts.add(outcome);
                u64::from(outcome.served == Served::Memory)
            };
            counts.lines += lines;
            let function = module.functions + module.places.all[number].unit;
            if self.slices.count(function, 1, lines) {
                self.slices.end(&self.caches.traffic());
            }
        }
    }

    /// All of it, once nothing more is told.
    pub(crate) fn finish(self) -> (Vec<Module>, Vec<Slice>, Vec<Traffic>) {
        let traffic = self.caches.traffic();
        (self.modules, self.slices.finish(&traffic), traffic)
    }
}

/// A string instruction: line by line. The lines that memory was asked for.
fn repeated(
    caches: &mut Hierarchy,
    core: usize,
    address: u64,
    operand: Operand,
    times: u64,
    counts: &mut Counts,
) -> u64 {
    /// No copy is longer: a count like this is none.
    const MOST_BYTES: u64 = 1 << 36;
    // Where it ends early is not known.
    let times = if operand.may_end { times.min(1) } else { times };
    let bytes = times.saturating_mul(u64::from(operand.bytes)).min(MOST_BYTES);
    let end = address.saturating_add(bytes);
    let (mut at, mut lines) = (address, 0);
    let mut worst: Option<Outcome> = None;
    while at < end {
        let next = end.min((at | (LINE - 1)).saturating_add(1));
        let is_whole = next - at == LINE;
        let access = match operand.access {
            Access::WriteWhole if !is_whole => Access::Write,
            access => access,
        };
        let outcome = caches.access(core, at, next - at, access);
        lines += u64::from(outcome.served == Served::Memory && access != Access::WriteWhole);
        if worst.is_none_or(|worst| outcome.served > worst.served) {
            worst = Some(outcome);
        }
        at = next;
    }
    if let Some(worst) = worst {
        counts.add(worst);
    }
    lines
}

//! Which loads the core waited for, and which it only computed with.
//!
//! A sample behind a load says that the core waited for that instruction. Where its data is in L1
//! that was no stall on memory: a load there takes some cycles in any program, and where it is one
//! operand of an operation, the core waited for the operation. The same goes for a stream whose
//! loop takes no longer than what it computes from turn to turn. A chain through L1 is a stall:
//! each of its loads waits for the one before.
//!
//! That is known once all of a run's loads are: lines that other threads write are in L1 by their
//! addresses, and loads with few samples are in L1 if all of their function are.

use super::ByClock;
use crate::code::each::{Beside, stall_each};
use crate::code::source::Source;
use crate::data::level::judge;
use crate::data::object_stalls::{NO_LATENCY, Reading};
use crate::findings::record::{FunctionFigures, SampledUnit};
use crate::share::measured_share;
use crate::sharing::access::Memory;
use crate::sharing::on_one_stack;
use records::profile::Level;
use std::collections::{BTreeMap, HashMap, HashSet};
use units::{Estimate, Quantity, Svma};

/// With fewer addresses no level is known. Where no sample of a run tells addresses, as none does
/// that another profiler stored, fewer samples than that tell nothing of a load.
const FEW: usize = 16;
/// Parts of a sample that are counted.
const ALIKE: u64 = 1000;

/// What L1 takes on any processor, or hardly less.
pub(super) const SHORT_CYCLES: f64 = 5.0;

/// A load that samples landed behind.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not hang on one another")]
pub(super) struct WaitedLoad {
    /// Its file and its function.
    pub what: u32,
    pub unit: Option<usize>,
    pub address: Svma,
    pub samples: u64,
    pub level: Level,
    pub beyond_l2: bool,
    /// Its number among those that are listed, and among instructions whose accesses are gathered.
    pub listed: Option<usize>,
    pub by: Option<u32>,
    pub is_chain: bool,
    /// Its loop takes no longer than what it computes.
    pub takes_its_time: bool,
    /// The instructions around it that run as often.
    pub beside: Option<Beside>,
    /// The core waits no longer for it each time than L1 takes.
    pub is_short: bool,
    /// What its samples read.
    pub addresses: Vec<u64>,
    pub readings: Vec<Reading>,
}

impl WaitedLoad {
    /// Too seldom sampled to know it by itself; `tells_addresses`: samples of this run do.
    fn is_seldom(&self, tells_addresses: bool) -> bool {
        let known = if tells_addresses { self.addresses.len() as u64 } else { self.samples };
        known < FEW as u64
    }
}

/// A function with its samples, by instruction.
pub(super) struct SampledFunction {
    pub what: u32,
    pub unit: usize,
    pub samples: u64,
    pub stalled: u64,
    pub at: BTreeMap<Svma, u64>,
}

impl ByClock<'_, '_, '_> {
    /// Counts what the core waited for, and lists functions.
    pub(super) fn settle(&mut self, sources: &HashMap<u32, Source<'_>>) {
        let near = self.near_functions();
        let tells_addresses = self.waited.iter().any(|load| !load.addresses.is_empty());
        let are_short = self.few_are_short(tells_addresses);
        let met = self.met();
        let mut computed: HashMap<(u32, Option<usize>), u64> = HashMap::new();
        let mut gone = HashSet::new();
        for load in std::mem::take(&mut self.waited) {
            let level = load.listed.map_or(load.level, |number| self.listed.loads[number].level);
            let is_near = match level {
                Level::L1 => true,
                Level::L2 => load.is_short,
                Level::Unresolved if load.beyond_l2 => false,
                Level::Unresolved => {
                    let few = are_short && load.is_seldom(tells_addresses);
                    few || load.is_short || near.contains(&(load.what, load.unit))
                }
                _ => false,
            };
            let computes = is_near || load.takes_its_time && level != Level::Dirty;
            if load.is_chain || !computes || load.by.is_some_and(|by| met.contains(&by)) {
                self.stalls.count(&load.readings, load.samples as f64);
                if load.beyond_l2 || level == Level::Dirty {
                    self.far.insert((load.what, load.address));
                }
                continue;
            }
            self.sums.loads -= load.samples;
            self.sums.computing += load.samples;
            *self.levels.entry(level).or_default() -= load.samples;
            self.beyond_l2 -= if load.beyond_l2 { load.samples } else { 0 };
            *computed.entry((load.what, load.unit)).or_default() += load.samples;
            if let Some(attributed) = self.attributed.get_mut(&load.what) {
                attributed.computes(load.address);
            }
            self.computed.insert((load.what, load.address));
            gone.extend(load.listed);
        }
        self.latencies.retain(|told| told.listed.is_none_or(|number| !gone.contains(&number)));
        let mut number = 0;
        self.listed.loads.retain(|_| {
            number += 1;
            !gone.contains(&(number - 1))
        });
        for function in std::mem::take(&mut self.functions) {
            let computed = computed.get(&(function.what, Some(function.unit))).copied().unwrap_or(0);
            if let Some(source) = sources.get(&function.what) {
                self.list_function(source, &function, function.stalled.saturating_sub(computed));
            }
        }
    }

    /// Functions whose loads of an unknown level read, all together, no more than L1 holds.
    fn near_functions(&self) -> HashSet<(u32, Option<usize>)> {
        let mut read: HashMap<(u32, Option<usize>), Vec<u64>> = HashMap::new();
        for load in self.waited.iter().filter(|load| load.level == Level::Unresolved && !load.is_chain) {
            read.entry((load.what, load.unit)).or_default().extend(&load.addresses);
        }
        let fits = |addresses: &[u64]| judge(addresses, None, &self.run.caches).level == Level::L1;
        read.into_iter().filter(|(_, addresses)| fits(addresses)).map(|(function, _)| function).collect()
    }

    /// Whether the core waits no longer, each time, for loads of which too few samples tell where
    /// their data is, all of them taken together, than L1 takes. Programs that compute have samples
    /// behind all of their instructions, and so behind each of many loads a few.
    fn few_are_short(&self, tells_addresses: bool) -> bool {
        let few = self.waited.iter().filter(|load| {
            let is_unknown = load.level == Level::Unresolved && !load.beyond_l2;
            is_unknown && !load.is_chain && load.is_seldom(tells_addresses)
        });
        let (mut stalled, mut beside) = (0, Beside::default());
        for load in few {
            let Some(around) = load.beside.filter(|around| around.instructions > 0) else { continue };
            stalled += load.samples;
            // As if each had the same number of instructions beside it.
            beside.samples += ALIKE * around.samples / around.instructions;
            beside.instructions += 1;
        }
        // That many loads ran as often as that many instructions beside them.
        let sharp = self.run.sampling.calibration.one_behind.estimate().unwrap_or(Estimate::exact(1.0));
        let all = Beside { instructions: 1, samples: beside.samples / ALIKE };
        beside.instructions > 0 && stall_each(stalled, all, sharp).value <= SHORT_CYCLES
    }

    /// Instructions that mostly access lines which other threads write: whether they wait for those
    /// is seen where threads run at the same time, and a busy machine lets them take turns. Threads
    /// that run on one stack take turns on any machine.
    fn met(&self) -> HashSet<u32> {
        let accesses = &self.gathered.accesses;
        let mut writers: HashMap<(Memory, u64), HashSet<u32>> = HashMap::new();
        for access in accesses.iter().filter(|access| access.writes) {
            writers.entry(access.line()).or_default().insert(access.thread);
        }
        let on_one_stack = on_one_stack(self.gathered.moments.values().flatten());
        let mut met: HashMap<u32, f64> = HashMap::new();
        for access in accesses {
            let writers = writers.get(&access.line());
            let takes_it =
                |thread: &u32| *thread != access.thread && !on_one_stack.contains(&(*thread, access.thread));
            if writers.is_some_and(|writers| writers.iter().any(takes_it)) {
                *met.entry(access.by).or_default() += access.weight;
            }
        }
        let is_mostly =
            |(by, weight): &(u32, f64)| *weight >= 0.5 * self.gathered.by[*by as usize].samples as f64;
        met.into_iter().filter(is_mostly).map(|(by, _)| by).collect()
    }

    fn list_function(&mut self, source: &Source<'_>, function: &SampledFunction, stalled: u64) {
        let all = self.tally.samples;
        let figures = FunctionFigures {
            name: source.unit_name(function.unit, &function.at),
            time: measured_share(function.samples, all),
            stall: measured_share(stalled, all),
            latency_share: Quantity::unresolved(NO_LATENCY),
        };
        let Some(attributed) = self.attributed.get(&function.what) else { return };
        let unit = SampledUnit { number: function.unit, samples: function.samples, all, attributed };
        self.listed.add_function(source, &unit, figures);
    }
}

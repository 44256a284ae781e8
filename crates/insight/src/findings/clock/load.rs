//! One load, with all that its samples, its probes and its code tell.

use super::latency::LoadLatency;
use super::settled::WaitedLoad;
use super::{ByClock, NOT_BY_CLOCK, Waited};
use crate::code::dependence::Dependence;
use crate::code::each::{Beside, bounded, stall_each};
use crate::code::operation::carried;
use crate::code::source::Source;
use crate::data::data_address::{DataAddress, data_address};
use crate::data::footprint;
use crate::data::level::judge;
use crate::data::object_stalls::{NO_LATENCY, ObjectStalls, Reading};
use crate::data::objects::Objects;
use crate::data::pace::each_ns;
use crate::data::pattern::{Timed, pattern};
use crate::data::reuse::{Reuse, reuse};
use crate::findings::record::{LoadFigures, LoadPlace, LoadTime};
use crate::findings::run::LEAST_LISTED;
use crate::probes::latency::{latency, of_load};
use crate::probes::stride::stride;
use crate::samples::tally::{Kept, Probe};
use crate::share::measured_share;
use records::profile::{Level, Pattern};
use std::collections::BTreeSet;
use units::{Avma, Estimate, Quantity, Svma, Unit, share};

/// Why a load has no latency.
const NO_PROBES: &str = "it was not probed often enough";

/// A load that was sampled.
pub(super) struct Load<'p> {
    pub address: Svma,
    pub waited: Waited,
    pub probes: &'p [Probe],
    /// The instructions around it that run as often.
    pub beside: Option<Beside>,
    pub by_code: Option<Dependence>,
}

impl ByClock<'_, '_, '_> {
    /// Counts a load, and lists it if it has enough samples.
    pub(super) fn add_load(&mut self, source: &Source<'_>, load: &Load<'_>) {
        let &Load { address, ref waited, probes, beside, by_code } = load;
        let (run, objects, all) = (self.run, self.objects, self.tally.samples);
        let instruction = source.code.instruction(address);
        let told = |kept: &Kept| {
            let sample = &kept.sample;
            let at = data_address(instruction.as_ref()?, &sample.registers?).ok()?;
            let found = objects.found(kept, Avma(at.address()));
            let reading = Reading { thread: sample.thread, found, weight: 1.0 };
            Some((Timed { thread: sample.thread, time_ns: sample.time_ns, address: at }, reading))
        };
        let mut known: Vec<(Timed, Reading)> = waited.kept.iter().filter_map(told).collect();
        let exact = |known: &[(Timed, Reading)]| -> Vec<Timed> {
            known.iter().map(|(timed, _)| *timed).filter(|timed| timed.address.is_exact()).collect()
        };
        let mut timed = exact(&known);
        if timed.len() < waited.kept.len() / 2 && timed.len() < probes.len() {
            // The load replaces what its address was made of: only probes tell what it read.
            known = probes.iter().map(|probe| probed(probe, objects)).collect();
            timed = exact(&known);
        }
        let addresses: Vec<u64> = timed.iter().map(|timed| timed.address.address()).collect();
        let seen = run.timing.as_ref().and_then(|timing| latency(probes, timing));
        let threads: BTreeSet<u32> = waited.kept.iter().map(|kept| kept.sample.thread).collect();
        let pattern = by_code.map_or_else(|| pattern(&timed), |code| code.pattern);
        let is_alone = pattern == Pattern::Chain && !by_code.is_some_and(|code| code.among_chains);
        let step = stride(probes);
        let judged = judge(&addresses, step.filter(|_| pattern == Pattern::Stream), &run.caches)
            .at_a_time(&self.reuse(&timed, waited), &run.caches)
            .with_probes(seen.as_ref(), threads.len(), is_alone);
        let told = run.timing.as_ref().and_then(|timing| {
            let (area, is_near) = (judged.at_a_time.or(judged.footprint), judged.at_a_time.is_some());
            of_load(seen.as_ref(), judged.level, pattern, area, is_near, timing)
        });
        let listed = (waited.samples >= LEAST_LISTED).then_some(self.listed.loads.len());
        let told = told.zip(seen).map(|(told, seen)| LoadLatency {
            samples: waited.samples,
            told,
            seen: seen.mean_ns,
            listed,
        });
        *self.levels.entry(judged.level).or_default() += waited.samples;
        self.beyond_l2 += if judged.beyond_l2 { waited.samples } else { 0 };
        let readings: Vec<Reading> = known.into_iter().map(|(_, reading)| reading).collect();
        let object =
            ObjectStalls::default().count(&readings, waited.samples as f64).map(|object| object.name);
        let number = self.gathered.add(source, objects, address, &waited.kept, waited.samples);
        self.waited.push(WaitedLoad {
            what: source.file.what,
            unit: source.code.module.unit_at(address),
            address,
            samples: waited.samples,
            level: judged.level,
            beyond_l2: judged.beyond_l2,
            listed,
            by: number,
            is_chain: pattern == Pattern::Chain,
            takes_its_time: self.takes_its_time(source, address, pattern, &timed, step),
            addresses,
            readings,
        });
        if waited.samples < LEAST_LISTED {
            return;
        }
        let each = beside.map(|beside| {
            let sharp = run.sampling.calibration.one_behind.estimate().unwrap_or(Estimate::exact(1.0));
            let each = stall_each(waited.samples, beside, sharp);
            match told.as_ref().zip(run.timing.as_ref()) {
                Some((told, timing)) => bounded(each, told.told.ns(), timing.ticks_a_ns),
                None => each,
            }
        });
        if let Some(number) = number {
            let by = &mut self.gathered.by[number as usize];
            (by.listed, by.each) = (Some(self.listed.loads.len()), each);
            by.is_farther = judged.is_farther;
        }
        let time = LoadTime {
            stall: measured_share(waited.samples, all),
            stall_each: match each {
                Some(each) => Quantity::modelled(each, Unit::Cycles),
                None => Quantity::unresolved("its basic block is not known"),
            },
            harvestable: match (each, run.yield_cycles) {
                (Some(each), Some(cost)) => harvestable(waited.samples, all, each, cost),
                (None, _) => Quantity::unresolved("not known how long it waits each time"),
                (_, None) => Quantity::unresolved("the cost of a yield is not known"),
            },
        };
        let figures = LoadFigures {
            samples: waited.samples,
            threads: threads.len(),
            time,
            latency: told.as_ref().map_or_else(|| Quantity::unresolved(NO_PROBES), LoadLatency::quantity),
            latency_share: Quantity::unresolved(NO_LATENCY),
            from_memory: match seen {
                Some(seen) => Quantity::measured(seen.from_memory, Unit::Ratio),
                None => Quantity::unresolved(NO_PROBES),
            },
            probes: probes.len() as u64,
            level: judged.level,
            by_level: Vec::new(),
            level_because: judged.because,
            beyond_l2: judged.beyond_l2,
            translation: Quantity::unresolved(NOT_BY_CLOCK),
            locked: Quantity::unresolved(NOT_BY_CLOCK),
            pattern,
            stride: match step {
                Some(bytes) => Quantity::measured(Estimate::exact(bytes as f64), Unit::Bytes),
                None => Quantity::unresolved("its addresses are not seen to follow one another evenly"),
            },
            footprint: footprint::figure(judged.footprint),
            object,
        };
        let module = source.file.path.clone();
        let place = LoadPlace { source: Some(source), module, what: source.file.what, address };
        self.listed.add_load(place, self.calls, figures);
        self.latencies.extend(told);
    }
}

/// What a line from memory takes where the machine was not measured: no less than on any.
const MEMORY_NS: f64 = 150.0;

impl ByClock<'_, '_, '_> {
    /// What the times of a load's samples tell of how much it works on at a time.
    fn reuse(&self, timed: &[Timed], waited: &Waited) -> Reuse {
        let threads: BTreeSet<(u32, u32)> =
            waited.kept.iter().map(|kept| (kept.sample.process, kept.sample.thread)).collect();
        let samples_of = |(process, thread): &(u32, u32)| {
            self.tally.processes.get(process).and_then(|process| process.threads.get(thread)).copied()
        };
        let all: u64 = threads.iter().filter_map(samples_of).sum();
        let known = self.run.timing.as_ref().and_then(|timing| timing.latencies.of(Level::Dram));
        let waits = waited.samples as f64 / all.max(1) as f64;
        reuse(timed, waits, known.map_or(MEMORY_NS, |known| known.hi))
    }

    /// Whether a turn of the load's loop takes no longer than what it computes from turn to turn.
    fn takes_its_time(
        &self,
        source: &Source<'_>,
        address: Svma,
        pattern: Pattern,
        timed: &[Timed],
        step: Option<i64>,
    ) -> bool {
        /// A turn that takes this many times as long waits for something else.
        const LONGER: f64 = 1.25;
        let Some(ticks_a_ns) = self.run.timing.as_ref().map(|timing| timing.ticks_a_ns) else { return false };
        if pattern != Pattern::Stream {
            return false;
        }
        let Some(carried) = carried(&source.code, address) else { return false };
        let each = each_ns(timed, step.unwrap_or(carried.bytes as i64));
        each.is_some_and(|each| each * ticks_a_ns <= LONGER * carried.cycles)
    }
}

/// The part of a load's stall that is left for other work if it yields each time it runs.
fn harvestable(stalled: u64, all: u64, each: Estimate, cost: Estimate) -> Quantity {
    let left = |each: f64, cost: f64| (1.0 - cost / each.max(f64::MIN_POSITIVE)).max(0.0);
    match share(stalled, all) {
        None => Quantity::unresolved("there are no samples"),
        Some(stall) => {
            let least = stall.lo * left(each.lo, cost.hi);
            let most = stall.hi * left(each.hi, cost.lo);
            let usual = stall.value * left(each.value, cost.value);
            Quantity::modelled(Estimate::new(usual, least, most), Unit::Ratio)
        }
    }
}

/// What a probe tells in place of a sample.
fn probed(probe: &Probe, objects: &Objects<'_, '_>) -> (Timed, Reading) {
    let sample = &probe.kept.sample;
    let address = DataAddress::Read(probe.address);
    let timed = Timed { thread: sample.thread, time_ns: sample.time_ns, address };
    let found = objects.found(&probe.kept, Avma(probe.address));
    (timed, Reading { thread: sample.thread, found, weight: 1.0 })
}

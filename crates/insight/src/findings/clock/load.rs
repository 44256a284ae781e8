//! One load, with all that its samples, its probes and its code tell.

use super::latency::LoadLatency;
use super::settled::{SHORT_CYCLES, WaitedLoad};
use super::{ByClock, NOT_BY_CLOCK, Waited};
use crate::code::cause::is_repeated;
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
    /// What its samples read.
    pub read: Vec<(Timed, Reading)>,
    /// The samples of all loads of its function that read the same area, with its own.
    pub together: u64,
    /// What the samples of the others among these read: compilers make several loads of one.
    pub others_read: Vec<u64>,
}

impl Load<'_> {
    /// Those of what it read whose addresses are known.
    fn timed(&self) -> impl Iterator<Item = Timed> + '_ {
        self.read.iter().map(|(timed, _)| *timed).filter(|timed| timed.address.is_exact())
    }

    /// Where the middle four fifths of its addresses lie.
    fn area(&self) -> Option<(u64, u64)> {
        const LEAST: usize = 16;
        let mut addresses: Vec<u64> = self.timed().map(|timed| timed.address.address()).collect();
        addresses.sort_unstable();
        let tenth = addresses.len() / 10;
        (addresses.len() >= LEAST).then(|| (addresses[tenth], addresses[addresses.len() - 1 - tenth]))
    }
}

/// More addresses of others do not tell more.
const MOST_OF_OTHERS: usize = 8192;

/// Counts for each load the samples of those that read the same area in the same function. What one
/// of them brings into a cache the others find there, so they wait for its lines together.
pub(super) fn put_together(loads: &mut [Load<'_>], unit_of: impl Fn(Svma) -> Option<usize>) {
    let places: Vec<_> = loads.iter().map(|load| (unit_of(load.address), load.area())).collect();
    let is_same = |a: (u64, u64), b: (u64, u64)| {
        let both = a.1.min(b.1).checked_sub(a.0.max(b.0));
        both.is_some_and(|both| both >= (a.1 - a.0).max(b.1 - b.0) / 2)
    };
    let samples: Vec<u64> = loads.iter().map(|load| load.waited.samples).collect();
    let addresses = |load: &Load<'_>| load.timed().map(|timed| timed.address.address()).collect();
    let read: Vec<Vec<u64>> = loads.iter().map(addresses).collect();
    for (number, load) in loads.iter_mut().enumerate() {
        let (unit, Some(area)) = places[number] else { continue };
        let others = places.iter().enumerate().filter(|(other, _)| *other != number);
        let same = others.filter(|(_, (of, other))| {
            unit.is_some() && *of == unit && other.is_some_and(|other| is_same(area, other))
        });
        for (other, _) in same {
            load.together += samples[other];
            let space = MOST_OF_OTHERS.saturating_sub(load.others_read.len());
            load.others_read.extend(read[other].iter().take(space));
        }
    }
}

impl ByClock<'_, '_, '_> {
    /// What the samples of a load read, or its probes where these tell more.
    pub(super) fn read(
        &self,
        source: &Source<'_>,
        address: Svma,
        waited: &Waited,
        probes: &[Probe],
        by_code: Option<Dependence>,
    ) -> Vec<(Timed, Reading)> {
        let objects = self.objects;
        let instruction = source.code.instruction(address);
        let told = |kept: &Kept| {
            let sample = &kept.sample;
            let is_chased = by_code.map(|code| code.is_chased);
            let at = data_address(instruction.as_ref()?, &sample.registers?, is_chased).ok()?;
            let found = objects.found(kept, Avma(at.address()));
            let reading = Reading { thread: sample.thread, found, weight: 1.0 };
            Some((Timed { thread: sample.thread, time_ns: sample.time_ns, address: at }, reading))
        };
        let known: Vec<(Timed, Reading)> = waited.kept.iter().filter_map(told).collect();
        let exact = known.iter().filter(|(timed, _)| timed.address.is_exact()).count();
        if exact < waited.kept.len() / 2 && exact < probes.len() {
            // The load replaces what its address was made of: only probes tell what it read.
            return probes.iter().map(|probe| probed(probe, objects)).collect();
        }
        known
    }

    /// Counts a load, and lists it if it has enough samples.
    pub(super) fn add_load(&mut self, source: &Source<'_>, load: &Load<'_>) {
        let &Load { address, ref waited, probes, beside, by_code, .. } = load;
        let (run, objects, all) = (self.run, self.objects, self.tally.samples);
        let timed: Vec<Timed> = load.timed().collect();
        let addresses: Vec<u64> = timed.iter().map(|timed| timed.address.address()).collect();
        let seen = run.timing.as_ref().and_then(|timing| latency(probes, timing));
        let threads: BTreeSet<u32> = waited.kept.iter().map(|kept| kept.sample.thread).collect();
        let is_chased = by_code.map(|code| code.is_chased);
        let pattern = by_code.and_then(|code| code.pattern).unwrap_or_else(|| pattern(&timed));
        let step = stride(probes).or_else(|| step_of_copies(source, address, pattern));
        // A chain that goes straight on is fetched ahead, and near when the thread is stopped.
        let is_alone =
            pattern == Pattern::Chain && step.is_none() && !by_code.is_some_and(|code| code.among_chains);
        let together: Vec<u64> = addresses.iter().chain(&load.others_read).copied().collect();
        let judged = judge(
            &together,
            step.filter(|_| matches!(pattern, Pattern::Stream | Pattern::Chain)),
            &run.caches,
        )
        .at_a_time(&self.reuse(&timed, load), &run.caches)
        .with_probes(seen.as_ref(), threads.len(), is_alone);
        let told = run.timing.as_ref().and_then(|timing| {
            let (area, is_near) = (judged.at_a_time.or(judged.footprint), judged.at_a_time.is_some());
            of_load(seen.as_ref(), judged.level, pattern, area, is_near, timing)
        });
        let each = beside.map(|beside| {
            let sharp = run.sampling.calibration.one_behind.estimate().unwrap_or(Estimate::exact(1.0));
            let each = stall_each(waited.samples, beside, sharp);
            match told.as_ref().zip(run.timing.as_ref()) {
                Some((told, timing)) => bounded(each, told.ns(), timing.ticks_a_ns),
                None => each,
            }
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
        let readings: Vec<Reading> = load.read.iter().map(|(_, reading)| reading.clone()).collect();
        let object =
            ObjectStalls::default().count(&readings, waited.samples as f64).map(|object| object.name);
        let number = self.gathered.add(source, objects, address, &waited.kept, waited.samples, is_chased);
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
            beside,
            is_short: each.is_some_and(|each| each.value <= SHORT_CYCLES),
            addresses,
            readings,
        });
        if waited.samples < LEAST_LISTED {
            return;
        }
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
    fn reuse(&self, timed: &[Timed], load: &Load<'_>) -> Reuse {
        let threads: BTreeSet<(u32, u32)> =
            load.waited.kept.iter().map(|kept| (kept.sample.process, kept.sample.thread)).collect();
        let samples_of = |(process, thread): &(u32, u32)| {
            self.tally.processes.get(process).and_then(|process| process.threads.get(thread)).copied()
        };
        let all: u64 = threads.iter().filter_map(samples_of).sum();
        let known = self.run.timing.as_ref().and_then(|timing| timing.latencies.of(Level::Dram));
        let waits = load.together as f64 / all.max(1) as f64;
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

/// An instruction that copies many bytes by itself goes from each to the next.
fn step_of_copies(source: &Source<'_>, address: Svma, pattern: Pattern) -> Option<i64> {
    let instruction = source.code.instruction(address).filter(is_repeated)?;
    (pattern == Pattern::Stream).then(|| instruction.memory_size().size() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::objects::Found;

    fn load(address: u64, samples: u64, from: u64, bytes: u64) -> Load<'static> {
        let read = |at: u64| {
            let address = DataAddress::Read(from + at * bytes / 100);
            let reading = Reading { thread: 1, found: Found::Nothing, weight: 1.0 };
            (Timed { thread: 1, time_ns: at, address }, reading)
        };
        let waited = Waited { samples, kept: Vec::new() };
        let read = (0..100).map(read).collect();
        let (probes, beside, by_code) = (&[][..], None, None);
        let (address, others_read) = (Svma(address), Vec::new());
        Load { address, waited, probes, beside, by_code, read, together: samples, others_read }
    }

    #[test]
    fn loads_of_one_area_wait_for_its_lines_together() {
        let mut loads = [
            load(0x10, 300, 0x1000, 1 << 20),
            load(0x14, 200, 0x1010, 1 << 20),
            load(0x18, 900, 0x9000_0000, 1 << 20),
            load(0x1c, 50, 0x1000, 1 << 10),
            load(0x90, 70, 0x1000, 1 << 20),
        ];
        put_together(&mut loads, |address| Some((address.0 >= 0x90).into()));
        let together: Vec<u64> = loads.iter().map(|load| load.together).collect();
        assert_eq!(together, [500, 500, 900, 50, 70]);
        let others: Vec<usize> = loads.iter().map(|load| load.others_read.len()).collect();
        assert_eq!(others, [100, 100, 0, 0, 0]);
    }
}

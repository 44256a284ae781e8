//! The figures of a run whose samples are loads and stores that the hardware chose.
//!
//! What a clock shows is time: which share of it goes to waiting. What hardware shows is loads:
//! where, how long, by which level. So loads, functions and data are weighed by *latency* here, and
//! shares of the CPU time stay unresolved: a load that takes long need not make the core wait.

use crate::code::annotate::Attributed;
use crate::code::calls::Calls;
use crate::code::cause::Cause;
use crate::code::dependence;
use crate::code::source::Source;
use crate::data::data_address::DataAddress;
use crate::data::footprint;
use crate::data::level::judge;
use crate::data::object_stalls::{ObjectStalls, Reading};
use crate::data::objects::{Found, Objects};
use crate::data::pattern::{Timed, pattern};
use crate::findings::record::{
    Figures, FunctionFigures, Listed, LoadFigures, LoadPlace, LoadTime, SampledUnit, Times,
};
use crate::findings::run::{LEAST_LISTED, MOST_LISTED, Run};
use crate::samples::accesses::{Access, AccessTally, KeptAccess, Weighted};
use crate::samples::address_space::Place;
use crate::samples::tally::{Kept, Tally};
use crate::share::measured_share;
use crate::sharing::sampled_from::Sampled;
use records::profile::{ByLevel, Level, LevelShare, MemoryObject, Pattern};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use units::{Estimate, Quantity, Svma, Unit, share};

const NO_TIME: &str = "hardware samples of loads show latency, not time";
const NO_LATENCY: &str = "the samples hold no latency";

/// What these accesses show.
pub(crate) fn figures(
    run: &Run,
    tally: &Tally,
    sources: &HashMap<u32, Source<'_>>,
    objects: &Objects<'_, '_>,
    calls: &Calls,
) -> Figures {
    let sums = tally.accesses.sums();
    let costs = Costs::of(&sums);
    let mut found = ByHardware::new(tally, costs, objects, calls, run);
    let mut by_file: BTreeMap<u32, Vec<(Place, &AccessTally)>> = BTreeMap::new();
    for (place, counts) in &tally.accesses.places {
        by_file.entry(place.what.0).or_default().push((*place, counts));
    }
    for (what, mut places) in by_file {
        places.sort_unstable_by_key(|(place, _)| *place);
        found.look_at(sources.get(&what), &places);
    }
    let ByHardware { listed, stalls, shared, .. } = found;
    let shared = shared.found(costs.worth());
    let data = stalls.into_records(objects, costs.worth().round() as u64, MOST_LISTED);
    Figures {
        times: Times::unresolved(NO_TIME),
        by_level: by_level(costs, &sums),
        average_latency: mean(&sums.latency),
        listed,
        scripts: Vec::new(),
        objects: data.into_iter().map(|object| weighed_by_latency(object, costs)).collect(),
        lines: shared.lines,
        findings: shared.findings,
        computed: HashSet::new(),
    }
}

/// What shares are of: the latency of all loads, or their number where none has a latency.
#[derive(Clone, Copy)]
struct Costs {
    all: Weighted,
    is_latency: bool,
}

impl Costs {
    fn of(sums: &AccessTally) -> Self {
        let is_latency = sums.latency.sum() > 0.0;
        Self { all: if is_latency { sums.latency } else { sums.loads }, is_latency }
    }

    /// The part of a load, function or level that counts.
    fn part(self, loads: &Weighted, latency: &Weighted) -> f64 {
        let part = if self.is_latency { latency.sum() } else { loads.sum() };
        if self.all.sum() > 0.0 { part / self.all.sum() } else { 0.0 }
    }

    /// What one access stands for.
    fn of_access(self, access: &Access) -> f64 {
        let latency = if self.is_latency { access.latency.map_or(0.0, f64::from) } else { 1.0 };
        access.period.max(1) as f64 * latency
    }

    fn worth(self) -> f64 {
        self.all.worth()
    }

    /// A part of all as a share, as well known as this number of equal samples tells it.
    fn share_of(part: f64, worth: f64) -> Quantity {
        match share((part * worth).round() as u64, worth.round() as u64) {
            None => Quantity::unresolved("there are too few samples"),
            // The interval is that of whole samples; the value need not be.
            Some(e) => Quantity::measured(Estimate::new(part, e.lo.min(part), e.hi.max(part)), Unit::Ratio),
        }
    }

    fn share(self, part: f64) -> Quantity {
        Self::share_of(part, self.worth())
    }

    fn latency_share(self, part: f64) -> Quantity {
        if self.is_latency { self.share(part) } else { Quantity::unresolved(NO_LATENCY) }
    }
}

fn mean(latency: &Weighted) -> Quantity {
    match latency.mean() {
        Some(mean) => Quantity::measured(mean, Unit::Cycles),
        None if latency.samples == 0 => Quantity::unresolved(NO_LATENCY),
        None => Quantity::unresolved("one sample has no interval"),
    }
}

/// What was found so far.
struct ByHardware<'a, 't, 'd> {
    tally: &'t Tally,
    costs: Costs,
    objects: &'a Objects<'t, 'd>,
    calls: &'a Calls,
    run: &'a Run,
    listed: Listed,
    stalls: ObjectStalls,
    shared: Sampled,
}

impl<'a, 't, 'd> ByHardware<'a, 't, 'd> {
    fn new(
        tally: &'t Tally,
        costs: Costs,
        objects: &'a Objects<'t, 'd>,
        calls: &'a Calls,
        run: &'a Run,
    ) -> Self {
        let (listed, stalls, shared) = (Listed::default(), ObjectStalls::default(), Sampled::default());
        Self { tally, costs, objects, calls, run, listed, stalls, shared }
    }

    /// The loads of one file. Without a source it could not be read: then its loads are named by
    /// their place in it.
    fn look_at(&mut self, source: Option<&Source<'_>>, places: &[(Place, &AccessTally)]) {
        let address = |place: Place| match source {
            Some(source) => source.code.module.image.address_of(place.offset),
            None => Some(Svma(place.offset.0)),
        };
        let known: Vec<(Svma, Place, &AccessTally)> =
            places.iter().filter_map(|(place, counts)| Some((address(*place)?, *place, *counts))).collect();
        let worth_listing = |counts: &AccessTally| counts.loads.samples >= LEAST_LISTED;
        let by_code = source.map_or_else(HashMap::new, |source| {
            let listed = known.iter().filter(|(.., counts)| worth_listing(counts));
            dependence::patterns(&source.code, listed.map(|(address, ..)| *address))
        });
        let mut functions: BTreeMap<usize, AccessTally> = BTreeMap::new();
        let mut attributed = Attributed::default();
        for &(address, place, counts) in &known {
            attributed.count(address, Cause::Load(address), counts.loads.samples + counts.stores);
            let object = self.objects_of(counts);
            self.share(source, address, counts);
            if worth_listing(counts) {
                let by_code = by_code.get(&address).and_then(|code| code.pattern);
                let figures = self.load(counts, object, by_code);
                let module = source.map_or_else(
                    || records::text_of(Path::new(OsStr::from_bytes(&self.tally.mapped(place.what).name))),
                    |source| source.file.path.clone(),
                );
                let place = LoadPlace { source, module, what: place.what.0, address };
                self.listed.add_load(place, self.calls, figures);
            }
            if let Some(unit) = source.and_then(|source| source.code.module.unit_at(address)) {
                functions.entry(unit).or_default().merge(counts);
            }
        }
        let Some(source) = source else { return };
        for (unit, counts) in functions {
            let figures = FunctionFigures {
                name: source.function(source.code.module.units[unit].start),
                time: Quantity::unresolved(NO_TIME),
                stall: Quantity::unresolved(NO_TIME),
                latency_share: self.costs.latency_share(self.costs.part(&counts.loads, &counts.latency)),
            };
            let samples = counts.loads.samples + counts.stores;
            let all = self.tally.accesses.samples;
            let unit = SampledUnit { number: unit, samples, all, attributed: &attributed };
            self.listed.add_function(source, &unit, figures);
        }
    }

    /// The data of a load, each read by its own latency: the name of what costs most.
    fn objects_of(&mut self, counts: &AccessTally) -> Option<String> {
        let all: f64 = counts.kept.iter().map(|kept| self.costs.of_access(&kept.access)).sum();
        if all <= 0.0 {
            return None;
        }
        // A read of the usual cost weighs 1.
        let usual = all / counts.kept.len() as f64;
        let read = |read: &KeptAccess| {
            let (access, kept) = (&read.access, Kept::from(read));
            let found = access.address.map_or(Found::Nothing, |address| self.objects.found(&kept, address));
            Reading { thread: access.thread, found, weight: self.costs.of_access(access) / usual }
        };
        let readings: Vec<Reading> = counts.kept.iter().map(read).collect();
        let samples = self.costs.part(&counts.loads, &counts.latency) * self.costs.worth();
        self.stalls.count(&readings, samples).map(|object| object.name)
    }

    /// Takes in the accesses at a place, for what threads share.
    fn share(&mut self, source: Option<&Source<'_>>, address: Svma, counts: &AccessTally) {
        let part = |access: &Access| self.costs.of_access(access);
        let kept: f64 = counts.kept.iter().map(|kept| part(&kept.access)).sum();
        let all = self.costs.part(&counts.loads, &counts.latency);
        let each = if kept > 0.0 { all / kept } else { 0.0 };
        let loads = counts.kept.iter().map(|kept| (kept, part(&kept.access) * each));
        let stores = counts.kept_stores.iter().map(|kept| (kept, 0.0));
        let all: Vec<(&KeptAccess, f64)> = loads.chain(stores).collect();
        self.shared.add(source, self.objects, address, &all);
    }

    fn load(&self, counts: &AccessTally, object: Option<String>, by_code: Option<Pattern>) -> LoadFigures {
        let samples = counts.loads.samples;
        let timed = |access: &Access| {
            let address = DataAddress::Read(access.address?.0);
            Some(Timed { thread: access.thread, time_ns: access.time_ns, address })
        };
        let timed: Vec<Timed> = counts.kept.iter().filter_map(|kept| timed(&kept.access)).collect();
        let addresses: Vec<u64> = timed.iter().map(|timed| timed.address.address()).collect();
        let by_level = self.levels_of(counts);
        let most = by_level.first();
        let threads: BTreeSet<u32> = counts.kept.iter().map(|kept| kept.access.thread).collect();
        LoadFigures {
            samples,
            threads: threads.len(),
            time: LoadTime::unresolved(NO_TIME),
            latency: mean(&counts.latency),
            latency_share: self.costs.latency_share(self.costs.part(&counts.loads, &counts.latency)),
            from_memory: Quantity::unresolved("loads were not probed: the hardware tells their levels"),
            probes: 0,
            level: most.map_or(Level::Unresolved, |most| most.level),
            beyond_l2: most.is_some_and(|most| is_beyond_l2(most.level)),
            level_because: because(&by_level, self.costs.is_latency),
            by_level,
            translation: match counts.translated {
                0 => Quantity::unresolved("the samples do not tell"),
                translated => measured_share(counts.walks, translated),
            },
            locked: measured_share(counts.locked, samples),
            pattern: by_code.unwrap_or_else(|| pattern(&timed)),
            stride: Quantity::unresolved("hardware samples are too far apart to tell"),
            footprint: footprint::figure(judge(&addresses, None, &self.run.caches).footprint),
            object,
        }
    }

    fn levels_of(&self, counts: &AccessTally) -> Vec<LevelShare> {
        // Loads of one place may have no latency, though others have.
        let by_latency = self.costs.is_latency && counts.latency.sum() > 0.0;
        let all = if by_latency { &counts.latency } else { &counts.loads };
        let mut found: Vec<LevelShare> = counts
            .by_level
            .iter()
            .map(|(level, of)| {
                let part = if by_latency { of.latency.sum() } else { of.loads.sum() };
                let share = Costs::share_of(part / all.sum(), all.worth());
                LevelShare { level: *level, share, samples: of.loads.samples, latency: mean(&of.latency) }
            })
            .collect();
        found.sort_by(|a, b| {
            let value = |level: &LevelShare| level.share.value().unwrap_or(0.0);
            value(b).total_cmp(&value(a)).then_with(|| a.level.cmp(&b.level))
        });
        found
    }
}

fn is_beyond_l2(level: Level) -> bool {
    matches!(level, Level::L3 | Level::Dram | Level::Remote | Level::Dirty)
}

/// What each level cost, in words.
fn because(by_level: &[LevelShare], is_latency: bool) -> String {
    let part = |level: &LevelShare| {
        let share = level.share.value().filter(|share| *share >= 0.005)?;
        Some(format!("{} {:.0}%", level.level.word(), 100.0 * share))
    };
    let parts: Vec<String> = by_level.iter().filter_map(part).collect();
    let of = if is_latency { "its latency" } else { "its samples" };
    format!("measured, of {of}: {}", parts.join(", "))
}

fn weighed_by_latency(object: MemoryObject, costs: Costs) -> MemoryObject {
    let share = object.stall;
    MemoryObject {
        stall: Quantity::unresolved(NO_TIME),
        latency_share: if costs.is_latency { share } else { Quantity::unresolved(NO_LATENCY) },
        ..object
    }
}

fn by_level(costs: Costs, sums: &AccessTally) -> ByLevel {
    let level = |wanted: &[Level]| {
        let levels = sums.by_level.iter().filter(|(level, _)| wanted.contains(level));
        costs.share(levels.map(|(_, of)| costs.part(&of.loads, &of.latency)).sum())
    };
    ByLevel {
        l1: level(&[Level::L1]),
        l2: level(&[Level::L2]),
        l3: level(&[Level::L3]),
        dram: level(&[Level::Dram]),
        beyond_l2: level(&[Level::L3, Level::Dram, Level::Remote, Level::Dirty]),
        remote: level(&[Level::Remote]),
        dirty: level(&[Level::Dirty]),
        in_flight: level(&[Level::InFlight]),
        unresolved: level(&[Level::Unresolved]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_as_well_known_as_their_samples_are_worth() {
        let quantity = Costs::share_of(0.123, 100.0);
        let estimate = quantity.estimate().unwrap();
        let (lo, hi) = (share(12, 100).unwrap().lo, share(12, 100).unwrap().hi);
        assert_eq!((estimate.value, estimate.lo, estimate.hi), (0.123, lo, hi));
        assert!(Costs::share_of(0.5, 0.2).estimate().is_none(), "no sample at all");
    }
}

//! The figures of a run whose samples a clock took.
//!
//! A clock shows time: which share of it the core waits, and for which load. How often a load runs,
//! how long it takes and what serves it, a clock does not show: probes tell some of it, and the
//! rest is modelled by what the samples and the code tell.

mod latency;
mod load;
mod settled;
mod stores;

use self::latency::{LoadLatency, average_latency};
use self::load::{Load, put_together};
use self::settled::{SampledFunction, WaitedLoad};
use crate::code::annotate::Attributed;
use crate::code::calls::Calls;
use crate::code::cause::{Cause, Entry, Unclear};
use crate::code::dependence;
use crate::code::each::Beside;
use crate::code::source::{ModuleFile, Source};
use crate::data::object_stalls::ObjectStalls;
use crate::data::objects::Objects;
use crate::findings::record::{Figures, Listed, Times};
use crate::findings::run::{LEAST_LISTED, MOST_LISTED, Run};
use crate::findings::scripts;
use crate::probes::latency::Told;
use crate::samples::address_space::{MappedId, Place};
use crate::samples::tally::{Kept, PlaceTally, Tally};
use crate::share::measured_share;
use crate::sharing::{Gathered, shared};
use records::profile::{Backend, ByLevel, Level, Unattributed};
use std::collections::{BTreeMap, HashMap, HashSet};
use units::{Estimate, FileOffset, Quantity, Svma, Unit};

/// Why a clock's samples do not tell what only hardware samples do.
const NOT_BY_CLOCK: &str = "samples of a clock do not tell";
/// A load with all samples that landed behind it.
#[derive(Default)]
struct Waited {
    samples: u64,
    kept: Vec<Kept>,
}

impl Waited {
    fn count(&mut self, counts: &PlaceTally) {
        self.samples += counts.user;
        self.kept.extend(&counts.kept);
    }
}

/// The sums over all places.
#[derive(Default)]
struct Sums {
    loads: u64,
    stores: u64,
    computing: u64,
    system_calls: u64,
    page_faults: u64,
    unclear: BTreeMap<Unclear, u64>,
}

/// What a clock's samples show of these files.
pub(crate) fn figures(
    run: &Run,
    tally: &Tally,
    files: &[ModuleFile],
    sources: &HashMap<u32, Source<'_>>,
    objects: &Objects<'_, '_>,
    calls: &Calls,
) -> Figures {
    let mut by_module: HashMap<u32, Vec<(FileOffset, &PlaceTally)>> = HashMap::new();
    for (place, counts) in &tally.places {
        by_module.entry(place.what.0).or_default().push((place.offset, counts));
    }
    let mut found = ByClock::new(run, tally, objects, calls);
    for file in files {
        let Some(mut places) = by_module.remove(&file.what) else { continue };
        places.sort_unstable_by_key(|(offset, _)| *offset);
        match sources.get(&file.what) {
            Some(source) => found.look_at(source, &places),
            None => found.sums.no_code(&places),
        }
    }
    found.listed.functions.extend(run.made_code.functions(tally, tally.samples));
    // What is left has no file that could be read: code made at run time, the vDSO.
    for places in by_module.into_values() {
        found.sums.no_code(&places);
    }
    found.into_figures(sources)
}

impl Sums {
    fn no_code(&mut self, places: &[(FileOffset, &PlaceTally)]) {
        let samples: u64 = places.iter().map(|(_, counts)| counts.user).sum();
        *self.unclear.entry(Unclear::NoCode).or_default() += samples;
    }
}

/// What was found so far.
struct ByClock<'a, 't, 'd> {
    run: &'a Run,
    tally: &'t Tally,
    objects: &'a Objects<'t, 'd>,
    calls: &'a Calls,
    sums: Sums,
    listed: Listed,
    stalls: ObjectStalls,
    gathered: Gathered,
    levels: BTreeMap<Level, u64>,
    beyond_l2: u64,
    latencies: Vec<LoadLatency>,
    /// The one to what is far that the core waited for longest.
    store: Option<stores::Store>,
    /// Samples of all stores to what is far.
    far_stores: u64,
    waited: Vec<WaitedLoad>,
    functions: Vec<SampledFunction>,
    /// By file.
    attributed: HashMap<u32, Attributed>,
    computed: HashSet<(u32, Svma)>,
    /// Loads of what is beyond L2, by file.
    far: HashSet<(u32, Svma)>,
}

impl<'a, 't, 'd> ByClock<'a, 't, 'd> {
    fn new(run: &'a Run, tally: &'t Tally, objects: &'a Objects<'t, 'd>, calls: &'a Calls) -> Self {
        Self {
            run,
            tally,
            objects,
            calls,
            sums: Sums::default(),
            listed: Listed::default(),
            stalls: ObjectStalls::default(),
            gathered: Gathered::default(),
            levels: BTreeMap::new(),
            beyond_l2: 0,
            latencies: Vec::new(),
            store: None,
            far_stores: 0,
            waited: Vec::new(),
            functions: Vec::new(),
            attributed: HashMap::new(),
            computed: HashSet::new(),
            far: HashSet::new(),
        }
    }

    /// Takes in the samples of one file, in the order of their places.
    fn look_at(&mut self, source: &Source<'_>, places: &[(FileOffset, &PlaceTally)]) {
        let (file, code) = (source.file, &source.code);
        let mut loads: BTreeMap<Svma, Waited> = BTreeMap::new();
        let mut stores: BTreeMap<Svma, Waited> = BTreeMap::new();
        let mut functions: BTreeMap<usize, SampledFunction> = BTreeMap::new();
        let mut attributed = Attributed::default();
        for &(offset, counts) in places {
            let Some(at) = code.module.image.address_of(offset) else {
                self.sums.no_code(&[(offset, counts)]);
                continue;
            };
            match code.entry(at) {
                Entry::SystemCall => self.sums.system_calls += counts.kernel,
                Entry::Fault => {
                    self.sums.page_faults += counts.kernel;
                    self.gathered.add_faults(source, self.objects, at, &counts.kept_in_kernel, counts.kernel);
                }
                Entry::Other => {}
            }
            let cause = code.cause(at);
            attributed.count(at, cause, counts.user);
            match cause {
                Cause::Load(load) => {
                    self.sums.loads += counts.user;
                    loads.entry(load).or_default().count(counts);
                }
                Cause::Store(store) => {
                    self.sums.stores += counts.user;
                    stores.entry(store).or_default().count(counts);
                }
                Cause::Computing => self.sums.computing += counts.user,
                Cause::Unclear(why) => *self.sums.unclear.entry(why).or_default() += counts.user,
            }
            if let Some(unit) = code.module.unit_at(at) {
                self.gathered.ran((file.what, unit), &counts.kept, counts.user);
                let function = functions.entry(unit).or_insert_with(|| SampledFunction {
                    what: file.what,
                    unit,
                    samples: 0,
                    stalled: 0,
                    at: BTreeMap::new(),
                });
                function.samples += counts.user;
                *function.at.entry(at).or_default() += counts.user;
                function.stalled += if matches!(cause, Cause::Load(_)) { counts.user } else { 0 };
            }
        }
        let listed = loads.iter().filter(|(_, waited)| waited.samples >= LEAST_LISTED);
        let by_code = dependence::patterns(code, listed.map(|(address, _)| *address));
        let samples_at = |address: Svma| {
            let offset = code.module.image.file_offset(address)?;
            let index = places.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
            Some(places[index].1.user)
        };
        let mut found: Vec<Load<'_>> = Vec::new();
        for (address, waited) in loads {
            let beside = code.computing_beside(address).map(|beside| Beside {
                instructions: beside.len() as u64,
                samples: beside.into_iter().filter_map(samples_at).sum(),
            });
            let by_code = by_code.get(&address).copied();
            let place = code
                .module
                .image
                .file_offset(address)
                .map(|offset| Place { what: MappedId(file.what), offset });
            let probes = place.and_then(|place| self.tally.probes.get(&place)).map_or(&[][..], Vec::as_slice);
            let read = self.read(source, address, &waited, probes, by_code);
            let together = waited.samples;
            let others_read = Vec::new();
            found.push(Load { address, waited, probes, beside, by_code, read, together, others_read });
        }
        put_together(&mut found, |address| code.module.unit_at(address));
        for load in &found {
            self.add_load(source, load);
        }
        for (address, waited) in &stores {
            self.gathered.add(source, self.objects, *address, &waited.kept, waited.samples, None);
        }
        for (address, waited) in stores.iter().rev() {
            let store = stores::Store::of_far(source, *address, waited, self.objects, &self.run.caches);
            let Some(store) = store else { continue };
            self.far_stores += waited.samples;
            if self.store.as_ref().is_none_or(|most| waited.samples > most.samples) {
                self.store = Some(store);
            }
        }
        self.functions.extend(functions.into_values());
        self.attributed.insert(file.what, attributed);
    }

    /// These loads wait for lines that other threads write, whatever their footprint says.
    fn disturb(&mut self, dirty: &[usize]) {
        for &number in dirty {
            let load = &mut self.listed.loads[number];
            *self.levels.entry(load.level).or_default() -= load.samples;
            *self.levels.entry(Level::Dirty).or_default() += load.samples;
            self.beyond_l2 -= if load.beyond_l2 { load.samples } else { 0 };
            load.level = Level::Dirty;
            load.beyond_l2 = true;
            self.beyond_l2 += load.samples;
            "other threads write to its lines at the same time".clone_into(&mut load.level_because);
            for told in self.latencies.iter_mut().filter(|told| told.listed == Some(number)) {
                told.told = Told::Measured(told.seen);
                load.latency = told.quantity();
            }
        }
    }

    fn into_figures(mut self, sources: &HashMap<u32, Source<'_>>) -> Figures {
        let (run, tally) = (self.run, self.tally);
        let all = tally.samples;
        let share = |part: u64| measured_share(part, all);
        let mut shared = shared(&self.gathered, all);
        shared.findings.extend(self.store.as_ref().and_then(|store| store.finding(&share(self.far_stores))));
        self.disturb(&shared.dirty);
        self.settle(sources);
        let (scripts, found) = scripts::lines(tally, self.calls, &self.computed, &self.far);
        shared.findings.extend(found);
        let level = |level: Level| self.levels.get(&level).copied().unwrap_or(0);
        let modelled = |part: u64| match measured_share(part, all) {
            Quantity::Resolved { value, lo, hi, .. } => {
                Quantity::modelled(Estimate::new(value, lo, hi), Unit::Ratio)
            }
            unresolved @ Quantity::Unresolved { .. } => unresolved,
        };
        let sees_kernel = run.sampling.sees_kernel;
        let in_kernel = |part: u64| {
            if sees_kernel { share(part) } else { Quantity::unresolved("the kernel may not be sampled here") }
        };
        // Samples in the kernel need not tell where it was entered.
        let is_known = tally.in_kernel == 0 || tally.places.values().any(|counts| counts.kernel > 0);
        let entered = |part: u64| {
            if is_known {
                in_kernel(part)
            } else {
                Quantity::unresolved("the samples do not tell where the kernel was entered")
            }
        };
        let sums = self.sums;
        let mut unclear = sums.unclear;
        *unclear.entry(Unclear::NoCode).or_default() += nowhere_in_user_mode(tally);
        let mut because: Vec<(u64, Unclear)> =
            unclear.iter().map(|(why, count)| (*count, *why)).filter(|(count, _)| *count > 0).collect();
        because.sort_unstable_by_key(|(count, _)| std::cmp::Reverse(*count));
        let times = Times {
            memory_bound: share(sums.loads),
            stores: share(sums.stores),
            computing: share(sums.computing),
            in_kernel: in_kernel(tally.in_kernel),
            system_calls: entered(sums.system_calls),
            page_faults: match run.sampling.backend {
                Backend::Signal => Quantity::unresolved("signals do not tell page faults from the code"),
                _ => entered(sums.page_faults),
            },
            not_attributed: share(unclear.values().sum()),
            not_attributed_because: because
                .into_iter()
                .map(|(count, why)| Unattributed { why: why.word().to_owned(), time: share(count) })
                .collect(),
        };
        let by_level = ByLevel {
            l1: modelled(level(Level::L1)),
            l2: modelled(level(Level::L2)),
            l3: modelled(level(Level::L3)),
            dram: modelled(level(Level::Dram)),
            dirty: modelled(level(Level::Dirty)),
            beyond_l2: modelled(self.beyond_l2),
            remote: Quantity::unresolved(NOT_BY_CLOCK),
            in_flight: Quantity::unresolved(NOT_BY_CLOCK),
            unresolved: share(level(Level::Unresolved)),
        };
        Figures {
            times,
            by_level,
            average_latency: average_latency(&self.latencies),
            listed: self.listed,
            objects: self.stalls.into_records(self.objects, all, MOST_LISTED),
            scripts,
            lines: shared.lines,
            findings: shared.findings,
            computed: self.computed,
        }
    }
}

/// Samples whose address no mapping holds, but for those in the kernel.
fn nowhere_in_user_mode(tally: &Tally) -> u64 {
    let placed: u64 = tally.places.values().map(|counts| counts.user).sum();
    tally.samples.saturating_sub(tally.in_kernel).saturating_sub(placed)
}

//! Puts the profile record together.

use crate::address_space::{MappedId, Place};
use crate::annotate::Attributed;
use crate::calls::Calls;
use crate::code::{Cause, Entry, Unclear};
use crate::data_address::{DataAddress, data_address};
use crate::dependence::{self, Dependence};
use crate::each::{Beside, bounded, stall_each};
use crate::findings;
use crate::footprint;
use crate::hardware;
use crate::level::judge;
use crate::object_stalls::{NO_LATENCY, ObjectStalls, Reading};
use crate::objects::{Objects, Variables};
use crate::pattern::{Timed, pattern};
use crate::probes::latency::{latency, of_load};
use crate::probes::stride::stride;
use crate::run::{LEAST_LISTED, MOST_LISTED, Run, WORTH_ANNOTATING};
use crate::share::measured_share;
use crate::sharing::{Gathered, shared};
use crate::site_names::SiteNames;
use crate::source::{ModuleFile, Source};
use crate::stacks::Frame;
use crate::tally::{Kept, PlaceTally, Probe, Tally};
use image::Image;
use image::elf::bytes::hex;
use records::profile::{
    AnnotatedFunction, Backend, ByLevel, CallTree, FunctionShare, Level, Pattern, Profile, StallingLoad,
    Summary, Unattributed,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use units::{Avma, Estimate, FileOffset, Quantity, Svma, Unit, share};

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

/// What one function's samples say.
#[derive(Default)]
struct InFunction {
    samples: u64,
    stalled: u64,
    /// By instruction.
    at: BTreeMap<Svma, u64>,
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

/// The profile of a run whose samples are accesses, be there any or not.
pub fn accesses_profile(run: Run, tally: &Tally, files: &[ModuleFile]) -> Profile {
    made_of(run, tally, files, true)
}

/// The profile of a run: of accesses, if there are any.
pub fn profile(run: Run, tally: &Tally, files: &[ModuleFile]) -> Profile {
    made_of(run, tally, files, tally.accesses.any())
}

fn made_of(run: Run, tally: &Tally, files: &[ModuleFile], of_accesses: bool) -> Profile {
    let images: Vec<Option<Image<'_>>> = files.iter().map(|file| Image::parse(&file.data).ok()).collect();
    let variables = files.iter().zip(&images).filter_map(|(file, image)| {
        let debug = file.debug.as_deref().and_then(|debug| Image::parse(debug).ok());
        let name =
            Path::new(&file.path).file_name().map_or(file.path.clone().into(), |name| name.to_string_lossy());
        Some((file.what, Variables::of(image.as_ref()?, debug.as_ref(), &name)))
    });
    let variables = variables.collect();
    let mut sums = Sums::default();
    let mut found = Listed::default();
    let mut by_module: HashMap<u32, Vec<(FileOffset, &PlaceTally)>> = HashMap::new();
    for (place, counts) in &tally.places {
        by_module.entry(place.what.0).or_default().push((place.offset, counts));
    }
    let sources = sources(tally, files, &images);
    let calls = Calls::of(tally, &sources, &run.made_code);
    let objects = Objects::of(tally, variables, SiteNames::of(&tally.heaps.sites, &sources));
    if of_accesses {
        return hardware::profile(run, tally, &sources, &objects, calls);
    }
    for file in files {
        let Some(mut places) = by_module.remove(&file.what) else { continue };
        places.sort_unstable_by_key(|(offset, _)| *offset);
        match sources.get(&file.what) {
            Some(source) => {
                let probes = &tally.probes;
                found.look_at(source, &places, &objects, &calls, &run, &mut sums, probes, tally.samples);
            }
            None => sums.no_code(&places),
        }
    }
    found.functions.extend(run.made_code.functions(tally, tally.samples));
    // What is left has no file that could be read: code made at run time, the vDSO.
    for places in by_module.into_values() {
        sums.no_code(&places);
    }
    found.into_profile(run, tally, &objects, &sums, calls.tree)
}

/// All files that something was sampled in, or that called it.
fn sources<'d>(
    tally: &Tally,
    files: &'d [ModuleFile],
    images: &[Option<Image<'d>>],
) -> HashMap<u32, Source<'d>> {
    let mut sampled: HashMap<u32, Vec<FileOffset>> = HashMap::new();
    let leaves = tally.stacks.leaves.keys().map(|leaf| leaf.place);
    let accessed = tally.accesses.places.keys().copied();
    for place in tally.places.keys().copied().chain(leaves).chain(accessed) {
        sampled.entry(place.what.0).or_default().push(place.offset);
    }
    // Of callers only the names are wanted: nothing is decoded for them.
    for (_, node) in tally.stacks.nodes() {
        if let Frame::Call(place) = node.frame {
            sampled.entry(place.what.0).or_default();
        }
    }
    for place in tally.heaps.sites.all().flat_map(|(_, site)| &site.calls) {
        sampled.entry(place.what.0).or_default();
    }
    let source = |(file, image): (&'d ModuleFile, &Option<Image<'d>>)| {
        Some((file.what, Source::of(file, image.as_ref()?, sampled.get(&file.what)?, tally.is_exact)?))
    };
    files.iter().zip(images).filter_map(source).collect()
}

impl Sums {
    fn no_code(&mut self, places: &[(FileOffset, &PlaceTally)]) {
        let samples: u64 = places.iter().map(|(_, counts)| counts.user).sum();
        *self.unclear.entry(Unclear::NoCode).or_default() += samples;
    }
}

/// What will be listed.
#[derive(Default)]
struct Listed {
    loads: Vec<StallingLoad>,
    functions: Vec<FunctionShare>,
    code: Vec<AnnotatedFunction>,
    objects: ObjectStalls,
    gathered: Gathered,
    levels: BTreeMap<Level, u64>,
    beyond_l2: u64,
    latencies: Vec<LoadLatency>,
}

/// The latency of a load that was probed.
struct LoadLatency {
    samples: u64,
    latency: Estimate,
    /// Probes tell it.
    is_measured: bool,
    /// What they saw.
    seen: Estimate,
    /// The load's number among those that are listed.
    listed: Option<usize>,
}

impl LoadLatency {
    fn quantity(&self) -> Quantity {
        if self.is_measured {
            Quantity::measured(self.latency, Unit::Nanos)
        } else {
            Quantity::modelled(self.latency, Unit::Nanos)
        }
    }
}

impl Listed {
    #[expect(clippy::too_many_arguments, reason = "one pass over one module, and all that it adds to")]
    fn look_at(
        &mut self,
        source: &Source<'_>,
        places: &[(FileOffset, &PlaceTally)],
        objects: &Objects<'_, '_>,
        calls: &Calls,
        run: &Run,
        sums: &mut Sums,
        probes: &HashMap<Place, Vec<Probe>>,
        all: u64,
    ) {
        let (file, code) = (source.file, &source.code);
        let mut loads: BTreeMap<Svma, Waited> = BTreeMap::new();
        let mut stores: BTreeMap<Svma, Waited> = BTreeMap::new();
        let mut functions: BTreeMap<usize, InFunction> = BTreeMap::new();
        let mut attributed = Attributed::default();
        for &(offset, counts) in places {
            let Some(at) = code.module.image.address_of(offset) else {
                sums.no_code(&[(offset, counts)]);
                continue;
            };
            match code.entry(at) {
                Entry::SystemCall => sums.system_calls += counts.kernel,
                Entry::Fault => {
                    sums.page_faults += counts.kernel;
                    self.gathered.add_faults(source, objects, at, &counts.kept_in_kernel, counts.kernel);
                }
                Entry::Other => {}
            }
            let cause = code.cause(at);
            attributed.count(at, cause, counts.user);
            match cause {
                Cause::Load(load) => {
                    sums.loads += counts.user;
                    loads.entry(load).or_default().count(counts);
                }
                Cause::Store(store) => {
                    sums.stores += counts.user;
                    stores.entry(store).or_default().count(counts);
                }
                Cause::Computing => sums.computing += counts.user,
                Cause::Unclear(why) => *sums.unclear.entry(why).or_default() += counts.user,
            }
            if let Some(unit) = code.module.unit_at(at) {
                self.gathered.ran((file.what, unit), &counts.kept, counts.user);
                let function = functions.entry(unit).or_default();
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
            let probes = place.and_then(|place| probes.get(&place)).map_or(&[][..], Vec::as_slice);
            self.add_load(source, objects, calls, run, address, &waited, probes, beside, by_code, all);
        }
        for (address, waited) in stores {
            self.gathered.add(source, objects, address, &waited.kept, waited.samples);
        }
        for (unit, counts) in functions {
            if counts.samples as f64 >= WORTH_ANNOTATING * all as f64 {
                self.code.push(attributed.function(source, unit, counts.samples));
            }
            let share = FunctionShare {
                module: file.path.clone(),
                function: source.unit_name(unit, &counts.at),
                address: code.module.units[unit].start.0,
                time: measured_share(counts.samples, all),
                stall: measured_share(counts.stalled, all),
                latency_share: Quantity::unresolved(NO_LATENCY),
                samples: counts.samples,
            };
            self.functions.push(share);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one load, and all that is known of it")]
    fn add_load(
        &mut self,
        source: &Source<'_>,
        objects: &Objects<'_, '_>,
        calls: &Calls,
        run: &Run,
        address: Svma,
        waited: &Waited,
        probes: &[Probe],
        beside: Option<Beside>,
        by_code: Option<Dependence>,
        all: u64,
    ) {
        let (file, code) = (source.file, &source.code);
        let instruction = code.instruction(address);
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
        let judged = judge(&addresses, step.filter(|_| pattern == Pattern::Stream), &run.caches).with_probes(
            seen.as_ref(),
            threads.len(),
            is_alone,
        );
        let told = run
            .timing
            .as_ref()
            .and_then(|timing| of_load(seen.as_ref(), judged.level, pattern, judged.footprint, timing));
        let listed = (waited.samples >= LEAST_LISTED).then_some(self.loads.len());
        let told = told.zip(seen).map(|((latency, is_measured), seen)| LoadLatency {
            samples: waited.samples,
            latency,
            is_measured,
            seen: seen.mean_ns,
            listed,
        });
        *self.levels.entry(judged.level).or_default() += waited.samples;
        self.beyond_l2 += if judged.beyond_l2 { waited.samples } else { 0 };
        let readings: Vec<Reading> = known.into_iter().map(|(_, reading)| reading).collect();
        let object = self.objects.count(&readings, waited.samples as f64).map(|object| object.name);
        let number = self.gathered.add(source, objects, address, &waited.kept, waited.samples);
        if waited.samples < LEAST_LISTED {
            return;
        }
        let frames = source.frames(address);
        let (own, inlined) = frames.split_last().expect("an address has a frame");
        let line = frames[0].line.as_ref();
        let callers = calls.callers(file.what, address).cloned().unwrap_or_default();
        let stall = measured_share(waited.samples, all);
        let each = beside.map(|beside| {
            let sharp = run.sampling.calibration.one_behind.estimate().unwrap_or(Estimate::exact(1.0));
            let each = stall_each(waited.samples, beside, sharp);
            match told.as_ref().zip(run.timing.as_ref()) {
                Some((told, timing)) => bounded(each, told.latency, timing.ticks_a_ns),
                None => each,
            }
        });
        if let Some(number) = number {
            let by = &mut self.gathered.by[number as usize];
            (by.listed, by.each) = (Some(self.loads.len()), each);
            by.is_farther = judged.is_farther;
        }
        let load = StallingLoad {
            module: file.path.clone(),
            build_id: code.module.image.build_id().map(hex),
            address: address.0,
            function: own.function.clone(),
            inlined: inlined.iter().filter_map(|frame| frame.function.clone()).collect(),
            file: line.map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            instruction: source.names.instruction(address),
            stall,
            samples: waited.samples,
            threads: threads.len(),
            latency: told.as_ref().map_or_else(|| Quantity::unresolved(NO_PROBES), LoadLatency::quantity),
            latency_share: Quantity::unresolved(NO_LATENCY),
            from_memory: match seen {
                Some(seen) => Quantity::measured(seen.from_memory, Unit::Ratio),
                None => Quantity::unresolved(NO_PROBES),
            },
            probes: probes.len() as u64,
            level: judged.level,
            by_level: Vec::new(),
            traced: None,
            translation: Quantity::unresolved(NOT_BY_CLOCK),
            locked: Quantity::unresolved(NOT_BY_CLOCK),
            beyond_l2: judged.beyond_l2,
            level_because: judged.because,
            pattern,
            stride: match step {
                Some(bytes) => Quantity::measured(Estimate::exact(bytes as f64), Unit::Bytes),
                None => Quantity::unresolved("its addresses are not seen to follow one another evenly"),
            },
            footprint: footprint::figure(judged.footprint),
            object,
            callers_share: match callers.of_samples {
                0 => Quantity::unresolved("none of its samples has a stack"),
                of_samples => measured_share(callers.samples, of_samples),
            },
            callers: callers.names,
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
        self.loads.push(load);
        self.latencies.extend(told);
    }

    /// These loads wait for lines that other threads write, whatever their footprint says.
    fn disturb(&mut self, dirty: &[usize]) {
        for &number in dirty {
            let load = &mut self.loads[number];
            *self.levels.entry(load.level).or_default() -= load.samples;
            *self.levels.entry(Level::Dirty).or_default() += load.samples;
            self.beyond_l2 -= if load.beyond_l2 { load.samples } else { 0 };
            load.level = Level::Dirty;
            load.beyond_l2 = true;
            self.beyond_l2 += load.samples;
            "other threads write to its lines at the same time".clone_into(&mut load.level_because);
            for told in self.latencies.iter_mut().filter(|told| told.listed == Some(number)) {
                (told.latency, told.is_measured) = (told.seen, true);
                load.latency = told.quantity();
            }
        }
    }

    fn into_profile(
        mut self,
        run: Run,
        tally: &Tally,
        objects: &Objects<'_, '_>,
        sums: &Sums,
        calls: CallTree,
    ) -> Profile {
        let all = tally.samples;
        let share = |part: u64| measured_share(part, all);
        let shared = shared(&self.gathered, all);
        self.disturb(&shared.dirty);
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
        let mut unclear = sums.unclear.clone();
        *unclear.entry(Unclear::NoCode).or_default() += nowhere_in_user_mode(tally);
        let mut because: Vec<(u64, Unclear)> =
            unclear.iter().map(|(why, count)| (*count, *why)).filter(|(count, _)| *count > 0).collect();
        because.sort_unstable_by_key(|(count, _)| std::cmp::Reverse(*count));
        let summary = Summary {
            elapsed: run.elapsed,
            cpu_time: run.cpu_time,
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
            by_level: ByLevel {
                l1: modelled(level(Level::L1)),
                l2: modelled(level(Level::L2)),
                l3: modelled(level(Level::L3)),
                dram: modelled(level(Level::Dram)),
                dirty: modelled(level(Level::Dirty)),
                beyond_l2: modelled(self.beyond_l2),
                remote: Quantity::unresolved(NOT_BY_CLOCK),
                in_flight: Quantity::unresolved(NOT_BY_CLOCK),
                unresolved: share(level(Level::Unresolved)),
            },
            average_latency: average_latency(&self.latencies),
            overhead: run.overhead,
            overhead_beside: run.overhead_beside,
        };
        let mut loads = self.loads;
        loads.sort_by(|a, b| (b.samples, &a.module, a.address).cmp(&(a.samples, &b.module, b.address)));
        let mut functions = self.functions;
        functions.sort_by(|a, b| (b.samples, &a.module, a.address).cmp(&(a.samples, &b.module, b.address)));
        let mut code = self.code;
        code.sort_by(|a, b| (b.samples, &a.module, a.address).cmp(&(a.samples, &b.module, b.address)));
        loads.truncate(MOST_LISTED);
        Profile {
            program: run.program,
            sampling: run.sampling,
            findings: findings::of(&summary, &loads, shared.findings),
            trials: Vec::new(),
            bandwidth: Vec::new(),
            trace: None,
            lines: shared.lines,
            summary,
            loads,
            functions: functions.into_iter().take(MOST_LISTED).collect(),
            objects: self.objects.into_records(objects, all, MOST_LISTED),
            code,
            calls,
            refusals: run.refusals,
        }
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

/// Why a load has no latency.
const NO_PROBES: &str = "it was not probed often enough";

/// The mean over the loads whose latency is known, each by its stall.
fn average_latency(latencies: &[LoadLatency]) -> Quantity {
    let all: f64 = latencies.iter().map(|told| told.samples as f64).sum();
    if all == 0.0 {
        return Quantity::unresolved("no load was probed often enough");
    }
    let mean = |of: fn(&LoadLatency) -> f64| -> f64 {
        latencies.iter().map(|told| told.samples as f64 / all * of(told)).sum()
    };
    let off = |of: fn(&LoadLatency) -> f64| -> f64 {
        latencies.iter().map(|told| (told.samples as f64 / all * of(told)).powi(2)).sum::<f64>().sqrt()
    };
    let value = mean(|told| told.latency.value);
    let below = off(|told| told.latency.value - told.latency.lo);
    let above = off(|told| told.latency.hi - told.latency.value);
    let mean = Estimate::new(value, (value - below).max(0.0), value + above);
    if latencies.iter().all(|told| told.is_measured) {
        Quantity::measured(mean, Unit::Nanos)
    } else {
        Quantity::modelled(mean, Unit::Nanos)
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

/// Samples whose address no mapping holds, but for those in the kernel.
fn nowhere_in_user_mode(tally: &Tally) -> u64 {
    let placed: u64 = tally.places.values().map(|counts| counts.user).sum();
    tally.samples.saturating_sub(tally.in_kernel).saturating_sub(placed)
}

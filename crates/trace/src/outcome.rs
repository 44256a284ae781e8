//! What a traced run adds to the profile.

use crate::feed::{Counts, Feed, Module};
use crate::over_time::{Shares, bandwidth};
use crate::{Request, Traced};
use image::elf::bytes::hex;
use image::names::Names;
use records::profile::{
    Finding, FindingKind, FunctionShare, ModuleLeftOut, Profile, ProgramEnd, Trace, TracedInstruction,
    TracedLevels,
};
use records::run::Refused;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use units::{Estimate, Quantity, Svma, Unit};

/// How the traced run went.
pub(crate) struct Run {
    pub traced_s: f64,
    pub ended: ExitStatus,
    pub gave_up: u32,
}

/// Instructions that the record lists.
const LISTED: usize = 100;
/// From this share of the maximum on, memory is what a stretch of time waits for.
const NEAR_MAXIMUM: f64 = 0.7;
/// Stretches like that are worth telling from this part of the run on.
const WORTH_TELLING: f64 = 0.05;
/// The share that something has at most, by the rule of three, if none of the samples shows it.
const NO_SAMPLE: f64 = 3.0;

/// The files that samples fell in.
pub(crate) fn files(profile: &Profile) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for function in &profile.functions {
        let path = PathBuf::from(&function.module);
        if path.is_file() && !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

pub(crate) fn add(profile: &mut Profile, request: &Request<'_>, traced: &Traced, feed: Feed, run: &Run) {
    let (strange, threads) = (feed.strange, feed.threads());
    let (modules, slices, traffic) = feed.finish();
    let shares = shares(profile, traced, &modules);
    let is_told = |function: u32| is_told(&modules, function);
    let covered: Vec<Estimate> =
        shares.iter().filter(|&(&function, _)| is_told(function)).map(|(_, share)| *share).collect();
    let as_it_is = as_it_is(profile, traced, &modules);
    let all = modules.iter().flat_map(|module| &module.counts).fold(Counts::default(), Counts::and);
    let sum = |of: fn(&caches::Traffic) -> u64| {
        let figures = traffic.iter().map(|traffic| of(traffic) as f64);
        let (least, most) =
            figures.clone().fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), figure| {
                (least.min(figure), most.max(figure))
            });
        let first = traffic.first().map_or(0.0, |first| of(first) as f64);
        Quantity::modelled(Estimate::new(first, least, most), Unit::Bytes)
    };
    let names = NamesOf::new(traced);
    let elapsed_s = profile.summary.elapsed.value().unwrap_or(0.0);
    let samples = profile.sampling.samples.max(1) as f64;
    let name = |function: u32| {
        let (number, unit) = unit_of(&modules, function)?;
        let start = *modules[number].places.units.get(unit)?;
        known(profile, traced, number, start)
            .or_else(|| names.function(number, start))
            .or_else(|| Some(format!("{}+{start:#x}", file_name(&traced.files[number].0))))
    };
    let maximum = &request.settings.maximum;
    let mut over_time = bandwidth(&slices, &shares, NO_SAMPLE / samples, elapsed_s, maximum, &name);
    if let Some((from, to)) = request.window {
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        over_time.retain(|slice| {
            slice.to.value().is_some_and(|end| end > from)
                && slice.from.value().is_some_and(|begin| begin < to)
        });
    }
    profile.findings.extend(finding(&over_time));
    profile.bandwidth = over_time;
    let instructions = instructions(profile, traced, &modules, &names);
    beside_the_stall(profile, traced, &modules);
    let time = |path: &Path| {
        let of_module = profile.functions.iter().filter(|function| Path::new(&function.module) == path);
        let share: f64 = of_module.filter_map(|function| function.time.value()).sum();
        Quantity::measured(Estimate::exact(share), Unit::Ratio)
    };
    let is_worth_telling =
        |(path, _): &&(PathBuf, String)| time(path).value().is_some_and(|share| share > 0.0);
    let left_out = traced.left_out.iter().filter(is_worth_telling).map(|(path, why)| ModuleLeftOut {
        module: records::text_of(path),
        time: time(path),
        why: why.clone(),
    });
    let trace = Trace {
        model: request.settings.model(),
        accesses: all.accesses,
        covered: outside_kernel(sum_of(&covered), &profile.summary.in_kernel),
        slowdown: match elapsed_s {
            s if s > 0.0 => Quantity::measured(Estimate::exact(run.traced_s / s), Unit::Ratio),
            _ => Quantity::unresolved("the first run took no time"),
        },
        by_level: levels(&all),
        read: sum(|traffic| traffic.read),
        written: sum(|traffic| traffic.written),
        instructions,
        left_out: left_out.collect(),
    };
    profile.trace = Some(trace);
    profile.refusals.extend(as_it_is);
    profile.refusals.extend(refusals(profile, run, strange, all.accesses, threads));
}

/// What went otherwise than in the first run, or is missing.
fn refusals(profile: &Profile, run: &Run, strange: u64, accesses: u64, threads: usize) -> Vec<Refused> {
    let mut refused = Vec::new();
    let mut say = |why: String| {
        refused.push(Refused { what: "trace".to_owned(), why, would_help: None });
    };
    let as_before = match profile.program.ended {
        ProgramEnd::Exited { code } => run.ended.code() == Some(code),
        ProgramEnd::Killed { signal } => run.ended.signal() == Some(signal),
        ProgramEnd::StillRunning | ProgramEnd::Unknown => true,
    };
    if !as_before {
        say(format!("the traced run ended otherwise than the first one: {}", run.ended));
    }
    if run.gave_up > 0 {
        say(format!("{} of {threads} threads wrote down a part of their accesses", run.gave_up));
    }
    if strange > 0 {
        let share = 100.0 * strange as f64 / (strange + accesses) as f64;
        say(format!("{share:.3}% of what was written down fits no instruction"));
    }
    refused
}

/// How long functions take, by their number among all units.
fn shares(profile: &Profile, traced: &Traced, modules: &[Module]) -> Shares {
    let of =
        |function: &FunctionShare| Some((number_of(function, traced, modules)?, function.time.estimate()?));
    profile.functions.iter().filter_map(of).collect()
}

/// The number of a sampled function among all units.
fn number_of(function: &FunctionShare, traced: &Traced, modules: &[Module]) -> Option<u32> {
    let number = traced.files.iter().position(|(path, _)| records::text_of(path) == function.module)?;
    let module = modules.get(number)?;
    let unit = module.places.units.binary_search(&function.address).ok()?;
    Some(module.functions + unit as u32)
}

/// Whether any access of a function was told. One that is only called by address, and whose entry
/// could not be changed, runs as it is.
fn is_told(modules: &[Module], function: u32) -> bool {
    let Some((number, unit)) = unit_of(modules, function) else { return false };
    let module = &modules[number];
    let places = module.places.all.iter().zip(&module.counts);
    places.into_iter().any(|(place, counts)| place.unit as usize == unit && counts.accesses > 0)
}

/// Functions that took time, by more than a sample or two that landed there, and told nothing.
fn as_it_is(profile: &Profile, traced: &Traced, modules: &[Module]) -> Vec<Refused> {
    let mut refused = Vec::new();
    for function in &profile.functions {
        let Some(share) = function.time.estimate() else { continue };
        let is_silent = number_of(function, traced, modules).is_some_and(|number| !is_told(modules, number));
        if share.lo >= 0.01 && is_silent {
            let name = function.function.clone().unwrap_or_else(|| format!("{:#x}", function.address));
            let why = format!(
                "{name} ({:.1}% of the CPU time) ran as it is: its traffic is missing",
                100.0 * share.value
            );
            refused.push(Refused { what: "trace".to_owned(), why, would_help: None });
        }
    }
    refused
}

/// The sum of shares, whose intervals add in quadrature.
fn sum_of(shares: &[Estimate]) -> Estimate {
    let value: f64 = shares.iter().map(|share| share.value).sum();
    let below = shares.iter().fold(0.0_f64, |sum, share| sum.hypot(share.value - share.lo));
    let above = shares.iter().fold(0.0_f64, |sum, share| sum.hypot(share.hi - share.value));
    Estimate::new(value.min(1.0), (value - below).max(0.0), (value + above).min(1.0))
}

/// A share of all CPU time as one of that which is not the kernel's.
fn outside_kernel(share: Estimate, kernel: &Quantity) -> Quantity {
    let outside = 1.0 - kernel.value().unwrap_or(0.0);
    if outside <= 0.0 {
        return Quantity::unresolved("all of the time was the kernel's");
    }
    let part = |share: f64| (share / outside).clamp(0.0, 1.0);
    let covered = Estimate::new(part(share.value), part(share.lo), part(share.hi));
    Quantity::measured(covered, Unit::Ratio)
}

fn levels(counts: &Counts) -> TracedLevels {
    let share = |count: u64| match counts.accesses {
        0 => Quantity::unresolved("it was not executed"),
        all => Quantity::modelled(Estimate::exact(count as f64 / all as f64), Unit::Ratio),
    };
    TracedLevels {
        l1: share(counts.accesses - counts.l2 - counts.l3 - counts.memory),
        l2: share(counts.l2),
        l3: share(counts.l3),
        dram: share(counts.memory),
        expected: share(counts.expected),
        walks: share(counts.walks),
    }
}

/// The module of a function's number, and its unit there.
fn unit_of(modules: &[Module], function: u32) -> Option<(usize, usize)> {
    let number = modules.partition_point(|module| module.functions <= function).checked_sub(1)?;
    Some((number, (function - modules[number].functions) as usize))
}

/// As the samples' part of the profile names a function.
fn known(profile: &Profile, traced: &Traced, number: usize, start: u64) -> Option<String> {
    let path = records::text_of(&traced.files[number].0);
    let found =
        profile.functions.iter().find(|function| function.address == start && function.module == path);
    found?.function.clone()
}

/// Names in the traced files.
struct NamesOf<'t> {
    names: Vec<(Names<'t>, Option<image::Module<'t>>)>,
}

impl<'t> NamesOf<'t> {
    fn new(traced: &'t Traced) -> Self {
        let of = |(_, data): &'t (PathBuf, Vec<u8>)| {
            (Names::of(data, None), image::Module::analyse(data, None).ok())
        };
        Self { names: traced.files.iter().map(of).collect() }
    }

    /// The function that has an address, by its symbol.
    fn function(&self, number: usize, address: u64) -> Option<String> {
        let module = self.names[number].1.as_ref()?;
        let unit = module.unit_at(Svma(address))?;
        module.name(unit).map(|name| insight::demangled(&String::from_utf8_lossy(name)))
    }
}

/// Those that most lines come from memory for.
fn instructions(
    profile: &Profile,
    traced: &Traced,
    modules: &[Module],
    names: &NamesOf<'_>,
) -> Vec<TracedInstruction> {
    let mut all: Vec<(usize, usize, &Counts)> = Vec::new();
    for (number, module) in modules.iter().enumerate() {
        let missing = module.counts.iter().enumerate().filter(|(_, counts)| counts.lines > 0);
        all.extend(missing.map(|(place, counts)| (number, place, counts)));
    }
    all.sort_by_key(|&(number, place, counts)| (std::cmp::Reverse(counts.lines), number, place));
    let of = |&(number, place, counts): &(usize, usize, &Counts)| {
        let place = &modules[number].places.all[place];
        let address = u64::from(place.address);
        let start = modules[number].places.units[place.unit as usize];
        let line = names.names[number].0.line(Svma(address));
        TracedInstruction {
            module: records::text_of(&traced.files[number].0),
            address,
            function: known(profile, traced, number, start).or_else(|| names.function(number, address)),
            file: line.as_ref().map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            instruction: names.names[number].0.instruction(Svma(address)),
            accesses: counts.accesses,
            lines_from_memory: counts.lines,
            by_level: levels(counts),
        }
    };
    all.iter().take(LISTED).map(of).collect()
}

/// What the model says of the loads that the core waited for.
fn beside_the_stall(profile: &mut Profile, traced: &Traced, modules: &[Module]) {
    for load in &mut profile.loads {
        let number = traced.files.iter().position(|(path, _)| records::text_of(path) == load.module);
        let Some((module, address)) = number.zip(u32::try_from(load.address).ok()) else { continue };
        let build_id = image::Image::parse(&traced.files[module].1).ok();
        if build_id.and_then(|image| image.build_id().map(hex)) != load.build_id {
            continue;
        }
        let counts = modules[module].places.at(address).map(|place| modules[module].counts[place]);
        load.traced = counts.filter(|counts| counts.accesses > 0).map(|counts| levels(&counts));
    }
}

/// Time in which memory delivers nearly all it can.
fn finding(slices: &[records::profile::BandwidthSlice]) -> Option<Finding> {
    let is_near = |slice: &&records::profile::BandwidthSlice| {
        slice.of_maximum.estimate().is_some_and(|share| share.value >= NEAR_MAXIMUM)
    };
    let near: Vec<_> = slices.iter().filter(is_near).collect();
    let part = near.len() as f64 / slices.len().max(1) as f64;
    if part < WORTH_TELLING {
        return None;
    }
    let highest = near.iter().max_by(|one, other| {
        let share = |slice: &records::profile::BandwidthSlice| slice.of_maximum.value().unwrap_or(0.0);
        share(one).total_cmp(&share(other))
    })?;
    let seconds = |quantity: &Quantity| quantity.value().unwrap_or(0.0);
    let says = format!(
        "memory moves {:.0}% of the most that it can, or more, for {:.0}% of the run (first at {:.2} s): fewer bytes help (smaller types, one pass instead of several, blocks that stay in a cache), more threads do not",
        100.0 * NEAR_MAXIMUM,
        100.0 * part,
        seconds(&near[0].from),
    );
    Some(Finding {
        kind: FindingKind::Bandwidth,
        object: None,
        function: highest.function.clone(),
        file: None,
        line: None,
        says,
        gain: Quantity::modelled(Estimate::new(part / 2.0, 0.0, part), Unit::Ratio),
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

//! The profile record, put together from the figures of a run: the only place where that is done,
//! whichever way the samples were taken. What differs by that comes in as [`Figures`].

use crate::code::annotate::Attributed;
use crate::code::calls::Calls;
use crate::code::source::Source;
use crate::findings::advice;
use crate::findings::run::{MOST_LISTED, Run, WORTH_ANNOTATING};
use crate::share::measured_share;
use image::elf::bytes::hex;
use records::profile::{
    AnnotatedFunction, ByLevel, CallTree, Finding, FunctionShare, Level, LevelShare, MemoryObject, Pattern,
    Profile, ScriptLine, SharedLine, StallingLoad, Summary, Unattributed,
};
use std::collections::HashSet;
use units::{Quantity, Svma};

/// What the samples of a run show.
pub(crate) struct Figures {
    pub times: Times,
    pub by_level: ByLevel,
    pub average_latency: Quantity,
    pub listed: Listed,
    pub objects: Vec<MemoryObject>,
    pub scripts: Vec<ScriptLine>,
    pub lines: Vec<SharedLine>,
    /// What to do about those lines.
    pub findings: Vec<Finding>,
    /// Loads, by file and address, for whose memory the core did not wait.
    pub computed: HashSet<(u32, Svma)>,
}

/// Shares of the CPU time.
pub(crate) struct Times {
    pub memory_bound: Quantity,
    pub stores: Quantity,
    pub computing: Quantity,
    pub in_kernel: Quantity,
    pub system_calls: Quantity,
    pub page_faults: Quantity,
    pub not_attributed: Quantity,
    pub not_attributed_because: Vec<Unattributed>,
}

/// What is listed one by one, in any order.
#[derive(Default)]
pub(crate) struct Listed {
    pub loads: Vec<StallingLoad>,
    pub functions: Vec<FunctionShare>,
    pub code: Vec<AnnotatedFunction>,
}

/// Where a load is.
pub(crate) struct LoadPlace<'a, 'd> {
    /// `None` where its file could not be read.
    pub source: Option<&'a Source<'d>>,
    /// The path of its file.
    pub module: String,
    /// The number of its file in the tally.
    pub what: u32,
    pub address: Svma,
}

/// What its samples show of a load.
pub(crate) struct LoadFigures {
    pub samples: u64,
    pub threads: usize,
    pub time: LoadTime,
    pub latency: Quantity,
    pub latency_share: Quantity,
    pub from_memory: Quantity,
    pub probes: u64,
    pub level: Level,
    pub by_level: Vec<LevelShare>,
    pub level_because: String,
    pub beyond_l2: bool,
    pub translation: Quantity,
    pub locked: Quantity,
    pub pattern: Pattern,
    pub stride: Quantity,
    pub footprint: Quantity,
    pub object: Option<String>,
}

/// The CPU time that a load costs.
pub(crate) struct LoadTime {
    pub stall: Quantity,
    pub stall_each: Quantity,
    pub harvestable: Quantity,
}

/// One function of a file.
pub(crate) struct SampledUnit<'a> {
    pub number: usize,
    pub samples: u64,
    /// Samples of all functions.
    pub all: u64,
    /// The samples of its file, by instruction.
    pub attributed: &'a Attributed,
}

/// What its samples show of a function.
pub(crate) struct FunctionFigures {
    pub name: Option<String>,
    pub time: Quantity,
    pub stall: Quantity,
    pub latency_share: Quantity,
}

/// The record of a run.
pub(crate) fn record(run: Run, figures: Figures, calls: CallTree) -> Profile {
    let Figures { times, by_level, average_latency, listed, objects, scripts, lines, findings, computed: _ } =
        figures;
    let Listed { mut loads, mut functions, mut code } = listed;
    let latency = |share: &Quantity| share.value().unwrap_or(0.0);
    sort_by_weight(&mut loads, |it| (latency(&it.latency_share), it.samples, it.module.as_str(), it.address));
    sort_by_weight(&mut functions, |it| {
        (latency(&it.latency_share), it.samples, it.module.as_str(), it.address)
    });
    sort_by_weight(&mut code, |it| (0.0, it.samples, it.module.as_str(), it.address));
    loads.truncate(MOST_LISTED);
    functions.truncate(MOST_LISTED);
    let summary = Summary {
        elapsed: run.elapsed,
        cpu_time: run.cpu_time,
        waited_for_cpu: run.waited_for_cpu,
        memory_bound: times.memory_bound,
        stores: times.stores,
        computing: times.computing,
        in_kernel: times.in_kernel,
        system_calls: times.system_calls,
        page_faults: times.page_faults,
        not_attributed: times.not_attributed,
        not_attributed_because: times.not_attributed_because,
        by_level,
        average_latency,
        overhead: run.overhead,
        overhead_beside: run.overhead_beside,
    };
    Profile {
        program: run.program,
        sampling: run.sampling,
        findings: advice::of(&summary, &loads, findings),
        trials: Vec::new(),
        bandwidth: Vec::new(),
        trace: None,
        scripts,
        system: None,
        lines,
        summary,
        loads,
        functions,
        objects,
        code,
        calls,
        refusals: run.refusals,
    }
}

/// Those with most latency first, then those with most samples. Where samples tell no latency, no
/// share of it is resolved, and the samples alone count.
fn sort_by_weight<T>(listed: &mut [T], weight: impl Fn(&T) -> (f64, u64, &str, u64)) {
    listed.sort_by(|a, b| {
        let (latency, samples, module, address) = weight(a);
        let (other_latency, other_samples, other_module, other_address) = weight(b);
        other_latency
            .total_cmp(&latency)
            .then_with(|| (other_samples, module, address).cmp(&(samples, other_module, other_address)))
    });
}

impl Times {
    /// Where samples do not tell what time goes to.
    pub(crate) fn unresolved(why: &str) -> Self {
        let unresolved = || Quantity::unresolved(why);
        Self {
            memory_bound: unresolved(),
            stores: unresolved(),
            computing: unresolved(),
            in_kernel: unresolved(),
            system_calls: unresolved(),
            page_faults: unresolved(),
            not_attributed: unresolved(),
            not_attributed_because: Vec::new(),
        }
    }
}

impl LoadTime {
    /// Where samples do not tell what time goes to.
    pub(crate) fn unresolved(why: &str) -> Self {
        let unresolved = || Quantity::unresolved(why);
        Self { stall: unresolved(), stall_each: unresolved(), harvestable: unresolved() }
    }
}

impl Listed {
    /// Lists a load, with its names and its most frequent callers.
    pub(crate) fn add_load(&mut self, place: LoadPlace<'_, '_>, calls: &Calls, figures: LoadFigures) {
        let LoadPlace { source, module, what, address } = place;
        let callers = calls.callers(what, address).cloned().unwrap_or_default();
        let frames = source.map(|source| source.frames(address)).unwrap_or_default();
        let (own, inlined) =
            frames.split_last().map_or((None, &[][..]), |(own, inlined)| (Some(own), inlined));
        let line = frames.first().and_then(|frame| frame.line.as_ref());
        self.loads.push(StallingLoad {
            module,
            build_id: source.and_then(|source| source.code.module.image.build_id().map(hex)),
            address: address.0,
            function: own.and_then(|own| own.function.clone()),
            inlined: inlined.iter().filter_map(|frame| frame.function.clone()).collect(),
            file: line.map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            program: None,
            instruction: source.map_or_else(|| "?".to_owned(), |source| source.names.instruction(address)),
            stall: figures.time.stall,
            samples: figures.samples,
            threads: figures.threads,
            latency: figures.latency,
            latency_share: figures.latency_share,
            from_memory: figures.from_memory,
            probes: figures.probes,
            level: figures.level,
            by_level: figures.by_level,
            traced: None,
            translation: figures.translation,
            locked: figures.locked,
            beyond_l2: figures.beyond_l2,
            level_because: figures.level_because,
            pattern: figures.pattern,
            stride: figures.stride,
            footprint: figures.footprint,
            object: figures.object,
            callers_share: match callers.of_samples {
                0 => Quantity::unresolved("none of its samples has a stack"),
                of_samples => measured_share(callers.samples, of_samples),
            },
            callers: callers.names,
            stall_each: figures.time.stall_each,
            harvestable: figures.time.harvestable,
        });
    }

    /// Lists a function; with its code, if enough of all samples are in it.
    pub(crate) fn add_function(
        &mut self,
        source: &Source<'_>,
        unit: &SampledUnit<'_>,
        figures: FunctionFigures,
    ) {
        let (number, samples) = (unit.number, unit.samples);
        if samples as f64 >= WORTH_ANNOTATING * unit.all as f64 {
            self.code.push(unit.attributed.function(source, number, samples));
        }
        self.functions.push(FunctionShare {
            module: source.file.path.clone(),
            function: figures.name,
            address: source.code.module.units[number].start.0,
            program: None,
            time: figures.time,
            stall: figures.stall,
            latency_share: figures.latency_share,
            samples,
        });
    }
}

//! Whom the CPU time went to, where all processes of a machine were sampled: programs, control
//! groups, and whose the loads and functions are that the record lists.

use crate::code::cause::Cause;
use crate::code::source::Source;
use crate::findings::run::MOST_LISTED;
use crate::samples::address_space::Place;
use crate::samples::population::{Counts, Population, Row};
use crate::share::measured_share;
use records::profile::{Cgroup, CgroupShare, Profile, ProgramShare, System};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use units::{Quantity, Svma};

/// A process with less than this share of all samples has no row of its own.
const OWN_ROW: f64 = 0.01;

/// What the code at a place is, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceTold {
    /// The path of its file.
    pub module: String,
    /// Its function, or where that begins in the file.
    pub function: String,
    /// Where the function begins, as the file states addresses.
    pub start: u64,
    /// The load that the core waited for, if it did.
    pub load: Option<u64>,
    /// The line of that load, or of the place.
    pub line: Option<(String, u32)>,
}

/// All places that were sampled and whose file was read, in words.
pub(crate) fn places(
    population: &Population,
    sources: &HashMap<u32, Source<'_>>,
    computed: &HashSet<(u32, Svma)>,
) -> HashMap<Place, PlaceTold> {
    let mut told = Told { sources, computed, meanings: HashMap::new() };
    let mut found = HashMap::new();
    for (_, _, counts) in population.all() {
        for &place in counts.keys().flatten() {
            if !found.contains_key(&place)
                && let Some(words) = told.words(place)
            {
                found.insert(place, words);
            }
        }
    }
    found
}

/// What the code at a place was.
#[derive(Clone, Copy, Default)]
struct Meaning {
    /// The file, and where in it the function begins.
    function: Option<(u32, Svma)>,
    /// The load that the core waited for.
    load: Option<(u32, Svma)>,
}

/// Fills in whom the samples of a profile belong to. The core did not wait for the memory of the
/// `computed` loads.
pub(crate) fn add(
    profile: &mut Profile,
    population: &Population,
    sources: &HashMap<u32, Source<'_>>,
    computed: &HashSet<(u32, Svma)>,
) {
    let rows = population.rows(OWN_ROW);
    let mut told = Told { sources, computed, meanings: HashMap::new() };
    let all: u64 = rows.iter().map(|(_, row)| row.samples()).sum();
    let mut groups: BTreeMap<Cgroup, Sums> = BTreeMap::new();
    let mut by_function = Shares::default();
    let mut by_load = Shares::default();
    let mut programs = Vec::new();
    for (runs, row) in &rows {
        let program = records::text_of(Path::new(std::ffi::OsStr::from_bytes(&runs.program)));
        let mut sums = Sums::default();
        let mut loads: HashMap<(u32, Svma), u64> = HashMap::new();
        for (place, counts) in &row.counts {
            let meaning = told.of(*place);
            sums.count(counts, meaning.load.is_some());
            if let Some(function) = meaning.function {
                by_function.count(function, &program, counts.user);
            }
            if let Some(load) = meaning.load {
                *loads.entry(load).or_default() += counts.user;
                by_load.count(load, &program, counts.user);
            }
        }
        sums.processes = row.processes;
        groups.entry((*runs.group).clone()).or_default().add(&sums);
        let most = loads.into_iter().max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a)));
        programs.push(share_of(program, row, &sums, all, most.filter(|(_, count)| *count > 0), &told));
        let last = programs.last_mut().expect("it was just added");
        (last.group, last.is_kernel_thread) = ((*runs.group).clone(), runs.is_kernel_thread);
    }
    programs.truncate(MOST_LISTED);
    let mut cgroups: Vec<CgroupShare> = groups
        .into_iter()
        .map(|(group, sums)| CgroupShare {
            group,
            processes: sums.processes,
            time: measured_share(sums.samples(), all),
            stall: measured_share(sums.stall, all),
            in_kernel: measured_share(sums.kernel, all),
            samples: sums.samples(),
        })
        .collect();
    cgroups.sort_by_key(|group| std::cmp::Reverse(group.samples));
    cgroups.truncate(MOST_LISTED);
    let (by_function, by_load) = (by_function.most(sources), by_load.most(sources));
    for function in &mut profile.functions {
        function.program = by_function.get(&(function.module.as_str(), function.address)).cloned();
    }
    for load in &mut profile.loads {
        load.program = by_load.get(&(load.module.as_str(), load.address)).cloned();
    }
    profile.system = Some(System {
        cpus: 0,
        cgroup: None,
        busy: Quantity::unresolved("it was not asked"),
        own: Quantity::unresolved("it was not asked"),
        began: population.began,
        ended: population.ended,
        programs,
        cgroups,
        kernel: Vec::new(),
    });
}

fn share_of(
    program: String,
    row: &Row,
    sums: &Sums,
    all: u64,
    most: Option<((u32, Svma), u64)>,
    told: &Told<'_, '_>,
) -> ProgramShare {
    let frames = most.and_then(|((what, load), _)| Some(told.sources.get(&what)?.frames(load)));
    let frames = frames.unwrap_or_default();
    let line = frames.first().and_then(|frame| frame.line.as_ref());
    ProgramShare {
        program,
        pid: row.pid,
        processes: row.processes,
        is_kernel_thread: false,
        group: Cgroup::default(),
        time: measured_share(sums.samples(), all),
        stall: measured_share(sums.stall, all),
        in_kernel: measured_share(sums.kernel, all),
        samples: sums.samples(),
        function: frames.last().and_then(|frame| frame.function.clone()),
        file: line.map(|line| line.file.clone()),
        line: line.map(|line| line.line),
        stall_there: match most {
            Some((_, samples)) => measured_share(samples, all),
            None => Quantity::unresolved("it waited for no load"),
        },
    }
}

/// The sums over a row, or over several.
#[derive(Default)]
struct Sums {
    user: u64,
    kernel: u64,
    stall: u64,
    processes: u64,
}

impl Sums {
    fn count(&mut self, counts: &Counts, waits: bool) {
        self.user += counts.user;
        self.kernel += counts.kernel;
        self.stall += if waits { counts.user } else { 0 };
    }

    fn add(&mut self, other: &Self) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.stall += other.stall;
        self.processes += other.processes;
    }

    fn samples(&self) -> u64 {
        self.user + self.kernel
    }
}

/// What places mean, each found once.
struct Told<'a, 'd> {
    sources: &'a HashMap<u32, Source<'d>>,
    computed: &'a HashSet<(u32, Svma)>,
    meanings: HashMap<Place, Meaning>,
}

impl Told<'_, '_> {
    fn of(&mut self, place: Option<Place>) -> Meaning {
        let Some(place) = place else { return Meaning::default() };
        if let Some(known) = self.meanings.get(&place) {
            return *known;
        }
        let meaning = self.find(place).unwrap_or_default();
        self.meanings.insert(place, meaning);
        meaning
    }

    fn words(&mut self, place: Place) -> Option<PlaceTold> {
        let meaning = self.of(Some(place));
        let source = self.sources.get(&place.what.0)?;
        let sampled = source.code.module.image.address_of(place.offset)?;
        let at = meaning.load.map_or(sampled, |(_, load)| load);
        let frames = source.frames(at);
        let line = frames.first().and_then(|frame| frame.line.as_ref());
        let line = line.map(|line| (line.file.clone(), line.line));
        let function = frames.last().and_then(|frame| frame.function.clone());
        Some(PlaceTold {
            module: source.file.path.clone(),
            function: function.unwrap_or_else(|| source.start(sampled)),
            start: meaning.function.map_or(sampled.0, |(_, start)| start.0),
            load: meaning.load.map(|(_, load)| load.0),
            line,
        })
    }

    fn find(&self, place: Place) -> Option<Meaning> {
        let what = place.what.0;
        let code = &self.sources.get(&what)?.code;
        let at = code.module.image.address_of(place.offset)?;
        let function = code.module.unit_at(at).map(|unit| (what, code.module.units[unit].start));
        let load = match code.cause(at) {
            Cause::Load(load) if !self.computed.contains(&(what, load)) => Some((what, load)),
            _ => None,
        };
        Some(Meaning { function, load })
    }
}

/// Whose samples there are at a load, or in a function.
#[derive(Default)]
struct Shares {
    by_place: HashMap<(u32, Svma), BTreeMap<String, u64>>,
}

impl Shares {
    fn count(&mut self, at: (u32, Svma), program: &str, samples: u64) {
        let programs = self.by_place.entry(at).or_default();
        match programs.get_mut(program) {
            Some(count) => *count += samples,
            None => drop(programs.insert(program.to_owned(), samples)),
        }
    }

    /// The program that has most of them; with more than one, it is said.
    fn most<'a>(self, sources: &'a HashMap<u32, Source<'_>>) -> HashMap<(&'a str, u64), String> {
        let name = |programs: BTreeMap<String, u64>| {
            let others = programs.values().filter(|samples| **samples > 0).count() > 1;
            let (most, _) = programs.into_iter().max_by_key(|(_, samples)| *samples)?;
            Some(if others { format!("{most} and others") } else { most })
        };
        let found = self.by_place.into_iter().filter_map(|((what, at), programs)| {
            Some(((sources.get(&what)?.file.path.as_str(), at.0), name(programs)?))
        });
        found.collect()
    }
}

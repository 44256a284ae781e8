//! Samples as they are counted while a program runs: by the place of the sampled instruction, so
//! that memory does not grow with time. Of each place some samples are kept whole, chosen evenly
//! over the run (a reservoir): their registers tell which data the program waited for.

use crate::samples::accesses::{Access, Accesses, KeptAccess};
use crate::samples::address_space::{AddressSpace, MappedId, Place};
use crate::samples::heap::{AllNear, Heaps};
use crate::samples::population::Population;
use crate::samples::registers::Registers;
use crate::samples::runtime_heap::RuntimeHeap;
use crate::samples::stacks::Stacks;
use std::collections::{BTreeMap, HashMap};
use units::Avma;
use units::random::Xorshift;

/// One sample of a thread's CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub process: u32,
    pub thread: u32,
    /// On the clock of the events, in nanoseconds.
    pub time_ns: u64,
    /// The thread was in the kernel: instruction and registers are those with which it entered.
    pub in_kernel: bool,
    /// `None` where it is not told: a thread of the kernel, or one that ends.
    pub ip: Option<Avma>,
    /// `None` where the sample holds none.
    pub registers: Option<Registers>,
}

/// A sample that is kept whole, with the allocations that it may have read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub sample: Sample,
    pub near: AllNear,
}

impl From<&KeptAccess> for Kept {
    /// As if a clock had sampled it.
    fn from(KeptAccess { access, near }: &KeptAccess) -> Self {
        let sample = Sample {
            process: access.process,
            thread: access.thread,
            time_ns: access.time_ns,
            in_kernel: false,
            ip: Some(access.ip),
            registers: None,
        };
        Self { sample, near: *near }
    }
}

/// A load, stopped once right before it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Process, thread, time, and the allocations at the address.
    pub kept: Kept,
    pub address: u64,
    /// Ticks of the time stamp counter that it took to read, and to read again; zero if it was not
    /// read.
    pub ticks: (u32, u32),
    /// Its thread is known to have had its CPU, without a break, for some time before: what is in
    /// the caches is what the program itself put there.
    pub is_steady: bool,
}

/// A stretch of time in which a thread was not taken from its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    pub thread: u32,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Probes of one load that are kept: more would not make its figures better.
pub const PROBES_OF_LOAD: usize = 1024;

/// What was sampled at one place.
#[derive(Clone, Debug, Default)]
pub struct PlaceTally {
    /// Samples in user mode.
    pub user: u64,
    /// Samples in the kernel, which was entered from here.
    pub kernel: u64,
    /// User mode samples that were kept.
    pub kept: Vec<Kept>,
    /// Samples in the kernel that were kept, with the registers with which it was entered.
    pub kept_in_kernel: Vec<Kept>,
    /// Some of those were given up for other places: it has as many from now on.
    is_thinned: bool,
}

impl PlaceTally {
    /// Counts what was counted at another place here, too.
    fn merge(&mut self, other: Self) {
        self.user += other.user;
        self.kernel += other.kernel;
        self.kept.extend(other.kept);
        self.kept_in_kernel.extend(other.kept_in_kernel);
        self.is_thinned |= other.is_thinned;
    }
}

/// A file or area that is mapped somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapped {
    /// As the kernel names it: a path, or `[heap]`, `//anon`, `[vdso]`.
    pub name: Vec<u8>,
    /// Device and inode: a file may be replaced by another of its name.
    pub device: (u32, u32),
    pub inode: u64,
    /// Of an area without a file: one of a process, with its address and size.
    pub area: Option<Area>,
}

/// Memory that a process mapped without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Area {
    pub process: u32,
    pub start: u64,
    pub bytes: u64,
    /// Of code that is made while it runs: which of the contents of its page, as they were read one
    /// after the other; from 1 on. 0 for memory as such.
    pub version: u32,
}

/// A process that was seen.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub name: Vec<u8>,
    pub space: AddressSpace,
    /// Its threads by id, with the samples of each.
    pub threads: BTreeMap<u32, u64>,
    /// Where its runtime keeps objects, as far as that is known.
    pub runtime_heap: Option<RuntimeHeap>,
}

/// Everything that was sampled.
#[derive(Clone, Debug)]
pub struct Tally {
    pub mapped: Vec<Mapped>,
    ids: HashMap<Mapped, MappedId>,
    /// Areas by their number and the version of what is in them.
    versions: HashMap<(MappedId, u32), MappedId>,
    pub processes: BTreeMap<u32, Process>,
    pub places: HashMap<Place, PlaceTally>,
    /// Samples name the instruction itself that the core waited for, not the one behind it.
    pub is_exact: bool,
    /// All samples of time, wherever they fell.
    pub samples: u64,
    /// Of those, in the kernel.
    pub in_kernel: u64,
    /// Of those, at addresses where nothing was known to be mapped.
    pub nowhere: u64,
    /// Samples that the kernel had no space for.
    pub lost: u64,
    /// Who called what was sampled, by samples of an event of their own.
    pub stacks: Stacks,
    /// What processes have allocated.
    pub heaps: Heaps,
    /// Loads and stores that the hardware sampled.
    pub accesses: Accesses,
    /// Loads that were stopped, by their own place.
    pub probes: HashMap<Place, Vec<Probe>>,
    /// Whom samples belong to, if all processes of the machine are sampled.
    pub population: Option<Population>,
    kept: usize,
    random: Xorshift,
}

/// Samples kept of one place while there is space: enough to tell an area of 20 MiB from one of
/// 30, see `data/footprint.rs`.
const KEPT_OF_PLACE: u64 = 4096;
/// Samples kept of one place when many places have taken half of the space.
const KEPT_OF_OTHERS: u64 = 1024;
/// Samples kept of one place from which the kernel was entered: these tell who made memory.
const KEPT_IN_KERNEL: u64 = 128;
/// Samples kept of all places together: 16 MiB. Then places give up half of theirs, so that there
/// is space for what a program does later.
const KEPT: usize = (16 << 20) / size_of::<Kept>();
/// But no place goes below this number.
const KEPT_AT_LEAST: usize = 256;

impl Default for Tally {
    fn default() -> Self {
        Self {
            mapped: Vec::new(),
            ids: HashMap::new(),
            versions: HashMap::new(),
            processes: BTreeMap::new(),
            places: HashMap::new(),
            is_exact: false,
            samples: 0,
            in_kernel: 0,
            nowhere: 0,
            lost: 0,
            stacks: Stacks::default(),
            heaps: Heaps::default(),
            accesses: Accesses::default(),
            probes: HashMap::new(),
            population: None,
            kept: 0,
            random: Xorshift::new(0x9e37_79b9_7f4a_7c15),
        }
    }
}

impl Tally {
    /// The number of a file or area, given now or before.
    pub fn id(&mut self, mapped: Mapped) -> MappedId {
        if let Some(&id) = self.ids.get(&mapped) {
            return id;
        }
        let id = MappedId(self.mapped.len() as u32);
        self.mapped.push(mapped.clone());
        self.ids.insert(mapped, id);
        id
    }

    pub fn mapped(&self, id: MappedId) -> &Mapped {
        &self.mapped[id.0 as usize]
    }

    /// The same files and processes, without a sample: for what comes next.
    #[must_use]
    pub fn without_samples(&self) -> Self {
        let space = |(&id, process): (&u32, &Process)| {
            (
                id,
                Process {
                    name: process.name.clone(),
                    space: process.space.clone(),
                    threads: BTreeMap::new(),
                    runtime_heap: process.runtime_heap.clone(),
                },
            )
        };
        Self {
            mapped: self.mapped.clone(),
            ids: self.ids.clone(),
            processes: self.processes.iter().map(space).collect(),
            is_exact: self.is_exact,
            // What runs where is asked anew: processes may have gone to another control group.
            population: self.population.as_ref().map(|_| Population::default()),
            ..Self::default()
        }
    }

    /// The processes that were sampled, with their ids.
    pub fn sampled(&self) -> impl Iterator<Item = (u32, &Process)> {
        let seen = self.processes.iter().map(|(id, process)| (*id, process));
        seen.filter(|(_, process)| !process.threads.is_empty())
    }

    /// Counts a load or store that the hardware sampled.
    pub fn count_access(&mut self, access: &Access) {
        let process = self.processes.entry(access.process).or_default();
        *process.threads.entry(access.thread).or_default() += 1;
        let place = process.space.place(access.ip);
        let address = access.address.map(|address| address.0);
        let heaps = &self.heaps;
        self.accesses.count(access, place, || heaps.near(access.process, address.as_slice()));
    }

    /// A place in memory, with the version of what is in its page.
    pub fn with_version(&mut self, place: Place, version: u32) -> Place {
        let mapped = &self.mapped[place.what.0 as usize];
        let Some(area) = mapped.area.filter(|_| version > 0) else { return place };
        if let Some(&what) = self.versions.get(&(place.what, version)) {
            return Place { what, ..place };
        }
        let what = self.id(Mapped { area: Some(Area { version, ..area }), ..mapped.clone() });
        self.versions.insert((place.what, version), what);
        Place { what, ..place }
    }

    /// Counts all samples of these places at others: at those of the files that code made at run
    /// time was put into. What is counted at one place already stays first.
    pub fn move_places(&mut self, moves: &HashMap<Place, Place>) {
        // In one order: what is kept of a place depends on it.
        let mut moves: Vec<_> = moves.iter().map(|(from, to)| (*from, *to)).collect();
        moves.sort_unstable();
        for (from, to) in &moves {
            let Some(moved) = self.places.remove(from) else { continue };
            self.places.entry(*to).or_default().merge(moved);
        }
        self.stacks.move_leaves(&moves.into_iter().collect());
    }

    pub fn count(&mut self, sample: Sample) {
        self.count_version(sample, 0);
    }

    /// Counts a sample; in memory, in this version of what is in its page.
    pub fn count_version(&mut self, sample: Sample, version: u32) {
        self.samples += 1;
        self.in_kernel += u64::from(sample.in_kernel);
        let process = self.processes.entry(sample.process).or_default();
        *process.threads.entry(sample.thread).or_default() += 1;
        let place = sample.ip.and_then(|ip| process.space.place(ip));
        if let Some(population) = &mut self.population {
            population.count(sample.process, place, sample.in_kernel);
        }
        let Some(place) = place else {
            self.nowhere += 1;
            return;
        };
        let place = self.with_version(place, version);
        let tally = self.places.entry(place).or_default();
        let (count, kept, most) = if sample.in_kernel {
            (&mut tally.kernel, &mut tally.kept_in_kernel, KEPT_IN_KERNEL)
        } else if self.kept < KEPT / 2 {
            (&mut tally.user, &mut tally.kept, KEPT_OF_PLACE)
        } else {
            (&mut tally.user, &mut tally.kept, KEPT_OF_OTHERS)
        };
        *count += 1;
        let near = || {
            sample.registers.map_or_else(AllNear::default, |r| self.heaps.near(sample.process, &r.general))
        };
        if *count <= most && self.kept < KEPT && !tally.is_thinned {
            // What a vector asks for in advance would be as much again.
            if kept.len() == kept.capacity() {
                kept.reserve_exact(kept.len() / 4 + 4);
            }
            kept.push(Kept { sample, near: near() });
            self.kept += 1;
            if self.kept == KEPT {
                self.thin();
            }
        } else if let Some(replaced) = Some(kept.len() as u64).filter(|&kept| kept > 0) {
            // Each of those seen so far is kept with the same probability.
            let chosen = self.random.below(*count);
            if chosen < replaced {
                kept[chosen as usize] = Kept { sample, near: near() };
            }
        }
    }

    /// Places with many kept samples give up half of them, chosen evenly.
    fn thin(&mut self) {
        for tally in self.places.values_mut() {
            for kept in [&mut tally.kept, &mut tally.kept_in_kernel] {
                let most = (kept.len() / 2).max(KEPT_AT_LEAST);
                tally.is_thinned |= kept.len() > most;
                while kept.len() > most {
                    kept.swap_remove(self.random.below(kept.len() as u64) as usize);
                    self.kept -= 1;
                }
                kept.shrink_to_fit();
            }
        }
    }

    /// A load was stopped: the thread that was about to execute it and when, what it reads, and the
    /// ticks that took.
    pub fn probed(&mut self, sample: Sample, ip: Avma, address: u64, ticks: (u32, u32)) {
        let Some(process) = self.processes.get(&sample.process) else { return };
        let Some(place) = process.space.place(ip) else { return };
        let near = self.heaps.near(sample.process, &[address]);
        let probes = self.probes.entry(place).or_default();
        if probes.len() < PROBES_OF_LOAD {
            probes.push(Probe { kept: Kept { sample, near }, address, ticks, is_steady: false });
        }
    }

    /// Probes in these stretches of time saw what the program sees.
    pub fn were_steady(&mut self, stretches: &[Steady]) {
        let mut of: HashMap<u32, Vec<&Steady>> = HashMap::new();
        for stretch in stretches {
            of.entry(stretch.thread).or_default().push(stretch);
        }
        for of_thread in of.values_mut() {
            of_thread.sort_unstable_by_key(|stretch| stretch.from_ns);
        }
        for probe in self.probes.values_mut().flatten() {
            let time_ns = probe.kept.sample.time_ns;
            let of_thread = of.get(&probe.kept.sample.thread).map_or(&[][..], Vec::as_slice);
            let behind = of_thread.partition_point(|stretch| stretch.from_ns <= time_ns);
            let last = behind.checked_sub(1).map(|last| of_thread[last]);
            probe.is_steady = last.is_some_and(|stretch| time_ns < stretch.to_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::Mapping;
    use units::FileOffset;

    fn tally_with_a_mapping() -> Tally {
        let mut tally = Tally::default();
        let file = Mapped { name: b"/bin/x".to_vec(), device: (8, 1), inode: 7, area: None };
        let what = tally.id(file.clone());
        assert_eq!(tally.id(file), what, "one number for one file");
        let (start, end, offset) = (Avma(0x1000), Avma(0x3000), FileOffset(0x500));
        let mapping = Mapping { start, end, offset, what, is_shared: false };
        tally.processes.entry(1).or_default().space.map(mapping);
        tally
    }

    fn sample(ip: u64, time_ns: u64, in_kernel: bool) -> Sample {
        Sample { process: 1, thread: 2, time_ns, in_kernel, ip: Some(Avma(ip)), registers: None }
    }

    #[test]
    fn samples_are_counted_where_they_fell() {
        let mut tally = tally_with_a_mapping();
        tally.count(sample(0x1010, 0, false));
        tally.count(sample(0x1010, 1, true));
        tally.count(sample(0x9000, 2, false));
        tally.count(Sample { ip: None, ..sample(0, 3, true) });
        assert_eq!((tally.samples, tally.in_kernel, tally.nowhere), (4, 2, 2));
        let place = Place { what: MappedId(0), offset: FileOffset(0x510) };
        assert_eq!((tally.places[&place].user, tally.places[&place].kernel), (1, 1));
        assert_eq!(tally.processes[&1].threads[&2], 4);
    }

    #[test]
    fn what_is_kept_is_bounded_and_spread_over_the_run() {
        let mut tally = tally_with_a_mapping();
        let all = 40 * KEPT_OF_PLACE;
        for time in 0..all {
            tally.count(sample(0x1010, time, false));
        }
        let kept = &tally.places.values().next().unwrap().kept;
        assert_eq!(kept.len() as u64, KEPT_OF_PLACE);
        let late = kept.iter().filter(|kept| kept.sample.time_ns >= all / 2).count();
        assert!((1748..=2348).contains(&late), "{late} of 4096 are of the second half");
    }

    #[test]
    fn many_places_share_the_room() {
        let mut tally = tally_with_a_mapping();
        let places = KEPT as u64 / 2 / KEPT_OF_PLACE + 4;
        for place in 0..places {
            for time in 0..KEPT_OF_PLACE {
                tally.count(sample(0x1010 + place, time, false));
            }
        }
        let kept_at = |place| {
            let place = Place { what: MappedId(0), offset: FileOffset(0x510 + place) };
            tally.places[&place].kept.len() as u64
        };
        assert_eq!((kept_at(0), kept_at(places - 1)), (KEPT_OF_PLACE, KEPT_OF_OTHERS));
    }

    #[test]
    fn what_comes_later_has_room_too() {
        let mut tally = tally_with_a_mapping();
        // Twice as much as there is space for.
        let places = 2 * KEPT as u64 / KEPT_OF_OTHERS;
        for place in 0..places {
            for time in 0..KEPT_OF_OTHERS {
                tally.count(sample(0x1010 + place, time, false));
            }
        }
        let kept_at = |place| {
            let place = Place { what: MappedId(0), offset: FileOffset(0x510 + place) };
            &tally.places[&place].kept
        };
        assert!(
            tally.kept <= KEPT && tally.kept == (0..places).map(|place| kept_at(place).len()).sum::<usize>()
        );
        assert!(kept_at(places - 1).len() >= KEPT_AT_LEAST, "{}", kept_at(places - 1).len());
        let first = kept_at(0);
        assert!((KEPT_AT_LEAST..=KEPT_OF_OTHERS as usize / 2).contains(&first.len()), "{}", first.len());
        let late = first.iter().filter(|kept| kept.sample.time_ns >= KEPT_OF_OTHERS / 2).count();
        assert!((first.len() * 3 / 8..=first.len() * 5 / 8).contains(&late), "{late} of {}", first.len());
    }
}

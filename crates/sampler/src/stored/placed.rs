//! Stored samples by the places of files, as if they had been taken here: what the rest counts by.
//!
//! Each location becomes a place in a file that could be read; or, where there is no file or no
//! address, the name that the samples have for it: as the names of code that is made at run time,
//! which no file has either.

use super::StoredError;
use super::binaries::{Binaries, Found};
use super::decoded::{Decoded, Location, Module};
use super::leaf::{Leaves, PREEMPTED, Sampled};
use super::tree::Node;
use super::wire::damaged;
use crate::files::Missing;
use image::Image;
use insight::samples::{Area, Calls, Mapped, MappedId, Place, Tally};
use insight::{MadeCode, ModuleFile};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use units::{FileOffset, Svma};

/// Samples by place, with the files.
pub(super) struct Placed {
    pub tally: Tally,
    pub files: Vec<ModuleFile>,
    pub named: Named,
    pub missing: Vec<Missing>,
    /// Paths of files that nothing proves to be those that were sampled.
    pub unproved: Vec<String>,
    /// Samples whose leaf has an address, whether its file could be read or not.
    pub with_address: u64,
    pub cpu_time_ns: u64,
    /// CPU time that a sample stands for, where the file tells it and no sample contradicts it.
    pub period_ns: Option<u64>,
}

/// Places that have names alone.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub made: MadeCode,
    /// By module and function: the source file.
    pub files: HashMap<(String, String), String>,
    numbers: HashMap<(String, String), u64>,
}

/// The process that all samples count for: files do not tell of several.
const PROCESS: u32 = 0;
/// Files that are read at once, together.
const MOST_BYTES: u64 = 3 << 30;

/// A file that samples are in.
#[derive(Clone, Copy)]
struct Binary {
    what: MappedId,
    number: usize,
}

/// Where a location is.
#[derive(Clone)]
enum Where {
    /// The innermost first; several where functions are inlined and have names alone.
    Places(Vec<Place>),
    Kernel,
}

impl Placed {
    pub(super) fn of(decoded: &Decoded, binaries: &Binaries, stacks: bool) -> Result<Self, StoredError> {
        let (counts, period_ns) = counts(decoded)?;
        let mut placed = Self {
            tally: Tally::default(),
            files: Vec::new(),
            named: Named::default(),
            missing: Vec::new(),
            unproved: Vec::new(),
            with_address: 0,
            cpu_time_ns: counts.iter().fold(0, |sum, counted| sum.saturating_add(counted.ns)),
            period_ns,
        };
        let program = program(decoded);
        let process = placed.tally.processes.entry(PROCESS).or_default();
        process.name.clone_from(&program);
        let area = Area { process: PROCESS, start: 0, bytes: u64::MAX, version: 0 };
        let named = Mapped { name: b"[named]".to_vec(), device: (0, 0), inode: 0, area: Some(area) };
        let named = placed.tally.id(named);
        let by_module = placed.binaries(decoded, binaries, &counts);
        let mut places: Vec<Option<Where>> = vec![None; decoded.locations.len()];
        let mut leaves: HashMap<usize, Leaves> = HashMap::new();
        for (number, file) in placed.files.iter().enumerate() {
            leaves.insert(number, Self::leaves(decoded, file, number, &by_module, &counts));
        }
        placed.leave_out_others(&leaves);
        let offsets = placed.offsets(decoded, &by_module);
        let mut location = |placed: &mut Self, number: u32| -> Where {
            let known = &mut places[number as usize];
            if let Some(known) = known {
                return known.clone();
            }
            let found = placed.locate(decoded, number, &offsets, named);
            known.insert(found).clone()
        };
        for counted in counts.iter().filter(|counted| counted.samples > 0) {
            let mut callers = decoded.tree.outwards(counted.node.caller);
            let mut leaf = counted.node.location;
            let mut outwards = vec![location(&mut placed, leaf)];
            if placed.stands_in(decoded, leaf, &outwards[0], &leaves)
                && let Some(interrupted) = callers.next()
            {
                leaf = interrupted;
                outwards = vec![location(&mut placed, leaf)];
            }
            if stacks || matches!(outwards[0], Where::Kernel) {
                outwards.extend(callers.map(|at| location(&mut placed, at)));
            }
            let has_address = decoded.locations[leaf as usize].address != 0;
            placed.with_address += if has_address { counted.samples } else { 0 };
            placed.count(&outwards, counted, &leaves, &program, stacks);
        }
        Ok(placed)
    }

    /// Whether the thread was interrupted at its caller's instruction.
    fn stands_in(
        &self,
        decoded: &Decoded,
        location: u32,
        found: &Where,
        leaves: &HashMap<usize, Leaves>,
    ) -> bool {
        let (from, to) = decoded.locations[location as usize].names;
        let names = decoded.names.get(from as usize..to as usize).unwrap_or_default();
        if names.iter().any(|name| decoded.texts.get(name.function.into()).starts_with(PREEMPTED)) {
            return true;
        }
        let Where::Places(places) = found else { return false };
        places.first().is_some_and(|place| {
            let file = self.files.iter().position(|file| file.what == place.what.0);
            file.and_then(|file| leaves.get(&file)).is_some_and(|leaves| leaves.stands_in(place.offset))
        })
    }

    /// Counts one stack.
    fn count(
        &mut self,
        outwards: &[Where],
        counted: &Counted,
        leaves: &HashMap<usize, Leaves>,
        program: &[u8],
        stacks: bool,
    ) {
        let in_kernel = matches!(outwards.first(), Some(Where::Kernel));
        let mut frames = outwards.iter().filter_map(|it| match it {
            Where::Places(places) => Some(places),
            Where::Kernel => None,
        });
        self.tally.samples += counted.samples;
        self.tally.in_kernel += if in_kernel { counted.samples } else { 0 };
        let Some(innermost) = frames.next() else {
            self.tally.nowhere += counted.samples;
            return;
        };
        let Some((&first, inlined)) = innermost.split_first() else { return };
        let sampled = if in_kernel { self.behind_system_call(first) } else { self.begin(first, leaves) };
        let tally = self.tally.places.entry(sampled).or_default();
        *(if in_kernel { &mut tally.kernel } else { &mut tally.user }) += counted.samples;
        if stacks {
            let callers = inlined.iter().chain(frames.flatten()).copied().collect();
            let calls = Calls { callers, ..Calls::default() };
            self.tally.stacks.count_times(program, sampled, in_kernel, &calls, counted.samples);
        }
    }

    /// A leaf's place, as where its instruction begins.
    fn begin(&self, place: Place, leaves: &HashMap<usize, Leaves>) -> Place {
        let file = self.files.iter().position(|file| file.what == place.what.0);
        let offset =
            file.and_then(|file| leaves.get(&file)).map_or(place.offset, |it| it.begin(place.offset));
        Place { offset, ..place }
    }

    /// Where a thread goes on that called the kernel: of callers, a byte is taken off.
    fn behind_system_call(&self, place: Place) -> Place {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let file = self.files.iter().find(|file| file.what == place.what.0);
        let at = place.offset.0 as usize;
        let in_front = file.and_then(|file| file.data.get(at.checked_sub(1)?..at + 1));
        let behind = u64::from(in_front == Some(&SYSCALL[..]));
        Place { offset: FileOffset(place.offset.0 + behind), ..place }
    }

    /// Reads the files that samples are in, or that called them. By module.
    fn binaries(
        &mut self,
        decoded: &Decoded,
        binaries: &Binaries,
        counts: &[Counted],
    ) -> HashMap<u32, Binary> {
        // Files with most samples first, while there is memory for them.
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for location in decoded.locations.iter().filter(|location| location.address != 0) {
            samples.extend(location.module.map(|module| (module, 0)));
        }
        for counted in counts {
            let module = decoded.locations[counted.node.location as usize].module;
            if let Some(sum) = module.and_then(|module| samples.get_mut(&module)) {
                *sum += counted.samples;
            }
        }
        let mut order: Vec<(u32, u64)> = samples.into_iter().collect();
        order.sort_by_key(|(module, samples)| (std::cmp::Reverse(*samples), *module));
        let mut by_module = HashMap::new();
        let mut known: HashMap<_, Option<Binary>> = HashMap::new();
        let mut bytes = 0;
        for (number, samples) in order {
            let module = &decoded.modules[number as usize];
            if !module.is_file() {
                continue;
            }
            let key = (module.path.as_str(), module.build_id.as_deref());
            let found = known.entry(key).or_insert_with(|| self.read(module, binaries, samples, &mut bytes));
            by_module.extend(found.map(|binary| (number, binary)));
        }
        by_module
    }

    fn read(
        &mut self,
        module: &Module,
        binaries: &Binaries,
        samples: u64,
        bytes: &mut u64,
    ) -> Option<Binary> {
        let read =
            if *bytes > MOST_BYTES { Err("other files are read first") } else { binaries.find(module) };
        let found = match read {
            Ok(found) => found,
            Err(why) => {
                if samples > 0 {
                    self.missing.push(Missing { path: shown(&module.path), why, samples });
                }
                return None;
            }
        };
        let Found { path, data, debug, is_proved } = found;
        *bytes += (data.len() + debug.as_ref().map_or(0, Vec::len)) as u64;
        let mapped = Mapped {
            name: module.path.clone().into_bytes(),
            device: (0, 0),
            inode: self.files.len() as u64,
            area: None,
        };
        let what = self.tally.id(mapped);
        let path = records::text_of(&path);
        if !is_proved && samples > 0 {
            self.unproved.push(path.clone());
        }
        self.files.push(ModuleFile { what: what.0, path, data, debug, told: BTreeMap::new() });
        Some(Binary { what, number: self.files.len() - 1 })
    }

    /// What the code of a file says of where it was sampled.
    fn leaves(
        decoded: &Decoded,
        file: &ModuleFile,
        number: usize,
        by_module: &HashMap<u32, Binary>,
        counts: &[Counted],
    ) -> Leaves {
        let Ok(image) = Image::parse(&file.data) else { return Leaves::default() };
        let mut sampled: BTreeMap<FileOffset, Sampled> = BTreeMap::new();
        for counted in counts.iter().filter(|counted| counted.samples > 0) {
            let location = counted.node.location;
            let at = decoded.locations[location as usize];
            let Some(module) = at.module.filter(|_| at.address != 0) else { continue };
            if by_module.get(&module).is_none_or(|binary| binary.number != number) {
                continue;
            }
            let offset = offset_of(&decoded.modules[module as usize], &image, at.address);
            if let Some(offset) = offset {
                sampled.entry(offset).or_insert(Sampled { samples: 0, location }).samples += counted.samples;
            }
        }
        Leaves::of(&file.data, file.debug.as_deref(), &sampled, decoded)
    }

    /// Files of which nothing proves that they were sampled, and whose functions have other names.
    fn leave_out_others(&mut self, leaves: &HashMap<usize, Leaves>) {
        for (number, file) in self.files.iter_mut().enumerate() {
            let is_another = leaves.get(&number).is_some_and(Leaves::is_another);
            if is_another && self.unproved.contains(&file.path) {
                self.unproved.retain(|path| *path != file.path);
                let why = "functions at the sampled addresses have other names: it is another build";
                let samples = leaves.get(&number).map_or(0, |leaves| leaves.same_names + leaves.other_names);
                self.missing.push(Missing { path: file.path.clone(), why, samples });
                (file.data, file.debug) = (Vec::new(), None);
            }
        }
    }

    /// The places of locations that are in files which could be read.
    fn offsets(&self, decoded: &Decoded, by_module: &HashMap<u32, Binary>) -> Vec<Option<Place>> {
        let images: Vec<Option<Image<'_>>> =
            self.files.iter().map(|file| Image::parse(&file.data).ok()).collect();
        let place = |location: &Location| {
            let number = location.module.filter(|_| location.address != 0)?;
            let binary = by_module.get(&number)?;
            let image = images[binary.number].as_ref()?;
            let offset = offset_of(&decoded.modules[number as usize], image, location.address)?;
            Some(Place { what: binary.what, offset })
        };
        decoded.locations.iter().map(place).collect()
    }

    fn locate(
        &mut self,
        decoded: &Decoded,
        number: u32,
        offsets: &[Option<Place>],
        named: MappedId,
    ) -> Where {
        let location = &decoded.locations[number as usize];
        if location.in_kernel {
            return Where::Kernel;
        }
        let module = location.module.map(|number| &decoded.modules[number as usize]);
        if let Some(place) = offsets[number as usize] {
            return Where::Places(vec![place]);
        }
        let place = |offset| Place { what: named, offset: FileOffset(offset) };
        Where::Places(self.named.numbers(decoded, location, module).into_iter().map(place).collect())
    }
}

impl Named {
    /// Addresses that stand for the names of a location, the innermost first.
    fn numbers(&mut self, decoded: &Decoded, location: &Location, module: Option<&Module>) -> Vec<u64> {
        let path = module.map_or("", |module| module.path.as_str());
        let (from, to) = location.names;
        let names = decoded.names.get(from as usize..to as usize).unwrap_or_default();
        let told = names.iter().filter_map(|name| {
            let function = decoded.texts.get(name.function.into());
            let function = function.trim();
            (!function.is_empty())
                .then(|| (function.to_owned(), decoded.texts.get(name.file.into()).into_owned()))
        });
        let mut told: Vec<(String, String)> = told.collect();
        if told.is_empty() {
            let file = Path::new(path).file_name().map_or("?".into(), |name| name.to_string_lossy());
            // Where it is in its file, if that can be said.
            let at = module.map_or(location.address, |module| {
                let inside = (module.start..module.limit).contains(&location.address) && module.start > 0;
                if !inside {
                    return location.address;
                }
                (location.address - module.start).wrapping_add(module.offset)
            });
            let name = if location.address == 0 { format!("[{file}]") } else { format!("{file}+{at:#x}") };
            told.push((name, String::new()));
        }
        told.into_iter().map(|(function, file)| self.number(&shown(path), &function, &file)).collect()
    }

    fn number(&mut self, module: &str, function: &str, file: &str) -> u64 {
        /// How far apart they are.
        const STEP: u64 = 16;
        let module = if module.is_empty() { "[no file]" } else { module };
        // As it will be in the record.
        let key = (module.to_owned(), shown(function));
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let number = (self.numbers.len() as u64 + 1) * STEP;
        let line = format!("{number:x} 1 {}", key.1);
        self.made.line(PROCESS, &BTreeSet::from([number]), module, line.as_bytes());
        if !file.is_empty() {
            self.files.insert(key.clone(), shown(file));
        }
        self.numbers.insert(key, number);
        number
    }

    /// Whether a record's function is one of these.
    pub(super) fn holds(&self, module: &str, function: Option<&str>) -> bool {
        function.is_some_and(|function| self.numbers.contains_key(&(module.to_owned(), function.to_owned())))
    }

    pub(super) fn any(&self) -> bool {
        !self.numbers.is_empty()
    }
}

/// Where in its file an address is, if code is there. An address is one of a process, of which the
/// mapping tells where it lies; or it is the stated address already.
fn offset_of(module: &Module, image: &Image<'_>, address: u64) -> Option<FileOffset> {
    let spans_all = module.start == 0 && module.offset == 0;
    let is_mapped = !spans_all && (module.start..module.limit).contains(&address);
    let mapped = || {
        let offset = FileOffset((address - module.start).checked_add(module.offset)?);
        image.address_of(offset).filter(|address| image.is_code(*address)).map(|_| offset)
    };
    let stated = || image.is_code(Svma(address)).then(|| image.file_offset(Svma(address))).flatten();
    if is_mapped { mapped().or_else(stated) } else { stated() }
}

/// What was sampled, as counts of samples.
struct Counted {
    node: Node,
    samples: u64,
    ns: u64,
}

/// No profile has more samples: sums of them stay numbers.
const MOST_SAMPLES: u64 = 1 << 48;

/// Samples by node, and what time each stands for. Where samples are not counted, none has less
/// than that: Pyroscope claims a second, whatever the samples are.
fn counts(decoded: &Decoded) -> Result<(Vec<Counted>, Option<u64>), StoredError> {
    let chosen = &decoded.chosen;
    let leaves = decoded.tree.leaves();
    let least = leaves.iter().map(|(_, values)| chosen.of(values, 1).1).filter(|ns| *ns > 0).min();
    let has_less = |claimed: u64| least.is_some_and(|least| least < claimed.div_ceil(2));
    let period_ns = chosen.period_ns.filter(|&claimed| chosen.count.is_some() || !has_less(claimed));
    let quantum = period_ns.or(least).unwrap_or(1);
    let counted = |(node, values): (Node, &[u64])| {
        let (samples, ns) = chosen.of(values, quantum);
        Counted { node, samples, ns }
    };
    let counts: Vec<Counted> = leaves.into_iter().map(counted).collect();
    let all = counts.iter().fold(0_u64, |sum, counted| sum.saturating_add(counted.samples));
    if all > MOST_SAMPLES {
        return Err(damaged(&format!("it says that it has {all} samples")));
    }
    Ok((counts, period_ns))
}

/// The name of the program's file.
fn program(decoded: &Decoded) -> Vec<u8> {
    let program = decoded.program.as_deref().unwrap_or("?");
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    shown(&name).into_bytes()
}

/// Names of files go to the terminal: they do not control it.
fn shown(name: &str) -> String {
    const LONGEST: usize = 500;
    let name = name.chars().take(LONGEST);
    name.map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_processes_and_stated_ones_are_told_apart() {
        let data = std::fs::read("/bin/true").unwrap();
        let image = Image::parse(&data).unwrap();
        let code = image.loads().iter().find(|load| load.is_executable()).unwrap();
        let stated = code.address + 0x100;
        let expected = image.file_offset(Svma(stated));
        assert!(expected.is_some());
        let of = |start: u64, limit: u64, offset: u64, address: u64| {
            let module = Module { path: "/bin/true".to_owned(), build_id: None, start, limit, offset };
            offset_of(&module, &image, address)
        };
        let start = 0x5555_0000_0000 + (code.address & !0xfff);
        let mapped_from = code.offset & !0xfff;
        let address = 0x5555_0000_0000 + stated;
        assert_eq!(of(start, start + 0x10_0000, mapped_from, address), expected, "of a process");
        assert_eq!(
            of(start, start + 0x10_0000, mapped_from, stated),
            expected,
            "stated, though mapped elsewhere"
        );
        assert_eq!(of(0, u64::MAX, 0, stated), expected, "a mapping that spans all");
        assert_eq!(of(0, 0, 0, stated), expected, "no mapping is told");
        let segment = (code.address & !0xfff, code.offset & !0xfff);
        assert_eq!(of(segment.0, segment.0 + 0x10_0000, segment.1, stated), expected, "of OpenTelemetry");
        assert_eq!(of(start, start + 0x10_0000, mapped_from, start + 0x9_0000_0000), None);
        assert_eq!(of(0, 0, 0, 8), None, "no code is there");
    }
}

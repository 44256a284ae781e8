//! Code that programs make while they run (just-in-time compilers, trampolines of interpreters):
//! no file has it, so no symbol names it. Such programs can write a map of it, a line each:
//!
//! ```text
//! 7f3a5c001000 1a0 JS:*sum /srv/app.js:12:20     start and size in hexadecimal, then the name
//! ```
//!
//! Code is moved and thrown away, and its memory is used again; a map only grows. So of the lines
//! that hold an address, the last one counts. Runtimes can dump the code itself, too, with its
//! lines of source (`jit-PID.dump`): then it counts which code was there when it was sampled.

use crate::samples::address_space::Place;
use crate::samples::stacks::Frame;
use crate::samples::tally::Tally;
use crate::share::measured_share;
use image::names::ToldFrames;
use records::profile::FunctionShare;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use units::Quantity;

/// The module of such code without a name.
pub const UNNAMED_MODULE: &str = "[anonymous]";
/// The function of such code without a name.
pub const UNNAMED_FUNCTION: &str = "[code made at run time]";
/// Longer names are cut off.
const LONGEST_NAME: usize = 512;

/// Of functions that lay at an address one after the other, the last ones are known.
const MOST_AT_ADDRESS: usize = 8;

/// A function that a map names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub start: u64,
    pub bytes: u64,
    pub name: String,
    /// The map.
    pub module: String,
    /// Its lines, and the functions that were inlined into it, as far as the runtime tells them.
    pub told: ToldFrames,
    /// Its code, where the runtime has dumped it.
    pub code: Option<Vec<u8>>,
}

/// Names of code that was made at run time, by process and sampled address.
#[derive(Clone, Debug, Default)]
pub struct MadeCode {
    /// The last one counts.
    made: HashMap<(u32, u64), Vec<Arc<Made>>>,
}

impl MadeCode {
    /// The addresses that were sampled in memory that no file has, or that called what was sampled,
    /// by process.
    pub fn asked_for(tally: &Tally) -> BTreeMap<u32, BTreeSet<u64>> {
        let mut asked: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let calls = tally.stacks.nodes().filter_map(|(_, node)| match node.frame {
            Frame::Call(place) => Some(place),
            Frame::Program(_) | Frame::Script(_) => None,
        });
        let leaves = tally.stacks.leaves.keys().map(|leaf| leaf.place);
        let accessed = tally.accesses.places.keys().copied();
        for place in tally.places.keys().copied().chain(leaves).chain(accessed).chain(calls) {
            if let Some((process, address)) = area(tally, place) {
                asked.entry(process).or_default().insert(address);
            }
        }
        asked
    }

    /// A line of a process's map: it names those of these addresses that it holds. Lines that are
    /// not such a line are passed over.
    pub fn line(&mut self, process: u32, asked: &BTreeSet<u64>, map: &str, line: &[u8]) {
        let Some((start, bytes, name)) = parsed(line) else { return };
        let is_asked =
            start.checked_add(bytes).is_some_and(|end| asked.range(start..end.max(start)).next().is_some());
        if !is_asked {
            return;
        }
        let (name, module) = (shown_name(name), map.to_owned());
        self.add(process, asked, Made { start, bytes, name, module, told: BTreeMap::new(), code: None });
    }

    /// A function that a process made: it names those of these addresses that it holds.
    pub fn add(&mut self, process: u32, asked: &BTreeSet<u64>, made: Made) {
        let Some(end) = made.start.checked_add(made.bytes).filter(|end| *end > made.start) else { return };
        let mut held = asked.range(made.start..end).peekable();
        if held.peek().is_none() {
            return;
        }
        let made = Arc::new(made);
        for &address in held {
            let known = self.made.entry((process, address)).or_default();
            if known.len() == MOST_AT_ADDRESS {
                known.remove(0);
            }
            known.push(Arc::clone(&made));
        }
    }

    /// The functions that were at an address one after the other, as far as they are known.
    pub fn all_at(&self, process: u32, address: u64) -> &[Arc<Made>] {
        self.made.get(&(process, address)).map_or(&[], Vec::as_slice)
    }

    /// What is known of a place in such code.
    pub(crate) fn at(&self, tally: &Tally, place: Place) -> Option<&Made> {
        let (process, address) = area(tally, place)?;
        self.all_at(process, address).last().map(|made| &**made)
    }

    /// The places in such code whose pages were read, with process, version and address, in order.
    pub fn read_places(tally: &Tally) -> Vec<(u32, u64, u32, Place)> {
        let leaves = tally.stacks.leaves.keys().map(|leaf| leaf.place);
        let read = |place: Place| {
            let area = tally.mapped(place.what).area.filter(|area| area.version > 0)?;
            Some((area.process, place.offset.0, area.version, place))
        };
        let mut places: Vec<_> = tally.places.keys().copied().chain(leaves).filter_map(read).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// User mode samples in such code without a name, by process.
    pub fn unnamed(&self, tally: &Tally) -> BTreeMap<u32, u64> {
        let mut unnamed = BTreeMap::new();
        for (&place, counts) in tally.places.iter().filter(|(_, counts)| counts.user > 0) {
            let Some(at) = area(tally, place).filter(|at| !self.made.contains_key(at)) else { continue };
            *unnamed.entry(at.0).or_default() += counts.user;
        }
        unnamed
    }

    /// The functions of such code, and a line for all that has no name. `all` are all samples.
    pub(crate) fn functions(&self, tally: &Tally, all: u64) -> Vec<FunctionShare> {
        let mut found: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for (&place, counts) in tally.places.iter().filter(|(_, counts)| counts.user > 0) {
            let Some(at) = area(tally, place) else { continue };
            let made = self.all_at(at.0, at.1).last();
            let key = made.map_or((UNNAMED_MODULE, UNNAMED_FUNCTION), |made| {
                (made.module.as_str(), made.name.as_str())
            });
            let start = made.map_or(at.1, |made| made.start);
            let (first, samples) = found.entry(key).or_insert((start, 0));
            *first = start.min(*first);
            *samples += counts.user;
        }
        let share = |((module, name), (start, samples)): ((&str, &str), (u64, u64))| FunctionShare {
            module: module.to_owned(),
            function: Some(name.to_owned()),
            address: start,
            program: None,
            time: measured_share(samples, all),
            stall: Quantity::unresolved("the bytes of this code are not known"),
            latency_share: Quantity::unresolved("samples of a clock show stall, not latency"),
            samples,
        };
        found.into_iter().map(share).collect()
    }
}

/// The process and address of a place that lies in no file.
fn area(tally: &Tally, place: Place) -> Option<(u32, u64)> {
    // In an area, addresses themselves are its offsets.
    tally.mapped(place.what).area.map(|area| (area.process, place.offset.0))
}

fn parsed(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let line = line.trim_ascii();
    let mut rest = line;
    let mut number = || {
        let end = rest.iter().position(u8::is_ascii_whitespace)?;
        let text = std::str::from_utf8(&rest[..end]).ok()?;
        rest = rest[end..].trim_ascii_start();
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    Some((number()?, number()?, rest)).filter(|(.., name)| !name.is_empty())
}

/// A name as it may be printed: a map's bytes must not control the terminal.
pub fn shown_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]);
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::Mapping;
    use crate::samples::tally::{Area, Mapped, Sample};
    use units::{Avma, FileOffset};

    fn tally() -> Tally {
        let mut tally = Tally::default();
        let area = Some(Area { process: 1, start: 0x1000, bytes: 0x2000, version: 0 });
        let what = tally.id(Mapped { name: b"//anon".to_vec(), device: (0, 0), inode: 0, area });
        let (start, end, offset) = (Avma(0x1000), Avma(0x3000), FileOffset(0x1000));
        let mapping = Mapping { start, end, offset, what, is_shared: false };
        tally.processes.entry(1).or_default().space.map(mapping);
        for ip in [0x1010, 0x1010, 0x1020, 0x2000] {
            let ip = Some(Avma(ip));
            tally.count(Sample { process: 1, thread: 1, time_ns: 0, in_kernel: false, ip, registers: None });
        }
        tally
    }

    #[test]
    fn the_last_line_that_holds_an_address_names_it() {
        let tally = tally();
        let asked = MadeCode::asked_for(&tally);
        assert_eq!(asked[&1].iter().copied().collect::<Vec<_>>(), [0x1010, 0x1020, 0x2000]);
        let mut made = MadeCode::default();
        for line in [&b"1000 1000 old one"[..], b"1000 11 new\n", b"0x1011 0x1 beside", b"5000 10 elsewhere"]
        {
            made.line(1, &asked[&1], "/tmp/perf-1.map", line);
        }
        let named: Vec<_> = made.functions(&tally, 4).into_iter().collect();
        let told: Vec<_> =
            named.iter().map(|f| (f.module.as_str(), f.function.as_deref(), f.address, f.samples)).collect();
        assert_eq!(
            told,
            [
                ("/tmp/perf-1.map", Some("new"), 0x1000, 2),
                ("/tmp/perf-1.map", Some("old one"), 0x1000, 1),
                (UNNAMED_MODULE, Some(UNNAMED_FUNCTION), 0x2000, 1)
            ]
        );
        assert_eq!(made.unnamed(&tally), BTreeMap::from([(1, 1)]));
    }

    #[test]
    fn garbage_names_nothing() {
        let asked = BTreeSet::from([0x1010]);
        let mut made = MadeCode::default();
        for line in [
            &b""[..],
            b"\n",
            b"1000",
            b"1000 100",
            b"1000 100 ",
            b"1000 0 none",
            b"xyz 100 name",
            b"-1000 100 name",
            b"ffffffffffffffff 100 name",
            b"11111111111111111 100 name",
            b"1000 ffffffffffffffff name",
            b"\xff\xfe \x00 \x01",
        ] {
            made.line(1, &asked, "map", line);
        }
        assert!(made.made.is_empty(), "{made:?}");
        made.line(1, &asked, "map", b"1000 100 \x1b[31mred\xff\n");
        assert_eq!(made.all_at(1, 0x1010).last().unwrap().name, "?[31mred\u{fffd}");
        made.line(1, &asked, "map", &[b"1000 100 ".to_vec(), vec![b'n'; 1 << 20]].concat());
        assert_eq!(made.all_at(1, 0x1010).last().unwrap().name.len(), LONGEST_NAME);
    }
}

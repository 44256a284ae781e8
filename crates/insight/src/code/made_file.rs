//! Code that was made at run time, as a file: no file has it, and all that reads code reads files.
//! So its functions are put into one in memory, at the addresses at which they ran:
//!
//! ```text
//! ELF header | a program header for each function | their bytes | symbols | names | sections
//! ```

use crate::code::source::ModuleFile;
use crate::samples::address_space::{MappedId, Place};
use crate::samples::tally::{Mapped, Tally};
use iced_x86::{Decoder, DecoderOptions};
use image::elf::abi;
use image::names::ToldFrames;
use std::collections::{BTreeMap, HashMap, HashSet};
use units::FileOffset;

/// A function that was made at run time, or a part of it, as its bytes were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeFunction {
    pub start: u64,
    pub bytes: Vec<u8>,
    pub name: String,
    /// Its lines, and the functions that were inlined into it.
    pub told: ToldFrames,
    /// The places where it was sampled, with the address of each.
    pub sampled: Vec<(Place, u64)>,
}

impl MadeFunction {
    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Cuts off what is in front of the first instruction, where it is not known which byte that
    /// is: the beginning from which decoding comes to most samples. Others are not in it.
    pub fn aligned(self) -> Option<Self> {
        let hits = |skip: u64| -> Vec<(Place, u64)> {
            let bytes = self.bytes.get(skip as usize..).unwrap_or(&[]);
            let mut decoder = Decoder::with_ip(64, bytes, self.start + skip, DecoderOptions::NONE);
            let mut begins = HashSet::new();
            while decoder.can_decode() {
                let at = decoder.ip();
                if decoder.decode().is_invalid() {
                    // Data among code: the next byte may be code again.
                    let next = (at + 1 - self.start - skip) as usize;
                    if decoder.set_position(next).is_err() {
                        break;
                    }
                    decoder.set_ip(at + 1);
                    continue;
                }
                begins.insert(at);
            }
            self.sampled.iter().copied().filter(|(_, address)| begins.contains(address)).collect()
        };
        // The first of those with most.
        let (skip, sampled) = (0..=LONGEST)
            .map(|skip| (skip, hits(skip)))
            .max_by_key(|(skip, hits)| (hits.len(), std::cmp::Reverse(*skip)))?;
        if sampled.is_empty() {
            return None;
        }
        let bytes = self.bytes.get(skip as usize..)?.to_vec();
        Some(Self { start: self.start + skip, bytes, sampled, ..self })
    }
}

/// The longest instruction.
const LONGEST: u64 = 15;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SYMBOL: usize = 24;
const SECTION: usize = 64;
/// Functions of one file: as many as its headers may count, with a wide margin.
const MOST_FUNCTIONS: usize = 8192;

/// Makes files of these functions, each as the record spells its path, and has their samples count
/// in them. Functions that lie upon each other ran at different times: they come into several
/// files.
pub fn put_into_files(
    tally: &mut Tally,
    functions: impl IntoIterator<Item = (String, MadeFunction)>,
) -> Vec<ModuleFile> {
    let mut files: Vec<(String, BTreeMap<u64, MadeFunction>)> = Vec::new();
    for (path, function) in functions {
        let fits = |(of, others): &&mut (String, BTreeMap<u64, MadeFunction>)| {
            let before = others.range(..function.end()).next_back();
            *of == path
                && others.len() < MOST_FUNCTIONS
                && before.is_none_or(|(_, other)| other.end() <= function.start)
        };
        match files.iter_mut().find(fits) {
            Some((_, others)) => {
                others.insert(function.start, function);
            }
            None => files.push((path, BTreeMap::from([(function.start, function)]))),
        }
    }
    let mut moves: HashMap<Place, Place> = HashMap::new();
    let mut made = Vec::new();
    for (number, (path, functions)) in files.into_iter().enumerate() {
        // No file has this name: it has no root.
        let name = format!("made {number}").into_bytes();
        let what = tally.id(Mapped { name, device: (0, 0), inode: 0, area: None });
        made.push(file(what, path, &functions.into_values().collect::<Vec<_>>(), &mut moves));
    }
    tally.move_places(&moves);
    made
}

fn file(
    what: MappedId,
    path: String,
    functions: &[MadeFunction],
    moves: &mut HashMap<Place, Place>,
) -> ModuleFile {
    let mut data = vec![0; HEADER + SEGMENT * functions.len()];
    let mut symbols = vec![0; SYMBOL];
    let mut names = b"\0.symtab\0.strtab\0".to_vec();
    let mut told = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        let (offset, size) = (data.len() as u64, function.bytes.len() as u64);
        let header = &mut data[HEADER + SEGMENT * index..][..SEGMENT];
        put(header, 0, &abi::PT_LOAD.to_le_bytes());
        put(header, 4, &(abi::PF_R | abi::PF_X).to_le_bytes());
        for (at, value) in [(8, offset), (16, function.start), (24, function.start), (32, size), (40, size)] {
            put(header, at, &value.to_le_bytes());
        }
        put(header, 48, &1_u64.to_le_bytes());
        data.extend_from_slice(&function.bytes);
        let symbol = symbols.len();
        symbols.resize(symbol + SYMBOL, 0);
        put(&mut symbols[symbol..], 0, &(names.len() as u32).to_le_bytes());
        symbols[symbol + 4] = abi::STT_FUNC;
        // In no section.
        put(&mut symbols[symbol..], 6, &0xfff1_u16.to_le_bytes());
        put(&mut symbols[symbol..], 8, &function.start.to_le_bytes());
        put(&mut symbols[symbol..], 16, &size.to_le_bytes());
        names.extend(function.name.bytes().filter(|&byte| byte != 0));
        names.push(0);
        for &(place, address) in &function.sampled {
            let offset = FileOffset(offset + address.saturating_sub(function.start));
            moves.insert(place, Place { what, offset });
        }
        if !function.told.is_empty() {
            told.extend(function.told.range(..function.end()).map(|(at, frames)| (*at, frames.clone())));
            told.insert(function.end(), Vec::new());
        }
    }
    let symbols_at = data.len() as u64;
    data.extend_from_slice(&symbols);
    let names_at = data.len() as u64;
    data.extend_from_slice(&names);
    let sections_at = data.len() as u64;
    data.resize(data.len() + 3 * SECTION, 0);
    let mut section = |index: usize, name: u32, kind: u32, at: u64, size: usize, link: u32, entry: usize| {
        let header = &mut data[sections_at as usize + index * SECTION..][..SECTION];
        put(header, 0, &name.to_le_bytes());
        put(header, 4, &kind.to_le_bytes());
        put(header, 24, &at.to_le_bytes());
        put(header, 32, &(size as u64).to_le_bytes());
        put(header, 40, &link.to_le_bytes());
        put(header, 56, &(entry as u64).to_le_bytes());
    };
    section(1, 1, abi::SHT_SYMTAB, symbols_at, symbols.len(), 2, SYMBOL);
    section(2, 9, abi::SHT_STRTAB, names_at, names.len(), 0, 0);
    put(&mut data, 0, b"\x7fELF\x02\x01\x01");
    let halves = [
        (16, abi::ET_EXEC),
        (18, abi::EM_X86_64),
        (20, 1),
        (52, HEADER as u16),
        (54, SEGMENT as u16),
        (56, functions.len() as u16),
        (58, SECTION as u16),
        (60, 3),
        (62, 2),
    ];
    for (at, value) in halves {
        put(&mut data, at, &value.to_le_bytes());
    }
    put(&mut data, 32, &(HEADER as u64).to_le_bytes());
    put(&mut data, 40, &sections_at.to_le_bytes());
    ModuleFile { what: what.0, path, data, debug: None, told }
}

fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::cause::Cause;
    use crate::code::source::Source;
    use crate::samples::address_space::Mapping;
    use crate::samples::tally::{Area, Sample};
    use image::Image;
    use image::names::{Frame, Line};
    use units::{Avma, Svma};

    /// It is `push rbp; again: mov rdi, [rdi]; dec rsi; jnz again; pop rbp; ret`.
    const CHASE: [u8; 11] = [0x55, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8, 0x5d, 0xc3];

    fn function(start: u64, name: &str, sampled: &[(Place, u64)]) -> MadeFunction {
        let at = |line| {
            let line = Some(Line { file: "a.js".to_owned(), line });
            vec![
                Frame { function: Some("inlined".to_owned()), line: line.clone() },
                Frame { function: None, line },
            ]
        };
        let told = BTreeMap::from([(start, at(3)), (start + 4, at(4))]);
        MadeFunction { start, bytes: CHASE.to_vec(), name: name.to_owned(), told, sampled: sampled.to_vec() }
    }

    fn tally() -> (Tally, Place) {
        let mut tally = Tally::default();
        let area = Some(Area { process: 1, start: 0x7f00_0000_0000, bytes: 0x2000, version: 0 });
        let what = tally.id(Mapped { name: b"//anon".to_vec(), device: (0, 0), inode: 0, area });
        let start = Avma(0x7f00_0000_0000);
        let mapping = Mapping {
            start,
            end: Avma(start.0 + 0x2000),
            offset: FileOffset(start.0),
            what,
            is_shared: false,
        };
        tally.processes.entry(1).or_default().space.map(mapping);
        (tally, Place { what, offset: FileOffset(start.0 + 4) })
    }

    #[test]
    fn samples_of_made_code_name_its_load_and_line() {
        let (mut tally, place) = tally();
        let ip = Some(Avma(place.offset.0));
        for time_ns in 0..10 {
            let sample = Sample { process: 1, thread: 1, time_ns, in_kernel: false, ip, registers: None };
            tally.count_version(sample, u32::from(time_ns > 2));
        }
        let versioned = tally.with_version(place, 1);
        assert_ne!(versioned, place);
        let made = function(place.offset.0 - 4, "chase", &[(versioned, place.offset.0)]);
        let files = put_into_files(&mut tally, [("/tmp/perf-1.map".to_owned(), made)]);
        assert_eq!((files.len(), tally.places[&place].user), (1, 3), "those without a version stay");
        let (moved, counts) = tally.places.iter().find(|(place, _)| place.what.0 == files[0].what).unwrap();
        assert_eq!((counts.user, counts.kept.len()), (7, 7));
        let image = Image::parse(&files[0].data).expect("a file that can be read");
        let source = Source::of(&files[0], &image, &[moved.offset], false).unwrap();
        let at = image.address_of(moved.offset).unwrap();
        assert_eq!(at.0, place.offset.0);
        let load = Svma(at.0 - 3);
        assert_eq!(source.code.cause(at), Cause::Load(load));
        let frames = source.frames(load);
        let names: Vec<_> = frames.iter().map(|frame| frame.function.as_deref()).collect();
        assert_eq!(names, [Some("inlined"), Some("chase")]);
        assert_eq!(frames[0].line, Some(Line { file: "a.js".to_owned(), line: 3 }));
        assert_eq!(source.frames(at)[0].line.as_ref().map(|line| line.line), Some(4));
    }

    #[test]
    fn functions_that_lie_upon_each_other_come_into_several_files() {
        let (mut tally, place) = tally();
        let start = place.offset.0;
        let made = [
            ("a".to_owned(), function(start, "first", &[])),
            ("a".to_owned(), function(start + 5, "over it", &[])),
            ("a".to_owned(), function(start + 11, "behind the first", &[])),
            ("b".to_owned(), function(start + 40, "of another process", &[])),
        ];
        let files = put_into_files(&mut tally, made);
        let names = |file: &ModuleFile| -> Vec<String> {
            let image = Image::parse(&file.data).unwrap();
            let symbols = image::elf::symbols::Symbols::of(&image, None);
            symbols.all().iter().map(|it| String::from_utf8_lossy(it.name).into_owned()).collect()
        };
        let all: Vec<_> = files.iter().map(|file| (file.path.as_str(), names(file))).collect();
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            all,
            [
                ("a", text(&["first", "behind the first"])),
                ("a", text(&["over it"])),
                ("b", text(&["of another process"]))
            ]
        );
    }

    #[test]
    fn a_beginning_is_found_by_the_samples() {
        let at = |address| (Place { what: MappedId(0), offset: FileOffset(address) }, address);
        // The end of an instruction; add rax, rcx, several times; mov rdi, [rdi]; dec rsi; jnz; ret
        let mut bytes = vec![0x8b, 0x80];
        bytes.extend([0x48, 0x01, 0xc8].repeat(20));
        bytes.extend([0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8, 0xc3]);
        let sampled = vec![at(0x1041), at(0x1044)];
        let function =
            MadeFunction { start: 0x1000, bytes, sampled: sampled.clone(), ..MadeFunction::default() };
        let found = function.clone().aligned().unwrap();
        assert_eq!(found.sampled, sampled);
        let begins: Vec<u64> = Decoder::with_ip(64, &found.bytes, found.start, DecoderOptions::NONE)
            .into_iter()
            .map(|instruction| instruction.ip())
            .collect();
        assert!(begins.contains(&0x103e) && begins.contains(&0x1041), "{begins:x?}");
        let inside = MadeFunction { sampled: vec![at(0x103f), at(0x1041), at(0x1044)], ..function };
        assert_eq!(inside.aligned().unwrap().sampled, sampled, "without the one at no instruction");
    }
}

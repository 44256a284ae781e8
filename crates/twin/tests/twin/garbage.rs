//! Files that are cut short or damaged are refused or rewritten, never a panic.

use crate::common::{compile, programs};
use gleaner_twin::{Knowledge, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth, rewrite};
use std::collections::BTreeSet;
use units::Rng;

/// A small generator with a fixed seed, so that a failure can be repeated.
struct Random(Rng);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound.max(1) as u64) as usize
    }
}

fn sample(options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let source = programs().into_iter().find(|path| path.ends_with("exception_kinds.cpp")).unwrap();
    compile(&source, "gcc", options, &path).expect("a compiler is needed for this test");
    std::fs::read(&path).unwrap()
}

/// Ranges worth damaging: headers and tables rather than debug information.
fn sensitive(data: &[u8]) -> Vec<std::ops::Range<usize>> {
    let image = image::Image::parse(data).unwrap();
    let mut ranges = vec![0..64, 64..64 + 56 * image.header().program_header_count];
    let sections = image.header().section_headers.0 as usize;
    ranges.push(sections..sections + 64 * image.header().section_header_count);
    let names = [
        ".eh_frame",
        ".eh_frame_hdr",
        ".gcc_except_table",
        ".dynamic",
        ".rela.dyn",
        ".text",
        ".symtab",
        ".dynsym",
    ];
    for section in names.iter().filter_map(|name| image.section(name)) {
        ranges.push(section.offset as usize..(section.offset + section.size) as usize);
    }
    ranges
}

/// A few, so that `cargo test -p gleaner-twin` sees the worst at once; the fuzzer of the command
/// line's tests (`twin`, `twin_headers`, `twin_unwind`) has thousands.
const ROUNDS: usize = 50;

#[test]
fn damage_does_not_cause_panic() {
    let mut random = Random(Rng::new(0x5eed_1234_5678_9abc));
    for options in [&["-O2"][..], &["-O2", "-no-pie"]] {
        let good = sample(options);
        let ranges = sensitive(&good);
        for round in 0..ROUNDS {
            let mut data = good.clone();
            for _ in 0..=random.below(6) {
                let range = ranges[random.below(ranges.len())].clone();
                let at = range.start + random.below(range.len());
                data[at] = match random.below(4) {
                    0 => 0xff,
                    1 => 0,
                    2 => data[at] ^ (1 << random.below(8)),
                    _ => random.below(256) as u8,
                };
            }
            let mode = if round % 8 == 0 { Mode::Poison(VectorWidth::Sse) } else { Mode::Identity };
            drop(rewrite(&data, None, mode));
        }
    }
}

#[test]
fn cut_files_are_refused() {
    let good = sample(&["-O2"]);
    for size in [0, 3, 4, 17, 63, 64, 100, 500, good.len() / 2] {
        assert!(rewrite(&good[..size], None, Mode::Identity).is_err(), "{size} bytes");
    }
}

#[test]
fn each_kind_of_wrong_file_has_its_line() {
    let good = sample(&["-O2"]);
    let with = |at: usize, byte: u8| {
        let mut data = good.clone();
        data[at] = byte;
        rewrite(&data, None, Mode::Identity).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(with(0, b'#'), "not an ELF file");
    assert_eq!(with(4, 1), "a 32-bit ELF file; only 64-bit x86-64 is supported");
    assert_eq!(with(18, 183), "an ELF file for machine 183; only x86-64 (62) is supported");
    assert_eq!(with(16, 1), "an ELF file of type 1; only executables and shared objects are supported");
}

#[test]
fn sections_without_names_of_their_own_are_refused() {
    let good = sample(&["-O2"]);
    let count = image::Image::parse(&good).unwrap().header().section_header_count as u16;
    for names in [0, count] {
        let mut data = good.clone();
        data[62..64].copy_from_slice(&names.to_le_bytes());
        let refused = rewrite(&data, None, Mode::Identity).map(|_| ());
        assert_eq!(refused, Err(gleaner_twin::TwinError::SectionNames), "{names}");
    }
}

#[test]
fn sections_that_move_keep_their_addresses() {
    let mut data = sample(&["-O2"]);
    let header = image::Image::parse(&data).unwrap().header();
    let at = header.section_headers.0 as usize + 64 * header.section_names + 16;
    data[at..at + 8].copy_from_slice(&0x1230u64.to_le_bytes());
    let rewritten = rewrite(&data, None, Mode::Identity).unwrap().bytes;
    let image = image::Image::parse(&rewritten).unwrap();
    assert_eq!(image.sections()[header.section_names].address, 0x1230);
}

/// A list of constructors that is longer than any memory is read as far as the file goes.
#[test]
fn constructors_without_end() {
    const DT_INIT_ARRAYSZ: u64 = 27;
    let mut data = sample(&["-O2", "-shared", "-fPIC"]);
    let section = image::Image::parse(&data).unwrap().section(".dynamic").unwrap().offset as usize;
    let entry =
        (section..).step_by(16).find(|&at| data[at..at + 8] == DT_INIT_ARRAYSZ.to_le_bytes()).unwrap();
    data[entry + 8..entry + 16].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
    let sites = Sites {
        which: SiteChoice::EveryLoad(LoadReach::All),
        width: VectorWidth::Avx,
        knowledge: Knowledge::OfCallers,
        save_all_at: BTreeSet::new(),
        optimisations: Optimisations::ALL,
    };
    assert!(rewrite(&data, None, Mode::Primary(&sites)).is_ok());
}

//! Harvest twins that are right, which must be accepted, and many that are wrong, each of which
//! must be rejected by the rule it breaks. To add a wrong one: an entry in [`yields`] or
//! [`guests`]; one that is wrong because of others' doings, in [`reliance`].

mod cold;
mod guests;
mod hoisted;
mod next;
mod pieces;
mod relays;
mod reliance;
mod rows;
mod sunk;
mod yields;

use gleaner_proof::{Checker, Refusal, Rule, check};
use image::liveness::Knowledge;
use pieces::{Piece, pieces};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use twin::{Bounds, LoadReach, Mode, Optimisations, SiteChoice, Sites, VectorWidth};

/// A program and a correct rewriting.
pub(crate) struct Specimen {
    name: String,
    scavenger: bool,
    original: Vec<u8>,
    rewritten: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Specimen {
    fn is_c(&self) -> bool {
        self.name.starts_with(C)
    }
}

/// A way to make something wrong. It is tried at one piece after the other until it finds what it
/// wants.
pub(crate) struct Wrong {
    name: &'static str,
    rule: Rule,
    make: fn(&Piece, &mut [u8]) -> Option<()>,
}

fn compile(source: &str, options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("program");
    let compiler = if std::path::Path::new(source).extension().is_some_and(|ending| ending == "cpp") {
        "g++"
    } else {
        "gcc"
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(source);
    let done =
        Command::new(compiler).arg(path).args(options).args(["-w", "-pthread", "-o"]).arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was compiled")
}

fn rewrite(
    original: &[u8],
    scavenger: bool,
    width: VectorWidth,
    saves_ahead: bool,
) -> Result<Vec<u8>, String> {
    let sites = sites(width, saves_ahead);
    let mode = if scavenger { Mode::Scavenger(&sites, bounds()) } else { Mode::Primary(&sites) };
    Ok(twin::rewrite(original, None, mode).map_err(|error| error.to_string())?.bytes)
}

fn bounds() -> Bounds {
    Bounds { quantum: 200, ..Bounds::default() }
}

fn sites(width: VectorWidth, saves_ahead: bool) -> Sites {
    let which = SiteChoice::EveryLoad(LoadReach::All);
    let save_all_at = std::collections::BTreeSet::new();
    Sites {
        which,
        width,
        knowledge: Knowledge::OfCallers,
        save_all_at,
        optimisations: Optimisations { hoisted_saves: saves_ahead, ..Optimisations::ALL },
    }
}

const C: &str = "tests/harvest/program.c";
/// Exceptions land in it from loads, too, which have no relays then.
const CPP: &str = "../../programs/rewriter/exception_kinds.cpp";

static SPECIMENS: LazyLock<Vec<Specimen>> = LazyLock::new(|| {
    let programs: [(&str, &[&str], VectorWidth); 4] = [
        (C, &["-O2"], VectorWidth::Sse),
        (C, &["-O1", "-no-pie", "-fcf-protection=full"], VectorWidth::Avx512),
        (C, &["-O3", "-mavx2"], VectorWidth::Avx),
        (CPP, &["-O2", "-fnon-call-exceptions"], VectorWidth::Sse),
    ];
    let mut specimens = Vec::new();
    for (source, options, width) in programs {
        let original = compile(source, options);
        for scavenger in [false, true] {
            let rewritten =
                rewrite(&original, scavenger, width, false).expect("a program that can be rewritten");
            let pieces = pieces(&original, &rewritten, scavenger);
            let name = format!("{source} {options:?} {width:?} scavenger {scavenger}");
            specimens.push(Specimen { name, scavenger, original: original.clone(), rewritten, pieces });
        }
    }
    specimens
});

#[test]
fn right_ones_are_accepted() {
    for specimen in SPECIMENS.iter() {
        if let Err(refusal) = check(&specimen.original, &specimen.rewritten) {
            panic!("{}: {refusal:#?}", specimen.name);
        }
        assert!(specimen.pieces.iter().any(|piece| piece.size > 0), "{}", specimen.name);
    }
}

#[test]
fn what_is_spared_nothing_is_accepted() {
    for specimen in SPECIMENS.iter() {
        let sites = Sites {
            optimisations: Optimisations { live_registers: false, ..Optimisations::ALL },
            ..sites(VectorWidth::Avx512, true)
        };
        let mode = if specimen.scavenger { Mode::Scavenger(&sites, bounds()) } else { Mode::Primary(&sites) };
        let rewritten = twin::rewrite(&specimen.original, None, mode).expect("it can be").bytes;
        if let Err(refusal) = check(&specimen.original, &rewritten) {
            panic!("{}: {refusal:#?}", specimen.name);
        }
        assert!(rewritten.len() > specimen.rewritten.len(), "{}", specimen.name);
    }
}

/// Each is refused: by itself, and likewise by a checker that has just accepted the right one.
fn each_is_rejected(all: &[Wrong], scavenger: bool) {
    let mut missed = Vec::new();
    let specimens = SPECIMENS.iter().filter(|specimen| specimen.scavenger == scavenger);
    let mut specimens: Vec<(&Specimen, Checker<'_>)> = specimens
        .map(|specimen| {
            let mut checker = Checker::of(&specimen.original);
            assert!(checker.check(&specimen.rewritten).is_ok(), "{}", specimen.name);
            (specimen, checker)
        })
        .collect();
    for wrong in all {
        let mut made = 0;
        for (specimen, checker) in &mut specimens {
            let mut rewritten = specimen.rewritten.clone();
            if !specimen.pieces.iter().any(|piece| (wrong.make)(piece, &mut rewritten).is_some()) {
                continue;
            }
            made += 1;
            let said = check(&specimen.original, &rewritten);
            assert_eq!(checker.check(&rewritten), said, "{} in {}", wrong.name, specimen.name);
            let rejected = matches!(&said, Err(Refusal::Wrong { violations, .. })
                if violations.iter().any(|found| found.rule == wrong.rule));
            if !rejected {
                missed.push(format!(
                    "{} in {}: {} expected, got {said:?}",
                    wrong.name, specimen.name, wrong.rule
                ));
            }
        }
        if made == 0 {
            missed.push(format!("no program to make wrong: {}", wrong.name));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn wrong_yields() {
    each_is_rejected(yields::ALL, false);
}
#[test]
fn wrong_yields_in_scavengers() {
    let in_both: Vec<&Wrong> =
        yields::ALL.iter().filter(|wrong| !wrong.name.starts_with("in a primary")).collect();
    let all: Vec<Wrong> =
        in_both.iter().map(|wrong| Wrong { name: wrong.name, rule: wrong.rule, make: wrong.make }).collect();
    each_is_rejected(&all, true);
}
#[test]
fn wrong_guests() {
    each_is_rejected(guests::ALL, true);
}
#[test]
fn there_are_many_wrong_twins() {
    assert!(yields::ALL.len() + guests::ALL.len() + 5 >= 60);
}

/// A checker that keeps what it found says what a new one says, whichever file came before.
#[test]
fn a_checker_says_the_same_of_each_file() {
    let wider = sites(VectorWidth::Avx512, true);
    let modes = [
        Mode::Primary(&wider),
        Mode::Primary(&wider),
        Mode::Poison(VectorWidth::Avx512),
        Mode::Scavenger(&wider, bounds()),
        Mode::Identity,
        Mode::Primary(&wider),
    ];
    for specimen in SPECIMENS.iter().filter(|specimen| !specimen.scavenger) {
        let mut checker = Checker::of(&specimen.original);
        let mut same = |rewritten: &[u8], what: &str| {
            let said = check(&specimen.original, rewritten);
            assert_eq!(checker.check(rewritten), said, "{}: {what}", specimen.name);
        };
        for mode in modes {
            let made = twin::rewrite(&specimen.original, None, mode).expect("a rewriting");
            same(&made.bytes, &format!("{mode:?}"));
        }
        // Fewer instructions, another table: bytes all over the mapping are changed.
        let (map, note) = pieces::mapping(&specimen.rewritten);
        let size = pieces::get(&specimen.rewritten, note + 16, 8) as usize;
        for at in (map..map + size).step_by(size / 40 + 1) {
            let mut rewritten = specimen.rewritten.clone();
            rewritten[at] ^= 1;
            same(&rewritten, &format!("changed at {at:#x}"));
            same(&specimen.rewritten, "unchanged");
        }
    }
}

fn rejected(original: &[u8], rewritten: &[u8], rule: Rule) -> bool {
    matches!(check(original, rewritten), Err(Refusal::Wrong { violations, .. })
        if violations.iter().any(|found| found.rule == rule))
}

/// The note says what was promised; what is promised must be kept.
#[test]
fn wrong_notes() {
    for specimen in SPECIMENS.iter() {
        let (map, note) = pieces::mapping(&specimen.rewritten);
        let with = |at: usize, value: u32| {
            let mut rewritten = specimen.rewritten.clone();
            rewritten[at..at + 4].copy_from_slice(&value.to_le_bytes());
            rewritten
        };
        let other = if specimen.scavenger { 3 } else { 4 };
        assert!(
            rejected(&specimen.original, &with(note + 4, other), Rule::Mapping),
            "another mode in the note"
        );
        let parked = check(&specimen.original, &with(note + 4, 5));
        assert!(matches!(parked, Err(Refusal::UnknownMode(5))), "a mode that is parked");
        let mut both = with(note + 4, other);
        both[map + 12] = other as u8;
        assert!(rejected(&specimen.original, &both, Rule::Mapping), "another mode in both");
        assert!(rejected(&specimen.original, &with(note + 32, 48), Rule::Mapping), "a width there is not");
        if pieces::get(&specimen.rewritten, note + 32, 4) == 16 {
            let wider = with(note + 32, 64);
            assert!(rejected(&specimen.original, &wider, Rule::Yields), "wider than what is saved");
        }
        if specimen.scavenger {
            let longer = with(note + 36, 300);
            assert!(rejected(&specimen.original, &longer, Rule::Yields), "another quantum than is set");
            assert!(check(&specimen.original, &with(note + 36, 0)).is_err(), "no quantum");
        } else {
            assert!(rejected(&specimen.original, &with(note + 36, 7), Rule::Mapping), "a primary's quantum");
        }
    }
}

/// Calls the function `walk` a resolver, in the symbol table.
fn make_resolver(file: &mut [u8]) {
    let image = image::Image::parse(file).expect("sound");
    let find = |name: &str| image.section(name).map(|s| (s.offset as usize, s.size as usize));
    let (symbols, size) = find(".symtab").expect("symbols");
    let strings = find(".strtab").expect("their names").0;
    let walk = (symbols..symbols + size)
        .step_by(24)
        .find(|&at| file[strings + pieces::get(file, at, 4) as usize..].starts_with(b"walk\0"));
    let at = walk.expect("a function");
    file[at + 4] = file[at + 4] & 0xf0 | 0xa; // STT_GNU_IFUNC
}

/// A resolver runs before there is an area: with yields in it, it is wrong.
#[test]
fn yields_that_come_early() {
    for specimen in SPECIMENS.iter().filter(|specimen| !specimen.scavenger && specimen.is_c()) {
        let (mut original, mut rewritten) = (specimen.original.clone(), specimen.rewritten.clone());
        for file in [&mut original, &mut rewritten] {
            make_resolver(file);
        }
        // The twin's symbol table lies elsewhere in its file, so the first rule has nothing against
        // it.
        assert!(rejected(&original, &rewritten, Rule::Early), "{}", specimen.name);
    }
}

/// What compilers make of the programs that try what rewriting might break, in both modes.
#[test]
fn right_twins_of_programs() {
    let sources = ["all_registers.c", "carries.c", "exception_kinds.cpp", "callbacks.c"];
    for source in sources {
        for options in [&["-O2"][..], &["-O0", "-no-pie"], &["-O3", "-march=native"]] {
            let original = compile(&format!("../../programs/rewriter/{source}"), options);
            accept(&original, &format!("{source} {options:?}"));
        }
    }
}

/// How tiles are laid out is no more switched than what is in them: no yields beside what sets or
/// reads it.
#[test]
fn right_twins_of_tiles() {
    for level in ["-O0", "-O2"] {
        let options = [level, "-mamx-tile", "-mamx-int8", "-mamx-bf16"];
        accept(&compile("../../programs/rewriter/tiles.c", &options), level);
    }
}

fn accept(original: &[u8], name: &str) {
    for scavenger in [false, true] {
        let Ok(rewritten) = rewrite(original, scavenger, VectorWidth::Avx512, false) else { continue };
        if let Err(refusal) = check(original, &rewritten) {
            panic!("{name}, scavenger {scavenger}: {refusal:#?}");
        }
    }
}

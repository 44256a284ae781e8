//! Deliberately wrong twins, each of which must be rejected by the rule it breaks; and the correct
//! ones they were made from, which must not. To add one: an entry in the `ALL` of the file of its
//! kind.

mod code;
mod entries;
mod headers;
mod map;
mod poison;
mod specimen;
mod unwinding;

use gleaner_proof::{Refusal, Rule, check};
use image::Image;
use rayon::prelude::*;
use specimen::{Specimen, add, compile, get};
use std::sync::LazyLock;

/// A way to make a rewritten file wrong. It gets both files, for some wrongs lie in what both say;
/// `None`: this program has nothing of the kind.
pub(crate) struct Wrong {
    pub(crate) name: &'static str,
    pub(crate) rule: Rule,
    pub(crate) make: fn(&Specimen, &mut Vec<u8>, &mut Vec<u8>) -> Option<()>,
}

static SPECIMENS: LazyLock<Vec<Specimen>> = LazyLock::new(|| {
    let programs: [(&str, &[&str]); 8] = [
        ("switch_nested.c", &["-O2"]),
        ("switch_nested.c", &["-O2", "-no-pie"]),
        ("switch_bytes.c", &["-O0", "-fcf-protection=full"]),
        ("exception_kinds.cpp", &["-O2"]),
        ("exception_kinds.cpp", &["-O0", "-no-pie", "-s"]),
        ("asm_flow.c", &["-O1"]),
        ("siglongjmp.c", &["-O3"]),
        ("switch_nested.c", &["-O2", "-g3"]),
    ];
    let specimen = |&(source, options): &(&str, &[&str])| {
        Specimen::of(
            &format!("{source} {}", options.join(" ")),
            compile(source, options),
            twin::Mode::Identity,
        )
    };
    programs.iter().map(specimen).collect()
});

static POISONED: LazyLock<Vec<Specimen>> = LazyLock::new(|| {
    let programs: [(&str, &[&str]); 9] = [
        ("avx512_masks.c", &["-O2", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]),
        ("x87.c", &["-O2", "-lm"]),
        ("exception_kinds.cpp", &["-O2"]),
        ("switch_dense.c", &["-O1", "-no-pie"]),
        ("red_zone.c", &["-O3"]),
        ("carries.c", &["-O2"]),
        ("../../crates/proof/tests/wrong_twins/masks.c", &["-O2", "-mavx512f"]),
        ("../../crates/proof/tests/wrong_twins/runs_on.c", &["-O2"]),
        (
            "../../crates/proof/tests/wrong_twins/descriptors.c",
            &["-O2", "-fPIC", "-shared", "-mtls-dialect=gnu2"],
        ),
    ];
    let specimen = |&(source, options): &(&str, &[&str])| {
        let mode = twin::Mode::Poison(twin::VectorWidth::Avx512);
        Specimen::of(&format!("{source} {}", options.join(" ")), compile(source, options), mode)
    };
    programs.iter().map(specimen).collect()
});

#[test]
fn correct_ones_are_accepted() {
    for specimen in SPECIMENS.iter().chain(POISONED.iter()) {
        let found = check(&specimen.original, &specimen.rewritten);
        let counts = found.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", specimen.name));
        assert_eq!(counts.units, specimen.units.len(), "{}", specimen.name);
        assert_eq!(counts.tables, specimen.tables.len(), "{}", specimen.name);
        assert_eq!(counts.instructions, specimen.items().count(), "{}", specimen.name);
    }
}

/// Programs without section headers run; rewriter and checker find linkage stubs in them all the
/// same.
#[test]
fn files_without_section_headers_are_accepted() {
    for specimen in SPECIMENS.iter().chain(POISONED.iter()) {
        let mut bare = specimen.original.clone();
        bare[0x28..0x30].fill(0);
        bare[0x3c..0x40].fill(0);
        for mode in [twin::Mode::Identity, twin::Mode::Poison(twin::VectorWidth::Avx512)] {
            let rewritten = twin::rewrite(&bare, None, mode).expect("a program that can be rewritten").bytes;
            let found = check(&bare, &rewritten);
            assert!(found.is_ok(), "{} {mode:?}: {found:?}", specimen.name);
        }
    }
}

/// Behind much zeroed memory, new segments would have to lie in the file behind a hole as large.
#[test]
fn only_large_holes_are_left_out() {
    let it = Specimen::of("zeroed.c", compile("zeroed.c", &["-O2"]), twin::Mode::Identity);
    assert!(it.rewritten.len() < it.original.len() + (1 << 20));
    check(&it.original, &it.rewritten).expect("a right one");
    // As if there were less of it: all that is new lies nearer.
    let is_told = |nearer: i64| {
        let [mut old, mut new] = [it.original.clone(), it.rewritten.clone()];
        let segments = Image::parse(&new).expect("sound").segments().to_vec();
        let whose = segments.iter().find(|segment| segment.memory_size > 80 << 20).expect("zeroed memory");
        for bytes in [&mut old, &mut new] {
            let headers = Image::parse(bytes).expect("sound").header().program_headers.0 as usize;
            let count = Image::parse(bytes).expect("sound").segments().len();
            for at in (0..count).map(|index| headers + 56 * index) {
                if get(bytes, at + 16, 8) == whose.address && get(bytes, at, 4) == 1 {
                    bytes[at + 40..at + 48].copy_from_slice(&0x1000u64.to_le_bytes());
                } else if get(bytes, at + 16, 8) > whose.address + (80 << 20) {
                    add(bytes, at + 16, 8, -nearer);
                    add(bytes, at + 24, 8, -nearer);
                }
            }
        }
        for unit in &it.units {
            add(&mut new, unit.record + 8, 8, -nearer);
        }
        let Err(Refusal::Wrong { violations, .. }) = check(&old, &new) else { panic!("accepted") };
        violations.iter().any(|found| found.rule == Rule::Headers && found.what.contains("distance"))
    };
    assert!(is_told(20 << 20) && !is_told(8 << 20));
}

fn each_is_rejected(all: &[Wrong], specimens: &[Specimen]) {
    for wrong in all {
        let mut made = 0;
        for specimen in specimens {
            let (mut original, mut rewritten) = (specimen.original.clone(), specimen.rewritten.clone());
            if (wrong.make)(specimen, &mut original, &mut rewritten).is_none() {
                continue;
            }
            made += 1;
            let rejected = match check(&original, &rewritten) {
                Err(Refusal::Wrong { violations, .. }) => {
                    violations.iter().any(|found| found.rule == wrong.rule)
                }
                _ => false,
            };
            let said = check(&original, &rewritten);
            assert!(rejected, "{} in {}: {} expected, got {said:?}", wrong.name, specimen.name, wrong.rule);
        }
        assert!(made > 0, "no program to make wrong: {}", wrong.name);
    }
}

#[test]
fn wrong_code() {
    each_is_rejected(code::ALL, &SPECIMENS);
}
#[test]
fn wrong_entries() {
    each_is_rejected(entries::ALL, &SPECIMENS);
}
#[test]
fn wrong_headers() {
    each_is_rejected(headers::ALL, &SPECIMENS);
}
#[test]
fn wrong_mappings() {
    each_is_rejected(map::ALL, &SPECIMENS);
}
#[test]
fn wrong_unwind_tables() {
    each_is_rejected(unwinding::ALL, &SPECIMENS);
}

#[test]
fn wrong_poison() {
    each_is_rejected(poison::ALL, &POISONED);
}

#[test]
fn there_are_many_wrong_twins() {
    let all = [code::ALL, entries::ALL, headers::ALL, map::ALL, poison::ALL, unwinding::ALL];
    assert!(all.iter().map(|all| all.len()).sum::<usize>() >= 70);
}

#[test]
fn files_that_are_no_pair_are_refused() {
    let [a, b] = [&SPECIMENS[0], &SPECIMENS[3]];
    assert!(matches!(check(&a.original, &a.original), Err(Refusal::NotRewritten)));
    assert!(matches!(check(&a.original, &b.rewritten), Err(Refusal::Wrong { .. })));
    assert!(matches!(check(&a.rewritten, &a.original), Err(Refusal::NotRewritten)));
    assert!(matches!(check(b"", &a.rewritten), Err(Refusal::Original(_))));
    assert!(matches!(check(&a.original, b"\x7fELF"), Err(Refusal::Rewritten(_))));
}

/// Behind the original every byte counts, but for what `docs/proof-rules.md` says: some of the
/// unwind tables and of what the mapping says of jump tables, and where these tables end.
#[test]
fn no_byte_that_was_added_may_be_another() {
    let it = &SPECIMENS[0];
    let image = Image::parse(&it.rewritten).expect("sound");
    let headers = get(&it.rewritten, 40, 8) as usize;
    let may_differ = |at: usize| {
        let is_free =
            |name: &[u8]| matches!(name, b".eh_frame" | b".gcc_except_table.twin" | b".gleaner.map");
        image.sections().iter().enumerate().filter(|(_, section)| is_free(section.name)).any(
            |(index, section)| {
                let size = headers + 64 * index + 32;
                (section.offset..section.offset + section.size).contains(&(at as u64))
                    || section.name != b".gleaner.map" && (size..size + 8).contains(&at)
            },
        )
    };
    let unnoticed = |&at: &usize| {
        [0x01, 0x80].into_iter().any(|bit| {
            let mut wrong = it.rewritten.clone();
            wrong[at] ^= bit;
            check(&it.original, &wrong).is_ok()
        })
    };
    let added: Vec<usize> = (it.original.len()..it.rewritten.len()).collect();
    let found: Vec<usize> = added.into_par_iter().filter(unnoticed).collect();
    assert!(found.len() < 32, "{}: {found:x?}", it.name);
    let unexpected: Vec<&usize> = found.iter().filter(|at| !may_differ(**at)).collect();
    assert!(unexpected.is_empty(), "{}: {unexpected:x?}", it.name);
}

//! Rows of yields in the mapping: each yield has one, each row is of a yield, and names the
//! instructions that it stands for. A run's counts are told by these rows, so a wrong one would
//! tell them of the wrong load.

use crate::pieces::{add, get, mapping};
use crate::{C, bounds, compile, rejected, sites};
use gleaner_proof::{Rule, check};
use std::collections::BTreeSet;
use twin::{Mode, Site, SiteChoice, Sites, VectorWidth};

/// The numbers that no kind of yield has any more, and one that none had.
const NO_KINDS: [u64; 3] = [2, 3, 4];

fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// A row, and where it and its origins are in the file.
struct Row {
    at: usize,
    origins_at: usize,
    switch: u64,
    origins: Vec<u64>,
}

struct Specimen {
    original: Vec<u8>,
    rewritten: Vec<u8>,
    map: usize,
    rows: Vec<Row>,
}

impl Specimen {
    fn of(original: &[u8], sites: &Sites, scavenger: bool) -> Self {
        let mode = if scavenger { Mode::Scavenger(sites, bounds()) } else { Mode::Primary(sites) };
        let rewritten = twin::rewrite(original, None, mode).expect("it can be").bytes;
        check(original, &rewritten).expect("a right one");
        let map = mapping(&rewritten).0;
        let field = |at: usize| get(&rewritten, map + at, 8) as usize;
        let (count, rows_at, mut origins_at) = (field(48), map + field(56), map + field(72));
        let mut rows = Vec::new();
        for at in (0..count).map(|row| rows_at + 32 * row) {
            let origins = get(&rewritten, at + 28, 4) as usize;
            rows.push(Row {
                at,
                origins_at,
                switch: get(&rewritten, at + 16, 8),
                origins: (0..origins).map(|nth| get(&rewritten, origins_at + 8 * nth, 8)).collect(),
            });
            origins_at += 8 * origins;
        }
        assert!(rows.len() > 2, "{} rows", rows.len());
        Self { original: original.to_vec(), rewritten, map, rows }
    }

    fn rejected(&self, rule: Rule, change: impl FnOnce(&mut [u8])) -> bool {
        let mut wrong = self.rewritten.clone();
        change(&mut wrong);
        assert_ne!(wrong, self.rewritten, "nothing is changed");
        rejected(&self.original, &wrong, rule)
    }
}

fn program() -> Vec<u8> {
    compile(C, &["-O2"])
}

fn every_load(scavenger: bool) -> Specimen {
    Specimen::of(&program(), &sites(VectorWidth::Sse, true), scavenger)
}

/// Each load of the program with the next one, where both can be fetched at once.
fn coalesced(scavenger: bool) -> Specimen {
    let loads: BTreeSet<u64> = every_load(scavenger).rows.iter().map(|row| row.origins[0]).collect();
    let next = |&load: &u64| loads.range(load + 1..).next().copied();
    let site = |load: &u64| Site { with: next(load).into_iter().collect(), prefetch: None };
    let listed = loads.iter().map(|load| (*load, site(load))).collect();
    let sites = Sites { which: SiteChoice::Listed(listed), ..sites(VectorWidth::Sse, true) };
    Specimen::of(&program(), &sites, scavenger)
}

#[test]
fn a_row_says_what_its_yield_is() {
    for it in [every_load(false), every_load(true)] {
        for row in it.rows.iter().step_by(7) {
            let at = row.at;
            for kind in NO_KINDS {
                assert!(it.rejected(Rule::Mapping, |new| put(new, at + 24, 4, kind)), "kind {kind}");
            }
            assert!(it.rejected(Rule::Mapping, |new| add(new, at, 8, 1)), "its jump is elsewhere");
            assert!(it.rejected(Rule::Mapping, |new| add(new, at + 8, 8, 1)), "it goes on elsewhere");
            assert!(it.rejected(Rule::Mapping, |new| add(new, at + 16, 8, 1)), "another switch");
            if row.switch != 0 {
                assert!(it.rejected(Rule::Mapping, |new| put(new, at + 16, 8, 0)), "no switch");
            }
        }
    }
}

#[test]
fn a_row_names_the_instruction_that_its_yield_stands_before() {
    for it in [every_load(false), every_load(true)] {
        for rows in it.rows.windows(2).step_by(7) {
            let [row, next] = rows else { continue };
            assert_eq!(row.origins.len(), 1);
            let at = row.origins_at;
            assert!(it.rejected(Rule::Mapping, |new| put(new, at, 8, next.origins[0])), "the next one's");
            assert!(it.rejected(Rule::Mapping, |new| add(new, at, 8, 1)), "no instruction");
            assert!(it.rejected(Rule::Mapping, |new| put(new, at, 8, 0)), "nothing");
            let exchanged = |new: &mut [u8]| new[at..at + 16].rotate_left(8);
            assert!(it.rejected(Rule::Mapping, exchanged), "exchanged with the next one's");
        }
    }
}

#[test]
fn a_row_names_every_load_that_its_yield_fetches() {
    for scavenger in [false, true] {
        let it = coalesced(scavenger);
        let mut several = it.rows.iter().filter(|row| row.origins.len() > 1).peekable();
        assert!(several.peek().is_some(), "no yield that serves several loads");
        for row in several {
            let second = row.origins_at + 8;
            assert!(it.rejected(Rule::Prefetches, |new| put(new, second, 8, row.origins[0])), "one twice");
            assert!(it.rejected(Rule::Prefetches, |new| add(new, second, 8, 1)), "no instruction");
            let exchanged = |new: &mut [u8]| new[second - 8..second + 8].rotate_left(8);
            assert!(it.rejected(Rule::Mapping, exchanged), "the first one last");
            assert!(it.rejected(Rule::Mapping, |new| add(new, row.at + 28, 4, -1)), "one of them alone");
        }
    }
}

#[test]
fn each_yield_has_a_row_and_each_row_a_yield() {
    for it in [every_load(false), every_load(true), coalesced(false)] {
        let last = it.rows.last().expect("a row");
        let missing = |new: &mut [u8]| {
            add(new, it.map + 48, 8, -1);
            add(new, it.map + 64, 8, -(last.origins.len() as i64));
        };
        assert!(it.rejected(Rule::Mapping, missing), "the last one is missing");
        assert!(it.rejected(Rule::Mapping, |new| add(new, it.map + 48, 8, -1)), "origins of no yield");
        assert!(it.rejected(Rule::Mapping, |new| add(new, it.map + 64, 8, -1)), "a yield of no origin");
        assert!(it.rejected(Rule::Mapping, |new| put(new, last.at + 28, 4, 0)), "none for one of them");
        // A row of the byte behind all twins.
        assert!(it.rejected(Rule::Mapping, |new| add(new, last.at, 8, 1 << 20)), "of no yield");
    }
}

/// What a mode has none of is refused before any code is looked at.
#[test]
fn scavengers_have_no_switches() {
    let primary = every_load(false);
    let switched = primary.rows.iter().find(|row| row.switch != 0).expect("a switch").switch;
    let it = every_load(true);
    let row = it.rows[0].at;
    assert!(it.rejected(Rule::Mapping, |new| put(new, row + 16, 8, switched)), "a switch in a scavenger");
}

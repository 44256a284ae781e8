//! Yields of primaries that busy-wait: before every instruction here, wherever it waits
//! or not.

use crate::pieces::{Piece, pieces};
use crate::{Specimen, bounds, compile, rejected, sites};
use gleaner_proof::{Rule, check};
use runtime_abi::context;
use std::collections::BTreeMap;
use twin::{Mode, SiteChoice, VectorWidth};

fn specimens() -> Vec<Specimen> {
    let make = |options: &[&str], width| {
        let original = compile("tests/harvest/program.c", options);
        let mut sites = sites(width, false);
        sites.which = SiteChoice::Listed(BTreeMap::new());
        sites.spins = (0..0x40_8000).collect();
        let rewritten = twin::rewrite(&original, None, Mode::Primary(&sites)).expect("it can be").bytes;
        let pieces = pieces(&original, &rewritten, false);
        Specimen { name: format!("{options:?}"), scavenger: false, original, rewritten, pieces }
    };
    vec![make(&["-O2"], VectorWidth::Sse), make(&["-O1", "-no-pie"], VectorWidth::Avx512)]
}

/// Where a piece compares the context with the one it names, and where it loads that: the
/// displacements.
fn asked_and_gone(piece: &Piece) -> Option<[usize; 2]> {
    let last = |text: &str| {
        let end = format!("+{:x}h]", context::SPIN);
        let insn = piece.inserted.iter().find(|insn| {
            let told = insn.to_string();
            told.starts_with(text) && told.ends_with(&end)
        })?;
        Some(piece.place(insn) + insn.len() - 1)
    };
    Some([last("cmp r")?, last("mov rax,[r")?])
}

#[test]
fn right_ones_are_accepted() {
    for specimen in specimens() {
        if let Err(refusal) = check(&specimen.original, &specimen.rewritten) {
            panic!("{}: {refusal:#?}", specimen.name);
        }
        assert!(specimen.pieces.iter().filter_map(asked_and_gone).count() > 50, "{}", specimen.name);
    }
}

#[test]
fn wrong_ones_are_rejected() {
    for specimen in specimens() {
        let found = specimen.pieces.iter().find_map(|piece| Some((piece, asked_and_gone(piece)?)));
        let (piece, [asked, gone]) = found.expect("a yield");
        let with = |changes: &[(usize, u8)]| {
            let mut rewritten = specimen.rewritten.clone();
            for &(at, byte) in changes {
                rewritten[at] = byte;
            }
            rejected(&specimen.original, &rewritten, Rule::Yields)
        };
        assert!(with(&[(asked, context::NEXT as u8)]), "asks for the ring, and goes to another");
        assert!(with(&[(gone, context::NEXT as u8)]), "goes to the ring, and asks for another");
        assert!(with(&[(asked, 0), (gone, 0)]), "a yield that is counted, without asking whether to pass by");
        assert!(with(&[(asked, context::FS as u8)]), "asks for something else");
        let (jump, size) = piece.find("jne ").expect("a jump");
        let nothing = [0xeb, 0, 0xeb, 0, 0xeb, 0];
        assert_eq!(size, nothing.len());
        let never: Vec<(usize, u8)> = (jump..).zip(nothing).collect();
        assert!(with(&never), "never goes where it is asked");
        assert!(with(&[(jump + 1, 0x84)]), "goes where nobody is to run");
    }
}

#[test]
fn scavengers_have_none() {
    let original = compile("tests/harvest/program.c", &["-O2"]);
    let sites = sites(VectorWidth::Sse, false);
    let rewritten =
        twin::rewrite(&original, None, Mode::Scavenger(&sites, bounds())).expect("it can be").bytes;
    let made = pieces(&original, &rewritten, true).into_iter().any(|piece| {
        let place = |text: &str| {
            let insn = piece.inserted.iter().find(|insn| insn.to_string().starts_with(text))?;
            let (at, size) = (piece.place(insn), insn.len());
            // With a displacement of one byte, which is zero.
            (size == 4 && rewritten[at + 3] == 0).then_some(at + 3)
        };
        let (Some(asked), Some(gone)) = (place("cmp r"), place("mov rax,[r")) else { return false };
        let mut wrong = rewritten.clone();
        (wrong[asked], wrong[gone]) = (context::SPIN as u8, context::SPIN as u8);
        assert!(rejected(&original, &wrong, Rule::Yields), "a scavenger busy-waits");
        true
    });
    assert!(made, "no yield to be made wrong");
}

//! What a loop leaves alone, stored once before it: accepted, but not when any of it is missing, or when what is relied on
//! is written in between.

use crate::pieces::{Piece, fill, pieces};
use crate::{compile, rewrite};
use gleaner_proof::{Refusal, Rule, check};
use twin::VectorWidth;

/// `mov [base + slot], register`, as its place; of pieces that switch to nobody.
fn stores_ahead(pieces: &[Piece]) -> Vec<(usize, usize)> {
    pieces
        .iter()
        .filter(|piece| piece.size > 0 && piece.find("jmp qword ptr [rax+8]").is_none())
        .flat_map(|piece| {
            let stores = piece.inserted.iter().filter(|insn| {
                let text = insn.to_string();
                text.starts_with("mov [r") && insn.memory_base() != iced_x86::Register::RSP
            });
            stores.map(|insn| (piece.place(insn), insn.len()))
        })
        .collect()
}

#[test]
fn all_of_it_is_needed() {
    let original = compile("tests/harvest/program.c", &["-O2"]);
    for scavenger in [false, true] {
        let rewritten = rewrite(&original, scavenger, VectorWidth::Sse, true).expect("can be rewritten");
        if let Err(refusal) = check(&original, &rewritten) {
            panic!("scavenger {scavenger}: {refusal:#?}");
        }
        let stores = stores_ahead(&pieces(&original, &rewritten, scavenger));
        assert!(stores.len() > 8, "{stores:?}");
        let mut needed = 0;
        for &(at, size) in stores.iter().filter(|store| store.1 % 2 == 0) {
            let mut wrong = rewritten.clone();
            fill(&mut wrong[at..at + size]);
            needed += usize::from(matches!(check(&original, &wrong), Err(Refusal::Wrong { violations, .. })
                if violations.iter().any(|found| found.rule == Rule::Yields)));
        }
        let tried = stores.iter().filter(|store| store.1 % 2 == 0).count();
        assert_eq!(needed, tried, "scavenger {scavenger}");
    }
}

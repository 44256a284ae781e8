//! What a loop leaves alone, stored once before it, and the context, found once before it:
//! accepted, but not when any of it is missing, or when what is relied on is written in between.

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

/// A register that held the context in one loop, and is the program's in the next one, seems to
/// hold it there as long as not all ways have been followed.
#[test]
fn what_only_seems_to_hold_the_context_does_no_harm() {
    for level in ["-O1", "-O2", "-Os"] {
        let original = compile("tests/harvest/spaces.c", &[level]);
        for scavenger in [false, true] {
            let rewritten =
                rewrite(&original, scavenger, VectorWidth::Avx512, true).expect("can be rewritten");
            if let Err(refusal) = check(&original, &rewritten) {
                panic!("{level} scavenger {scavenger}: {refusal:#?}");
            }
        }
    }
}

fn is_rejected(original: &[u8], wrong: &[u8]) -> bool {
    matches!(check(original, wrong), Err(Refusal::Wrong { violations, .. })
        if violations.iter().any(|found| found.rule == Rule::Yields))
}

/// Yields that do not ask the area for the context.
fn relying(pieces: &[Piece]) -> impl Iterator<Item = &Piece> {
    pieces.iter().filter(|piece| {
        piece.find("jmp qword ptr [rax+8]").is_some()
            && !piece.inserted.iter().any(|insn| insn.to_string().ends_with(",gs:[8]"))
    })
}

#[test]
fn the_context_stays_where_yields_look_for_it() {
    let original = compile("tests/harvest/program.c", &["-O2"]);
    for scavenger in [false, true] {
        let rewritten = rewrite(&original, scavenger, VectorWidth::Sse, true).expect("can be rewritten");
        let pieces = pieces(&original, &rewritten, scavenger);
        let yields: Vec<_> = relying(&pieces).collect();
        assert!(yields.len() > 2, "scavenger {scavenger}");
        // Found nowhere: somewhere a yield is left without.
        let mut nowhere = rewritten.clone();
        for piece in pieces.iter().filter(|piece| piece.find("jmp qword ptr [rax+8]").is_none()) {
            let loads = piece.inserted.iter().filter(|insn| insn.to_string().ends_with(",gs:[8]"));
            for insn in loads.filter(|_| !stores_ahead(std::slice::from_ref(piece)).is_empty()) {
                fill(&mut nowhere[piece.place(insn)..piece.place(insn) + insn.len()]);
            }
        }
        assert!(is_rejected(&original, &nowhere), "scavenger {scavenger}");
        let mut needed = 0;
        for piece in yields {
            let (at, size) = copy(piece);
            assert_eq!(size, 3, "scavenger {scavenger}: {:#x}", piece.original.ip());
            // Something else is copied: always wrong.
            let mut wrong = rewritten.clone();
            wrong[at + 2] ^= 3 << 3;
            assert!(is_rejected(&original, &wrong), "scavenger {scavenger}: {:#x}", piece.original.ip());
            // To rax, where it is: wrong where another yield follows.
            let mut wrong = rewritten.clone();
            wrong[at..at + 3].copy_from_slice(&[0x48, 0x89, 0xc0]);
            needed += usize::from(is_rejected(&original, &wrong));
        }
        assert!(needed > 2, "scavenger {scavenger}: {needed}");
    }
}

/// Where `mov base, rax` is.
fn copy(piece: &Piece) -> (usize, usize) {
    let copy = piece.inserted.iter().rfind(|insn| {
        insn.code() == iced_x86::Code::Mov_rm64_r64 && insn.op0_kind() == iced_x86::OpKind::Register
    });
    copy.map_or((0, 0), |insn| (piece.place(insn), insn.len()))
}

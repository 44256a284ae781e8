//! Registers that yields of a loop leave in their slots: accepted, but not where the note of it
//! says something else, or where they are not loaded behind the loop.

use crate::pieces::{Piece, fill, pieces};
use crate::{compile, rewrite};
use gleaner_proof::{Refusal, Rule, check};
use twin::VectorWidth;

/// Pieces whose yields have notes.
fn noted(pieces: &[Piece]) -> impl Iterator<Item = &Piece> {
    pieces.iter().filter(|piece| piece.find("test eax,").is_some())
}

fn is_rejected(original: &[u8], wrong: &[u8], by: &[Rule]) -> bool {
    matches!(check(original, wrong), Err(Refusal::Wrong { violations, .. })
        if violations.iter().any(|found| by.contains(&found.rule)))
}

#[test]
fn notes_are_held_to() {
    let original = compile("tests/harvest/loops.c", &["-O2"]);
    let rewritten = rewrite(&original, true, VectorWidth::Sse, true).expect("can be rewritten");
    if let Err(refusal) = check(&original, &rewritten) {
        panic!("{refusal:#?}");
    }
    let pieces = pieces(&original, &rewritten, true);
    assert!(noted(&pieces).count() >= 3, "{}", noted(&pieces).count());
    for piece in noted(&pieces) {
        let (at, size) = piece.find("test eax,").unwrap();
        assert_eq!((size, rewritten[at]), (5, 0xa9));
        let registers = u32::from_le_bytes(rewritten[at + 1..at + 5].try_into().unwrap());
        // Neither rax nor rsp, nor what the runtime goes on by.
        assert!(registers & 0xf028 != 0 && registers & (0x0811 | !0xffff) == 0, "{registers:#x}");
        let wrong = |what: &str, change: &dyn Fn(&mut [u8])| {
            let mut wrong = rewritten.clone();
            change(&mut wrong[at..at + 19]);
            let rules = [Rule::SunkRestores, Rule::Yields];
            assert!(is_rejected(&original, &wrong, &rules), "{what} at {:#x}", piece.original.ip());
        };
        // One less, one that the loop uses, one that no slot holds.
        let lowest = 1 << registers.trailing_zeros();
        wrong("one register less", &|note| note[1..5].copy_from_slice(&(registers & !lowest).to_le_bytes()));
        for more in [0, 4] {
            wrong("one more", &|note| note[1..5].copy_from_slice(&(registers | 1 << more).to_le_bytes()));
        }
        wrong("not of registers", &|note| note[3] = 1);
        // From or to elsewhere: a byte, and as far as to another instruction.
        let copied = i32::from(piece.copy.len() as u8);
        for (number, by) in [(8, 1), (8, -1), (15, 1), (15, -1), (15, -copied), (15, 64), (8, 64)] {
            wrong("elsewhere", &|note| {
                let was = i32::from_le_bytes(note[number..number + 4].try_into().unwrap());
                note[number..number + 4].copy_from_slice(&(was + by).to_le_bytes());
            });
        }
        wrong("other instructions", &|note| note[5..12].copy_from_slice(&[0x48, 0x8d, 0x0d, 0, 0, 0, 0]));
        wrong("no note", &|note| fill(note));
    }
}

#[test]
fn what_is_left_is_loaded_behind_the_loop() {
    let original = compile("tests/harvest/loops.c", &["-O2"]);
    let rewritten = rewrite(&original, true, VectorWidth::Sse, true).expect("can be rewritten");
    let pieces = pieces(&original, &rewritten, true);
    let mut tried = 0;
    for piece in pieces.iter().filter(|piece| piece.size > 0) {
        // The loads with which the piece begins.
        let loads = piece.inserted.iter().take_while(|insn| {
            let text = insn.to_string();
            insn.code() == iced_x86::Code::Mov_r64_rm64 && text.contains(",[r") && !text.contains("gs:")
        });
        for load in loads {
            let mut wrong = rewritten.clone();
            fill(&mut wrong[piece.place(load)..piece.place(load) + load.len()]);
            assert!(is_rejected(&original, &wrong, &[Rule::SunkRestores, Rule::Yields]), "{:#x}", load.ip());
            tried += 1;
        }
    }
    assert!(tried >= 9, "{tried}");
}

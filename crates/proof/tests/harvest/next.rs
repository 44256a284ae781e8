//! The next context, held in a register from where that is asked to the switch: as it should be,
//! and wrong in many ways.

use crate::pieces::{Piece, add, pieces};
use crate::{compile, rejected, rewrite, sites};
use gleaner_proof::{Rule, check};
use iced_x86::{Code, Instruction, OpKind};
use twin::{Mode, VectorWidth};

/// The comparison of two registers, by which such a yield asks whether anybody else is there.
fn asks(piece: &Piece) -> Option<&Instruction> {
    let is_it =
        |insn: &&Instruction| insn.code() == Code::Cmp_rm64_r64 && insn.op0_kind() == OpKind::Register;
    piece.inserted.iter().find(is_it)
}

#[test]
fn the_next_context_is_the_one_that_was_asked_for() {
    let original = compile("tests/harvest/loops.c", &["-O2"]);
    let rewritten = rewrite(&original, true, VectorWidth::Sse, true).expect("can be rewritten");
    assert!(check(&original, &rewritten).is_ok());
    let pieces = pieces(&original, &rewritten, true);
    let mut tried = 0;
    for piece in &pieces {
        let Some(asked) = asks(piece) else { continue };
        let at = piece.inserted.iter().position(|insn| insn == asked).expect("it is there");
        let load = &piece.inserted[at - 1];
        let copy = piece.inserted[at..]
            .iter()
            .find(|insn| insn.code() == Code::Mov_rm64_r64 && insn.op1_register() == asked.op0_register());
        let copy = copy.expect("it goes on with that");
        let [load, asked, copy] = [load, asked, copy].map(|insn| (piece.place(insn), insn.len()));
        let wrong = |what: &str, change: &dyn Fn(&mut [u8])| {
            let mut wrong = rewritten.clone();
            change(&mut wrong);
            assert!(rejected(&original, &wrong, Rule::Yields), "{what} at {:#x}", piece.original.ip());
        };
        wrong("another word", &|new| add(new, load.0 + load.1 - 1, 1, 8));
        wrong("into another register", &|new| new[load.0 + load.1 - 2] ^= 0x08);
        wrong("another register asked", &|new| new[asked.0 + asked.1 - 1] ^= 0x01);
        wrong("asked against another", &|new| new[asked.0 + asked.1 - 1] ^= 0x08);
        wrong("another one copied", &|new| new[copy.0 + copy.1 - 1] ^= 0x08);
        wrong("copied elsewhere", &|new| new[copy.0 + copy.1 - 1] ^= 0x01);
        tried += 1;
    }
    assert!(tried >= 3, "{tried}");
}

#[test]
fn code_with_handlers_of_its_own_holds_no_next_context() {
    let original = compile("tests/harvest/loops.c", &["-O2"]);
    let sites = sites(VectorWidth::Sse, true);
    let made = twin::rewrite(&original, None, Mode::Primary(&sites)).expect("a rewriting").bytes;
    assert!(pieces(&original, &made, false).iter().all(|piece| asks(piece).is_none()));
}

//! Leaves and return checks of scavenger twins, in the forms that `docs/harvest-abi.md` lists.

use crate::layout::insertions::Piece;
use crate::yields::assembler::{Assembler, assemble};
use crate::yields::registers::{RAX, RCX, RSP, dead_register, flags_live};
use image::code::regs::RegSet;
use runtime_abi::area;

/// A leave before an instruction.
pub(crate) fn leave(live: RegSet) -> Piece {
    if flags_live(live) { leave_anywhere() } else { assemble(leave_with_dead_flags) }
}

fn leave_with_dead_flags(asm: &mut Assembler) {
    let stay = asm.label();
    asm.test_area8(area::GUEST);
    asm.jump_if_equal(stay);
    asm.store_area(area::SCRATCH[0], RAX);
    go_home(asm, stay);
}

/// To `gs:[LEAVE]`, rax being in S0.
fn go_home(asm: &mut Assembler, stay: crate::yields::assembler::Label) {
    asm.load_place(RAX, stay);
    asm.store_area(area::SCRATCH[1], RAX);
    asm.jump_area(area::LEAVE);
    asm.place(stay);
}

/// The leave that changes nothing at all; the one in front of an escape.
pub(crate) fn leave_anywhere() -> Piece {
    assemble(|asm| {
        let (keep, stay) = (asm.label(), asm.label());
        asm.store_area(area::SCRATCH[0], RAX);
        asm.flags_to_rax();
        asm.test_area8(area::GUEST);
        asm.jump_if_equal(keep);
        asm.flags_from_rax();
        asm.load_place(RAX, stay);
        asm.store_area(area::SCRATCH[1], RAX);
        asm.jump_area(area::LEAVE);
        asm.place(keep);
        asm.flags_from_rax();
        asm.load_area(RAX, area::SCRATCH[0]);
        asm.place(stay);
    })
}

/// Before a `ret`: a guest goes home unless its caller is a twin of this module.
pub(crate) fn return_check(live: RegSet) -> Piece {
    if flags_live(live) {
        return leave_anywhere();
    }
    let first = dead_register(live, RegSet::EMPTY);
    let second = first.and_then(|first| dead_register(live, RegSet::general(first)));
    match (first, second) {
        (Some(address), Some(begin)) => assemble(|asm| {
            let stay = asm.label();
            asm.test_area8(area::GUEST);
            asm.jump_if_equal(stay);
            asm.load(address, RSP, 0);
            asm.load_text_begin(begin);
            asm.subtract(address, begin);
            asm.compare_with_text_size(address);
            asm.jump_if_below(stay);
            asm.store_area(area::SCRATCH[0], RAX);
            go_home(asm, stay);
        }),
        _ => assemble(return_check_without_room),
    }
}

fn return_check_without_room(asm: &mut Assembler) {
    let (inside, stay) = (asm.label(), asm.label());
    asm.test_area8(area::GUEST);
    asm.jump_if_equal(stay);
    asm.store_area(area::SCRATCH[0], RAX);
    asm.store_area(area::SCRATCH[2], RCX);
    asm.load(RAX, RSP, 0);
    asm.load_text_begin(RCX);
    asm.subtract(RAX, RCX);
    asm.compare_with_text_size(RAX);
    asm.load_place(RAX, stay);
    asm.store_area(area::SCRATCH[1], RAX);
    asm.load_area(RCX, area::SCRATCH[2]);
    asm.jump_if_below(inside);
    asm.jump_area(area::LEAVE);
    asm.place(inside);
    asm.load_area(RAX, area::SCRATCH[0]);
    asm.place(stay);
}

//! Which registers an unwinder needs in each row of a call-frame program: those that the caller's
//! values are still in, and those that the frame is found by. They must keep their values wherever
//! an unwinder may run: at every call, and, for debuggers and profilers, everywhere.

use super::cfi::{Step, Steps};
use crate::code::regs::{RegSet, abi};
use crate::elf::cursor::Cursor;

/// What holds from an offset in the code on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub at: u64,
    pub needed: RegSet,
    /// The return address is on top of the stack.
    pub is_bare: bool,
    /// The register that the frame's address is found by, and what is added to it, if that is all.
    pub frame: Option<(RegSet, i64)>,
}

/// From each offset in the code on: what is needed.
pub fn rows(initial: &[u8], program: &[u8]) -> Vec<Row> {
    let mut state = State { saved: RegSet::EMPTY, frame: register(7), offset: None, other: RegSet::EMPTY };
    let mut kept = Vec::new();
    let mut at = 0u64;
    let mut rows = Vec::new();
    for step in Steps::new(initial) {
        match step {
            Ok(Step::Rule(rule)) => state.apply(rule),
            Ok(_) => {}
            Err(_) => state.other = RegSet::GENERAL,
        }
    }
    for step in Steps::new(program) {
        match step {
            Ok(Step::Advance(by)) => {
                rows.push(state.row(at));
                at = at.saturating_add(by);
            }
            Ok(Step::Rule(&[0x0a])) => kept.push(state),
            Ok(Step::Rule(&[0x0b])) => state = kept.pop().unwrap_or(state),
            Ok(Step::Rule(rule)) => state.apply(rule),
            Ok(Step::Nothing) => {}
            Err(_) => state.other = RegSet::GENERAL,
        }
    }
    rows.push(state.row(at));
    rows
}

#[derive(Clone, Copy)]
struct State {
    /// Registers whose caller's value is on the stack (or given up).
    saved: RegSet,
    frame: RegSet,
    /// Of the frame from that register, if it is a plain one.
    offset: Option<i64>,
    other: RegSet,
}

impl State {
    fn row(&self, at: u64) -> Row {
        Row {
            at,
            needed: (abi::CALLEE_SAVED - self.saved) | self.frame | self.other,
            is_bare: self.frame == register(7) && self.offset == Some(8),
            frame: self.offset.map(|offset| (self.frame, offset)),
        }
    }

    fn apply(&mut self, rule: &[u8]) {
        let opcode = rule[0];
        let mut cursor = Cursor::new(rule, 1);
        let mut number = || register(cursor.uleb().unwrap_or(u64::MAX));
        match opcode {
            0x80..=0xbf => self.saved |= register(u64::from(opcode & 0x3f)),
            0xc0..=0xff => self.saved = self.saved - register(u64::from(opcode & 0x3f)),
            0x05 | 0x07 | 0x11 | 0x14 | 0x15 => self.saved |= number(),
            0x06 | 0x08 => self.saved = self.saved - number(),
            0x09 => {
                self.saved |= number();
                self.other |= number();
            }
            0x0c => {
                self.frame = number();
                self.offset = cursor.uleb().map(|offset| offset as i64);
            }
            0x0d => self.frame = number(),
            0x0e => self.offset = cursor.uleb().map(|offset| offset as i64),
            0x12 => {
                self.frame = number();
                self.offset = cursor.sleb().map(factored);
            }
            0x13 => self.offset = cursor.sleb().map(factored),
            0x0f => {
                self.offset = None;
                cursor.uleb();
                self.frame = named_by(cursor, rule);
            }
            0x10 | 0x16 => {
                self.saved |= number();
                cursor.uleb();
                self.other |= named_by(cursor, rule);
            }
            _ => {}
        }
    }
}

/// In words, which the stack grows down by: nobody has another factor on this architecture.
fn factored(words: i64) -> i64 {
    words.wrapping_mul(-8)
}

/// The register that an expression starts from, if that is all that can be in it; else all.
fn named_by(cursor: Cursor<'_>, rule: &[u8]) -> RegSet {
    let expression = &rule[cursor.position().min(rule.len())..];
    match expression {
        [base @ 0x70..=0x7f, rest @ ..]
            if rest.iter().all(|byte| !(0x70..=0x7f).contains(byte) || *byte == 0x78) =>
        {
            register(u64::from(base - 0x70)) | abi::CALLEE_SAVED
        }
        _ => RegSet::GENERAL,
    }
}

/// DWARF's numbers of registers; the return address and whatever is no general register need no
/// thought here.
fn register(number: u64) -> RegSet {
    const ORDER: [u32; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    match number {
        0..=7 => RegSet::general(ORDER[number as usize]),
        8..=15 => RegSet::general(number as u32),
        _ => RegSet::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::regs::{RBP, RBX, RSP};

    #[test]
    fn what_is_saved_is_needed_no_more() {
        let initial = [0x0c, 0x07, 0x08, 0x90, 0x01];
        // push rbp; mov rbp, rsp; then rbx saved and restored
        let program = [0x41, 0x0e, 0x10, 0x86, 0x02, 0x43, 0x0d, 0x06, 0x41, 0x83, 0x03, 0x44, 0xc3];
        let rows = rows(&initial, &program);
        let bare: Vec<bool> = rows.iter().map(|row| row.is_bare).collect();
        assert_eq!(bare, [true, false, false, false, false], "the frame is found by rbp to the end");
        let rows: Vec<(u64, RegSet)> = rows.iter().map(|row| (row.at, row.needed)).collect();
        let without =
            |numbers: &[u32]| numbers.iter().fold(abi::CALLEE_SAVED, |s, &n| s - RegSet::general(n));
        let rbp = RegSet::general(RBP);
        assert_eq!(rows[0], (0, abi::CALLEE_SAVED));
        assert_eq!(rows[1], (1, without(&[RBP]) | RegSet::general(RSP)));
        assert_eq!(rows[2], (4, without(&[RBP]) | rbp));
        assert_eq!(rows[3], (5, without(&[RBX])));
        assert_eq!(rows[4], (9, abi::CALLEE_SAVED));
    }
}

//! Call-frame programs, one instruction at a time: enough to carry a program over to code laid out
//! differently.

use crate::elf::cursor::Cursor;

/// One call-frame instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'d> {
    /// The rows from here on apply this number of (unscaled) code units further.
    Advance(u64),
    /// Anything else, with its bytes; says the same wherever the code lies.
    Rule(&'d [u8]),
    /// Padding.
    Nothing,
}

/// Walks a call-frame program. An instruction it does not know, a program that is cut short, and
/// one whose meaning depends on the code's own address end the walk with `Err`.
pub struct Steps<'d> {
    program: &'d [u8],
    cursor: Cursor<'d>,
}

/// A call-frame program that cannot be carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unportable;

impl<'d> Steps<'d> {
    pub fn new(program: &'d [u8]) -> Self {
        Self { program, cursor: Cursor::new(program, 0) }
    }

    fn step(&mut self) -> Option<Step<'d>> {
        let start = self.cursor.position();
        let cursor = &mut self.cursor;
        let opcode = cursor.u8()?;
        match opcode {
            0x00 => return Some(Step::Nothing),
            0x40..=0x7f => return Some(Step::Advance(u64::from(opcode & 0x3f))),
            0x02 => return Some(Step::Advance(u64::from(cursor.u8()?))),
            0x03 => return Some(Step::Advance(u64::from(cursor.u16()?))),
            0x04 => return Some(Step::Advance(u64::from(cursor.u32()?))),
            0xc0..=0xff | 0x0a | 0x0b | 0x2d => {} // restore, remember_state, restore_state, GNU_window_save
            0x80..=0xbf | 0x06..=0x08 | 0x0d | 0x0e | 0x2e => {
                cursor.uleb()?; // offset; restore_extended, undefined, same_value; def_cfa_register, _offset; args_size
            }
            0x05 | 0x09 | 0x0c | 0x14 => {
                cursor.uleb()?;
                cursor.uleb()?; // offset_extended, register, def_cfa, val_offset
            }
            0x11 | 0x12 | 0x15 => {
                cursor.uleb()?;
                cursor.sleb()?; // the signed ones
            }
            0x13 => {
                cursor.sleb()?; // def_cfa_offset_sf
            }
            0x0f | 0x10 | 0x16 => {
                // def_cfa_expression, expression, val_expression
                if opcode != 0x0f {
                    cursor.uleb()?;
                }
                let size = cursor.uleb()? as usize;
                let expression = cursor.take(size)?;
                if uses_instruction_pointer(expression) {
                    return None;
                }
            }
            _ => return None, // set_loc among them
        }
        let rule = &self.program[start..self.cursor.position()];
        Some(Step::Rule(rule))
    }
}

impl<'d> Iterator for Steps<'d> {
    type Item = Result<Step<'d>, Unportable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.at_end() {
            return None;
        }
        let step = self.step();
        if step.is_none() {
            self.cursor = Cursor::new(self.program, self.program.len());
        }
        Some(step.ok_or(Unportable))
    }
}

/// Whether an expression reads the address of the code (the PLT's does, to know how far its stub
/// has come) or holds an address. Walks the operations; one it does not know counts as yes.
fn uses_instruction_pointer(expression: &[u8]) -> bool {
    let mut cursor = Cursor::new(expression, 0);
    while !cursor.at_end() {
        if portable_operation(&mut cursor).is_none() {
            return true;
        }
    }
    false
}

fn portable_operation(cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.u8()? {
        0x06 | 0x12..=0x14 | 0x16..=0x22 | 0x24..=0x27 | 0x29..=0x2e | 0x30..=0x4f | 0x96 | 0x9c => {}
        0x08 | 0x09 | 0x15 | 0x94 => drop(cursor.u8()?),
        0x0a | 0x0b | 0x28 | 0x2f => drop(cursor.u16()?),
        0x0c | 0x0d => drop(cursor.u32()?),
        0x0e | 0x0f => drop(cursor.u64()?),
        0x10 | 0x23 => drop(cursor.uleb()?),
        0x11 => drop(cursor.sleb()?),
        register @ 0x70..=0x8f => {
            cursor.sleb()?;
            return (register != 0x80).then_some(());
        }
        0x92 => {
            let register = cursor.uleb()?;
            cursor.sleb()?;
            return (register != 16).then_some(());
        }
        _ => return None,
    }
    Some(())
}

/// Whether the frame at the very start is that of a function just called: the return address on top
/// of the stack. False for the split-off parts of functions, which start in the middle of a frame.
pub fn starts_as_called(initial: &[u8], program: &[u8]) -> bool {
    let mut state = Called { register: 0, offset: 0, plain: true };
    for step in Steps::new(initial).chain(Steps::new(program)) {
        match step {
            Ok(Step::Advance(0) | Step::Nothing) => {}
            Ok(Step::Advance(_)) => break,
            Ok(Step::Rule(rule)) => state.apply(rule),
            Err(Unportable) => return false,
        }
    }
    state.plain && state.register == 7 && state.offset == 8
}

struct Called {
    register: u64,
    offset: u64,
    plain: bool,
}

impl Called {
    fn apply(&mut self, rule: &[u8]) {
        let mut cursor = Cursor::new(rule, 1);
        let mut number = || cursor.uleb().unwrap_or(u64::MAX);
        match rule[0] {
            0x0c => (self.register, self.offset) = (number(), number()),
            0x0d => self.register = number(),
            0x0e => self.offset = number(),
            0x80..=0xbf if rule[0] & 0x3f == 16 => {}
            0x80..=0xbf | 0x05 | 0x0f..=0x13 | 0x15 | 0x16 => self.plain = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_walked_and_strange_ones_refused() {
        let program = [0x41, 0x0e, 0x10, 0x86, 0x02, 0x02, 0x80, 0x0a, 0x0b, 0x00];
        let steps: Result<Vec<_>, _> = Steps::new(&program).collect();
        let expected = [
            Step::Advance(1),
            Step::Rule(&[0x0e, 0x10]),
            Step::Rule(&[0x86, 0x02]),
            Step::Advance(0x80),
            Step::Rule(&[0x0a]),
            Step::Rule(&[0x0b]),
            Step::Nothing,
        ];
        assert_eq!(steps.unwrap(), expected);
        // set_loc, an unknown opcode, a truncated advance
        for bad in [&[0x01u8, 0, 0][..], &[0x3f], &[0x03, 1]] {
            assert!(Steps::new(bad).any(|step| step.is_err()), "{bad:x?}");
        }
        // The PLT's: rsp + 8 + (rip & 15 >= 11) * 8
        let plt = [0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert!(Steps::new(&plt).any(|step| step.is_err()));
    }

    #[test]
    fn parts_do_not_start_as_called() {
        let initial = [0x0c, 0x07, 0x08, 0x90, 0x01];
        assert!(starts_as_called(&initial, &[0x41, 0x0e, 0x10]));
        assert!(!starts_as_called(&initial, &[0x0e, 0x10, 0x41]));
        assert!(!starts_as_called(&initial, &[0x86, 0x02, 0x41]));
    }
}

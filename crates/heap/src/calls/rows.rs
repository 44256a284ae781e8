//! An entry's instructions, executed up to an address: where the caller's frame begins there, and
//! where RBP is kept.

use super::step::{Base, Saved, Step};
use super::tables::{Bytes, Entry};

/// Numbers of registers in these tables.
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// States that may be remembered at a time; compilers need one or two.
const REMEMBERED: usize = 8;

#[derive(Clone, Copy)]
struct Row {
    /// The register, or none where an expression says it.
    base: Option<u64>,
    offset: i64,
    bp: Saved,
    /// There is no caller, or another place than below the frame's beginning has its address.
    ends: bool,
}

/// How to go on from an address of the entry's function; none if nobody called it, or this is not
/// understood.
pub(super) fn step(entry: &Entry, address: u64) -> Option<Step> {
    let begin = Row { base: None, offset: 0, bp: Saved::Same, ends: false };
    let mut rows = Rows { entry, initial: begin, row: begin, remembered: [begin; REMEMBERED], depth: 0 };
    rows.run(entry.common, u64::MAX)?;
    rows.initial = rows.row;
    rows.run(entry.own, address)?;
    let row = rows.row;
    let base = match row.base? {
        RSP => Base::Sp,
        RBP => Base::Bp,
        _ => return None,
    };
    (!row.ends).then_some(Step { base, offset: row.offset, bp: row.bp })
}

struct Rows<'e> {
    entry: &'e Entry,
    /// What holds for all of its kind.
    initial: Row,
    row: Row,
    remembered: [Row; REMEMBERED],
    depth: usize,
}

impl Rows<'_> {
    fn run(&mut self, mut code: Bytes, until: u64) -> Option<()> {
        let mut at = self.entry.begin;
        while !code.is_empty() {
            let byte = code.byte()?;
            let low = u64::from(byte & 0x3f);
            let ahead = match (byte >> 6, byte) {
                (1, _) => low,
                (2, _) => {
                    let offset = self.factored(code.unsigned()?)?;
                    self.saved(low, offset);
                    continue;
                }
                (3, _) => {
                    self.restore(low);
                    continue;
                }
                (_, 0x01) => {
                    at = code.address(self.entry.encoding)?;
                    0
                }
                (_, 0x02) => u64::from(code.byte()?),
                (_, 0x03) => u64::from(code.half()?),
                (_, 0x04) => u64::from(code.word()?),
                _ => {
                    self.other(byte, &mut code)?;
                    continue;
                }
            };
            at = at.checked_add(ahead.checked_mul(self.entry.code_unit)?)?;
            if at > until {
                break;
            }
        }
        Some(())
    }

    fn factored(&self, value: u64) -> Option<i64> {
        i64::try_from(value).ok()?.checked_mul(self.entry.data_unit)
    }

    fn factored_signed(&self, value: i64) -> Option<i64> {
        value.checked_mul(self.entry.data_unit)
    }

    fn saved(&mut self, register: u64, offset: i64) {
        match register {
            RBP => self.row.bp = Saved::At(offset),
            RETURN_ADDRESS => self.row.ends = offset != -8,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            RBP => self.row.bp = self.initial.bp,
            RETURN_ADDRESS => self.row.ends = self.initial.ends,
            _ => {}
        }
    }

    /// Nobody knows where it is.
    fn lost(&mut self, register: u64) {
        match register {
            RBP => self.row.bp = Saved::Lost,
            RETURN_ADDRESS => self.row.ends = true,
            _ => {}
        }
    }

    /// Instructions that say neither where they stand nor all in their first byte.
    fn other(&mut self, instruction: u8, code: &mut Bytes) -> Option<()> {
        match instruction {
            0x00 => {}
            0x05 => {
                let register = code.unsigned()?;
                let offset = self.factored(code.unsigned()?)?;
                self.saved(register, offset);
            }
            0x06 => {
                let register = code.unsigned()?;
                self.restore(register);
            }
            0x07 => {
                let register = code.unsigned()?;
                self.lost(register);
            }
            0x08 => {
                if code.unsigned()? == RBP {
                    self.row.bp = Saved::Same;
                }
            }
            0x09 | 0x14 => {
                let register = code.unsigned()?;
                code.unsigned()?;
                self.lost(register);
            }
            0x15 => {
                let register = code.unsigned()?;
                code.signed()?;
                self.lost(register);
            }
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.row;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.row = *self.remembered.get(self.depth)?;
            }
            0x0c => {
                self.row.base = Some(code.unsigned()?);
                self.row.offset = i64::try_from(code.unsigned()?).ok()?;
            }
            0x0d => self.row.base = Some(code.unsigned()?),
            0x0e => self.row.offset = i64::try_from(code.unsigned()?).ok()?,
            0x0f => {
                let bytes = code.unsigned()?;
                code.skip(bytes)?;
                self.row.base = None;
            }
            0x10 | 0x16 => {
                let register = code.unsigned()?;
                let bytes = code.unsigned()?;
                code.skip(bytes)?;
                self.lost(register);
            }
            0x11 => {
                let register = code.unsigned()?;
                let offset = self.factored_signed(code.signed()?)?;
                self.saved(register, offset);
            }
            0x12 => {
                self.row.base = Some(code.unsigned()?);
                self.row.offset = self.factored_signed(code.signed()?)?;
            }
            0x13 => self.row.offset = self.factored_signed(code.signed()?)?,
            // The size of arguments, which nothing here depends on.
            0x2e => {
                code.unsigned()?;
            }
            _ => return None,
        }
        Some(())
    }
}

//! Call frame programs, run row by row: what an unwinder would believe at each place.

use crate::container::read::Reader;
use crate::unwind::frames::{Cie, Fde};

/// How to find a register of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved<'d> {
    Unspecified,
    Undefined,
    Same,
    At(i64),
    Value(i64),
    In(u64),
    Expression(&'d [u8]),
    ValueExpression(&'d [u8]),
}

/// Where the frame is. Unwinders keep register and offset while an expression holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cfa<'d> {
    register: u64,
    offset: i64,
    expression: Option<&'d [u8]>,
}

/// Registers 0-16 are the general ones and the return address; few programs speak of others.
const GENERAL: usize = 17;

#[derive(Clone, Debug, PartialEq, Eq)]
struct State<'d> {
    cfa: Cfa<'d>,
    general: [Saved<'d>; GENERAL],
    others: Vec<(u64, Saved<'d>)>,
    arguments: u64,
}

impl<'d> State<'d> {
    fn set(&mut self, register: u64, saved: Saved<'d>) {
        if let Some(slot) = self.general.get_mut(register as usize) {
            *slot = saved;
            return;
        }
        match self.others.binary_search_by_key(&register, |other| other.0) {
            Ok(found) => self.others[found].1 = saved,
            Err(place) => self.others.insert(place, (register, saved)),
        }
    }
    fn get(&self, register: u64) -> Saved<'d> {
        if let Some(saved) = self.general.get(register as usize) {
            return *saved;
        }
        let found = self.others.binary_search_by_key(&register, |other| other.0);
        found.map_or(Saved::Unspecified, |found| self.others[found].1)
    }
}

const STACK_POINTER: u64 = 7;
/// rbx, rbp, rsp, r12-r15, as these tables number them.
const CALLEE_SAVED: u32 = 1 << 3 | 1 << 6 | 1 << 7 | 0xf000;

/// A stack of remembered states deeper than this is no compiler's.
const DEEPEST: usize = 64;

/// The rows of one frame description, in order of address.
pub(crate) struct Rows<'d> {
    reader: Reader<'d>,
    code_factor: u64,
    data_factor: i64,
    pointers: u8,
    initial: State<'d>,
    state: State<'d>,
    remembered: Vec<State<'d>>,
    /// Offset from the start of the description's code at which the current row ends.
    until: u64,
    start: u64,
    /// Whether an expression depends on where the code lies.
    depends_on_place: bool,
}

impl<'d> Rows<'d> {
    /// Begins at the first row; `None` if the programs cannot be understood.
    pub(crate) fn new(cie: &Cie<'d>, fde: &Fde<'d>) -> Option<Self> {
        let empty = State {
            cfa: Cfa::default(),
            general: [Saved::Unspecified; GENERAL],
            others: Vec::new(),
            arguments: 0,
        };
        let mut rows = Self {
            reader: Reader::new(cie.program, 0),
            code_factor: cie.code_factor,
            data_factor: cie.data_factor,
            pointers: cie.pointers,
            initial: empty.clone(),
            state: empty,
            remembered: Vec::new(),
            until: 0,
            start: fde.start,
            depends_on_place: false,
        };
        rows.run()?;
        if rows.until != u64::MAX {
            return None; // a shared part that moves on
        }
        rows.initial = rows.state.clone();
        rows.reader = Reader::new(fde.program, 0);
        rows.until = 0;
        rows.run()?;
        Some(rows)
    }
    /// Where the current row ends.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }
    pub(crate) fn depends_on_place(&self) -> bool {
        self.depends_on_place
    }
    /// Moves on to the row that holds `offset`; says whether that is another one than before.
    pub(crate) fn advance(&mut self, offset: u64) -> Option<bool> {
        let mut moved = false;
        while self.until <= offset {
            self.run()?;
            moved = true;
        }
        Some(moved)
    }
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.state == other.state
    }
    /// Whether the frame is where it is in a function that was just called, or is about to return:
    /// the return address on top of the stack.
    pub(crate) fn is_bare(&self) -> bool {
        let Cfa { register, offset, expression } = self.state.cfa;
        (register, offset, expression) == (STACK_POINTER, 8, None)
    }
    /// Where the frame is, if that is a register and a constant and the return address lies right
    /// below.
    pub(crate) fn plain_frame(&self) -> Option<(u64, i64)> {
        let Cfa { register, offset, expression } = self.state.cfa;
        (expression.is_none() && self.state.general[16] == Saved::At(-8)).then_some((register, offset))
    }
    /// The registers (a bit for each, by this table's numbers) that an unwinder reads here: those
    /// the frame is found by, and the callee-saved ones whose values lie nowhere else.
    pub(crate) fn read_here(&self) -> u32 {
        let named = |expression: &[u8]| named_in(expression).unwrap_or(u32::MAX);
        let mut read = match self.state.cfa.expression {
            Some(expression) => named(expression),
            None => 1u32.checked_shl(self.state.cfa.register as u32).unwrap_or(u32::MAX),
        };
        for (number, saved) in self.state.general.iter().enumerate() {
            read |= match *saved {
                Saved::Unspecified | Saved::Same if CALLEE_SAVED >> number & 1 == 1 => 1 << number,
                Saved::In(register) => 1u32.checked_shl(register as u32).unwrap_or(u32::MAX),
                Saved::Expression(expression) | Saved::ValueExpression(expression) => named(expression),
                _ => 0,
            };
        }
        read
    }

    /// Runs to the next row's begin, which becomes the end of this one.
    fn run(&mut self) -> Option<()> {
        let here = self.until;
        loop {
            if self.reader.done() {
                self.until = u64::MAX;
                return Some(());
            }
            let byte = self.reader.byte()?;
            let low = u64::from(byte & 0x3f);
            let distance = match (byte >> 6, byte) {
                (1, _) => Some(low),
                (2, _) => {
                    let offset = self.factored()?;
                    self.state.set(low, Saved::At(offset));
                    None
                }
                (3, _) => {
                    self.state.set(low, self.initial.get(low));
                    None
                }
                (_, 0x01) => {
                    let to = self.reader.pointer(self.pointers, 0).filter(|_| self.pointers & 0x70 == 0)?;
                    self.until = to.checked_sub(self.start).filter(|&to| to >= here)?;
                    return Some(());
                }
                (_, 0x02) => Some(u64::from(self.reader.byte()?)),
                (_, 0x03) => Some(self.reader.fixed(2)?),
                (_, 0x04) => Some(self.reader.fixed(4)?),
                _ => {
                    self.plain(byte)?;
                    None
                }
            };
            if let Some(distance) = distance {
                let distance = distance.checked_mul(self.code_factor)?;
                if distance > 0 {
                    self.until = here.checked_add(distance)?;
                    return Some(());
                }
            }
        }
    }

    /// What changes a row without ending it.
    fn plain(&mut self, operation: u8) -> Option<()> {
        match operation {
            0x00 => {}
            0x05 => {
                let register = self.reader.uleb()?;
                let offset = self.factored()?;
                self.state.set(register, Saved::At(offset));
            }
            0x06 => {
                let register = self.reader.uleb()?;
                self.state.set(register, self.initial.get(register));
            }
            0x07 => {
                let register = self.reader.uleb()?;
                self.state.set(register, Saved::Undefined);
            }
            0x08 => {
                let register = self.reader.uleb()?;
                self.state.set(register, Saved::Same);
            }
            0x09 => {
                let register = self.reader.uleb()?;
                let holds = self.reader.uleb()?;
                self.state.set(register, Saved::In(holds));
            }
            0x0a => {
                if self.remembered.len() >= DEEPEST {
                    return None;
                }
                self.remembered.push(self.state.clone());
            }
            0x0b => self.state = self.remembered.pop()?,
            0x0c => {
                let register = self.reader.uleb()?;
                let offset = self.reader.uleb()? as i64;
                self.frame(Some(register), Some(offset));
            }
            0x0d => {
                let register = self.reader.uleb()?;
                self.frame(Some(register), None);
            }
            0x0e => {
                let offset = self.reader.uleb()? as i64;
                self.frame(None, Some(offset));
            }
            0x0f => self.state.cfa.expression = Some(self.expression()?),
            0x10 => {
                let register = self.reader.uleb()?;
                let expression = self.expression()?;
                self.state.set(register, Saved::Expression(expression));
            }
            0x11 => {
                let register = self.reader.uleb()?;
                let offset = self.reader.sleb()?.checked_mul(self.data_factor)?;
                self.state.set(register, Saved::At(offset));
            }
            0x12 => {
                let register = self.reader.uleb()?;
                let offset = self.reader.sleb()?.checked_mul(self.data_factor)?;
                self.frame(Some(register), Some(offset));
            }
            0x13 => {
                let offset = self.reader.sleb()?.checked_mul(self.data_factor)?;
                self.frame(None, Some(offset));
            }
            0x14 => {
                let register = self.reader.uleb()?;
                let offset = self.factored()?;
                self.state.set(register, Saved::Value(offset));
            }
            0x15 => {
                let register = self.reader.uleb()?;
                let offset = self.reader.sleb()?.checked_mul(self.data_factor)?;
                self.state.set(register, Saved::Value(offset));
            }
            0x16 => {
                let register = self.reader.uleb()?;
                let expression = self.expression()?;
                self.state.set(register, Saved::ValueExpression(expression));
            }
            0x2e => self.state.arguments = self.reader.uleb()?,
            _ => return None,
        }
        // The list of rare registers stays as short as their number.
        (self.state.others.len() <= 128).then_some(())
    }

    fn frame(&mut self, register: Option<u64>, offset: Option<i64>) {
        let cfa = &mut self.state.cfa;
        cfa.register = register.unwrap_or(cfa.register);
        cfa.offset = offset.unwrap_or(cfa.offset);
        // A new offset alone does not end an expression.
        cfa.expression = cfa.expression.filter(|_| register.is_none());
    }

    fn factored(&mut self) -> Option<i64> {
        i64::try_from(self.reader.uleb()?).ok()?.checked_mul(self.data_factor)
    }

    fn expression(&mut self) -> Option<&'d [u8]> {
        let size = self.reader.uleb()?;
        let bytes = self.reader.bytes(usize::try_from(size).ok()?)?;
        self.depends_on_place |= depends_on_place(bytes);
        Some(bytes)
    }
}

/// Linkage stubs tell where in the stub the program stands by the low bits of its own address
/// (`DW_OP_breg16`); such an expression means something else when the code lies elsewhere. So may
/// any operation not known here.
fn depends_on_place(expression: &[u8]) -> bool {
    named_in(expression).is_none_or(|named| named >> 16 & 1 == 1)
}

/// The registers that an expression reads; `None` if it has operations not known here.
fn named_in(expression: &[u8]) -> Option<u32> {
    let mut reader = Reader::new(expression, 0);
    let mut named = 0;
    while !reader.done() {
        let operation = reader.byte()?;
        match operation {
            0x06 | 0x12..=0x14 | 0x16..=0x22 | 0x24..=0x27 | 0x29..=0x2e | 0x30..=0x4f | 0x96 => {}
            0x50..=0x6f => named |= 1 << (operation - 0x50),
            0x70..=0x8f => {
                named |= 1 << (operation - 0x70);
                reader.sleb()?;
            }
            0x11 => {
                reader.sleb()?;
            }
            0x10 | 0x23 => {
                reader.uleb()?;
            }
            0x08 | 0x09 | 0x15 | 0x94 => {
                reader.fixed(1)?;
            }
            0x0a | 0x0b | 0x28 | 0x2f => {
                reader.fixed(2)?;
            }
            0x0c | 0x0d => {
                reader.fixed(4)?;
            }
            0x03 | 0x0e | 0x0f => {
                reader.fixed(8)?;
            }
            0x92 => {
                named |= 1u32.checked_shl(u32::try_from(reader.uleb()?).ok()?)?;
                reader.sleb()?;
            }
            _ => return None,
        }
    }
    Some(named)
}

#[cfg(test)]
impl Rows<'_> {
    /// The frame's register and offset, if no expression gives it.
    pub(crate) fn frame_at(&self) -> Option<(u64, i64)> {
        let Cfa { register, offset, expression } = self.state.cfa;
        expression.is_none().then_some((register, offset))
    }
    /// Where a register is saved, from the frame.
    pub(crate) fn saved_at(&self, register: u64) -> Option<i64> {
        match self.state.get(register) {
            Saved::At(offset) => Some(offset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cie(program: &'static [u8]) -> Cie<'static> {
        Cie::plain(program)
    }
    fn fde(program: &'static [u8]) -> Fde<'static> {
        Fde { at: 0, start: 0x1000, size: 64, exceptions: 0, program, shared: 0 }
    }

    #[test]
    fn rows_begin_and_end_where_the_program_says() {
        let shared = cie(&[0x0c, 7, 8, 0x90, 1]);
        // +1: def_cfa_offset 16, offset rbp; +3: def_cfa_register rbp; +10: def_cfa rsp 8, restore
        // rbp
        let program = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x4a, 0x0c, 7, 8, 0xc6];
        let fde = fde(Box::leak(Box::new(program)));
        let mut rows = Rows::new(&shared, &fde).expect("a sound program");
        let first = rows.state.clone();
        let frame = |register, offset| Cfa { register, offset, expression: None };
        assert_eq!(first.cfa, frame(7, 8));
        assert_eq!(first.general[16], Saved::At(-8));
        assert_eq!((rows.until(), rows.advance(0)), (1, Some(false)));
        assert_eq!(rows.advance(1), Some(true));
        assert_eq!((rows.state.cfa, rows.state.general[6]), (frame(7, 16), Saved::At(-16)));
        assert_eq!((rows.advance(13), rows.until()), (Some(true), 14));
        assert_eq!(rows.state.cfa, frame(6, 16));
        assert_eq!(rows.advance(14), Some(true));
        assert_eq!(rows.until(), u64::MAX);
        assert_eq!(rows.state, first);
    }

    #[test]
    fn a_stack_that_underflows_is_not_understood() {
        assert!(Rows::new(&cie(&[0x0c, 7, 8]), &fde(&[0x0b])).is_none());
    }

    #[test]
    fn expressions_over_the_program_counter_are_noticed() {
        let shared = cie(&[0x0c, 7, 8]);
        let place = fde(&[0x0f, 4, 0x77, 8, 0x80, 0]);
        assert!(Rows::new(&shared, &place).is_some_and(|rows| rows.depends_on_place()));
    }
}

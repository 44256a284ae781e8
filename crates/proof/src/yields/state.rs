//! What is known of the processor between two instructions of inserted code (rules R13 and R16):
//! which registers hold what the program left in them, and what stands in the context and in the
//! area. Where ways meet, only what holds on all of them is kept.

use super::ops::{General, RSP};
use crate::liveness::set::{RED_ZONE, STATUS_FLAGS, Set, names, touched};
use iced_x86::Register;

/// What pieces are run with.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) scavenger: bool,
    pub(crate) quantum: u32,
    /// Of the machines' vector registers.
    pub(crate) vector_bytes: u32,
    /// Where the twins begin, and how many bytes they are.
    pub(crate) text: (u64, u64),
}

/// A place in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceSpot {
    pub(crate) part: usize,
    /// From the first byte of the part.
    pub(crate) at: u32,
}

/// Bits as registers are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlierSaves {
    /// Slots that hold their registers; RSP's bit is for its own word.
    pub(crate) slots: u16,
    /// Registers that hold the context.
    pub(crate) bases: u16,
    /// Registers that may hold anything, because a yield left them in their slots.
    pub(crate) away: u16,
    /// What that yield says of it; of no register where different ones meet.
    pub(crate) note: SunkNote,
}

/// What a yield says of registers that it leaves in their slots: from one place of the twin to
/// another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SunkNote {
    pub(crate) registers: u16,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What a general register or a word of scratch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Anything,
    /// What the program left in this register.
    Program(General),
    /// The context that runs.
    Context,
    /// The next one of its ring.
    Next,
    /// An address in the piece itself.
    Here(PieceSpot),
    /// The first byte of the twins.
    Text,
    /// The return address on top of the stack.
    Return,
    /// That, from the first byte of the twins.
    ReturnInText,
    /// What the computed jump behind the piece jumps to.
    Target,
    /// The first byte of the unit.
    UnitBegin,
    /// The target, from the first byte of the unit.
    TargetInUnit,
    /// That, where the target is known to lie in the unit.
    PlaceInUnit,
    /// The unit's label table.
    LabelTable,
    /// What the table has of that place: zero where there is no label.
    DistanceOrNone,
    /// That, where it is known not to be zero.
    Distance,
    /// The twin of the label that the jump leads to.
    Label,
    /// The context's FS base, and a multiple of each of the program's registers (four bits for
    /// each).
    Local(u64),
    /// `lahf` was done, of the program's flags.
    Ah,
    /// And `seto al`.
    Flags,
    /// And `add al, 0x7f`.
    Restoring,
}

/// What the flags hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flags {
    Anything,
    Program,
    /// Only the overflow flag is the program's.
    Overflow,
    /// Equal where nobody else is in the ring.
    Alone,
    /// Equal where the area is no guest's.
    Home,
    /// Not negative where there is budget left.
    Budget,
    /// Not negative where this yield is passed by.
    Passes,
    /// Below where the return address is in a twin.
    Inside,
    /// Below where the computed jump behind the piece leads into its unit.
    InUnit,
    /// Equal where it leads to no label.
    NoLabel,
}

/// What of the context a yield has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextSlots {
    /// Slots that hold their registers; the stack pointer's bit is for its own word.
    pub(crate) general: u16,
    pub(crate) flags: bool,
    pub(crate) rip: Option<PieceSpot>,
    /// For each vector register, how many of its parts: 128, 256, 512 bits.
    pub(crate) vectors: [u8; 32],
    pub(crate) masks: u8,
}

impl ContextSlots {
    pub(crate) const NOTHING: Self = Self { general: 0, flags: false, rip: None, vectors: [0; 32], masks: 0 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) general: [Value; 16],
    pub(crate) flags: Flags,
    /// For each vector register, how many parts are the program's.
    pub(crate) vectors: [u8; 32],
    pub(crate) masks: u8,
    pub(crate) current: Value,
    pub(crate) scratch: [Value; 3],
    pub(crate) kept: ContextSlots,
    pub(crate) facts: Facts,
}

/// What holds whichever way control came by.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The area is no guest's.
    pub(crate) home: bool,
    /// The area is a guest's.
    pub(crate) aboard: bool,
    /// The area is no guest's, or the return address is in a twin.
    pub(crate) returns: bool,
    /// There was a yield, or budget for none.
    pub(crate) met: bool,
    /// The budget is not used up, and it is this context's.
    pub(crate) budget: bool,
    /// Nobody else is in the ring.
    pub(crate) alone: bool,
    /// Another context is in the ring.
    pub(crate) others: bool,
    /// It is a yield's turn that is not passed by.
    pub(crate) turn: bool,
    /// The context goes on from a switch.
    pub(crate) switched: bool,
}

impl State {
    /// Before inserted code.
    pub(crate) fn program() -> Self {
        let mut general = [Value::Anything; 16];
        for (number, value) in general.iter_mut().enumerate() {
            *value = Value::Program(number as General);
        }
        Self {
            general,
            flags: Flags::Program,
            vectors: [3; 32],
            masks: u8::MAX,
            current: Value::Context,
            scratch: [Value::Anything; 3],
            kept: ContextSlots::NOTHING,
            facts: Facts {
                home: false,
                aboard: false,
                returns: false,
                met: false,
                budget: true,
                alone: false,
                others: false,
                turn: false,
                switched: false,
            },
        }
    }

    /// Another context ran and switched back: only what the context holds is known, and that `rax`
    /// is the context.
    pub(crate) fn resumed(&self) -> Self {
        let mut state = Self::program();
        state.general = [Value::Anything; 16];
        state.general[0] = Value::Context;
        state.flags = Flags::Anything;
        state.vectors = [0; 32];
        state.masks = 0;
        state.kept = self.kept;
        state.facts.met = true;
        // What others have left of it is never more than it is set to.
        state.facts.budget = self.facts.budget;
        state.facts.switched = true;
        state
    }

    /// What holds where this way and another one meet.
    pub(crate) fn meet(&mut self, other: &Self) {
        let keep = |value: &mut Value, other: Value| {
            if *value != other {
                *value = Value::Anything;
            }
        };
        for (value, &other) in self.general.iter_mut().zip(&other.general) {
            keep(value, other);
        }
        for (value, &other) in self.scratch.iter_mut().zip(&other.scratch) {
            keep(value, other);
        }
        keep(&mut self.current, other.current);
        if self.flags != other.flags {
            self.flags = Flags::Anything;
        }
        let least = |all: &mut [u8; 32], others: &[u8; 32]| {
            for (level, &other) in all.iter_mut().zip(others) {
                *level = (*level).min(other);
            }
        };
        least(&mut self.vectors, &other.vectors);
        least(&mut self.kept.vectors, &other.kept.vectors);
        self.masks &= other.masks;
        self.kept.masks &= other.kept.masks;
        self.kept.general &= other.kept.general;
        self.kept.flags &= other.kept.flags;
        if self.kept.rip != other.kept.rip {
            self.kept.rip = None;
        }
        let (facts, others) = (&mut self.facts, &other.facts);
        facts.home &= others.home;
        facts.aboard &= others.aboard;
        facts.returns &= others.returns;
        facts.met &= others.met;
        facts.budget &= others.budget;
        facts.alone &= others.alone;
        facts.others &= others.others;
        facts.turn &= others.turn;
        facts.switched &= others.switched;
    }

    /// More is known of what general registers hold.
    pub(crate) fn is_found(&mut self, before: Value, now: Value) {
        for value in self.general.iter_mut().filter(|value| **value == before) {
            *value = now;
        }
    }

    /// What of `live` is not the program's any more, on machines with vector registers of that
    /// number of bytes.
    pub(crate) fn lost(&self, live: Set, width: u32) -> Set {
        let mut lost = 0;
        for (number, &value) in self.general.iter().enumerate() {
            if value != Value::Program(number as General) {
                lost |= 1 << number;
            }
        }
        if self.flags != Flags::Program {
            lost |= STATUS_FLAGS;
        }
        for (number, &level) in self.vectors.iter().enumerate().filter(|&(_, &level)| level < 3) {
            let part = |first: Register| touched(first + number as u32);
            let (low, half, all) = (part(Register::XMM0), part(Register::YMM0), part(Register::ZMM0));
            if number >= 16 && width < 64 {
                continue;
            }
            lost |= if level < 1 { low } else { 0 };
            lost |= if level < 2 && width >= 32 { half & !low } else { 0 };
            lost |= if width >= 64 { all & !half } else { 0 };
        }
        for number in (0..8).filter(|number| width >= 64 && self.masks >> number & 1 == 0) {
            lost |= touched(Register::K0 + number);
        }
        lost & (live | 1 << RSP) & !RED_ZONE
    }

    pub(crate) fn told(lost: Set) -> String {
        format!("inserted code does not preserve what may be live: {}", names(lost))
    }
}

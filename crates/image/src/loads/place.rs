//! What holds a value that is followed: a register, a slot of the frame, a fixed address.

use iced_x86::Register;

/// Something that holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    General(u8),
    /// In the frame: relative to the stack pointer, or the frame pointer.
    Slot(Base, i64),
    /// At a fixed address.
    Fixed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    Stack,
    Frame,
}

impl Place {
    /// The general register that this is a part of; the stack pointer is none that is followed.
    pub fn of(register: Register) -> Option<Self> {
        let whole = register.full_register();
        (register.is_gpr() && whole != Register::RSP).then(|| Self::General(whole.number() as u8))
    }
}

/// What an instruction loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    Nothing,
    /// From the frame or a fixed address.
    Followed(Place),
    Elsewhere,
}

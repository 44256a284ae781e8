//! A unit's instructions, decoded as a whole, one after the other: the one place where what
//! [`super::descend`] found is decoded again, for passes that need operands.

use crate::code::insn::Insn;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use units::Svma;

/// The instructions of a unit, in the order of its list.
pub struct Instructions<'m> {
    decoder: Decoder<'m>,
    start: Svma,
    insns: std::slice::Iter<'m, Insn>,
}

impl<'m> Instructions<'m> {
    /// `code` are the bytes of the unit at `start`, and `insns` its instructions.
    pub fn of(start: Svma, code: &'m [u8], insns: &'m [Insn]) -> Self {
        let decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
        Self { decoder, start, insns: insns.iter() }
    }
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        let insn = self.insns.next()?;
        if self.decoder.position() != insn.at as usize {
            // It lies in the unit, since it was decoded there before.
            let _ = self.decoder.set_position(insn.at as usize);
            self.decoder.set_ip(self.start.0 + u64::from(insn.at));
        }
        Some(self.decoder.decode())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.insns.size_hint()
    }
}

impl ExactSizeIterator for Instructions<'_> {}

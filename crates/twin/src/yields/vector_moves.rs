//! Moves of vector and mask registers to and from their slots of a context.

use super::assembler::Assembler;
use super::registers::Register;
use crate::modes::width::VectorWidth;
use runtime_abi::context;

/// How much of a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Low = 0,
    Half = 1,
    All = 2,
}

impl Assembler {
    /// A vector register to or from its slot of the context at `base`.
    pub(crate) fn vector(
        &mut self,
        store: bool,
        number: u32,
        extent: Extent,
        base: Register,
        width: VectorWidth,
    ) {
        let opcode = 0x10 | u8::from(store);
        let (high, base_high) = ((number >> 3 & 1) as u8, (base >> 3) as u8);
        if number >= 16 || extent == Extent::All {
            let payload = 0x41 | (high ^ 1) << 7 | (base_high ^ 1) << 5 | ((number >> 4 & 1) as u8 ^ 1) << 4;
            // vvvv unused, prefix none; no mask
            self.raw(&[0x62, payload, 0x7c, (extent as u8) << 5 | 0x08, opcode]);
            return self.at_base_by(16 << extent as u8, number, base, context::vector(number as u8));
        } else if width == VectorWidth::Sse {
            if high | base_high != 0 {
                self.raw(&[0x40 | high << 2 | base_high]);
            }
            self.raw(&[0x0f, opcode]);
        } else if base_high == 0 {
            self.raw(&[0xc5, 0x78 | (high ^ 1) << 7 | (extent as u8) << 2, opcode]);
        } else {
            let first = 0x41 | (high ^ 1) << 7 | (base_high ^ 1) << 5;
            self.raw(&[0xc4, first, 0x78 | (extent as u8) << 2, opcode]);
        }
        self.at_base(number, base, context::vector(number as u8));
    }
    /// A mask register to or from its slot of the context at `base`.
    pub(crate) fn mask(&mut self, store: bool, number: u32, base: Register) {
        let first = 0xc1 | ((base >> 3) as u8 ^ 1) << 5;
        self.raw(&[0xc4, first, 0xf8, 0x90 | u8::from(store)]);
        self.at_base(number, base, context::mask(number as u8));
    }
}

//! Calls that stand last in their function's code. If one came back, control would run into what
//! lies behind, which is padding or another function; so it does not come back. That is believed of
//! calls in a frame that still stands, by the unwind table, when what lies behind begins without
//! one: then the tables themselves say that control does not get there. In a function that reaches
//! such calls only nobody returns.

use super::Code;
use super::body::BodyPlace;
use crate::container::stream::Item;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use units::Svma;

impl Code<'_, '_> {
    /// Whether a call can only come back to what is no code of its function.
    pub(super) fn is_last_call(&self, body: u32, call: &Item) -> bool {
        let behind = self.start(body) + u64::from(call.end());
        if u64::from(call.end()) != self.size(body) || !self.stands(body, call.at) {
            return false;
        }
        match self.place(behind) {
            Some(BodyPlace { body: other, at: 0 }) => {
                self.unwind.rows(self.fde(other)).is_some_and(|rows| rows.is_bare())
            }
            Some(_) => false,
            None => self.is_padding(behind),
        }
    }

    fn size(&self, body: u32) -> u64 {
        self.other(body).map_or_else(|| self.mapping.units[body as usize].code.len() as u64, |other| other.1)
    }

    /// Whether a frame stands at an offset of a body, of which the unwind table knows.
    fn stands(&self, body: u32, at: u32) -> bool {
        let Some(mut rows) = self.unwind.rows(self.fde(body)) else { return false };
        rows.advance(u64::from(at)).is_some() && !rows.is_bare()
    }

    /// What linkers and assemblers put between functions; or the end of what is loaded.
    fn is_padding(&self, address: u64) -> bool {
        let bytes = self.original.bytes_from(Svma(address)).unwrap_or(&[]);
        let code = &bytes[..bytes.len().min(15)];
        if code.is_empty() || code.starts_with(&[0, 0]) {
            return true;
        }
        let insn = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
    }
}

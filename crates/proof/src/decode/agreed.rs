//! Instructions that both decoders were found to read alike.
//!
//! What a decoder says of bytes hangs on nothing but these, addresses aside: so the same bytes need
//! not be compared twice. What says something of addresses is compared each time.

use super::operands::is_branch;
use iced_x86::Instruction;

/// As many as fit into a cache near the core.
const PLACES: usize = 4096;
/// The longest instruction leaves one byte for what else distinguishes two.
const BYTES: usize = 15;

/// Each in the place that its bytes say, where it takes that of another one.
#[derive(Default)]
pub(super) struct Agreed {
    places: Vec<u128>,
}

impl Agreed {
    pub(super) fn knows(&self, bytes: &[u8], first: &Instruction, effect_counts: bool) -> bool {
        key(bytes, first, effect_counts).is_some_and(|key| self.places.get(place(key)) == Some(&key))
    }

    pub(super) fn learn(&mut self, bytes: &[u8], first: &Instruction, effect_counts: bool) {
        let Some(key) = key(bytes, first, effect_counts) else { return };
        self.places.resize(PLACES, 0);
        self.places[place(key)] = key;
    }
}

/// An instruction's bytes, their number, and what was compared; never zero.
fn key(bytes: &[u8], first: &Instruction, effect_counts: bool) -> Option<u128> {
    if first.is_ip_rel_memory_operand() || is_branch(first) {
        return None;
    }
    let own = bytes.get(..first.len()).filter(|own| (1..=BYTES).contains(&own.len()))?;
    let mut all = [0; BYTES + 1];
    all[..own.len()].copy_from_slice(own);
    all[BYTES] = (own.len() as u8) << 1 | u8::from(effect_counts);
    Some(u128::from_le_bytes(all))
}

fn place(key: u128) -> usize {
    let folded = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (folded >> 32) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn first(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn known_is_what_was_learnt_and_no_more() {
        let add = [0x48, 0x83, 0xc0, 0x08, 0x90]; // add rax, 8; nop
        let mut agreed = Agreed::default();
        assert!(!agreed.knows(&add, &first(&add), true));
        agreed.learn(&add, &first(&add), true);
        assert!(agreed.knows(&add, &first(&add), true));
        assert!(agreed.knows(&add[..4], &first(&add), true), "what follows does not count");
        assert!(!agreed.knows(&add, &first(&add), false), "less was compared");
        for at in 0..4 {
            let mut other = add;
            other[at] ^= 0x10;
            assert!(!agreed.knows(&other, &first(&other), true), "{other:x?}");
        }
        let mut shorter = first(&add);
        shorter.set_len(3);
        assert!(!agreed.knows(&add, &shorter, true));
    }

    #[test]
    fn what_tells_an_address_is_never_known() {
        let codes: [&[u8]; 3] = [&[0xeb, 0x10], &[0xe8, 0, 1, 0, 0], &[0x48, 0x8b, 0x05, 0x10, 0, 0, 0]];
        for code in codes {
            let mut agreed = Agreed::default();
            agreed.learn(code, &first(code), true);
            assert!(!agreed.knows(code, &first(code), true), "{code:x?}");
        }
    }
}

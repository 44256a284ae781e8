//! Relays: jumps that connect switch bytes to their cold parts.
//!
//! A yield that is off should cost nothing, and turn on when one byte changes. A `nop` costs next
//! to nothing. Made a jump by its first byte, it leads to where its other bytes say, and only two
//! of these can be chosen:
//!
//! ```text
//! 0f 1f 44 SS DD      nop [… + DD]
//! e9 1f 44 SS DD      jmp  to 0xDDSS441f from its end
//! ```
//!
//! So each switch gets a jump of its own, at the first free place of that form behind all twins;
//! there is one in 64 KiB. An unwinder finds there the frame of the switch. Exceptions do not land
//! from a relay, so a switch from which they would land has no relay.

use crate::error::TwinError;
use crate::layout::JUMP_SIZE;
use crate::layout::emit::{INT3, Twins};
use crate::layout::relay::Relay;
use std::collections::BTreeSet;

/// What its distance ends with, in bits, and how many those are.
const FIXED: u64 = 0x441f;
const FIXED_BITS: u32 = 16;
const SIZE: u64 = JUMP_SIZE as u64;

/// Gives every switch that needs one its relay, behind twins that end at `end`; where the last one
/// ends. Addresses are relative to the first twin, as those of the twins are yet.
pub(crate) fn place(twins: &Twins<'_, '_>, end: u64) -> Result<(Vec<Relay>, u64), TwinError> {
    let mut relays = Vec::new();
    let mut free = Free::behind(end);
    for (unit, twin) in twins.twins.iter().enumerate() {
        let Some(twin) = twin else { continue };
        for &(index, ref listed) in twin.inserted.yields() {
            let Some(switch) = listed.switch else { continue };
            let Some((to, thrown)) = switch.by_relay else { continue };
            let cold = twin.layout.cold_of(index);
            let from = twin.address + u64::from(twin.layout.offsets[index as usize] + switch.at) + SIZE;
            let at = free.take(from).ok_or(TwinError::OutOfReach("the relays of switches"))?;
            relays.push(Relay { unit: unit as u32, index, switch: switch.at, at, to: cold + to, thrown });
        }
    }
    let end = free.taken.last().map_or(end, |&last| last + SIZE);
    Ok((relays, end))
}

/// Writes all of them, and traps between them; `out` begins at `address`, where the twins end.
pub(crate) fn write(twins: &Twins<'_, '_>, address: u64, out: &mut [u8]) -> Result<(), TwinError> {
    out.fill(INT3);
    for relay in &twins.relays {
        let Some(twin) = &twins.twins[relay.unit as usize] else { continue };
        let to = twin.address + u64::from(relay.to);
        let distance = i32::try_from(to.wrapping_sub(relay.at + SIZE) as i64);
        let distance = distance.map_err(|_| TwinError::OutOfReach("the twins"))?.to_le_bytes();
        let at = (relay.at - address) as usize;
        out[at] = 0xe9;
        out[at + 1..at + SIZE as usize].copy_from_slice(&distance);
    }
    Ok(())
}

/// The space behind the twins, in turns of as many bytes as lie between two places that a switch
/// may lead to.
struct Free {
    begin: u64,
    /// Where relays begin.
    taken: BTreeSet<u64>,
    /// For each few bytes of a turn, the first turn in which they may be free. Without it each
    /// switch of a large file would ask for all turns.
    turns: Vec<u16>,
}

/// Bytes of a turn that share an entry of [`Free::turns`].
const FEW: u64 = 8;

impl Free {
    fn behind(begin: u64) -> Self {
        Self { begin, taken: BTreeSet::new(), turns: vec![0; ((1 << FIXED_BITS) / FEW) as usize] }
    }

    /// The first free place that a switch which ends at `from` may lead to.
    fn take(&mut self, from: u64) -> Option<u64> {
        let lead = from + FIXED;
        let first = lead + (self.begin.saturating_sub(lead).div_ceil(1 << FIXED_BITS) << FIXED_BITS);
        // Where a twin's end is far behind, the first turn is that of the place itself.
        let turn_of = |at: u64| (at - self.begin) >> FIXED_BITS;
        let few = ((first - self.begin) % (1 << FIXED_BITS) / FEW) as usize;
        let skipped = u64::from(self.turns[few]).saturating_sub(turn_of(first));
        let at = (skipped..1 << FIXED_BITS)
            .map(|turn| first + (turn << FIXED_BITS))
            .take_while(|at| i32::try_from(at - from).is_ok())
            .find(|&at| self.taken.range(at.saturating_sub(SIZE - 1)..at + SIZE).next().is_none())?;
        self.turns[few] = turn_of(at) as u16 + 1;
        self.taken.insert(at);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_place_that_its_bytes_can_name_and_nobody_else_has() {
        let begin = 0x12345;
        let mut free = Free::behind(begin);
        let froms = [5, 8, 12, 10, 0x1_0005, 0x2_0008, 0x2000, 0x1_2344];
        let mut places: Vec<(u64, u64)> = froms.map(|from| (from, free.take(from).unwrap())).to_vec();
        for &(from, at) in &places {
            let distance = i32::try_from(at - from).unwrap();
            assert_eq!(distance.to_le_bytes()[..2], [0x1f, 0x44], "{from:#x}");
            assert!(at >= begin);
        }
        // The first such place; one that lies upon it comes a turn later.
        assert_eq!(places[0].1, 5 + 0x1_441f);
        assert_eq!(places[1].1, 8 + 0x2_441f);
        places.sort_unstable_by_key(|&(_, at)| at);
        assert!(places.is_sorted_by(|a, b| a.1 + SIZE <= b.1), "{places:x?}");
    }

    #[test]
    fn yields_too_far_away_get_no_relay() {
        let mut free = Free::behind(1 << 31);
        assert_eq!(free.take(0), None);
        assert!(free.take(1 << 20).is_some());
    }

    #[test]
    fn a_switch_every_eight_bytes_is_no_matter() {
        let end = 16 << 20;
        let mut free = Free::behind(end);
        assert!((0..end).step_by(8).all(|from| free.take(from).is_some()));
        // No more space than they take, but for what is left over.
        assert!(free.taken.last().unwrap() - end <= end + (2 << FIXED_BITS));
    }
}

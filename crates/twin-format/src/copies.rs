//! Which instruction of the original stands where in a twin.

use crate::mapping::Unit;
use crate::stream::StreamReader;

/// The jump that ends an escape.
const JUMP_SIZE: u64 = 5;

/// An instruction of a unit that has a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub original: u64,
    /// Its length in the original.
    pub len: u8,
    /// Where in the twin the code inserted before its copy begins, or the copy itself: what leads
    /// to the instruction leads here.
    pub twin: u64,
    /// Where in the twin its copy begins.
    pub copy: u64,
    /// Where in the twin its copy ends.
    pub twin_end: u64,
}

impl Unit<'_> {
    /// All instructions that have a copy.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let lead = self.lead().unwrap_or(0);
        let mut reader = StreamReader::new(self.stream);
        let (mut at, mut place) = (self.start, self.twin);
        (0..self.instructions).map_while(move |_| {
            let item = reader.item()?;
            at += item.gap.map_or(0, |gap| gap.bytes);
            place += item.gap.map_or(0, |gap| gap.padding);
            let twin_end = place + item.inserted + item.twin_len;
            let copy = place + item.inserted;
            let found = Place { original: at, len: item.len, twin: place, copy, twin_end };
            at += u64::from(item.len);
            place = twin_end + if item.escape { lead + JUMP_SIZE } else { 0 };
            Some(found)
        })
    }

    /// The address in the original of the instruction whose copy, or the code inserted before it,
    /// is at this address of its twin. `None` in padding, in an escape and in cold parts.
    pub fn original_of(&self, twin: u64) -> Option<u64> {
        let holds = |place: &Place| (place.twin..place.twin_end).contains(&twin);
        self.places().find(holds).map(|place| place.original)
    }

    /// Bytes of code in front of an escape's jump, the same for all: what the items and the cold
    /// parts leave of the twin.
    fn lead(&self) -> Option<u64> {
        let mut reader = StreamReader::new(self.stream);
        let (mut known, mut escapes) = (0, 0);
        for _ in 0..self.instructions {
            let item = reader.item()?;
            known += item.gap.map_or(0, |gap| gap.padding) + item.inserted + item.twin_len;
            escapes += u64::from(item.escape);
        }
        for _ in 0..reader.cold_count()? {
            known += reader.cold_part()?.1;
        }
        let rest = u64::from(self.twin_size).checked_sub(known)?;
        rest.checked_div(escapes).map_or(Some(0), |each| each.checked_sub(JUMP_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Gap, Item, encode_cold_parts};

    #[test]
    fn places_of_a_twin_belong_to_the_instructions_they_are_copies_of() {
        let plain = |len| Item { len, twin_len: len.into(), ..Item::default() };
        let items = [
            plain(3),
            Item { inserted: 10, ..plain(2) },
            Item { escape: true, ..plain(1) },
            Item { gap: Some(Gap { bytes: 4, padding: 2 }), ..plain(5) },
            Item { escape: true, twin_len: 7, ..plain(2) },
        ];
        let mut stream = Vec::new();
        for item in &items {
            item.encode(&mut stream);
        }
        encode_cold_parts(&mut stream, [(1, 6)].into_iter());
        // Two escapes of 63 + 5 bytes.
        let twin_size = 3 + 12 + 1 + 68 + 2 + 5 + 7 + 68 + 6;
        let unit = Unit {
            start: 0x1000,
            twin: 0x9000,
            size: 17,
            twin_size,
            instructions: 5,
            patch: None,
            stream: &stream,
        };
        let of = |offset: u64| unit.original_of(0x9000 + offset);
        assert_eq!([0, 2, 3, 14, 15].map(of), [0x1000, 0x1000, 0x1003, 0x1003, 0x1005].map(Some));
        assert_eq!([16, 83, 84, 85].map(of), [None; 4], "an escape and padding");
        assert_eq!([86, 90, 91, 97].map(of), [0x100a, 0x100a, 0x100f, 0x100f].map(Some));
        assert_eq!([98, 165, 166, 171, 172].map(of), [None; 5], "an escape, a cold part, the end");
        assert_eq!(unit.original_of(0x8fff), None);
    }
}

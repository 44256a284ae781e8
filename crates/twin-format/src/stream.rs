//! Instruction streams: for each instruction of a unit its length, and what its twin has before, in
//! place of and behind it.
//!
//! ```text
//! original   48 8b 07    eb 02    xx xx (not decoded)    c3
//! items      03          02                              31 80 01 08
//!            3 bytes     2 bytes                         1 byte, behind a gap of 2 bytes
//!                                                        without padding (2 << 6), with
//!                                                        8 bytes of inserted code before it
//! ```

use crate::number::{put_uleb, uleb};

/// In an item's first byte, besides the length of the original instruction in bits 0 to 3.
const GAP: u8 = 0x10;
const INSERTED: u8 = 0x20;
const RESIZED: u8 = 0x40;
const ESCAPE: u8 = 0x80;
const LENGTH: u8 = 0x0f;
/// A gap's number holds the padding in its low bits.
const PADDING_BITS: u32 = 6;
const PADDING: u64 = (1 << PADDING_BITS) - 1;

/// One instruction of the original that has a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Its length in the original.
    pub len: u8,
    /// What lies between it and the item before (or the unit's start); `None`: nothing.
    pub gap: Option<Gap>,
    /// Bytes of inserted code before it in the twin, its cold part not counted.
    pub inserted: u64,
    /// Its length in the twin.
    pub twin_len: u64,
    /// Whether an escape follows it in the twin.
    pub escape: bool,
}

/// Bytes of the original that have no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub bytes: u64,
    /// How many traps (`cc`) the twin has in their place, below 64.
    pub padding: u64,
}

impl Item {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let resized = self.twin_len != u64::from(self.len);
        out.push(
            self.len
                | flag(self.gap.is_some(), GAP)
                | flag(self.inserted > 0, INSERTED)
                | flag(resized, RESIZED)
                | flag(self.escape, ESCAPE),
        );
        if let Some(gap) = self.gap {
            put_uleb(out, gap.bytes << PADDING_BITS | gap.padding);
        }
        if self.inserted > 0 {
            put_uleb(out, self.inserted);
        }
        if resized {
            put_uleb(out, self.twin_len);
        }
    }

    fn decode(bytes: &[u8], at: &mut usize) -> Option<Self> {
        let head = *bytes.get(*at)?;
        *at += 1;
        let mut number = |bit: u8| if head & bit == 0 { Some(None) } else { uleb(bytes, at).map(Some) };
        let (gap, inserted, resized) = (number(GAP)?, number(INSERTED)?, number(RESIZED)?);
        let len = head & LENGTH;
        Some(Self {
            len,
            gap: gap.map(|gap| Gap { bytes: gap >> PADDING_BITS, padding: gap & PADDING }),
            inserted: inserted.unwrap_or(0),
            twin_len: resized.unwrap_or(u64::from(len)),
            escape: head & ESCAPE != 0,
        })
    }
}

/// Appends the list of cold parts, which follows a unit's items: for each the index of its item,
/// ascending, and its size.
pub fn encode_cold_parts(out: &mut Vec<u8>, parts: impl ExactSizeIterator<Item = (u32, u32)>) {
    put_uleb(out, parts.len() as u64);
    let mut last = 0;
    for (index, size) in parts {
        put_uleb(out, u64::from(index - last));
        put_uleb(out, u64::from(size));
        last = index;
    }
}

/// Reads a stream: first all items, then the list of cold parts.
#[derive(Clone, Copy, Debug)]
pub struct StreamReader<'s> {
    bytes: &'s [u8],
    at: usize,
}

impl<'s> StreamReader<'s> {
    pub fn new(bytes: &'s [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn item(&mut self) -> Option<Item> {
        Item::decode(self.bytes, &mut self.at)
    }

    /// The number of cold parts, behind the last item.
    pub fn cold_count(&mut self) -> Option<u64> {
        uleb(self.bytes, &mut self.at)
    }

    /// How many items further on the next cold part belongs to, and its size.
    pub fn cold_part(&mut self) -> Option<(u64, u64)> {
        Some((uleb(self.bytes, &mut self.at)?, uleb(self.bytes, &mut self.at)?))
    }

    /// How many bytes a stream of `items` items has.
    pub(crate) fn size(bytes: &'s [u8], items: u32) -> Option<usize> {
        let mut reader = Self::new(bytes);
        for _ in 0..items {
            reader.item()?;
        }
        for _ in 0..reader.cold_count()? {
            reader.cold_part()?;
        }
        Some(reader.at)
    }
}

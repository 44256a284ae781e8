//! The instruction streams of the mapping: which instruction of a unit stands where in its twin.

use crate::container::mapping::Unit;
use twin_format::stream::StreamReader;

/// One instruction of the original that has a twin. Offsets are from the unit and from its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// In the original.
    pub(crate) at: u32,
    /// In the twin: where the code inserted before it begins.
    pub(crate) place: u32,
    /// Bytes of inserted code.
    pub(crate) inserted: u32,
    pub(crate) len: u8,
    /// Length of the instruction in the twin.
    pub(crate) twin_len: u8,
    pub(crate) escape: bool,
    /// Where in the twin the cold part of the inserted code begins, and how long it is.
    pub(crate) cold: (u32, u32),
}

impl Item {
    pub(crate) fn end(&self) -> u32 {
        self.at + u32::from(self.len)
    }
    /// Where in the twin the instruction itself begins.
    pub(crate) fn copy(&self) -> u32 {
        self.place + self.inserted
    }
    /// Where in the twin the instruction ends (and its escape begins).
    pub(crate) fn copy_end(&self) -> u32 {
        self.copy() + u32::from(self.twin_len)
    }
}

const TRAP: u8 = 0xcc;

/// Reads all items of a unit into `items`; says what is wrong with them, and where in the original.
pub(crate) fn read(unit: &Unit<'_>, items: &mut Vec<Item>) -> Result<(), (u32, &'static str)> {
    items.clear();
    let mut reader = StreamReader::new(unit.stream);
    let (size, twin_size) = (unit.code.len() as u64, unit.copy.len() as u64);
    let (mut at, mut place) = (0u64, 0u64);
    for _ in 0..unit.count {
        let Some(item) = reader.item() else {
            return Err((at as u32, "the instruction stream ends early"));
        };
        let twin_format::stream::Item { len, inserted, twin_len, escape, .. } = item;
        let (gap, padding) = item.gap.map_or((0, 0), |gap| (gap.bytes, gap.padding));
        let first = at.saturating_add(gap);
        if gap == 0 && item.gap.is_some() {
            return Err((first as u32, "an empty gap in the instruction stream"));
        }
        if padding > 0 {
            let end = place;
            place = place.saturating_add(padding);
            let padding = unit.copy.get(end as usize..place as usize).unwrap_or(&[]);
            if padding.iter().any(|&byte| byte != TRAP) {
                return Err((first as u32, "the padding before an instruction of a twin is not all traps"));
            }
        }
        let next = first.saturating_add(u64::from(len));
        let copy_end = place.saturating_add(inserted).saturating_add(twin_len);
        let next_place = copy_end.saturating_add(if escape { u64::from(unit.lead) + 5 } else { 0 });
        if len == 0 || twin_len == 0 || twin_len > 64 || next > size || next_place > twin_size {
            return Err((at as u32, "an item of the instruction stream reaches beyond its unit or twin"));
        }
        items.push(Item {
            at: first as u32,
            place: place as u32,
            inserted: inserted as u32,
            len,
            twin_len: twin_len as u8,
            escape,
            cold: (0, 0),
        });
        (at, place) = (next, next_place);
    }
    let malformed = "the list of cold parts is malformed";
    let count = reader.cold_count().ok_or((at as u32, malformed))?;
    let mut index = 0u64;
    for nth in 0..count {
        let Some((delta, cold)) = reader.cold_part() else {
            return Err((at as u32, malformed));
        };
        index = index.saturating_add(delta);
        let item = items.get_mut(index as usize).filter(|item| item.inserted > 0 && (delta > 0 || nth == 0));
        let Some(item) = item else {
            return Err((at as u32, "a cold part of code that is not inserted, or a second cold part"));
        };
        let next_place = place.saturating_add(cold);
        if cold == 0 || next_place > twin_size {
            return Err((item.at, "a cold part is empty, or reaches beyond its twin"));
        }
        item.cold = (place as u32, cold as u32);
        place = next_place;
    }
    if place != twin_size {
        return Err((at as u32, "the instruction stream does not fill its twin"));
    }
    Ok(())
}

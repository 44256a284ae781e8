//! The entry of an address in a file's `.eh_frame`: what it says of all functions, and of this one.
//!
//! Nothing is read beyond the file's memory; what is unusual is not understood, and the path of
//! calls ends there.

use super::objects::Object;

/// Bytes of a loaded file, from `at` to `end`.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) at: u64,
    end: u64,
}

impl Bytes {
    fn of(object: &Object, at: u64, length: u64) -> Option<Self> {
        let end = at.checked_add(length)?;
        (at >= object.start && end <= object.end).then_some(Self { at, end })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    fn take<T: Copy>(&mut self) -> Option<T> {
        let next = self.at.checked_add(size_of::<T>() as u64).filter(|next| *next <= self.end)?;
        // SAFETY: memory of a loaded file that holds its tables; any bits are a number.
        let value = unsafe { (self.at as *const T).read_unaligned() };
        self.at = next;
        Some(value)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take()
    }

    pub(super) fn half(&mut self) -> Option<u16> {
        self.take()
    }

    pub(super) fn word(&mut self) -> Option<u32> {
        self.take()
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(bytes).filter(|next| *next <= self.end)?;
        Some(())
    }

    /// Seven bits a byte, the lowest first.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(value, _)| value)
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let (value, bits) = self.leb()?;
        let unused = 64_u32.saturating_sub(bits);
        Some((value << unused) as i64 >> unused)
    }

    fn leb(&mut self) -> Option<(u64, u32)> {
        let (mut value, mut bits) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(bits).unwrap_or(0);
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((value, bits));
            }
        }
    }

    /// An address as `encoding` says; none for encodings that compilers do not use for code.
    pub(super) fn address(&mut self, encoding: u8) -> Option<u64> {
        let at = self.at;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.take::<u64>()?,
            0x02 => u64::from(self.half()?),
            0x03 => u64::from(self.word()?),
            0x0a => i64::from(self.take::<i16>()?).cast_unsigned(),
            0x0b => i64::from(self.take::<i32>()?).cast_unsigned(),
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(at.wrapping_add(value)),
            _ => None,
        }
    }
}

/// What is said of a function.
pub(super) struct Entry {
    /// Where it begins.
    pub(super) begin: u64,
    /// What holds for all of its kind, and what for it.
    pub(super) common: Bytes,
    pub(super) own: Bytes,
    pub(super) code_unit: u64,
    pub(super) data_unit: i64,
    pub(super) encoding: u8,
}

/// What all entries of a kind share.
struct Common {
    instructions: Bytes,
    code_unit: u64,
    data_unit: i64,
    encoding: u8,
    has_data: bool,
}

/// One entry of the table that the header has, sorted by address. Both are relative to the header.
#[derive(Clone, Copy)]
#[repr(C)]
struct Row {
    function: i32,
    entry: i32,
}

/// The entry of an address.
pub(super) fn entry(object: &Object, address: u64) -> Option<Entry> {
    /// What all linkers write: signed words relative to the header, and to their own place.
    const ENCODINGS: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let mut header = Bytes::of(object, object.header, 12)?;
    if ENCODINGS.iter().any(|encoding| header.byte() != Some(*encoding)) {
        return None;
    }
    header.skip(4)?;
    let count = u64::from(header.word()?);
    let rows = Bytes::of(object, object.header + 12, count.checked_mul(size_of::<Row>() as u64)?)?;
    let function = |index: u64| -> Option<Row> {
        Bytes { at: rows.at + index * size_of::<Row>() as u64, end: rows.end }.take()
    };
    // The last one that does not begin behind the address.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = u64::midpoint(low, high);
        let row = function(middle)?;
        if object.header.wrapping_add_signed(i64::from(row.function)) <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let row = function(low.checked_sub(1)?)?;
    let at = object.header.wrapping_add_signed(i64::from(row.entry));
    let mut own = record(object, at)?;
    let back = u64::from(own.word()?);
    let common = common(object, (own.at - 4).checked_sub(back)?)?;
    let begin = own.address(common.encoding)?;
    // A length is relative to nothing.
    let length = own.address(common.encoding & 0x0f)?;
    if address < begin || address - begin >= length {
        return None;
    }
    if common.has_data {
        let bytes = own.unsigned()?;
        own.skip(bytes)?;
    }
    let Common { instructions, code_unit, data_unit, encoding, .. } = common;
    Some(Entry { begin, common: instructions, own, code_unit, data_unit, encoding })
}

/// What follows a record's length.
fn record(object: &Object, at: u64) -> Option<Bytes> {
    /// A longer length follows.
    const LONG: u32 = u32::MAX;
    let length = Bytes::of(object, at, 4)?.word().filter(|length| *length != LONG)?;
    Bytes::of(object, at.checked_add(4)?, u64::from(length))
}

fn common(object: &Object, at: u64) -> Option<Common> {
    const RETURN_ADDRESS: u64 = 16;
    let mut bytes = record(object, at)?;
    let (id, version) = (bytes.word()?, bytes.byte()?);
    if id != 0 || !matches!(version, 1 | 3) {
        return None;
    }
    let mut letters = bytes;
    while bytes.byte()? != 0 {}
    let code_unit = bytes.unsigned()?;
    let data_unit = bytes.signed()?;
    let register = if version == 1 { u64::from(bytes.byte()?) } else { bytes.unsigned()? };
    if register != RETURN_ADDRESS {
        return None;
    }
    let mut common = Common { instructions: bytes, code_unit, data_unit, encoding: 0, has_data: false };
    loop {
        match letters.byte()? {
            0 => break,
            b'z' => {
                let length = bytes.unsigned()?;
                common.has_data = true;
                common.instructions = bytes;
                common.instructions.skip(length)?;
            }
            b'R' => common.encoding = bytes.byte()?,
            b'L' => bytes.skip(1)?,
            b'P' => {
                let encoding = bytes.byte()?;
                // Of what it points to nothing is read.
                bytes.address(encoding & 0x0f)?;
            }
            b'B' => {}
            // The frame of a signal handler, or unknown.
            _ => return None,
        }
    }
    Some(common)
}

//! Reading little-endian numbers, LEB128 and the encoded pointers of unwind tables; never beyond
//! the end.

/// A place in a byte slice. Every read moves it; a read beyond the end gives `None`.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'d> {
    bytes: &'d [u8],
    at: usize,
}

/// The low half of a pointer encoding: how the number is stored.
pub const ENCODED_OMIT: u8 = 0xff;

impl<'d> Cursor<'d> {
    pub fn new(bytes: &'d [u8], at: usize) -> Self {
        Self { bytes, at }
    }
    pub fn position(&self) -> usize {
        self.at
    }
    pub fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }
    pub fn take(&mut self, size: usize) -> Option<&'d [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(taken)
    }
    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.take(2)?.first_chunk()?))
    }
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }
    pub fn uleb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            if shift > 140 {
                return None;
            }
        }
    }
    pub fn sleb(&mut self) -> Option<i64> {
        let mut value = 0i64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1i64 << shift;
                }
                return Some(value);
            }
            if shift > 140 {
                return None;
            }
        }
    }
    /// A pointer in the encoding of unwind tables; `here` is the address of this cursor's byte 0. A
    /// null stays null, as unwinders have it. `None` for encodings that cannot be read without the
    /// process (text-, data- and function- relative ones, aligned ones).
    pub fn encoded(&mut self, encoding: u8, here: u64) -> Option<u64> {
        let place = here.wrapping_add(self.at as u64);
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.uleb()?,
            0x02 => u64::from(self.u16()?),
            0x03 => u64::from(self.u32()?),
            0x09 => self.sleb()? as u64,
            0x0a => self.u16()? as i16 as u64,
            0x0b => self.u32()? as i32 as u64,
            _ => return None,
        };
        match encoding & 0x70 {
            _ if value == 0 => Some(0),
            0x00 => Some(value),
            0x10 => Some(value.wrapping_add(place)),
            _ => None,
        }
    }
}

/// How many bytes a pointer of this encoding takes, if that is fixed.
pub fn encoded_size(encoding: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x02 | 0x0a => Some(2),
        0x03 | 0x0b => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb_numbers() {
        let mut cursor = Cursor::new(&[0xe5, 0x8e, 0x26, 0x7f, 0x80, 0x7f, 0x02], 0);
        assert_eq!(cursor.uleb(), Some(624485));
        assert_eq!(cursor.sleb(), Some(-1));
        assert_eq!(cursor.sleb(), Some(-128));
        assert_eq!(cursor.uleb(), Some(2));
        assert_eq!(cursor.uleb(), None);
    }

    #[test]
    fn pointers_are_relative_to_their_own_place() {
        let bytes = [0, 0, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let mut cursor = Cursor::new(&bytes, 2);
        assert_eq!(cursor.encoded(0x1b, 0x1000), Some(0x1000));
        assert_eq!(cursor.encoded(0x1b, 0x1000), Some(0), "null stays null");
        assert_eq!(Cursor::new(&bytes, 2).encoded(0x3b, 0), None, "data-relative needs the process");
    }
}

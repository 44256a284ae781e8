//! Reading numbers out of bytes; never beyond the end, never a panic.

#[derive(Clone, Copy)]
pub(crate) struct Reader<'d> {
    bytes: &'d [u8],
    pub(crate) at: usize,
}

impl<'d> Reader<'d> {
    pub(crate) fn new(bytes: &'d [u8], at: usize) -> Self {
        Self { bytes, at }
    }
    pub(crate) fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }
    pub(crate) fn bytes(&mut self, size: usize) -> Option<&'d [u8]> {
        let end = self.at.checked_add(size)?;
        let found = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(found)
    }
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
    pub(crate) fn fixed(&mut self, size: usize) -> Option<u64> {
        let mut value = [0; 8];
        value.get_mut(..size)?.copy_from_slice(self.bytes(size)?);
        Some(u64::from_le_bytes(value))
    }
    pub(crate) fn signed(&mut self, size: usize) -> Option<i64> {
        let shift = 64 - 8 * u32::try_from(size).ok().filter(|size| (1..=8).contains(size))?;
        Some(((self.fixed(size)? << shift) as i64) >> shift)
    }
    /// A LEB128 number with its sign bit's place; what does not fit 64 bits is no number.
    fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let mut value = 0u64;
        for position in 0..10u32 {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            value |= part << (7 * position);
            if byte & 0x80 == 0 {
                return Some((value, 7 * (position + 1), byte & 0x40 != 0));
            }
        }
        None
    }
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _, _)| value)
    }
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let (value, bits, negative) = self.leb()?;
        Some(if negative && bits < 64 { (value | (u64::MAX << bits)) as i64 } else { value as i64 })
    }
    /// A pointer as unwind tables encode it; `base` is the address of byte 0. The indirect bit is
    /// the caller's affair.
    pub(crate) fn pointer(&mut self, encoding: u8, base: u64) -> Option<u64> {
        // This is not an indirect pointer's value; a caller who wants its place takes the bit off.
        if encoding & 0x80 != 0 {
            return None;
        }
        let place = base.wrapping_add(self.at as u64);
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.fixed(8)?,
            0x01 => self.uleb()?,
            0x02 => self.fixed(2)?,
            0x03 => self.fixed(4)?,
            0x09 => self.sleb()? as u64,
            0x0a => self.signed(2)? as u64,
            0x0b => self.signed(4)? as u64,
            _ => return None,
        };
        match encoding & 0x70 {
            0x00 => Some(value),
            0x10 if value == 0 => Some(0),
            0x10 => Some(place.wrapping_add(value)),
            _ => None,
        }
    }
    /// How many bytes are left; `None` beyond the end.
    pub(crate) fn left(&self) -> Option<usize> {
        self.bytes.len().checked_sub(self.at)
    }
    pub(crate) fn text(&mut self) -> Option<&'d [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let size = rest.iter().position(|&byte| byte == 0)?;
        self.at += size + 1;
        Some(&rest[..size])
    }
}

/// The number of `size` bytes at an offset.
pub(crate) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    Reader::new(bytes, at).fixed(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let mut reader = Reader::new(&[0x80, 0x7f, 0xe5, 0x8e, 0x26, 0xfe, 0xff], 0);
        assert_eq!(reader.sleb(), Some(-128));
        assert_eq!(reader.uleb(), Some(624_485));
        assert_eq!(reader.signed(2), Some(-2));
        assert_eq!(reader.byte(), None);
        assert_eq!(Reader::new(&[0xff; 12], 0).uleb(), None);
        assert_eq!(Reader::new(&[0; 4], 0).fixed(9), None);
    }

    #[test]
    fn pointers() {
        let bytes = [0, 0, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let mut reader = Reader::new(&bytes, 2);
        assert_eq!(reader.pointer(0x1b, 0x1000), Some(0x1000));
        assert_eq!(Reader::new(&bytes, 6).pointer(0x1b, 0x1000), Some(0));
        assert_eq!(Reader::new(&bytes, 6).pointer(0x9b, 0x1000), None);
        assert_eq!(Reader::new(&bytes, 2).pointer(0x3b, 0), None);
    }
}

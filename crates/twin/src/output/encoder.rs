//! Writing numbers and the encoded pointers of unwind tables.

use crate::error::TwinError;

/// Appends to a buffer whose bytes will lie at known addresses.
pub(crate) struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    /// The address of the buffer's byte 0.
    origin: u64,
}

impl<'o> Encoder<'o> {
    /// `place` is the address of the first byte that will be appended.
    pub(crate) fn new(out: &'o mut Vec<u8>, place: u64) -> Self {
        let origin = place.wrapping_sub(out.len() as u64);
        Self { out, origin }
    }
    pub(crate) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }
    pub(crate) fn uleb(&mut self, value: u64) {
        put_uleb(self.out, value);
    }
    /// A number in exactly `size` bytes.
    pub(crate) fn wide_uleb(&mut self, mut value: u64, size: usize) {
        for index in 0..size {
            let more = if index + 1 < size { 0x80 } else { 0 };
            self.out.push((value & 0x7f) as u8 | more);
            value >>= 7;
        }
    }
    /// A pointer; null stays null, as unwinders have it.
    pub(crate) fn pointer(&mut self, encoding: u8, value: u64) -> Result<(), TwinError> {
        let place = self.origin.wrapping_add(self.out.len() as u64);
        let mut bytes = [0; 8];
        let size = encode_pointer(encoding, value, place, &mut bytes)?;
        self.bytes(&bytes[..size]);
        Ok(())
    }
}

/// Encodes a pointer for a place; how many bytes it took.
pub(crate) fn encode_pointer(
    encoding: u8,
    value: u64,
    place: u64,
    out: &mut [u8; 8],
) -> Result<usize, TwinError> {
    const FAR: TwinError = TwinError::OutOfReach("a pointer of the unwind table");
    let relative = encoding & 0x70 == 0x10;
    let number = if relative && value != 0 { value.wrapping_sub(place) } else { value };
    let size = match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => 8,
        0x03 if u32::try_from(number).is_ok() => 4,
        0x0b if i32::try_from(number as i64).is_ok() => 4,
        _ => return Err(FAR),
    };
    out[..size].copy_from_slice(&number.to_le_bytes()[..size]);
    Ok(size)
}

pub(crate) fn put_uleb(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

pub(crate) fn uleb_size(value: u64) -> usize {
    (64 - value.leading_zeros() as usize).div_ceil(7).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::elf::cursor::Cursor;

    #[test]
    fn what_is_put_can_be_read() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::MAX] {
            let mut out = Vec::new();
            put_uleb(&mut out, value);
            assert_eq!(out.len(), uleb_size(value));
            assert_eq!(Cursor::new(&out, 0).uleb(), Some(value));
        }
        let mut out = vec![9; 3];
        let mut encoder = Encoder::new(&mut out, 0x1003);
        encoder.wide_uleb(300, 5);
        encoder.pointer(0x1b, 0x900).unwrap();
        encoder.pointer(0x1b, 0).unwrap();
        encoder.pointer(0x03, 0x8000_0000).unwrap();
        assert!(encoder.pointer(0x0b, 0x8000_0000).is_err());
        let mut cursor = Cursor::new(&out, 3);
        assert_eq!(cursor.uleb(), Some(300));
        assert_eq!(cursor.position(), 8);
        assert_eq!(cursor.encoded(0x1b, 0x1000), Some(0x900));
        assert_eq!(cursor.encoded(0x1b, 0x1000), Some(0));
        assert_eq!(cursor.encoded(0x03, 0x1000), Some(0x8000_0000));
    }
}

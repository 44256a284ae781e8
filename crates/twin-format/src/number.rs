//! Little-endian numbers and ULEB128, read without ever going beyond the end.

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A ULEB128 number that begins at `at`, which then is where it ends; `None` for one that does not
/// fit 64 bits.
pub(crate) fn uleb(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for position in 0..10 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        let shifted = part << (7 * position);
        if shifted >> (7 * position) != part {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

pub(crate) fn put_uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

//! Little-endian numbers at an offset, `None` beyond the end; bytes as digits.

pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}
pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}
pub fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Bytes in hexadecimal, as build ids are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

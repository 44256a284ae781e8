//! Debug information that is compressed within its file, as Go's linker leaves it: the same file
//! with those sections behind it, decompressed. Readers of debug information read plain sections
//! alone.
//!
//! ```text
//! section header   flags: SHF_COMPRESSED, offset and size of
//!   kind (1 zlib, 2 zstd), 0, size when decompressed, alignment, compressed bytes …
//! ```

use flate2::read::ZlibDecoder;
use image::elf::bytes::{u16_at, u32_at, u64_at};
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

const SHF_COMPRESSED: u64 = 1 << 11;
const ZLIB: u32 = 1;
const ZSTD: u32 = 2;
/// Of the header in front of compressed bytes, and of a section's header.
const HEAD_BYTES: usize = 24;
const SECTION_BYTES: usize = 64;
/// All sections together, decompressed.
const MOST_BYTES: u64 = 2 << 30;

/// The file with its sections decompressed; none if no section of it is compressed, or one of them
/// is damaged.
pub(super) fn unpacked(file: &[u8]) -> Option<Vec<u8>> {
    let table = usize::try_from(u64_at(file, 0x28)?).ok()?;
    let (each, count) = (usize::from(u16_at(file, 0x3a)?), usize::from(u16_at(file, 0x3c)?));
    if each != SECTION_BYTES {
        return None;
    }
    let mut made: Option<Vec<u8>> = None;
    let mut left = MOST_BYTES;
    for number in 0..count {
        let at = table.checked_add(number * SECTION_BYTES)?;
        let flags = u64_at(file, at + 8)?;
        if flags & SHF_COMPRESSED == 0 {
            continue;
        }
        let offset = usize::try_from(u64_at(file, at + 24)?).ok()?;
        let size = usize::try_from(u64_at(file, at + 32)?).ok()?;
        let bytes = file.get(offset..offset.checked_add(size)?)?;
        let plain = decompressed(bytes, left)?;
        left -= plain.len() as u64;
        let made = made.get_or_insert_with(|| file.to_vec());
        let put = |made: &mut Vec<u8>, at: usize, word: u64| {
            made.get_mut(at..at + 8).map(|field| field.copy_from_slice(&word.to_le_bytes()))
        };
        let behind = made.len() as u64;
        put(made, at + 8, flags & !SHF_COMPRESSED)?;
        put(made, at + 24, behind)?;
        put(made, at + 32, plain.len() as u64)?;
        made.extend_from_slice(&plain);
    }
    made
}

fn decompressed(section: &[u8], most: u64) -> Option<Vec<u8>> {
    let (kind, size) = (u32_at(section, 0)?, u64_at(section, 8)?);
    let bytes = section.get(HEAD_BYTES..)?;
    let mut plain = Vec::new();
    // One byte more than it says would be another section.
    let most = size.min(most).saturating_add(1);
    match kind {
        ZLIB => ZlibDecoder::new(bytes).take(most).read_to_end(&mut plain).ok()?,
        ZSTD => StreamingDecoder::new(bytes).ok()?.take(most).read_to_end(&mut plain).ok()?,
        _ => return None,
    };
    (plain.len() as u64 == size).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    /// A header, one section, compressed, and its bytes.
    fn file() -> Vec<u8> {
        let mut file = vec![0; 64];
        file[0x28..0x30].copy_from_slice(&64_u64.to_le_bytes());
        file[0x3a..0x3c].copy_from_slice(&(SECTION_BYTES as u16).to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&1_u16.to_le_bytes());
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&[7; 1000]).unwrap();
        let compressed = encoder.finish().unwrap();
        let mut section = vec![0; SECTION_BYTES];
        section[8..16].copy_from_slice(&SHF_COMPRESSED.to_le_bytes());
        section[24..32].copy_from_slice(&128_u64.to_le_bytes());
        section[32..40].copy_from_slice(&((HEAD_BYTES + compressed.len()) as u64).to_le_bytes());
        file.extend(section);
        let mut head = vec![0; HEAD_BYTES];
        head[0] = 1;
        head[8..16].copy_from_slice(&1000_u64.to_le_bytes());
        file.extend(head);
        file.extend(compressed);
        file
    }

    #[test]
    fn sections_are_decompressed_behind_the_file() {
        let file = file();
        let made = unpacked(&file).unwrap();
        let (offset, size) = (u64_at(&made, 64 + 24).unwrap() as usize, u64_at(&made, 64 + 32).unwrap());
        assert_eq!((offset, size, u64_at(&made, 64 + 8)), (file.len(), 1000, Some(0)));
        assert_eq!(made[offset..], [7; 1000]);
        assert_eq!(unpacked(&made), None, "nothing is left to do");
    }

    #[test]
    fn what_is_damaged_is_left_alone() {
        let file = file();
        for length in 0..file.len() {
            assert_eq!(unpacked(&file[..length]), None, "{length}");
        }
        let mut other = file.clone();
        other[128 + 8] = 99; // another size than it has
        assert_eq!(unpacked(&other), None);
    }
}

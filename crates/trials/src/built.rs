//! Which build a file is: by its build id, or by a checksum of all of it where it has none. Of a
//! large file only the headers and the note are read, so that a program starts at once.

use records::recipe::BuiltFile;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

const ELF_64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const NOTES: u32 = 4;
/// Notes of linkers are some hundred bytes.
const MOST_NOTES: u64 = 1 << 16;
const BUILD_ID: u32 = 3;

/// The file as it is now.
pub fn built(path: &Path) -> io::Result<BuiltFile> {
    Ok(BuiltFile { path: records::text_of(path), build: build(path)? })
}

/// Whether the file is still of that build.
pub fn is_as_built(file: &BuiltFile) -> bool {
    build(&records::path_of(&file.path)).is_ok_and(|build| build == file.build)
}

fn build(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    if let Some(id) = build_id(&file)? {
        return Ok(id);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(format!("{:016x}-{}", hash(&bytes), bytes.len()))
}

fn build_id(file: &File) -> io::Result<Option<String>> {
    let size = file.metadata()?.len();
    let mut header = [0; HEADER];
    if size < HEADER as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut header, 0)?;
    if header[..6] != ELF_64_LITTLE || usize::from(half(&header, 54)) != SEGMENT {
        return Ok(None);
    }
    let (table, count) = (long(&header, 32), usize::from(half(&header, 56)));
    let mut segments = vec![0; count * SEGMENT];
    if table.checked_add(segments.len() as u64).is_none_or(|end| end > size) {
        return Ok(None);
    }
    file.read_exact_at(&mut segments, table)?;
    for segment in segments.chunks_exact(SEGMENT).filter(|segment| word(segment, 0) == NOTES) {
        let (at, bytes) = (long(segment, 8), long(segment, 32));
        if bytes > MOST_NOTES || at.checked_add(bytes).is_none_or(|end| end > size) {
            continue;
        }
        let mut notes = vec![0; bytes as usize];
        file.read_exact_at(&mut notes, at)?;
        if let Some(id) = among(&notes) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The build id among these notes.
fn among(mut notes: &[u8]) -> Option<String> {
    while notes.len() >= 12 {
        let [name, text] = [0, 4].map(|at| word(notes, at) as usize);
        let kind = word(notes, 8);
        let begin = 12 + name.next_multiple_of(4);
        let what = notes.get(begin..begin.checked_add(text)?)?;
        if kind == BUILD_ID && notes[12..].starts_with(b"GNU\0") && !what.is_empty() {
            return Some(what.iter().fold(String::new(), |mut all, byte| {
                let _ = write!(all, "{byte:02x}");
                all
            }));
        }
        notes = notes.get(begin + text.next_multiple_of(4)..)?;
    }
    None
}

/// FNV-1a by words of eight bytes.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    with(0xcbf2_9ce4_8422_2325, bytes)
}

/// A hash that goes on; pieces but the last one are multiples of eight bytes.
pub(crate) fn with(hash: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(hash, |hash, chunk| {
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        let next = (hash ^ u64::from_le_bytes(whole)).wrapping_mul(0x0000_0100_0000_01b3);
        next ^ next >> 29
    })
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_known_by_its_note_or_by_its_bytes() {
        let own = std::env::current_exe().unwrap();
        let expected = image::Image::parse(&std::fs::read(&own).unwrap())
            .ok()
            .and_then(|image| image.build_id().map(image::elf::bytes::hex));
        let found = built(&own).unwrap();
        if let Some(expected) = expected {
            assert_eq!(found.build, expected);
        }
        assert!(is_as_built(&found));
        let files = tempfile::tempdir().unwrap();
        let script = files.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let before = built(&script).unwrap();
        assert!(is_as_built(&before));
        std::fs::write(&script, "#!/bin/sh\necho\n").unwrap();
        assert!(!is_as_built(&before) && built(&script).unwrap().build != before.build);
        std::fs::write(&script, [&ELF_64_LITTLE[..], &[0xff; 90]].concat()).unwrap();
        assert!(built(&script).is_ok(), "damaged headers are only bytes");
    }
}

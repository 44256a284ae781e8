//! The records of a file, one behind the other, and what is compressed among them.

use image::elf::cursor::Cursor;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// Kinds of records: those of the kernel, then those that `perf` adds.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    /// From here on, those of `perf`.
    pub(crate) const OF_PERF: u32 = 64;
    pub(crate) const ATTRIBUTES: u32 = 64;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const TRACE_INFO: u32 = 70;
    pub(crate) const TRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const TIME_CONVERSION: u32 = 79;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    /// The same, padded: its body begins with the size of what is compressed.
    pub(crate) const COMPRESSED_PADDED: u32 = 83;
}

pub(crate) const HEADER_BYTES: usize = 8;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRecord<'b> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'b [u8],
    /// What stands behind the record and belongs to it: the trace of an AUX area.
    pub trace: &'b [u8],
}

/// Records, and how many bytes at the end are no whole record.
pub(crate) struct Records<'b> {
    pub all: Vec<RawRecord<'b>>,
    pub left_over: usize,
}

/// All records of these bytes, which begin with one.
pub(crate) fn records(bytes: &[u8]) -> Records<'_> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while let Some((record, behind)) = first(rest) {
        all.push(record);
        rest = behind;
    }
    Records { all, left_over: rest.len() }
}

/// The same, one after the other; what is cut off at the end is left out.
pub(crate) fn in_order(bytes: &[u8]) -> impl Iterator<Item = RawRecord<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (record, behind) = first(rest)?;
        rest = behind;
        Some(record)
    })
}

fn first(bytes: &[u8]) -> Option<(RawRecord<'_>, &[u8])> {
    let mut at = Cursor::new(bytes, 0);
    let (kind, misc, size) = (at.u32()?, at.u16()?, at.u16()?);
    let body = at.take(usize::from(size).checked_sub(HEADER_BYTES)?)?;
    let trace =
        if kind == kind::TRACE { at.take(usize::try_from(Cursor::new(body, 0).u64()?).ok()?)? } else { &[] };
    Some((RawRecord { kind, misc, body, trace }, bytes.get(at.position()..)?))
}

/// Why compressed records cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDecompressed {
    Damaged,
    TooLarge,
}

/// More is no recording, but a bomb.
const MOST_DECOMPRESSED: u64 = 4 << 30;

/// A last block that is empty, and space for a checksum: `perf` flushes its stream but never ends
/// it, and what a decoder has in its window it gives only at the end.
const END_OF_STREAM: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// What is compressed among these records: one stream through all of them, which need not end.
pub(crate) fn decompressed(records: &[RawRecord<'_>]) -> Result<Vec<u8>, NotDecompressed> {
    let mut stream = Vec::new();
    for record in records {
        match record.kind {
            kind::COMPRESSED => stream.extend(record.body),
            kind::COMPRESSED_PADDED => {
                let mut at = Cursor::new(record.body, 0);
                let size = at.u64().and_then(|size| usize::try_from(size).ok());
                stream.extend(size.and_then(|size| at.take(size)).ok_or(NotDecompressed::Damaged)?);
            }
            _ => {}
        }
    }
    if stream.is_empty() {
        return Ok(stream);
    }
    stream.extend(END_OF_STREAM);
    let mut bytes = Vec::new();
    let mut rest = &stream[..];
    while rest.len() > END_OF_STREAM.len() {
        let decoder = StreamingDecoder::new(&mut rest).map_err(|_| NotDecompressed::Damaged)?;
        let most = MOST_DECOMPRESSED - bytes.len() as u64;
        decoder.take(most).read_to_end(&mut bytes).map_err(|_| NotDecompressed::Damaged)?;
        if bytes.len() as u64 == MOST_DECOMPRESSED {
            return Err(NotDecompressed::TooLarge);
        }
    }
    Ok(bytes)
}

/// A record's bytes, for tests.
#[cfg(test)]
pub(crate) fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend(((HEADER_BYTES + body.len()) as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_follow_one_another_and_traces_their_record() {
        let mut bytes = record(kind::FORK, 0, &[1; 24]);
        bytes.extend(record(kind::TRACE, 0, &[5, 0, 0, 0, 0, 0, 0, 0, 9]));
        bytes.extend(*b"trace");
        bytes.extend(record(kind::EXIT, 7, &[2; 8]));
        let found = records(&bytes);
        assert_eq!((found.all.len(), found.left_over), (3, 0));
        assert_eq!((found.all[1].trace, found.all[2].misc), (&b"trace"[..], 7));
        for length in 0..bytes.len() {
            let cut = records(&bytes[..length]);
            assert!(cut.all.len() < 3);
            let whole: usize = cut.all.iter().map(|r| HEADER_BYTES + r.body.len() + r.trace.len()).sum();
            assert_eq!(whole + cut.left_over, length);
        }
        assert_eq!(records(&[0; 64]).left_over, 64, "a size of zero ends it");
    }

    #[test]
    fn garbage_is_not_decompressed() {
        let garbage = record(kind::COMPRESSED, 0, &[0x55; 100]);
        assert_eq!(decompressed(&records(&garbage).all), Err(NotDecompressed::Damaged));
        let too_long = record(kind::COMPRESSED_PADDED, 0, &[0xff; 16]);
        assert_eq!(decompressed(&records(&too_long).all), Err(NotDecompressed::Damaged));
        assert_eq!(decompressed(&[]), Ok(Vec::new()));
    }
}

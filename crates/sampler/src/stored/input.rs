//! A file of samples, opened: plain or compressed by gzip, from a path or from standard input.

use super::StoredError;
use super::legacy;
use super::tree::Budget;
use super::wire::{Stream, damaged, unreadable};
use super::{collapsed, decoded::Decoded, otlp, pprof};
use flate2::read::MultiGzDecoder;
use records::profile::FileFormat;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

/// What is read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Enough to know what a file is.
const BEGIN_BYTES: u64 = 24;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What zstd begins with.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Larger files are not read to their end: a few compressed megabytes may hold any number of zeros.
const LARGEST_BYTES: u64 = 64 << 30;
/// Names and places of a file that are kept.
const MOST_KEPT: u64 = 512 << 20;

/// Reads all of a file.
pub(super) fn decode(path: &Path, format: FileFormat) -> Result<Decoded, StoredError> {
    let not_read = |e: std::io::Error| StoredError::NotRead { why: records::plain(&e) };
    if path.as_os_str() == "-" {
        return decode_from(Box::new(std::io::stdin().lock()), format);
    }
    let file = std::fs::File::open(path).map_err(not_read)?;
    if file.metadata().map_err(not_read)?.is_dir() {
        return Err(StoredError::NotRead { why: "it is a directory".to_owned() });
    }
    decode_from(Box::new(file), format)
}

/// The same, of anything that can be read.
pub(super) fn decode_from(source: Box<dyn Read + '_>, format: FileFormat) -> Result<Decoded, StoredError> {
    let (begin, source) = peeked(source)?;
    if begin.starts_with(&GZIP) {
        let (begin, source) = peeked(Box::new(MultiGzDecoder::new(BufReader::new(source))))?;
        return decode_plain(&begin, source, format);
    }
    decode_plain(&begin, source, format)
}

fn decode_plain(
    begin: &[u8],
    source: Box<dyn Read + '_>,
    format: FileFormat,
) -> Result<Decoded, StoredError> {
    if begin.is_empty() {
        return Err(damaged("it is empty"));
    }
    for (magic, what) in [
        (&b"PERFILE2"[..], "it is a file of perf record: --perf-data reads it"),
        (&ZSTD, "it is compressed by zstd: decompress it first"),
        (b"heap profile:", "it is a heap profile: it has no CPU time"),
        (b"--- ", "it is a profile of waiting or of growth in gperftools's text form: it has no CPU time"),
        (b"FLR\0", "it is a recording of Java Flight Recorder: let its tool write folded stacks"),
    ] {
        if begin.starts_with(magic) {
            return Err(damaged(what));
        }
    }
    let mut buffered = BufReader::with_capacity(BUFFER_BYTES, source);
    let mut budget = Budget::of(MOST_KEPT);
    if format == FileFormat::Pprof && begin == legacy::BEGIN {
        return legacy::decode(&mut buffered, &mut budget);
    }
    let mut stream = Stream::of(buffered, LARGEST_BYTES);
    match format {
        FileFormat::Pprof => pprof::decode(&mut stream, &mut budget),
        FileFormat::Otlp => otlp::decode(&mut stream, &mut budget),
        FileFormat::Collapsed => collapsed::decode(&mut stream, &mut budget),
        FileFormat::PerfData => Err(damaged("files of perf record are read elsewhere")),
    }
}

/// What is read first, and all of it again.
fn peeked<'r>(mut source: Box<dyn Read + 'r>) -> Result<(Vec<u8>, Box<dyn Read + 'r>), StoredError> {
    let mut begin = Vec::new();
    source.by_ref().take(BEGIN_BYTES).read_to_end(&mut begin).map_err(|e| unreadable(&e))?;
    let whole = Cursor::new(begin.clone()).chain(source);
    Ok((begin, Box::new(whole)))
}

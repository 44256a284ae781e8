//! The file as a whole: which events it has samples of, what it says of its recording, and its
//! records. It is written in two ways:
//!
//! ```text
//! to a file   PERFILE2, size of the header (104), size of the attributes of an event,
//!             sections: attributes, data, event types; 256 bits: which features there are
//!             … the data: records …; then a section for each feature
//! to a pipe   PERFILE2, 16; then records, some of which stand for attributes and features
//! ```

use super::PerfDataError;
use super::attributes::{Attributes, DescribedEvent};
use super::features::{self, Facts};
use super::records::{NotDecompressed, RawRecord, decompressed, kind, records};
use image::elf::cursor::Cursor;

const MAGIC: &[u8; 8] = b"PERFILE2";
const HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;
const FEATURES: u32 = 256;

/// A file, read.
#[derive(Debug, Default)]
pub(super) struct Recording<'b> {
    pub events: Vec<DescribedEvent>,
    pub facts: Facts,
    pub records: Vec<RawRecord<'b>>,
    /// Bytes at the end that are no whole record, where the end of the records is not told.
    pub left_over: usize,
}

/// What is compressed in a file: read first, since all else of the file is taken from both.
pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, PerfDataError> {
    let plain = records(data(bytes)?.0);
    decompressed(&plain.all).map_err(|e| match e {
        NotDecompressed::Damaged => damaged("what it has compressed cannot be decompressed"),
        NotDecompressed::TooLarge => damaged("what it has compressed is more than 4 GiB"),
    })
}

impl<'b> Recording<'b> {
    /// Reads a file with what was compressed in it.
    pub(super) fn parse(bytes: &'b [u8], decompressed: &'b [u8]) -> Result<Self, PerfDataError> {
        let (data, is_all_told) = data(bytes)?;
        let mut recording = Self::default();
        let plain = records(data);
        let unpacked = records(decompressed);
        if is_all_told && plain.left_over > 0 {
            return Err(damaged("a record does not end where the records do"));
        }
        recording.left_over = plain.left_over + unpacked.left_over;
        recording.records = plain.all;
        recording.records.extend(unpacked.all);
        if Cursor::new(bytes, 8).u64() == Some(HEADER_BYTES) {
            recording.take_header(bytes)?;
        }
        recording.take_records();
        recording.facts.name(&mut recording.events);
        if recording.events.is_empty() {
            return Err(damaged("it describes no event"));
        }
        Ok(recording)
    }

    /// Takes the sections that the header names.
    fn take_header(&mut self, bytes: &[u8]) -> Result<(), PerfDataError> {
        let mut at = Cursor::new(bytes, 16);
        let cut_off = || damaged("its header is cut off");
        let size = at.u64().ok_or_else(cut_off)?;
        let attributes = section(bytes, &mut at).ok_or_else(|| damaged("its events are cut off"))?;
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size >= 16)
            .ok_or_else(|| damaged("sizes in its header"))?;
        for entry in attributes.chunks_exact(size) {
            let (attributes, ids) = entry.split_at(size - 16);
            let attributes =
                Attributes::parse(attributes).ok_or_else(|| damaged("attributes of an event"))?;
            let ids = section(bytes, &mut Cursor::new(ids, 0)).ok_or_else(|| damaged("ids of an event"))?;
            self.events.push(DescribedEvent { attributes, ids: features::ids(ids), name: String::new() });
        }
        let (from, data_bytes) = at.u64().zip(at.u64()).ok_or_else(cut_off)?;
        at.take(16).ok_or_else(cut_off)?; // types of events: of old versions
        let flags = at.take(FEATURES as usize / 8).ok_or_else(cut_off)?;
        if data_bytes == 0 {
            return Ok(()); // the recording was not ended: what would be behind the data is not there
        }
        let behind = from.checked_add(data_bytes).and_then(|behind| usize::try_from(behind).ok());
        let mut sections = Cursor::new(bytes, behind.ok_or_else(cut_off)?);
        for feature in (0..FEATURES).filter(|feature| flags[*feature as usize / 8] >> (feature % 8) & 1 == 1)
        {
            let section = section(bytes, &mut sections)
                .ok_or_else(|| damaged("what follows its records is cut off"))?;
            self.facts.take(feature, section);
        }
        Ok(())
    }

    /// Takes what records tell that `perf` has added.
    fn take_records(&mut self) {
        for record in &self.records {
            match record.kind {
                kind::ATTRIBUTES => {
                    let event = features::event_of_record(record.body);
                    // A file that came through a pipe may have both.
                    let is_new = |event: &DescribedEvent| {
                        event
                            .ids
                            .first()
                            .is_none_or(|id| !self.events.iter().any(|known| known.ids.contains(id)))
                    };
                    let event = event.filter(is_new);
                    self.events.extend(event);
                }
                kind::BUILD_ID => self.facts.take_build_id(record.misc, record.body),
                kind::FEATURE => {
                    if let Some((feature, section)) = features::feature_of_record(record.body) {
                        self.facts.take(feature, section);
                    }
                }
                kind::EVENT_UPDATE => {
                    let Some((id, name)) = features::new_name(record.body) else { continue };
                    for event in self.events.iter_mut().filter(|event| event.ids.contains(&id)) {
                        event.name.clone_from(&name);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Enough of a file for [`check_begin`].
pub(super) const BEGIN_BYTES: u64 = PIPE_HEADER_BYTES;

/// What a file has to begin with. Returns the size of its header.
pub(super) fn check_begin(bytes: &[u8]) -> Result<u64, PerfDataError> {
    if bytes.is_empty() {
        return Err(damaged("it is empty"));
    }
    match bytes.get(..8) {
        Some(magic) if magic == MAGIC => {}
        Some(magic) if magic.iter().rev().eq(MAGIC) => {
            return Err(damaged("it is from a big-endian machine, whose programs are not understood"));
        }
        Some(magic) if magic == b"PERFFILE" => {
            return Err(damaged("it is of perf's first format, before Linux 2.6.32"));
        }
        _ => return Err(damaged("it is no file of perf record")),
    }
    match Cursor::new(bytes, 8).u64() {
        None => Err(damaged("its header is cut off")),
        Some(size @ (PIPE_HEADER_BYTES | HEADER_BYTES)) => Ok(size),
        Some(_) => Err(damaged("its header has a size that is not known")),
    }
}

/// Where the records are, and whether their end is told: a recording that was not ended says that
/// it has none, and a pipe says nothing.
fn data(bytes: &[u8]) -> Result<(&[u8], bool), PerfDataError> {
    if check_begin(bytes)? == PIPE_HEADER_BYTES {
        return Ok((&bytes[PIPE_HEADER_BYTES as usize..], false));
    }
    let mut at = Cursor::new(bytes, 40);
    let (from, size) = at.u64().zip(at.u64()).ok_or_else(|| damaged("its header is cut off"))?;
    let promised = || damaged("it is cut off: it has fewer bytes than its header says");
    let from = usize::try_from(from).ok().filter(|from| *from <= bytes.len()).ok_or_else(promised)?;
    if size == 0 {
        return Ok((&bytes[from..], false));
    }
    let to = usize::try_from(size).ok().and_then(|size| from.checked_add(size)).ok_or_else(promised)?;
    Ok((bytes.get(from..to).ok_or_else(promised)?, true))
}

/// The section that is named here.
fn section<'b>(bytes: &'b [u8], at: &mut Cursor<'_>) -> Option<&'b [u8]> {
    let (from, size) = (usize::try_from(at.u64()?).ok()?, usize::try_from(at.u64()?).ok()?);
    bytes.get(from..from.checked_add(size)?)
}

fn damaged(why: &str) -> PerfDataError {
    PerfDataError::Damaged { why: why.to_owned() }
}

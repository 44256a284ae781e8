//! Records of what processes did: mapped files, were named, forked, ended. And which event a record
//! is of, and when it was written.

use super::attributes::{DescribedEvent, field};
use super::records::{RawRecord, kind};
use crate::perf::event::{Event, MAP_SHARED, NewMapping};
use image::elf::cursor::Cursor;
use std::collections::HashMap;

/// The events of a file, and how their records are told apart.
pub(super) struct Events<'e> {
    all: &'e [DescribedEvent],
    by_id: HashMap<u64, usize>,
}

impl<'e> Events<'e> {
    pub(super) fn of(all: &'e [DescribedEvent]) -> Self {
        let ids =
            all.iter().enumerate().flat_map(|(index, event)| event.ids.iter().map(move |id| (*id, index)));
        Self { all, by_id: ids.collect() }
    }

    /// Which event a sample is of. Where there are several, all samples tell an id at one place.
    pub(super) fn of_sample(&self, body: &[u8]) -> Option<usize> {
        if self.all.len() == 1 {
            return Some(0);
        }
        let sample_type = self.all.first()?.attributes.sample_type;
        let before = field::IP | field::TID | field::TIME | field::ADDR;
        let at = if sample_type & field::IDENTIFIER != 0 {
            0
        } else if sample_type & field::ID != 0 {
            8 * (sample_type & before).count_ones() as usize
        } else {
            return Some(0);
        };
        self.by_id.get(&Cursor::new(body, at).u64()?).copied()
    }

    /// When a record was written; zero if it does not tell.
    pub(super) fn time_ns(&self, record: &RawRecord<'_>) -> u64 {
        let body = record.body;
        if record.kind == kind::SAMPLE {
            let Some(event) = self.of_sample(body) else { return 0 };
            let sample_type = self.all[event].attributes.sample_type;
            if sample_type & field::TIME == 0 {
                return 0;
            }
            let before = sample_type & (field::IDENTIFIER | field::IP | field::TID);
            return Cursor::new(body, 8 * before.count_ones() as usize).u64().unwrap_or(0);
        }
        if record.kind >= kind::OF_PERF {
            return 0;
        }
        let sample_type = self.trailer();
        if sample_type & field::TIME == 0 {
            return 0;
        }
        let from_time = 8 * (sample_type & !field::TID).count_ones() as usize;
        let Some(at) = body.len().checked_sub(from_time) else { return 0 };
        Cursor::new(body, at).u64().unwrap_or(0)
    }

    /// The fields that end every record of the kernel but samples.
    fn trailer(&self) -> u64 {
        let fields = field::TID | field::TIME | field::ID | field::STREAM_ID | field::CPU | field::IDENTIFIER;
        let first = self.all.first().filter(|event| event.attributes.sample_id_all);
        first.map_or(0, |event| event.attributes.sample_type & fields)
    }

    /// What a record without samples tells.
    pub(super) fn tracked(&self, record: &RawRecord<'_>, time_ns: u64) -> Option<Event> {
        let own = record.body.len().checked_sub(8 * self.trailer().count_ones() as usize)?;
        let body = &record.body[..own];
        let mut at = Cursor::new(body, 0);
        Some(match record.kind {
            kind::MMAP | kind::MMAP2 => Event::Mapped(mapping(record, body, time_ns)?.0),
            kind::COMM => {
                const EXECUTED: u16 = 1 << 13;
                let (process, thread) = (at.u32()?, at.u32()?);
                let name = text(&body[at.position()..]);
                Event::Named { process, thread, name, executed: record.misc & EXECUTED != 0, time_ns }
            }
            kind::FORK => Event::Forked { process: at.u32()?, parent: at.u32()?, time_ns },
            kind::EXIT => {
                let (process, _, thread) = (at.u32()?, at.u32()?, at.u32()?);
                (process == thread).then_some(Event::Ended { process, time_ns })?
            }
            _ => return None,
        })
    }

    /// The build id that a mapping tells of its file.
    pub(super) fn build_id(&self, record: &RawRecord<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        let own = record.body.len().checked_sub(8 * self.trailer().count_ones() as usize)?;
        let (mapping, build_id) = mapping(record, &record.body[..own], 0)?;
        Some((mapping.name, build_id?))
    }
}

/// Mappings of the kernel itself have this process.
const KERNEL: u32 = u32::MAX;

/// A mapping, and the build id of its file where that stands in place of device and inode.
fn mapping(record: &RawRecord<'_>, body: &[u8], time_ns: u64) -> Option<(NewMapping, Option<Vec<u8>>)> {
    const TELLS_BUILD_ID: u16 = 1 << 14;
    const OF_DATA: u16 = 1 << 13;
    let mut at = Cursor::new(body, 0);
    let (process, _thread) = (at.u32()?, at.u32()?);
    let (start, bytes, offset) = (at.u64()?, at.u64()?, at.u64()?);
    let (mut device, mut inode, mut build_id, mut is_shared) = ((0, 0), 0, None, false);
    if record.kind == kind::MMAP2 {
        if record.misc & TELLS_BUILD_ID != 0 {
            let size = usize::from(at.u8()?).min(20);
            at.take(3)?;
            build_id = Some(at.take(20)?[..size].to_vec()).filter(|id| !id.is_empty());
        } else {
            device = (at.u32()?, at.u32()?);
            inode = at.u64()?;
            at.take(8)?;
        }
        let (_rights, flags) = (at.u32()?, at.u32()?);
        is_shared = flags & MAP_SHARED != 0;
    }
    let name = text(body.get(at.position()..)?);
    let executable = record.misc & OF_DATA == 0;
    let mapping =
        NewMapping { process, start, bytes, offset, device, inode, executable, is_shared, name, time_ns };
    (process != KERNEL).then_some((mapping, build_id))
}

fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::attributes::Attributes;
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn events() -> [DescribedEvent; 2] {
        let attributes = Attributes {
            sample_type: field::IP | field::TID | field::TIME | field::ID | field::IDENTIFIER,
            sample_id_all: true,
            ..Attributes::default()
        };
        let event =
            |id| DescribedEvent { attributes: attributes.clone(), ids: vec![id], name: String::new() };
        [event(7), event(8)]
    }

    #[test]
    fn samples_are_told_apart_by_their_ids() {
        let all = events();
        let events = Events::of(&all);
        let body = words(&[8, 0x1000, 5 | 6 << 32, 99, 8]);
        assert_eq!(events.of_sample(&body), Some(1));
        let sample = RawRecord { kind: kind::SAMPLE, misc: 0, body: &body, trace: &[] };
        assert_eq!(events.time_ns(&sample), 99);
        assert_eq!(events.of_sample(&words(&[9])), None);
        assert_eq!(events.of_sample(&[]), None);
        assert_eq!(Events::of(&all[..1]).of_sample(&[]), Some(0));
    }

    #[test]
    fn mappings_are_read_with_and_without_build_ids() {
        let all = events();
        let events = Events::of(&all);
        let trailer = [5 | 6 << 32, 1234, 7, 7];
        let mut body = words(&[5 | 6 << 32, 0x1000, 0x2000, 0x3000, 8 | 1 << 32, 77, 0, 5]);
        body.extend(*b"/bin/ls\0");
        body.extend(words(&trailer));
        let record = RawRecord { kind: kind::MMAP2, misc: 2, body: &body, trace: &[] };
        let time_ns = events.time_ns(&record);
        let Some(Event::Mapped(mapping)) = events.tracked(&record, time_ns) else { panic!() };
        assert_eq!((mapping.time_ns, &mapping.name[..], mapping.inode), (1234, &b"/bin/ls"[..], 77));
        assert_eq!(events.build_id(&record), None);
        body[32..60].copy_from_slice(&[&[8, 0, 0, 0][..], &[0xab; 20], &[0; 4]].concat());
        let record = RawRecord { kind: kind::MMAP2, misc: 2 | 1 << 14, body: &body, trace: &[] };
        assert_eq!(events.build_id(&record), Some((b"/bin/ls".to_vec(), vec![0xab; 8])));
        for kind in [kind::MMAP, kind::MMAP2, kind::COMM, kind::FORK, kind::EXIT] {
            for length in 0..body.len() {
                let record = RawRecord { kind, misc: 0xffff, body: &body[..length], trace: &[] };
                let _ = (events.tracked(&record, 0), events.build_id(&record), events.time_ns(&record));
            }
        }
    }
}

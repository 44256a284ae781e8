//! What a file says of its recording beside the samples: the sections behind them, or in a pipe the
//! records that stand for those.

use super::attributes::{Attributes, DescribedEvent};
use super::records::records;
use image::elf::cursor::Cursor;
use std::collections::HashMap;

const BUILD_IDS: u32 = 2;
const ARCHITECTURE: u32 = 6;
const PROCESSOR: u32 = 8;
const PROCESSOR_ID: u32 = 9;
const COMMAND_LINE: u32 = 11;
const EVENT_DESCRIPTIONS: u32 = 12;
const PMU_MAPPINGS: u32 = 16;

/// What is known of the recording.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// `x86_64`, `aarch64` …
    pub architecture: String,
    /// The processor's name.
    pub processor: String,
    /// Vendor and model: `GenuineIntel,6,85,7`, or the identification register of an Arm core.
    pub processor_id: String,
    pub command_line: Vec<String>,
    /// By the names of files.
    pub build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// By the type that an event's attributes have.
    pub pmus: HashMap<u32, String>,
    /// Names of events by one of their ids, or by their attributes where they have none.
    names: Vec<(Vec<u64>, Attributes, String)>,
}

impl Facts {
    /// Takes a feature, by its number. What is damaged is left out: all of it can be done without.
    pub(super) fn take(&mut self, feature: u32, section: &[u8]) {
        let mut at = Cursor::new(section, 0);
        match feature {
            BUILD_IDS => {
                for record in records(section).all {
                    self.take_build_id(record.misc, record.body);
                }
            }
            ARCHITECTURE => self.architecture = text(&mut at).unwrap_or_default(),
            PROCESSOR => self.processor = text(&mut at).unwrap_or_default(),
            PROCESSOR_ID => self.processor_id = text(&mut at).unwrap_or_default(),
            COMMAND_LINE => self.command_line = list(&mut at, text),
            PMU_MAPPINGS => {
                self.pmus = list(&mut at, |at| Some((at.u32()?, text(at)?))).into_iter().collect();
            }
            EVENT_DESCRIPTIONS => {
                let Some((count, size)) = at.u32().zip(at.u32()) else { return };
                for _ in 0..count {
                    let Some(described) = description(&mut at, size as usize) else { break };
                    self.names.push(described);
                }
            }
            _ => {}
        }
    }

    /// A build id: `pid_t`, 20 bytes, their number where it is told, and the file's name.
    pub(super) fn take_build_id(&mut self, misc: u16, body: &[u8]) {
        const TELLS_SIZE: u16 = 1 << 15;
        let mut at = Cursor::new(body, 4);
        let Some(id) = at.take(24) else { return };
        let told = if misc & TELLS_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        let Some(name) = body.get(at.position()..) else { return };
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if told > 0 {
            self.build_ids.insert(name.to_vec(), id[..told].to_vec());
        }
    }

    /// Gives events the names that were told for them.
    pub(super) fn name(&self, events: &mut [DescribedEvent]) {
        for event in events.iter_mut().filter(|event| event.name.is_empty()) {
            let is_it = |(ids, attributes, _): &&(Vec<u64>, Attributes, String)| match ids.first() {
                Some(id) => event.ids.contains(id),
                None => *attributes == event.attributes,
            };
            if let Some((.., name)) = self.names.iter().find(is_it) {
                event.name.clone_from(name);
            }
        }
    }
}

fn description(at: &mut Cursor<'_>, size: usize) -> Option<(Vec<u64>, Attributes, String)> {
    let attributes = Attributes::parse(at.take(size)?)?;
    let count = at.u32()?;
    let name = text(at)?;
    let ids = ids(at.take(usize::try_from(count).ok()?.checked_mul(8)?)?);
    Some((ids, attributes, name))
}

pub(super) fn ids(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|id| Some(u64::from_le_bytes(id.try_into().ok()?))).collect()
}

/// A length, and as many bytes of text, filled up with zeros.
fn text(at: &mut Cursor<'_>) -> Option<String> {
    let size = at.u32()? as usize;
    let bytes = at.take(size)?;
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// A number, and as many of something, as far as they are there.
fn list<T>(at: &mut Cursor<'_>, one: impl Fn(&mut Cursor<'_>) -> Option<T>) -> Vec<T> {
    let count = at.u32().unwrap_or(0);
    (0..count).map_while(|_| one(at)).collect()
}

/// The event of a record that `perf` writes into pipes: attributes, and the ids behind them.
pub(super) fn event_of_record(body: &[u8]) -> Option<DescribedEvent> {
    let size = Cursor::new(body, 4).u32()? as usize;
    let attributes = Attributes::parse(body.get(..size)?)?;
    Some(DescribedEvent { attributes, ids: ids(body.get(size..)?), name: String::new() })
}

/// The id and the new name of an event, by a record that tells it.
pub(super) fn new_name(body: &[u8]) -> Option<(u64, String)> {
    const NAME: u64 = 2;
    let mut at = Cursor::new(body, 0);
    let (what, id) = (at.u64()?, at.u64()?);
    let name = body.get(at.position()..)?.split(|&byte| byte == 0).next()?;
    (what == NAME).then(|| (id, String::from_utf8_lossy(name).into_owned()))
}

/// Of a record that stands for a feature: its number and its section.
pub(super) fn feature_of_record(body: &[u8]) -> Option<(u32, &[u8])> {
    let feature = u32::try_from(Cursor::new(body, 0).u64()?).ok()?;
    Some((feature, body.get(8..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(misc.to_le_bytes());
        bytes.extend(((8 + body.len()) as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn string(text: &str) -> Vec<u8> {
        let mut bytes = 64_u32.to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(4 + 64, 0);
        bytes
    }

    #[test]
    fn facts_are_texts_lists_and_build_ids() {
        let mut facts = Facts::default();
        facts.take(PROCESSOR, &string("Some Processor"));
        let mut words = 2_u32.to_le_bytes().to_vec();
        words.extend(string("perf"));
        words.extend(string("record"));
        facts.take(COMMAND_LINE, &words);
        let mut pmus = 1_u32.to_le_bytes().to_vec();
        pmus.extend(9_u32.to_le_bytes());
        pmus.extend(string("ibs_op"));
        facts.take(PMU_MAPPINGS, &pmus);
        let mut body = vec![0xff; 4];
        body.extend([0xab; 20]);
        body.extend([8, 0, 0, 0]);
        body.extend(*b"/bin/x\0\0");
        let mut ids = record(1 << 15, &body);
        body[27] = 0;
        body.truncate(28);
        body.extend(*b"/bin/y\0");
        ids.extend(record(0, &body));
        facts.take(BUILD_IDS, &ids);
        assert_eq!((facts.processor.as_str(), facts.command_line.len()), ("Some Processor", 2));
        assert_eq!(facts.pmus[&9], "ibs_op");
        assert_eq!((facts.build_ids[&b"/bin/x"[..]].len(), facts.build_ids[&b"/bin/y"[..]].len()), (8, 20));
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let mut described = 1_u32.to_le_bytes().to_vec();
        described.extend(64_u32.to_le_bytes());
        described.extend([0; 64]);
        described.extend(1_u32.to_le_bytes());
        described.extend(string("cpu-clock"));
        described.extend(7_u64.to_le_bytes());
        for feature in 0..40 {
            for length in 0..described.len() {
                Facts::default().take(feature, &described[..length]);
                Facts::default().take(feature, &vec![0xff; length]);
            }
        }
        let mut facts = Facts::default();
        facts.take(EVENT_DESCRIPTIONS, &described);
        let mut events = [DescribedEvent { ids: vec![7], ..DescribedEvent::default() }];
        facts.name(&mut events);
        assert_eq!(events[0].name, "cpu-clock");
    }
}

//! A record on its way into tables: what it is, and what every row says of it.

use super::{Cell, Row};
use jiff::Timestamp;
use records::AnyRecord;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Digits of a record's name in tables: two among a million records have the same once in ten
/// million times.
const DIGITS: usize = 16;

/// A record with its name and time.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) record: AnyRecord,
    name: String,
    time: Timestamp,
}

/// A record whose time cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its time of writing is no time: '{0}'")]
pub struct NoTime(String);

impl Source {
    pub fn new(record: AnyRecord) -> Result<Self, NoTime> {
        let created = &record.header.created;
        let time: Timestamp = created.parse().map_err(|_| NoTime(created.clone()))?;
        let name = digest(&[&record.header.kind, &record.header.gleaner, created, &record.body.to_string()]);
        Ok(Self { record, name, time })
    }

    /// The record, as column `record` names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The day of its partition.
    pub fn date(&self) -> String {
        self.time.strftime("%Y-%m-%d").to_string()
    }

    pub fn seconds(&self) -> f64 {
        self.time.as_microsecond() as f64 / 1e6
    }

    pub(super) fn kind(&self) -> &str {
        &self.record.header.kind
    }

    /// The host's name, where the record has it.
    pub fn host(&self) -> Option<&str> {
        self.record.body.pointer("/run/host_name").and_then(Value::as_str)
    }

    pub(super) fn body<R: records::Record>(&self) -> Option<R> {
        self.record.body_as()
    }

    /// The cells that every row begins with.
    pub(super) fn common(&self) -> Row {
        vec![self.name.as_str().into(), Cell::Time(self.time.as_microsecond()), self.host().into()]
    }
}

/// What tells these texts from others.
pub(super) fn digest(texts: &[impl AsRef<str>]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_ref().as_bytes());
        hash.update([0]);
    }
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    let digits = hash.finalize().into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.take(DIGITS).collect()
}

//! What every record begins with:
//! `{"kind":"machine","version":1,"gleaner":"0.1.0","created":"2026-01-31T12:00:00Z",…}`.
//!
//! To change a released kind so that older files no longer fit: raise its `VERSION`, append to its
//! `UPGRADES` a function that turns the JSON of the version before into the new one, and put an
//! example of the old version into `crates/records/fixtures/`. A field that is only added, with a
//! default, needs none of this.

use crate::body::Misfit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Turns the body of one version into that of the next, or says why it cannot.
pub type Upgrade = fn(Value) -> Result<Value, String>;

/// A document that one verb writes and another reads.
pub trait Record: Sized {
    /// The word in `"kind"`.
    const KIND: &'static str;
    /// The version this program writes. Counts from 1.
    const VERSION: u32;
    /// `UPGRADES[n]` turns version n+1 into version n+2: always one fewer than `VERSION`.
    const UPGRADES: &'static [Upgrade] = &[];

    /// The body that this JSON describes. Neither this nor [`Record::to_body`] is generic: the code
    /// for a kind of record is in the binary once, however many rooms read it.
    fn from_body(json: &Value) -> Result<Self, Misfit>;

    /// The body as JSON.
    fn to_body(&self) -> Map<String, Value>;
}

/// [`Record::from_body`] and [`Record::to_body`] of a type that serde reads and writes.
#[macro_export]
macro_rules! body_by_serde {
    () => {
        fn from_body(json: &::serde_json::Value) -> Result<Self, $crate::Misfit> {
            $crate::read_body(json)
        }

        fn to_body(&self) -> ::serde_json::Map<String, ::serde_json::Value> {
            $crate::write_body(self)
        }
    };
}

/// What a record is, when it was written, and by which version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    pub kind: String,
    pub version: u32,
    /// The version of Gleaner that wrote it.
    pub gleaner: String,
    /// RFC 3339, in UTC, to the second.
    pub created: String,
}

impl Header {
    /// The whole record: the header's fields, then those of the body.
    pub(crate) fn before(&self, body: Map<String, Value>) -> Map<String, Value> {
        let Self { kind, version, gleaner, created } = self;
        let own: [(&str, Value); 4] = [
            ("kind", kind.as_str().into()),
            ("version", (*version).into()),
            ("gleaner", gleaner.as_str().into()),
            ("created", created.as_str().into()),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(body).collect()
    }
}

/// A record with its header, as a file holds it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<R> {
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub header: Header,
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub body: R,
}

impl<R: Record> Document<R> {
    /// The record as written by this program, now.
    pub fn now(body: R) -> Self {
        const {
            assert!(
                R::UPGRADES.len() + 1 == R::VERSION as usize,
                "one upgrade for each step between versions"
            );
        };
        let seconds = jiff::Timestamp::now().as_second();
        let created = jiff::Timestamp::from_second(seconds).expect("the clock's own seconds").to_string();
        let header = Header {
            kind: R::KIND.to_owned(),
            version: R::VERSION,
            gleaner: env!("CARGO_PKG_VERSION").to_owned(),
            created,
        };
        Self { header, body }
    }

    /// As it stands in a file: indented, with a newline at its end.
    pub fn to_json(&self) -> String {
        let fields = self.header.before(self.body.to_body());
        let mut text = serde_json::to_string_pretty(&fields).expect("a map of JSON is JSON");
        text.push('\n');
        text
    }
}

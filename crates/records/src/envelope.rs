//! What every record begins with:
//! `{"kind":"machine","version":1,"gleaner":"0.1.0","created":"2026-01-31T12:00:00Z",…}`.
//!
//! To change a released kind so that older files no longer fit: raise its `VERSION`, append to its
//! `UPGRADES` a function that turns the JSON of the version before into the new one, and put an
//! example of the old version into `crates/records/fixtures/`. A field that is only added, with a
//! default, needs none of this.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Turns the body of one version into that of the next, or says why it cannot.
pub type Upgrade = fn(serde_json::Value) -> Result<serde_json::Value, String>;

/// A document that one verb writes and another reads.
pub trait Record: Serialize + DeserializeOwned {
    /// The word in `"kind"`.
    const KIND: &'static str;
    /// The version this program writes. Counts from 1.
    const VERSION: u32;
    /// `UPGRADES[n]` turns version n+1 into version n+2: always one fewer than `VERSION`.
    const UPGRADES: &'static [Upgrade] = &[];
}

/// What a record is, when it was written, and by which version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Header {
    pub kind: String,
    pub version: u32,
    /// The version of Gleaner that wrote it.
    pub gleaner: String,
    /// RFC 3339, in UTC, to the second.
    pub created: String,
}

/// A record with its header, as a file holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Document<R> {
    #[serde(flatten)]
    pub header: Header,
    #[serde(flatten)]
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
        let mut text = serde_json::to_string_pretty(self).expect("records hold nothing that JSON cannot");
        text.push('\n');
        text
    }
}

//! Every kind of record that this program knows, for verbs that take any of them.
//!
//! To add a kind: a line in [`KINDS`].

use crate::envelope::{Header, Record, Upgrade};
use crate::machine::Machine;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::read::{self, Problem, ReadError};
use crate::recipe::Recipe;
use crate::reproduction::Reproduction;
use crate::run::Run;
use crate::tour::Tour;
use serde_json::{Map, Value};
use std::path::Path;

/// A kind of record, its type left behind.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub version: u32,
    upgrades: &'static [Upgrade],
    check: fn(&Value) -> Result<(), Problem>,
    #[cfg(feature = "schema")]
    schema: fn() -> schemars::Schema,
}

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind::of::<Machine>(),
    Kind::of::<Plan>(),
    Kind::of::<Profile>(),
    Kind::of::<Recipe>(),
    Kind::of::<Reproduction>(),
    Kind::of::<Run>(),
    Kind::of::<Tour>(),
];

/// A record whose JSON Schema can be told. Schemas are for the tests and for `docs/schema`: in the
/// binary they would be a megabyte that nothing uses.
#[cfg(feature = "schema")]
trait Described: Record + schemars::JsonSchema {}
#[cfg(feature = "schema")]
impl<R: Record + schemars::JsonSchema> Described for R {}
#[cfg(not(feature = "schema"))]
use Record as Described;

impl Kind {
    const fn of<R: Described>() -> Self {
        Self {
            name: R::KIND,
            version: R::VERSION,
            upgrades: R::UPGRADES,
            check: |body| read::body_of::<R>(body).map(|_| ()),
            #[cfg(feature = "schema")]
            schema: schema_of::<R>,
        }
    }

    /// The JSON Schema of what this program writes.
    #[cfg(feature = "schema")]
    pub fn schema(&self) -> schemars::Schema {
        (self.schema)()
    }

    /// The name of its schema's file.
    pub fn schema_file(&self) -> String {
        format!("{}.v{}.schema.json", self.name, self.version)
    }
}

/// A record of any kind, brought up to date and found sound.
#[derive(Clone, Debug, PartialEq)]
pub struct AnyRecord {
    pub header: Header,
    /// Without the header's fields.
    pub body: Value,
}

impl AnyRecord {
    /// The record as its file has it, brought up to date.
    pub fn whole(&self) -> Map<String, Value> {
        self.header.before(self.body.as_object().cloned().unwrap_or_default())
    }

    /// The body, if the record is of this kind. That it is sound was found when it was read.
    pub fn body_as<R: Record>(&self) -> Option<R> {
        (self.header.kind == R::KIND).then(|| R::from_body(&self.body).ok()).flatten()
    }
}

/// Reads a record of whatever kind; `-` is standard input.
pub fn read_any(path: &Path) -> Result<AnyRecord, ReadError> {
    read::bytes_of(path)
        .and_then(|bytes| parse_among(KINDS, &bytes))
        .map_err(|problem| ReadError { path: path.to_owned(), problem })
}

fn parse_among(kinds: &[Kind], bytes: &[u8]) -> Result<AnyRecord, Problem> {
    let (header, body) = read::open(bytes)?;
    let Some(kind) = kinds.iter().find(|kind| kind.name == header.kind) else {
        return Err(Problem::UnknownKind(header.kind));
    };
    let body = read::bring_up_to_date(&header, body, kind.version, kind.upgrades)?;
    (kind.check)(&body)?;
    Ok(AnyRecord { header: Header { version: kind.version, ..header }, body })
}

#[cfg(feature = "schema")]
fn schema_of<R: Described>() -> schemars::Schema {
    let mut schema = schemars::schema_for!(crate::Document<R>);
    schema.insert("title".to_owned(), format!("Gleaner {} record, version {}", R::KIND, R::VERSION).into());
    // The header says which kind and version it is: the schema of one kind accepts no other.
    let properties =
        schema.get_mut("properties").and_then(Value::as_object_mut).expect("a record is an object");
    properties.insert("kind".to_owned(), serde_json::json!({ "const": R::KIND }));
    properties.insert("version".to_owned(), serde_json::json!({ "const": R::VERSION }));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    struct Stone {
        weight: f64,
    }

    impl Record for Stone {
        const KIND: &'static str = "stone";
        const VERSION: u32 = 1;
        crate::body_by_serde!();
    }

    #[test]
    fn any_record_is_one_of_the_known() {
        let text = |kind: &str, weight: &str| {
            format!(r#"{{"kind":"{kind}","version":1,"gleaner":"0.1.0","created":"x","weight":{weight}}}"#)
        };
        let parse = |text: String| parse_among(&[Kind::of::<Stone>()], text.as_bytes());
        assert_eq!(parse(text("stone", "2")).unwrap().body, serde_json::json!({"weight": 2}));
        assert!(matches!(parse(text("cloud", "2")), Err(Problem::UnknownKind(kind)) if kind == "cloud"));
        assert!(matches!(parse(text("stone", "[]")), Err(Problem::Unsound { .. })));
    }
}

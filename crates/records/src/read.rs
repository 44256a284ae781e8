//! Reading: a record comes back whole, or one line says what is the matter with the file.
//!
//! To add a way in which a file can be wrong: a variant of [`Problem`], and a case in this file's
//! tests.

use crate::envelope::{Document, Header, Record, Upgrade};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a file is not the record it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadError {
    pub path: PathBuf,
    pub problem: Problem,
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot be read: {}", crate::plain(.0))]
    Unreadable(io::Error),
    #[error("the file is empty")]
    Empty,
    #[error("not a Gleaner record (it does not begin with '{{')")]
    NotAnObject,
    #[error("compressed; unpack it first, as 'gunzip' does")]
    Compressed,
    #[error("larger than any record ({0} or more)")]
    TooLarge(units::Bytes),
    #[error("not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("cut short: the JSON ends in the middle, at line {line}")]
    CutShort { line: usize },
    #[error("JSON, but not a Gleaner record: {0}")]
    NotARecord(String),
    #[error("a '{found}' record, where a '{wanted}' record is needed")]
    WrongKind { found: String, wanted: &'static str },
    #[error("a record of kind '{0}', which this gleaner does not know; a later one may")]
    UnknownKind(String),
    #[error(
        "written by a later gleaner (version {version} of '{kind}'; this one reads up to {known}); update gleaner"
    )]
    Future { kind: String, version: u64, known: u32 },
    #[error("version {from} of '{kind}' cannot be brought up to date: {why}")]
    Upgrade { kind: String, from: u32, why: String },
    #[error("not a sound '{kind}' record: at {at}: {what}")]
    Unsound { kind: String, at: String, what: String },
}

/// Records of very long profiles stay far below; a device that never ends does not.
const LARGEST: units::Bytes = units::Bytes::gib(1);

/// How compressed files begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the record in this file; `-` is standard input.
pub fn read<R: Record>(path: &Path) -> Result<Document<R>, ReadError> {
    let explain = |problem| ReadError { path: path.to_owned(), problem };
    let bytes = bytes_of(path).map_err(explain)?;
    parse(&bytes).map_err(explain)
}

/// Reads the record in these bytes.
pub fn parse<R: Record>(bytes: &[u8]) -> Result<Document<R>, Problem> {
    let (header, body) = open(bytes)?;
    if header.kind != R::KIND {
        return Err(Problem::WrongKind { found: header.kind, wanted: R::KIND });
    }
    let body = bring_up_to_date(&header, body, R::VERSION, R::UPGRADES)?;
    Ok(Document { header: Header { version: R::VERSION, ..header }, body: body_of(&body)? })
}

pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, Problem> {
    let mut source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(Problem::Unreadable)?)
    };
    let mut bytes = Vec::new();
    // A look at the beginning first: what is no record at all is told before a gigabyte of it has
    // been read.
    source.by_ref().take(4096).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None if bytes.len() < 4096 => return Err(Problem::Empty),
        Some(b'{') => {}
        _ if bytes.starts_with(&GZIP) => return Err(Problem::Compressed),
        _ => return Err(Problem::NotAnObject),
    }
    source.take(LARGEST.0).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > LARGEST.0 {
        return Err(Problem::TooLarge(LARGEST));
    }
    Ok(bytes)
}

/// Header and body. Nothing of the body has been looked at; of the header only what every version
/// must have.
pub(crate) fn open(bytes: &[u8]) -> Result<(Header, Value), Problem> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => Problem::CutShort { line: error.line() },
        _ => Problem::NotJson(error),
    })?;
    let Value::Object(mut fields) = value else { return Err(Problem::NotAnObject) };
    let kind = text_field(&mut fields, "kind")?;
    let version = match fields.shift_remove("version") {
        Some(version) => version
            .as_u64()
            .filter(|&v| v > 0)
            .ok_or_else(|| Problem::NotARecord(format!("its \"version\" is {version}")))?,
        None => return Err(Problem::NotARecord("it has no \"version\"".to_owned())),
    };
    let Ok(version) = u32::try_from(version) else {
        return Err(Problem::NotARecord(format!("its \"version\" is {version}")));
    };
    // A later version may have renamed these two; then the version is what has to be told.
    let gleaner = text_field(&mut fields, "gleaner").unwrap_or_default();
    let created = text_field(&mut fields, "created").unwrap_or_default();
    Ok((Header { kind, version, gleaner, created }, Value::Object(fields)))
}

pub(crate) fn bring_up_to_date(
    header: &Header,
    mut body: Value,
    known: u32,
    upgrades: &[Upgrade],
) -> Result<Value, Problem> {
    if header.version > known {
        let kind = header.kind.clone();
        return Err(Problem::Future { kind, version: header.version.into(), known });
    }
    if header.created.is_empty() || header.gleaner.is_empty() {
        return Err(Problem::NotARecord("it does not say who wrote it, or when".to_owned()));
    }
    for upgrade in &upgrades[header.version as usize - 1..] {
        body = upgrade(body).map_err(|why| Problem::Upgrade {
            kind: header.kind.clone(),
            from: header.version,
            why,
        })?;
    }
    Ok(body)
}

pub(crate) fn body_of<R: Record>(body: &Value) -> Result<R, Problem> {
    R::from_body(body).map_err(|misfit| Problem::Unsound {
        kind: R::KIND.to_owned(),
        at: misfit.at(),
        what: misfit.what,
    })
}

fn text_field(fields: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    match fields.shift_remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Problem::NotARecord(format!("its \"{name}\" is not a text"))),
        None => Err(Problem::NotARecord(format!("it has no \"{name}\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    /// A kind in its third version: `depth` was called `deep` in the first, and counted from one in
    /// the second.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Well {
        depth: u64,
    }

    fn rename(mut body: Value) -> Result<Value, String> {
        let depth = body["deep"].take();
        if depth.is_null() {
            Err("it has no 'deep'".to_owned())
        } else {
            Ok(serde_json::json!({"depth": depth}))
        }
    }

    fn from_zero(mut body: Value) -> Result<Value, String> {
        let depth = body["depth"].as_u64().and_then(|d| d.checked_sub(1));
        body["depth"] = depth.ok_or("'depth' is no count from one")?.into();
        Ok(body)
    }

    impl Record for Well {
        const KIND: &'static str = "well";
        const VERSION: u32 = 3;
        const UPGRADES: &'static [Upgrade] = &[rename, from_zero];
        crate::body_by_serde!();
    }

    fn well(version: &str, rest: &str) -> Result<u64, String> {
        let text = format!(
            r#"{{"kind":"well","version":{version},"gleaner":"0.1.0","created":"2026-01-31T12:00:00Z"{rest}}}"#
        );
        parse::<Well>(text.as_bytes()).map(|d| d.body.depth).map_err(|problem| problem.to_string())
    }

    #[test]
    fn old_versions_take_each_step_up() {
        assert_eq!(well("3", r#","depth":7"#), Ok(7));
        assert_eq!(well("2", r#","depth":8"#), Ok(7));
        assert_eq!(well("1", r#","deep":8"#), Ok(7));
        let error = well("1", r#","depth":8"#).unwrap_err();
        assert_eq!(error, "version 1 of 'well' cannot be brought up to date: it has no 'deep'");
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (version, rest, expected) in [
            (
                "4",
                "",
                "written by a later gleaner (version 4 of 'well'; this one reads up to 3); update gleaner",
            ),
            ("0", "", "JSON, but not a Gleaner record: its \"version\" is 0"),
            ("-1", "", "JSON, but not a Gleaner record: its \"version\" is -1"),
            ("99999999999", "", "JSON, but not a Gleaner record: its \"version\" is 99999999999"),
            ("3", "", "not a sound 'well' record: at .: missing field `depth`"),
            (
                "3",
                r#","depth":"x""#,
                "not a sound 'well' record: at depth: invalid type: string \"x\", expected u64",
            ),
        ] {
            assert_eq!(well(version, rest).unwrap_err(), expected);
        }
        let problem = |text: &str| parse::<Well>(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(problem("{\n\"kind\": \"we"), "cut short: the JSON ends in the middle, at line 2");
        assert!(problem("{]").starts_with("not JSON: "), "{}", problem("{]"));
        assert_eq!(problem("{}"), "JSON, but not a Gleaner record: it has no \"kind\"");
        assert_eq!(problem(r#"{"kind":"well"}"#), "JSON, but not a Gleaner record: it has no \"version\"");
        assert_eq!(
            problem(r#"{"kind":"run","version":1}"#),
            "a 'run' record, where a 'well' record is needed"
        );
        assert_eq!(
            problem(r#"{"kind":"well","version":3,"depth":1}"#),
            "JSON, but not a Gleaner record: it does not say who wrote it, or when"
        );
        let deep = "[".repeat(100_000);
        assert!(problem(&format!("{{\"kind\":{deep}")).starts_with("not JSON: recursion limit"));
    }

    #[test]
    fn files_that_are_no_records_are_told_from_their_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let problem = |bytes: &[u8]| {
            let path = dir.path().join("x.json");
            std::fs::write(&path, bytes).unwrap();
            read::<Well>(&path).unwrap_err().problem.to_string()
        };
        assert_eq!(problem(b""), "the file is empty");
        assert_eq!(problem(b" \n"), "the file is empty");
        assert_eq!(problem(b"\x7fELF\x02\x01"), "not a Gleaner record (it does not begin with '{')");
        assert_eq!(problem(b"\x1f\x8b\x08"), "compressed; unpack it first, as 'gunzip' does");
        assert_eq!(problem(b"[1]"), "not a Gleaner record (it does not begin with '{')");
        let zeros = read::<Well>(Path::new("/dev/zero")).unwrap_err().problem;
        assert!(matches!(zeros, Problem::NotAnObject), "{zeros}");
        let absent = read::<Well>(&dir.path().join("absent")).unwrap_err().problem;
        assert_eq!(absent.to_string(), "cannot be read: No such file or directory");
        assert_eq!(
            read::<Well>(dir.path()).unwrap_err().problem.to_string(),
            "cannot be read: Is a directory"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let document = Document::now(Well { depth: 7 });
        let text = document.to_json();
        assert!(
            text.starts_with("{\n  \"kind\": \"well\",\n  \"version\": 3,\n  \"gleaner\": \"0.1.0\",\n"),
            "{text}"
        );
        assert_eq!(parse::<Well>(text.as_bytes()).unwrap(), document);
    }
}

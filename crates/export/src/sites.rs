//! Where samples of each load land, as a table: what `gleaner sites` writes. A row is one
//! instruction at which a sample means that the core waited for a load or store. Rows of several
//! files are put together by putting their tables together: nothing in them depends on where or
//! when they were made.

use crate::fleet::Kind;
use std::fmt::Write;
use std::sync::Arc;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub build_id: Arc<str>,
    pub file: Arc<str>,
    /// The instruction in the file: its first byte, and the one behind its last.
    pub from_offset: u64,
    pub to_offset: u64,
    /// The same as stated addresses.
    pub from_address: u64,
    pub to_address: u64,
    pub load_offset: u64,
    pub load_address: u64,
    pub kind: &'static str,
    pub pattern: &'static str,
    pub function: Option<Arc<str>>,
    pub source: Option<Arc<str>>,
    pub line: Option<u32>,
}

/// A column: its name, its type, its meaning, and its cell.
pub(crate) struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
    pub cell: fn(&Site) -> Value<'_>,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'s> {
    Null,
    Text(&'s str),
    Int(u64),
}

fn text(of: Option<&Arc<str>>) -> Value<'_> {
    of.map_or(Value::Null, |text| Value::Text(text))
}

macro_rules! column {
    ($name:literal, $kind:ident, $about:literal, $cell:expr) => {
        Column { name: $name, kind: Kind::$kind, about: $about, cell: $cell }
    };
}

pub(crate) const COLUMNS: &[Column] = &[
    column!(
        "build_id",
        Text,
        "the file: its GNU build ID in hexadecimal, Go's, or a hash of its bytes",
        |it| { Value::Text(&it.build_id) }
    ),
    column!("file", Text, "its name, without directories", |it| Value::Text(&it.file)),
    column!("from_offset", Int, "where the instruction that is sampled begins in the file", |it| {
        Value::Int(it.from_offset)
    }),
    column!("to_offset", Int, "the first byte behind it", |it| Value::Int(it.to_offset)),
    column!("from_address", Int, "the same as stated address, as objdump shows it", |it| {
        Value::Int(it.from_address)
    }),
    column!("to_address", Int, "the first address behind it", |it| Value::Int(it.to_address)),
    column!("load_offset", Int, "where the load is in the file that such samples waited for", |it| {
        Value::Int(it.load_offset)
    }),
    column!("load_address", Int, "its stated address", |it| Value::Int(it.load_address)),
    column!("kind", Text, "load, or store: an instruction that only writes memory", |it| Value::Text(
        it.kind
    )),
    column!("pattern", Text, "chain, parallel, stream or unresolved, as its code tells", |it| {
        Value::Text(it.pattern)
    }),
    column!("function", Text, "its function, by symbols or debug information", |it| text(
        it.function.as_ref()
    )),
    column!("source", Text, "its source file, by debug information", |it| text(it.source.as_ref())),
    column!("line", Int, "its line there", |it| {
        it.line.map_or(Value::Null, |line| Value::Int(line.into()))
    }),
];

/// The table as comma-separated values, with a line of names.
pub fn csv(sites: &[Site]) -> String {
    let mut made = COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(",") + "\n";
    for site in sites {
        for (number, column) in COLUMNS.iter().enumerate() {
            made.push_str(if number == 0 { "" } else { "," });
            match (column.cell)(site) {
                Value::Null => {}
                Value::Int(number) => {
                    let _ = write!(made, "{number}");
                }
                Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                    let _ = write!(made, "\"{}\"", text.replace('"', "\"\""));
                }
                Value::Text(text) => made.push_str(text),
            }
        }
        made.push('\n');
    }
    made
}

/// The table as a list of objects.
pub fn json(sites: &[Site]) -> String {
    let mut made = String::from("[");
    for (number, site) in sites.iter().enumerate() {
        made.push_str(if number == 0 { "\n" } else { ",\n" });
        let cell = |column: &Column| {
            let value = match (column.cell)(site) {
                Value::Null => serde_json::Value::Null,
                Value::Int(number) => number.into(),
                Value::Text(text) => text.into(),
            };
            (column.name.to_owned(), value)
        };
        let object: serde_json::Map<_, _> = COLUMNS.iter().map(cell).collect();
        made.push_str(&serde_json::Value::Object(object).to_string());
    }
    made.push_str("\n]\n");
    made
}

/// Its columns, a line each, for `docs/sites.md`.
pub fn described() -> String {
    let row =
        |column: &Column| format!("| `{}` | {} | {} |\n", column.name, column.kind.words(), column.about);
    let rows: String = COLUMNS.iter().map(row).collect();
    format!("| column | type | meaning |\n|---|---|---|\n{rows}")
}

#[cfg(feature = "parquet")]
pub use of_parquet::parquet;

#[cfg(feature = "parquet")]
mod of_parquet {
    use super::{COLUMNS, Kind, Site, Value};
    use crate::fleet::parquet::{field, write};
    use ::parquet::basic::{Compression, Encoding};
    use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use ::parquet::errors::ParquetError;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::types::{ColumnPath, Type};
    use std::sync::Arc;

    /// Rows of a group: what a reader has to hold at once.
    const GROUP: usize = 1 << 17;

    /// The table as a Parquet file. Numbers ascend, so that their differences take little space.
    pub fn parquet(sites: &[Site]) -> Result<Vec<u8>, ParquetError> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("gleaner {}", env!("CARGO_PKG_VERSION")));
        for column in COLUMNS.iter().filter(|column| column.kind == Kind::Int) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let fields = COLUMNS.iter().map(|column| field(column.name, column.kind));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("sites").with_fields(fields).build()?);
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))?;
        for sites in sites.chunks(GROUP) {
            let mut group = writer.next_row_group()?;
            for column in COLUMNS {
                let cells = || sites.iter().map(|site| (column.cell)(site));
                if column.kind == Kind::Int {
                    let of = |value: Value<'_>| match value {
                        Value::Int(number) => Some(number as i64),
                        _ => None,
                    };
                    write::<Int64Type, _>(&mut group, cells().map(of))?;
                } else {
                    let of = |value: Value<'_>| match value {
                        Value::Text(text) => Some(ByteArray::from(text)),
                        _ => None,
                    };
                    write::<ByteArrayType, _>(&mut group, cells().map(of))?;
                }
            }
            group.close()?;
        }
        writer.close()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site {
            build_id: "ab12".into(),
            file: "a,b".into(),
            from_offset: 19,
            to_offset: 22,
            from_address: 0x1013,
            to_address: 0x1016,
            load_offset: 16,
            load_address: 0x1010,
            kind: "load",
            pattern: "chain",
            function: Some("f<int, \"x\">".into()),
            source: None,
            line: None,
        }
    }

    #[test]
    fn tables_of_text_hold_what_rows_say() {
        let made = csv(&[site()]);
        let row = made.lines().nth(1).unwrap();
        assert_eq!(row, r#"ab12,"a,b",19,22,4115,4118,16,4112,load,chain,"f<int, ""x"">",,"#);
        let made: serde_json::Value = serde_json::from_str(&json(&[site(), site()])).unwrap();
        assert_eq!((made[1]["line"].is_null(), made[1]["load_offset"].as_u64()), (true, Some(16)));
        assert_eq!(json(&[]), "[\n]\n");
        assert!(described().lines().count() == COLUMNS.len() + 2);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_is_the_same_for_the_same_rows() {
        let sites = vec![site(); 1000];
        let made = parquet(&sites).unwrap();
        assert!(made.starts_with(b"PAR1") && made == parquet(&sites).unwrap());
        assert!(made.len() < 20_000, "{} bytes", made.len());
    }
}

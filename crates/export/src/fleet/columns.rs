//! Columns: their names, types and meanings, and the page that lists them.

use super::TABLES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    Float,
    Bool,
    Time,
}

impl Kind {
    /// As Parquet and SQL have it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "64-bit integer",
            Self::Float => "double",
            Self::Bool => "boolean",
            Self::Time => "timestamp in UTC",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
}

pub(super) const fn text(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: Kind::Text, about }
}

pub(super) const fn int(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: Kind::Int, about }
}

pub(super) const fn float(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: Kind::Float, about }
}

pub(super) const fn boolean(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: Kind::Bool, about }
}

/// What every row says of its record.
pub(super) const COMMON: &[Column] = &[
    text("record", "the record: the beginning of the SHA-256 of what it says"),
    Column { name: "time", kind: Kind::Time, about: "when the record was written" },
    text("host", "the host's name; only `gleaner probe` writes it into its records"),
];

/// `docs/tables.md`: every table with its columns.
pub fn described() -> String {
    let mut page = String::from(HEAD);
    let row =
        |column: &Column| format!("| `{}` | {} | {} |\n", column.name, column.kind.words(), column.about);
    page.push_str("\n## In every table\n\n| column | type | what it is |\n|---|---|---|\n");
    for column in COMMON {
        page.push_str(&row(column));
    }
    for table in TABLES {
        page.push_str(&format!("\n## {}\n\n{}\n\n", table.name, table.about));
        page.push_str("| column | type | what it is |\n|---|---|---|\n");
        table.own.iter().for_each(|column| page.push_str(&row(column)));
    }
    page
}

const HEAD: &str = "\
# Tables of records

`gleaner export --parquet DIR` writes records as tables that databases read as they are, compressed by
Snappy, in partitions by the day on which a record was written (UTC):

```
DIR/TABLE/date=2026-11-27/NAME.parquet
```

A record that a partition has already is left out, so the same records may be exported again. `gleaner
export --format jsonl` prints the same rows as JSON, one a line, with the table's name as `table`.

What a record does not say is null. A value has its 95% interval, `lo` to `hi`. [fleet.md](fleet.md) shows what to ask
these tables. This page is generated from the program.
";

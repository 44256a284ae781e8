//! Tables: their columns are those of the page, and every row fills them.

use gleaner_export::fleet::{Cell, Kind, Source, TABLES, described};
use records::{AnyRecord, read_any};
use std::collections::BTreeSet;

#[test]
fn the_page_lists_all_columns() {
    testkit::golden("docs/tables.md", &described());
}

#[test]
fn names_of_columns_are_told_apart() {
    for table in TABLES {
        let names: BTreeSet<&str> = table.columns().map(|column| column.name).collect();
        assert_eq!(names.len(), table.columns().count(), "{}", table.name);
        let plain =
            |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(names.iter().all(plain), "{names:?}");
    }
}

fn fixtures() -> Vec<AnyRecord> {
    let directory = testkit::root().join("crates/records/fixtures");
    let files = std::fs::read_dir(directory).expect("the fixtures").map(|entry| entry.expect("one").path());
    let plain = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    plain.map(|path| read_any(&path).expect("a record")).collect()
}

fn fits(cell: &Cell, kind: Kind) -> bool {
    match cell {
        Cell::Null => true,
        Cell::Text(_) => kind == Kind::Text,
        Cell::Int(_) => kind == Kind::Int,
        Cell::Float(number) => kind == Kind::Float && number.is_finite(),
        Cell::Bool(_) => kind == Kind::Bool,
        Cell::Time(_) => kind == Kind::Time,
    }
}

#[test]
fn rows_have_a_cell_of_its_kind_for_each_column() {
    let mut seen = BTreeSet::new();
    for record in fixtures() {
        let source = Source::new(record).expect("a time");
        for table in TABLES {
            for row in table.rows(&source) {
                assert_eq!(row.len(), table.columns().count(), "{}", table.name);
                for (cell, column) in row.iter().zip(table.columns()) {
                    assert!(fits(cell, column.kind), "{}.{}: {cell:?}", table.name, column.name);
                }
                seen.insert(table.name);
            }
        }
    }
    assert_eq!(seen.len(), TABLES.len(), "no fixture has rows for some table: {seen:?}");
}

#[test]
fn the_same_record_has_the_same_name_however_it_is_written() {
    let mut record = fixtures().remove(0);
    let name = |record: &AnyRecord| Source::new(record.clone()).expect("a time").name().to_owned();
    let first = name(&record);
    assert_eq!(first.len(), 16);
    assert_eq!(name(&record), first);
    record.header.created = "2026-02-01T12:00:00Z".to_owned();
    assert_ne!(name(&record), first);
    record.header.created = "soon".to_owned();
    let refused = Source::new(record).expect_err("no time").to_string();
    assert_eq!(refused, "its time of writing is no time: 'soon'");
}

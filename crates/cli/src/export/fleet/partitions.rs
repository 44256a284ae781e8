//! Tables in partitions by date: `DIR/TABLE/date=2026-11-27/NAME.parquet`.
//!
//! A file is written whole or not at all, and never changed. Its footer names its records, so that
//! a record which a partition has is not added again, whenever and from wherever it comes.

use crate::failure::Refusal;
use crate::save;
use export::fleet::{Row, Source, TABLES, Table};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Rows that are held before they are written: some hundred megabytes.
const HELD: usize = 500_000;

pub(super) struct Tables<'a> {
    directory: &'a Path,
    /// By table and date.
    partitions: BTreeMap<(&'static str, String), Partition>,
    held: usize,
    written: BTreeMap<&'static str, usize>,
    /// Records of which a table had rows already.
    known: HashSet<String>,
}

struct Partition {
    path: PathBuf,
    table: &'static Table,
    /// Records that its files hold.
    there: HashSet<String>,
    rows: Vec<Row>,
    records: Vec<String>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(directory: &'a Path) -> Self {
        let written = TABLES.iter().map(|table| (table.name, 0)).collect();
        Self { directory, partitions: BTreeMap::new(), held: 0, written, known: HashSet::new() }
    }

    pub(super) fn add(&mut self, source: &Source) -> anyhow::Result<()> {
        let date = source.date();
        for table in TABLES {
            let rows = table.rows(source);
            if rows.is_empty() {
                continue;
            }
            let key = (table.name, date.clone());
            if !self.partitions.contains_key(&key) {
                let path = self.directory.join(table.name).join(format!("date={date}"));
                self.partitions.insert(key.clone(), Partition::open(path, table)?);
            }
            let Some(partition) = self.partitions.get_mut(&key) else { continue };
            if !partition.there.insert(source.name().to_owned()) {
                self.known.insert(source.name().to_owned());
                continue;
            }
            self.held += rows.len();
            partition.rows.extend(rows);
            partition.records.push(source.name().to_owned());
        }
        if self.held > HELD { self.write() } else { Ok(()) }
    }

    /// Writes what is held.
    pub(super) fn write(&mut self) -> anyhow::Result<()> {
        self.held = 0;
        for ((name, _), partition) in &mut self.partitions {
            *self.written.entry(name).or_default() += partition.write()?;
        }
        Ok(())
    }

    pub(super) fn summary(&self) -> String {
        let counted = |(name, rows): (&&str, &usize)| (*rows > 0).then(|| format!("{name} {rows}"));
        let rows: Vec<String> = self.written.iter().filter_map(counted).collect();
        let known = match self.known.len() {
            0 => String::new(),
            1 => "; 1 record was there already".to_owned(),
            n => format!("; {n} records were there already"),
        };
        let rows = if rows.is_empty() { "none".to_owned() } else { rows.join(", ") };
        format!("new rows in {}: {rows}{known}", self.directory.display())
    }
}

impl Partition {
    fn open(path: PathBuf, table: &'static Table) -> Result<Self, Refusal> {
        save::directory(&path)?;
        let mut there = HashSet::new();
        let refuse =
            |error: std::io::Error| Refusal::wrong_use(path.display().to_string(), records::plain(&error));
        for entry in std::fs::read_dir(&path).map_err(refuse)? {
            let file = entry.map_err(refuse)?.path();
            if file.extension().is_some_and(|extension| extension == "parquet") {
                let names = export::fleet::records_in(save::read(&file)?).map_err(|error| {
                    let refusal = Refusal::wrong_use(file.display().to_string(), error.to_string());
                    refusal.would_help("remove the file, or name another directory")
                })?;
                there.extend(names);
            }
        }
        Ok(Self { path, table, there, rows: Vec::new(), records: Vec::new() })
    }

    /// How many rows were written.
    fn write(&mut self) -> anyhow::Result<usize> {
        let (rows, records) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.records));
        if rows.is_empty() {
            return Ok(0);
        }
        let bytes = export::fleet::file(self.table, &rows, &records)?;
        save::bytes(&self.path.join(export::fleet::file_name(&records)), &bytes)?;
        Ok(rows.len())
    }
}

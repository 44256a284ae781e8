//! Records of many hosts as tables: for databases, for scripts, for monitoring. Pure: records in,
//! rows, text or bytes out.
//!
//! ```text
//! machine, profile, plan, run … ─► Source ─┬─► machines   a row for each machine record (wide)
//!                                          ├─► results    a row for each figure (long)
//!                                          ├─► loads, objects   of profiles
//!                                          └─► runs       a row for each harvest
//! ```
//!
//! To add a table: a file here with its columns and its rows, and a line in [`TABLES`]; then
//! `make regenerate` writes `docs/tables.md`. To add a column: a line in the table's list of
//! columns, and its cell at the same place of each row. A column that was released keeps its name
//! and type.

mod cell;
mod columns;
mod figures;
mod headlines;
mod jsonl;
mod loads;
mod machines;
mod objects;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod prometheus;
mod results;
mod runs;
mod source;

pub use cell::Cell;
pub use columns::{Column, Kind, described};
pub use jsonl::lines;
#[cfg(feature = "parquet")]
pub use parquet::{file, file_name, records_in};
pub use prometheus::{Gauges, gauges};
pub use source::{NoTime, Source};

/// One row, a cell for each column.
pub type Row = Vec<Cell>;

/// A table: what it is called, what stands in it, and its part of a record.
pub struct Table {
    pub name: &'static str,
    pub about: &'static str,
    /// The columns after those that all tables have ([`columns::COMMON`]).
    own: &'static [Column],
    rows: fn(&Source) -> Vec<Row>,
}

pub const TABLES: &[Table] = &[machines::TABLE, results::TABLE, loads::TABLE, objects::TABLE, runs::TABLE];

impl Table {
    /// All its columns, in the order of the cells.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        columns::COMMON.iter().chain(self.own)
    }

    /// The rows that this record adds.
    pub fn rows(&self, source: &Source) -> Vec<Row> {
        (self.rows)(source).into_iter().map(|own| [source.common(), own].concat()).collect()
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.name).finish_non_exhaustive()
    }
}

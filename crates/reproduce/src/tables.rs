//! Tables of a document: its rows, and below them those of this machine.

use crate::document::Ledger;
use crate::evidence::{Evidence, claimed};
use records::reproduction::{ClaimRow, ClaimTable};
use units::{Quantity, Unit};

/// The tables of a document for which there is evidence.
pub fn tables(document: &Ledger, evidence: &Evidence<'_>) -> Vec<ClaimTable> {
    let printed = document.tables.iter().filter_map(|table| table(evidence).ok());
    printed.filter(|table| table.note.is_some() || table.rows.iter().any(|row| row.here)).collect()
}

/// A row as the document gives it: lowest and highest value of each cell; none where it gives none.
pub(crate) fn paper(name: &str, cells: &[(Option<(f64, f64)>, Unit)]) -> ClaimRow {
    let cell = |&(range, unit): &(Option<(f64, f64)>, Unit)| match range {
        Some((lo, hi)) => claimed(lo, hi, unit),
        None => nothing(),
    };
    ClaimRow { name: name.to_owned(), here: false, cells: cells.iter().map(cell).collect() }
}

pub(crate) fn here(name: impl Into<String>, cells: Vec<Quantity>) -> ClaimRow {
    ClaimRow { name: name.into(), here: true, cells }
}

/// A cell for which there is no figure.
pub(crate) fn nothing() -> Quantity {
    Quantity::unresolved("no such figure")
}

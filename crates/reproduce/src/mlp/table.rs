//! Table 6.1: what each case does to the effective parallelism and to the time of accesses. A case
//! is a kind of page, a guest, or a placement on nodes.

use super::figures::{burst_cycles, of_machine};
use crate::evidence::{Evidence, combined};
use crate::missing::Missing;
use crate::tables::{here, nothing, paper};
use records::machine::{MlpOfPages, Numa, PlacementKind, Shot};
use records::reproduction::{ClaimRow, ClaimTable};
use units::{Estimate, Quantity, Unit};

/// Effective parallelism, one access, one more access than that, overhead; the last three in
/// cycles. The last row is from 4.2 and 4.3.
type PaperRow = (&'static str, [(f64, f64); 4]);
const PAPER: [PaperRow; 7] = [
    ("no restrictions", [(10.0, 10.0), (200.0, 200.0), (420.0, 420.0), (0.0, 0.0)]),
    ("huge pages disabled", [(4.0, 5.0), (260.0, 260.0), (490.0, 570.0), (60.0, 60.0)]),
    ("guest (H0G0)", [(10.0, 10.0), (200.0, 200.0), (425.0, 425.0), (0.0, 0.0)]),
    ("guest (H0G1)", [(3.0, 4.0), (340.0, 360.0), (630.0, 690.0), (140.0, 160.0)]),
    ("guest (H1G1)", [(2.0, 3.0), (420.0, 450.0), (710.0, 850.0), (220.0, 250.0)]),
    ("guest (H1G0)", [(3.0, 3.0), (330.0, 330.0), (600.0, 600.0), (100.0, 130.0)]),
    ("NUMA off", [(11.0, 11.0), (260.0, 270.0), (540.0, 540.0), (60.0, 70.0)]),
];
const UNITS: [Unit; 4] = [Unit::Count, Unit::Cycles, Unit::Cycles, Unit::Cycles];

pub(super) fn summary(evidence: &Evidence<'_>) -> Result<ClaimTable, Missing> {
    let kinds = &of_machine(evidence)?.kinds;
    let guest = evidence.is_guest()?;
    let of_paper = |(name, cells): &PaperRow| {
        let cells: Vec<_> = cells.iter().zip(UNITS).map(|(&range, unit)| (Some(range), unit)).collect();
        paper(name, &cells)
    };
    let mut rows: Vec<ClaimRow> = PAPER.iter().map(of_paper).collect();
    let first = kinds.first().and_then(|kind| burst_cycles(&kind.bursts, 1));
    for kind in kinds {
        rows.extend(of_kind(kind, first));
    }
    let mut notes = vec!["times here include reading the clock".to_owned()];
    if guest {
        notes.push("which pages the host has (H) cannot be told from inside a guest".to_owned());
    }
    match evidence.numa() {
        Ok(numa) => rows.extend(of_nodes(numa)),
        Err(missing) => notes.push(format!("placements: {}", missing.told())),
    }
    Ok(ClaimTable {
        id: "summary".to_owned(),
        title: "What each case does to accesses under way at once".to_owned(),
        place: "table 6.1; 4.2 and 4.3".to_owned(),
        columns: ["effective MLP", "one access", "MLP + 1 accesses", "overhead"].map(str::to_owned).to_vec(),
        rows,
        note: Some(notes.join("; ")),
    })
}

/// A kind of page, as it is and with all translations in the TLB.
fn of_kind(kind: &MlpOfPages, first: Option<&Quantity>) -> Vec<ClaimRow> {
    let name = format!("{} pages ({})", kind.pages.asked, kind.combination);
    let mut rows = vec![case(name.clone(), &kind.effective, &kind.bursts, first)];
    if let Some(at_hand) = &kind.translated {
        let name = format!("{name}, translations in the TLB");
        rows.push(case(name, &at_hand.effective, &at_hand.bursts, first));
    }
    rows
}

fn case(name: String, effective: &Quantity, bursts: &[Shot], first: Option<&Quantity>) -> ClaimRow {
    let one = burst_cycles(bursts, 1);
    let beyond = effective.value().and_then(|most| burst_cycles(bursts, most as u32 + 1));
    here(name, vec![effective.clone(), or_none(one), or_none(beyond), overhead(one, first)])
}

fn of_nodes(numa: &Numa) -> Vec<ClaimRow> {
    let local = numa.placements.iter().find(|placement| placement.kind == PlacementKind::Local);
    let local = local.and_then(|placement| burst_cycles(&placement.bursts, 1));
    let row = |(kind, name): (PlacementKind, &str)| {
        let placed = numa.placements.iter().find(|placement| placement.kind == kind)?;
        Some(case(name.to_owned(), placed.effective.as_ref()?, &placed.bursts, local))
    };
    let kinds = [
        (PlacementKind::Local, "memory on this node"),
        (PlacementKind::Remote, "memory on another node"),
        (PlacementKind::Interleaved, "memory interleaved"),
        (PlacementKind::Off, "placement off"),
    ];
    kinds.into_iter().filter_map(row).collect()
}

fn or_none(quantity: Option<&Quantity>) -> Quantity {
    quantity.cloned().unwrap_or_else(nothing)
}

/// Over the first case, in cycles; that one has none.
fn overhead(one: Option<&Quantity>, first: Option<&Quantity>) -> Quantity {
    let (Some(one), Some(first)) = (one, first) else { return nothing() };
    if std::ptr::eq(one, first) {
        return nothing();
    }
    match combined(one, first, Estimate::minus) {
        Ok(Quantity::Resolved { value, lo, hi, basis, disturbed, .. }) => {
            Quantity::Resolved { value, lo, hi, unit: Unit::Cycles, basis, disturbed, bound: None }
        }
        _ => nothing(),
    }
}

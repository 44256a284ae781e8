//! Figures 1.1 and 2.1: times of accesses over that of a lone one, by the points that the text
//! states.

use super::figures::{burst, huge, of_machine};
use crate::curves::{measured, stated};
use crate::evidence::{Evidence, ratio};
use crate::missing::Missing;
use records::machine::MlpOfPages;
use records::reproduction::{ClaimCurve, ClaimCurves};
use units::{Quantity, Unit};

/// One access, in cycles: with huge pages (2.2, 2), and with small ones (2.2, 2).
const ONE: f64 = 203.0;
const ONE_SMALL: f64 = 260.0;

/// Longer bursts than the document's are measured here; twice its longest shows where they lead.
const LONGEST: u32 = 22;

/// Two accesses with no-operations between them: 220 cycles (4.2, 2), and 420 from 188 on (1.5, 1).
pub(super) fn gaps(evidence: &Evidence<'_>) -> Result<ClaimCurves, Missing> {
    let kind = huge(evidence)?;
    let one = burst(kind, 1)?;
    let points = kind.gaps.iter().filter(|shot| shot.gap > 0);
    let points = points.filter_map(|shot| Some((f64::from(shot.gap), ratio(&shot.time.ticks, one).ok()?)));
    let paper = [(1.0, 220.0), (186.0, 220.0), (188.0, 420.0), (210.0, 420.0)];
    Ok(ClaimCurves {
        id: "gaps".to_owned(),
        title: "Two accesses overlap until the no-operations between them fill the re-order buffer"
            .to_owned(),
        place: "figure 1.1".to_owned(),
        claims: ["cliff-doubles", "cliff-at-rob-size"].map(str::to_owned).to_vec(),
        x: "no-operations between two accesses".to_owned(),
        y: "time of both, over that of one".to_owned(),
        x_unit: Unit::Count,
        logarithmic: true,
        paper: vec![over("Haswell, huge pages, points in the text", ONE, &paper.map(|(x, y)| (x, y, y)))],
        here: vec![measured("here, huge pages".to_owned(), points)],
    })
}

/// N accesses, by N: 220 cycles for two and 340 for ten (4.2, 2), 420 for eleven (1.5, 2); with
/// small pages 490 to 500 for five and 560 to 570 for six (2.2, 4).
pub(super) fn bursts(evidence: &Evidence<'_>) -> Result<ClaimCurves, Missing> {
    let here = of_machine(evidence)?.kinds.iter().filter_map(burst_by_number);
    let huge = [(1.0, ONE), (2.0, 220.0), (10.0, 340.0), (11.0, 420.0)].map(|(x, y)| (x, y, y));
    let small = [(1.0, ONE_SMALL, ONE_SMALL), (5.0, 490.0, 500.0), (6.0, 560.0, 570.0)];
    Ok(ClaimCurves {
        id: "bursts".to_owned(),
        title: "Independent accesses take less time than as many in sequence".to_owned(),
        place: "figures 1.1 and 2.1".to_owned(),
        claims: ["effective-mlp", "cost-of-parallelism", "small-pages-halve-mlp"].map(str::to_owned).to_vec(),
        x: "independent accesses".to_owned(),
        y: "time of all of them, over that of one".to_owned(),
        x_unit: Unit::Count,
        logarithmic: false,
        paper: vec![
            over("Haswell, huge pages, points in the text", ONE, &huge),
            over("Haswell, small pages, points in the text", ONE_SMALL, &small),
        ],
        here: here.collect(),
    })
}

/// Cycles that the document states, over those of one access.
fn over(name: &str, one: f64, points: &[(f64, f64, f64)]) -> ClaimCurve {
    let points: Vec<_> = points.iter().map(|&(x, lo, hi)| (x, lo / one, hi / one)).collect();
    stated(name, Unit::Ratio, &points)
}

fn burst_by_number(kind: &MlpOfPages) -> Option<ClaimCurve> {
    let one = burst(kind, 1).ok()?;
    let over_one = |accesses: u32, time: &Quantity| match accesses {
        1 => Some(Quantity::claimed(1.0, Unit::Ratio)),
        _ => ratio(time, one).ok(),
    };
    let points = kind.bursts.iter().filter(|shot| (1..=LONGEST).contains(&shot.accesses));
    let points = points
        .filter_map(|shot| Some((f64::from(shot.accesses), over_one(shot.accesses, &shot.time.ticks)?)));
    let pages = if kind.pages.asked == "4K" { "small" } else { "huge" };
    Some(measured(format!("here, {pages} pages"), points))
}

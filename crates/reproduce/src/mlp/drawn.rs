//! Figures 1.1, 2.1 and 5.1: times of accesses over that of a lone one, by the points that the text
//! states.

use super::figures::{burst, huge, of_machine};
use crate::curves::{measured, stated};
use crate::evidence::{Evidence, not_identifiable, ratio};
use crate::missing::Missing;
use records::machine::{AreaBursts, MlpOfPages};
use records::reproduction::{ClaimCurve, ClaimCurves};
use units::{Bytes, Quantity, Unit};

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

/// N accesses of which fillers keep the last one apart, a line for each N: 220 cycles for two and
/// 420 for eleven (1.5, 2) before the cliff, 420 for two behind it (1.5, 1).
pub(super) fn curves(evidence: &Evidence<'_>) -> Result<ClaimCurves, Missing> {
    let kind = huge(evidence)?;
    let one = burst(kind, 1)?;
    let shown = kind.curves.iter().filter(|curve| SHOWN_CURVES.contains(&curve.accesses));
    let here = shown.map(|curve| {
        let points = curve.points.iter();
        let points = points.filter_map(|p| Some((f64::from(p.gap), ratio(&p.time.ticks, one).ok()?)));
        measured(format!("here, N = {}", curve.accesses), points)
    });
    let two = [(1.0, 220.0), (186.0, 220.0), (188.0, 420.0), (210.0, 420.0)];
    let eleven = [(1.0, 420.0), (186.0, 420.0)];
    Ok(ClaimCurves {
        id: "curves".to_owned(),
        title: "N accesses, the last one behind no-operations: a line for each N".to_owned(),
        place: "figure 1.1".to_owned(),
        claims: ["cliff-doubles", "effective-mlp"].map(str::to_owned).to_vec(),
        x: "no-operations before the last access".to_owned(),
        y: "time of all of them, over that of one".to_owned(),
        x_unit: Unit::Count,
        logarithmic: true,
        paper: vec![
            over("Haswell, N = 2, points in the text", ONE, &two.map(|(x, y)| (x, y, y))),
            over("Haswell, N = 11, points in the text", ONE, &eleven.map(|(x, y)| (x, y, y))),
        ],
        here: here.collect(),
    })
}

/// As many lines as a figure tells apart, beside those of the document.
const SHOWN_CURVES: [u32; 6] = [2, 4, 6, 8, 10, 11];
const SHOWN_AREAS: [u32; 5] = [1, 2, 4, 6, 11];

/// N accesses by the size of the array: 4 cycles for one and 65 for ten in the first cache (5.3, 2
/// and 9), 200 and 340 in memory (5.3, 10). Of one access in the largest array here.
pub(super) fn areas(evidence: &Evidence<'_>) -> Result<ClaimCurves, Missing> {
    let kind = huge(evidence)?;
    let largest = kind.areas.last().and_then(|area| area.bursts.iter().find(|shot| shot.accesses == 1));
    let Some(one) = largest.map(|shot| &shot.time.ticks) else {
        return not_identifiable("bursts over the size of the array were not measured");
    };
    let here = SHOWN_AREAS.iter().filter_map(|&n| {
        let of_n = |area: &AreaBursts| {
            let shot = area.bursts.iter().find(|shot| shot.accesses == n)?;
            Some((area.area.0 as f64, ratio(&shot.time.ticks, one).ok()?))
        };
        let curve = measured(format!("here, N = {n}"), kind.areas.iter().filter_map(of_n));
        (!curve.points.is_empty()).then_some(curve)
    });
    let (l1, memory) = (Bytes::kib(16).0 as f64, Bytes::gib(1).0 as f64);
    let stated = |name, cycles: [f64; 2]| {
        over(name, 200.0, &[(l1, cycles[0], cycles[0]), (memory, cycles[1], cycles[1])])
    };
    Ok(ClaimCurves {
        id: "areas".to_owned(),
        title: "N accesses, by the size of the array that they are drawn from".to_owned(),
        place: "figure 5.1".to_owned(),
        claims: ["cost-of-parallelism", "step-beyond-mlp"].map(str::to_owned).to_vec(),
        x: "array".to_owned(),
        y: "time of all of them, over that of one in memory".to_owned(),
        x_unit: Unit::Bytes,
        logarithmic: true,
        paper: vec![
            stated("Haswell, N = 1, two points in the text", [4.0, 200.0]),
            stated("Haswell, N = 10, two points in the text", [65.0, 340.0]),
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

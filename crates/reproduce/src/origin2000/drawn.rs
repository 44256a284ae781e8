//! Figure 1 as equations 3, 5 and 6 give it with the constants of table 1, beside windows here.

use super::figures::curve;
use crate::curves::{measured, stated};
use crate::evidence::Evidence;
use crate::missing::Missing;
use records::reproduction::ClaimCurves;
use units::{Basis, Quantity, Unit};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
/// Sizes of the on-chip cache and of the SL cache (3.1), and the reach of the TLB (3.2).
const ON_CHIP: f64 = 32.0 * KIB;
const SL: f64 = 4.0 * MIB;
const TLB_REACH: f64 = 64.0 * 16.0 * KIB;
/// Beyond this the home memory is used up, or equation 7 begins.
const HOME: f64 = 256.0 * MIB;

/// What a double costs in a window of this size, in nanoseconds, averaged over an area.
fn origin2000(area: f64, window: f64) -> f64 {
    const DOUBLE: f64 = 8.0;
    let sl = 53.0 * window / 32.0;
    let home = (110.0 + 468.0) * window / 128.0;
    let beyond = |size: f64| (1.0 - size / area).max(0.0);
    let tlb = 1005.0 * beyond(TLB_REACH);
    (sl * beyond(ON_CHIP) + home * beyond(ON_CHIP + SL) + tlb) / (window / DOUBLE)
}

pub(super) fn windows(evidence: &Evidence<'_>) -> Result<ClaimCurves, Missing> {
    let here = curve(evidence, true).or_else(|_| curve(evidence, false))?;
    let window = here.window.0 as f64;
    let areas = (6..).map(|n| KIB * f64::from(1 << n)).take_while(|&area| area <= HOME);
    let paper: Vec<_> =
        areas.map(|area| (area, origin2000(area, window), origin2000(area, window))).collect();
    let doubles = window / 8.0;
    let points = here.points.iter().map(|p| (p.area.0 as f64, each(&p.cost.ns, doubles)));
    Ok(ClaimCurves {
        id: "windows".to_owned(),
        title: "A double costs more with each cache that the area outgrows".to_owned(),
        place: "figure 1; equations 3, 5 and 6 with table 1".to_owned(),
        claims: ["levels-identified", "memory-over-second-cache"].map(str::to_owned).to_vec(),
        x: "area".to_owned(),
        y: format!("time for each double in windows of {} (ns)", here.window),
        x_unit: Unit::Bytes,
        logarithmic: true,
        paper: vec![stated("Origin2000 by its fit, without the program's own time", Unit::Nanos, &paper)],
        here: vec![measured(format!("here, {} pages", here.pages.asked), points)],
    })
}

/// A part of a time.
fn each(time: &Quantity, parts: f64) -> Quantity {
    match time {
        Quantity::Resolved { value, lo, hi, unit, disturbed, bound, .. } => Quantity::Resolved {
            value: value / parts,
            lo: lo / parts,
            hi: hi / parts,
            unit: *unit,
            basis: Basis::Measured,
            disturbed: disturbed.clone(),
            bound: *bound,
        },
        unresolved @ Quantity::Unresolved { .. } => unresolved.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_areas_cost_what_table_2_says() {
        // 75.5 MFLOPS in the SL cache, 20.3 in the home memory: a double for each operation. The
        // TLB is not in table 2.
        let window = 4.0 * KIB;
        let tlb = 1005.0 / 512.0 * (1.0 - TLB_REACH / 1e12);
        assert!((origin2000(1e12, window) - tlb - 1000.0 / 20.3).abs() < 0.2);
        assert!((53.0 / 4.0 - 1000.0 / 75.5_f64).abs() < 0.01);
        assert_eq!(origin2000(ON_CHIP, window), 0.0);
    }
}

//! Time per window over area.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.windows.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "window_bytes,vectorised,pages,area_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         blocks,voided\n",
    );
    for curve in &result.curves {
        for p in &curve.points {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{}",
                curve.window.0,
                curve.vectorised,
                curve.pages.asked,
                p.area.0,
                cells(&p.cost.ns),
                cells(&p.cost.cycles),
                cells(&p.cost.ticks),
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}

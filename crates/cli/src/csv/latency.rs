//! Latency over size, all curves in one table; and the two columns that `lat_mem_rd` prints.

use super::cells;
use records::machine::{Access, Curve, Machine, Pattern};
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.latency.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "pattern,access,pages,size_bytes,pitch_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         min_ns,p05_ns,p95_ns,blocks,voided\n",
    );
    for curve in &result.curves {
        let (pattern, access) = (curve.pattern.word(), curve.access.word());
        for p in &curve.points {
            let _ = writeln!(
                text,
                "{pattern},{access},{},{},{},{},{},{},{},{},{},{},{}",
                curve.pages.asked,
                p.size.0,
                p.pitch.0,
                cells(&p.latency.ns),
                cells(&p.latency.cycles),
                cells(&p.latency.ticks),
                p.min_ns,
                p.p05_ns,
                p.p95_ns,
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}

/// As `lat_mem_rd` prints it: the stride, then size in megabytes and nanoseconds a load.
pub(crate) fn lat_mem_rd(machine: &Machine) -> Option<String> {
    let result = machine.experiments.latency.as_ref()?.result.as_ref()?;
    let main = |c: &&Curve| c.pattern == Pattern::Random && c.access == Access::Read && !c.points.is_empty();
    let curve = result.curves.iter().find(main)?;
    let mut text = format!("\"stride={}\n", curve.points[0].pitch.0);
    for p in &curve.points {
        if let Some(ns) = p.latency.ns.value() {
            let _ = writeln!(text, "{:.5} {:.3}", p.size.0 as f64 / f64::from(1 << 20), ns);
        }
    }
    Some(text)
}

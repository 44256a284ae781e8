//! Latency over stride and size.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.stride.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "direction,size_bytes,stride_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,blocks,voided\n",
    );
    for p in &result.points {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{}",
            p.direction.word(),
            p.size.0,
            p.stride.0,
            cells(&p.latency.ns),
            cells(&p.latency.cycles),
            cells(&p.latency.ticks),
            p.blocks,
            p.voided
        );
    }
    Some(text)
}

//! Pairs of chains, spread over pages and packed, of every pass.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.tlb.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "pages,pass,count,spread_cycles,spread_cycles_lo,spread_cycles_hi,packed_cycles,packed_cycles_lo,packed_cycles_hi\n",
    );
    for kind in &result.kinds {
        for p in &kind.points {
            let (spread, packed) = (cells(&p.spread), cells(&p.packed));
            let _ = writeln!(text, "{},{},{},{spread},{packed}", kind.pages.asked, p.pass, p.pages);
        }
    }
    Some(text)
}

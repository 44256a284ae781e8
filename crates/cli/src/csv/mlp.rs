//! Every shot and every number of chains, in one table.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;
use units::Latency;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.mlp.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "combination,pages,what,accesses,gap,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi\n",
    );
    for kind in &result.kinds {
        let mut line = |what: &str, accesses: u32, gap: u32, time: &Latency| {
            let _ = writeln!(
                text,
                "{},{},{what},{accesses},{gap},{},{},{}",
                kind.combination,
                kind.pages.asked,
                cells(&time.ns),
                cells(&time.cycles),
                cells(&time.ticks)
            );
        };
        line("empty", 0, 0, &kind.empty);
        for shot in &kind.bursts {
            line("burst", shot.accesses, 1, &shot.time);
        }
        for shot in kind.translated.iter().flat_map(|t| &t.bursts) {
            line("translated burst", shot.accesses, 1, &shot.time);
        }
        for shot in &kind.gaps {
            line("gap", 2, shot.gap, &shot.time);
        }
        for shot in &kind.sequence {
            line("sequence", shot.accesses, 0, &shot.time);
        }
        for point in &kind.chains {
            line("chains", point.chains, 0, &point.round);
        }
    }
    Some(text)
}

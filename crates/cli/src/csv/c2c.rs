//! Hand-overs between CPUs, a row a pair; and false sharing.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.c2c.as_ref()?.result.as_ref()?;
    let mut text = String::from("what,from,to,nearness,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi\n");
    for p in &result.pairs {
        let _ = writeln!(
            text,
            "transfer,{},{},{},{},{}",
            p.from,
            p.to,
            p.nearness.words(),
            cells(&p.latency.ns),
            cells(&p.latency.cycles)
        );
    }
    for f in &result.false_sharing {
        let how = if f.locked { "locked" } else { "plain" };
        for (where_, latency) in [("apart", &f.apart), ("together", &f.together)] {
            let _ = writeln!(
                text,
                "{how} {where_},{},{},{},{},{}",
                f.cpus[0],
                f.cpus[1],
                f.nearness.words(),
                cells(&latency.ns),
                cells(&latency.cycles)
            );
        }
    }
    Some(text)
}

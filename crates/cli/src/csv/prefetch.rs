//! Every pattern under every state of the prefetchers.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.prefetch.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "state,setting,size_bytes,pattern,number,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         blocks,voided\n",
    );
    for state in &result.states {
        for p in &state.probes {
            let (pattern, number) = p.probe.word();
            let _ = writeln!(
                text,
                "{},{},{},{pattern},{},{},{},{},{},{}",
                state.name,
                state.setting.as_deref().unwrap_or(""),
                p.size.0,
                number.map_or(String::new(), |n| n.to_string()),
                cells(&p.latency.ns),
                cells(&p.latency.cycles),
                cells(&p.latency.ticks),
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}

//! Rates of streams, and latency under load, in one table: `loaded` rows have a latency and a pause.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.bandwidth.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "what,operation,within,size_bytes,threads,pause,bytes_per_s,bytes_per_s_lo,bytes_per_s_hi,ns,ns_lo,ns_hi\n",
    );
    for s in &result.streams {
        let operation = s.operation.word();
        let _ = writeln!(
            text,
            "stream,{operation},{},{},{},,{},,,",
            s.within,
            s.size.0,
            s.threads,
            cells(&s.rate)
        );
    }
    for curve in &result.loaded {
        for p in &curve.points {
            let pause = p.pause.map_or(String::new(), |p| p.to_string());
            let streams = if p.pause.is_some() { curve.streams } else { 0 };
            let _ = writeln!(
                text,
                "loaded,{},DRAM,,{streams},{pause},{},{}",
                curve.traffic.word(),
                cells(&p.rate),
                cells(&p.latency.ns)
            );
        }
    }
    Some(text)
}

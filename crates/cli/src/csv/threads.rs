//! Latency of each thread, for each size and number of threads.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.threads.as_ref()?.result.as_ref()?;
    let mut text = String::from("within,size_bytes,threads,cpu,ns,ns_lo,ns_hi\n");
    for c in &result.crowds {
        for t in &c.per_thread {
            let _ = writeln!(text, "{},{},{},{},{}", c.within, c.size.0, c.threads, t.cpu, cells(&t.ns));
        }
    }
    Some(text)
}

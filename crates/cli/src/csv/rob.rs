//! The time of a pair of misses over the gap, for every filler.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.rob.as_ref()?.result.as_ref()?;
    let mut text = String::from("filler,gap,cycles,cycles_lo,cycles_hi\n");
    for cliff in &result.cliffs {
        for point in &cliff.points {
            let _ = writeln!(text, "{},{},{}", cliff.filler, point.gap, cells(&point.cycles));
        }
    }
    Some(text)
}

//! The clock experiment as rows: it has no points, only figures.

use super::cells;
use records::machine::Machine;
use units::Quantity;

const HEAD: &str = "figure,value,lo,hi,unit\n";

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let clock = machine.experiments.clock.as_ref()?.result.as_ref()?;
    let figures: [(&str, &Quantity); 9] = [
        ("tsc", &clock.tsc),
        ("tsc_claimed", &clock.tsc_claimed),
        ("granularity", &clock.granularity),
        ("read_cost", &clock.read_cost),
        ("core", &clock.core),
        ("cycles_per_tick", &clock.cycles_per_tick),
        ("cycles_per_tick_by_muls", &clock.cycles_per_tick_by_muls),
        ("core_wander", &clock.core_wander),
        ("drift", &clock.drift),
    ];
    let mut table = HEAD.to_owned();
    for (name, figure) in figures {
        let unit = match figure {
            Quantity::Resolved { unit, .. } => unit.symbol().to_owned(),
            Quantity::Unresolved { .. } => String::new(),
        };
        table.push_str(&format!("{name},{},{unit}\n", cells(figure)));
    }
    Some(table)
}

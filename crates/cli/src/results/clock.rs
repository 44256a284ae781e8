//! The clocks in a line.

use super::Results;
use crate::figures::{cells, figure, trouble};
use records::machine::Machine;
use units::Quantity;

pub(super) const RESULTS: Results = Results { name: "clock", title: "Clock", lines, csv };

fn lines(machine: &Machine, _width: usize) -> Option<String> {
    let outcome = machine.experiments.clock.as_ref()?;
    let Some(clock) = &outcome.result else {
        return trouble("clock", Some(outcome)).map(|line| format!("  {line}\n"));
    };
    Some(format!(
        "  core {}, counter {}; {} core cycles a tick ({} by multiplications)\n  the counter moves in steps of {} ticks, \
         reading it costs {} ticks; core clock wander {}\n",
        clock.core.brief(),
        clock.tsc.brief(),
        figure(&clock.cycles_per_tick),
        figure(&clock.cycles_per_tick_by_muls),
        figure(&clock.granularity),
        figure(&clock.read_cost),
        clock.core_wander.value().map_or("not resolved".to_owned(), |w| format!("{:.1}%", w * 100.0)),
    ))
}

/// The clock experiment as rows: it has no points, only figures.
const HEAD: &str = "figure,value,lo,hi,unit\n";

fn csv(machine: &Machine) -> Option<String> {
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

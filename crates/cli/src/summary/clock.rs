//! The clocks in a line.

use super::{figure, trouble};
use records::machine::Machine;
use units::Quantity;

pub(super) fn lines(machine: &Machine) -> Option<String> {
    let outcome = machine.experiments.clock.as_ref()?;
    let Some(clock) = &outcome.result else {
        return trouble("clock", Some(outcome)).map(|line| format!("  {line}\n"));
    };
    Some(format!(
        "  core {}, counter {}; {} core cycles a tick ({} by multiplications)\n  the counter moves in steps of {} ticks, \
         reading it costs {} ticks; core clock wander {}\n",
        giga(&clock.core),
        giga(&clock.tsc),
        figure(&clock.cycles_per_tick),
        figure(&clock.cycles_per_tick_by_muls),
        figure(&clock.granularity),
        figure(&clock.read_cost),
        clock.core_wander.value().map_or("not resolved".to_owned(), |w| format!("{:.1}%", w * 100.0)),
    ))
}

fn giga(hertz: &Quantity) -> String {
    match hertz.value() {
        Some(hz) => format!("{:.3} GHz", hz / 1e9),
        None => "not resolved".to_owned(),
    }
}

//! What a switch to other work costs, beside what it is compared with.

use crate::figure::bars::{Bar, bars};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::figures as in_figures;
use records::machine::{Call, Yields};
use units::Latency;

pub(super) fn figures(yields: &Yields, out: &mut Out) {
    let mut all: Vec<(String, &Latency, usize)> = Vec::new();
    for switch in &yields.user {
        let flags = if switch.flags { ", flags" } else { "" };
        let name = format!("{} regs, {} vec{flags}, {} sites", switch.live, switch.vectors, switch.sites);
        all.push((name, &switch.cost, 0));
    }
    for hand in &yields.kernel {
        let place = if hand.same_cpu { "same CPU" } else { "other CPU" };
        all.push((format!("{}, {place}", hand.by.word()), &hand.cost, 1));
    }
    for call in &yields.calls {
        let name = match call.what {
            Call::Function => "function call",
            Call::ReadTsc => "reading the counter",
            Call::SystemCall => "system call",
            Call::YieldToNobody => "sched_yield, alone",
        };
        all.push((name.to_owned(), &call.cost, 2));
    }
    let mut table = Table::with_head("Switches", &["what", "time", "cycles"]);
    let mut drawn = Vec::new();
    for (name, cost, class) in &all {
        table.row(vec![Cell::text(name), Cell::quantity(&cost.ns), Cell::quantity(&cost.cycles)]);
        // By the kernel it takes a hundred times as long: beside that nothing else would show.
        if let Some(value) = cost.ns.estimate().filter(|e| e.value < 400.0) {
            drawn.push(Bar { name: name.clone(), value, shown: in_figures(value), class: *class });
        }
    }
    if drawn.is_empty() {
        out.table(&table);
        return;
    }
    let title = "A switch without the kernel costs little beside a miss".to_owned();
    let svg = bars(&title, "ns (what takes longer is in the table)", &drawn);
    let differs = "more live registers cost more; hypervisors make what passes through the kernel dearer.";
    out.figure(Figure { id: "switch", title, svg, table, differs });
}

//! What it costs to let somebody else run.

use super::cells;
use records::machine::Machine;
use std::fmt::Write;
use units::Latency;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.yields.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "what,live,flags,vectors,sites,partner_cpu,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi\n",
    );
    let mut row = |what: &str, details: String, cost: &Latency| {
        let (ns, cycles, ticks) = (cells(&cost.ns), cells(&cost.cycles), cells(&cost.ticks));
        let _ = writeln!(text, "{what},{details},{ns},{cycles},{ticks}");
    };
    for u in &result.user {
        row("switch", format!("{},{},{},{},", u.live, u.flags, u.vectors, u.sites), &u.cost);
    }
    for k in &result.kernel {
        row(k.by.word(), format!(",,,,{}", k.partner_cpu), &k.cost);
    }
    for c in &result.calls {
        row(c.what.word(), ",,,,".to_owned(), &c.cost);
    }
    Some(text)
}

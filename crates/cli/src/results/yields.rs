//! What a switch costs: between contexts in user space, and between threads by way of the kernel.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Call, HandOverBy, Machine, UserSwitch};
use std::fmt::Write;
use units::Latency;

pub(super) const RESULTS: Results = Results { name: "yield", title: "Yields and switches", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.yields.as_ref()?;
    let mut text = trouble("yield", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    let mut rows = vec![row(["", "cycles", "ns"])];
    let mut add =
        |what: String, cost: &Latency| rows.push(vec![what, figure(&cost.cycles), figure(&cost.ns)]);
    for user in &result.user {
        add(user_switch(user), &user.cost);
    }
    for hand in &result.kernel {
        let by = match hand.by {
            HandOverBy::Futex => "futex",
            HandOverBy::Pipe => "pipe",
            HandOverBy::SchedYield => "sched_yield",
        };
        let place =
            if hand.same_cpu { "on one CPU".to_owned() } else { format!("to CPU {}", hand.partner_cpu) };
        add(format!("threads, {by}, {place}"), &hand.cost);
    }
    for call in &result.calls {
        let what = match call.what {
            Call::Function => "calling a function",
            Call::ReadTsc => "reading the time stamp counter, fenced",
            Call::SystemCall => "an empty system call",
            Call::YieldToNobody => "sched_yield, no other thread ready",
        };
        add(what.to_owned(), &call.cost);
    }
    text.push_str(&table::draw(&rows, width));
    Some(text)
}

fn user_switch(user: &UserSwitch) -> String {
    let mut what = format!("switch, {} registers", user.live);
    if user.flags {
        what.push_str(", flags");
    }
    if user.vectors > 0 {
        what.push_str(&format!(", {} vectors", user.vectors));
    }
    match user.sites {
        1 => what.push_str(", at one site"),
        n => what.push_str(&format!(", at {n} sites")),
    }
    what
}

/// A row for each kind of switch and call.
fn csv(machine: &Machine) -> Option<String> {
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

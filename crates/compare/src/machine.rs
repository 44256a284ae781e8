//! The figures of a machine record. Latencies are compared in nanoseconds: what a program waits.
//!
//! To add an experiment: a function here, called in [`figures`]; what it is for stands in headline
//! figures, its points are details.

use crate::figure::{Better, Figure, Figures};
use records::machine::{Machine, Outcome, PageSupply};
use units::Bytes;

use Better::{Higher, Lower};

pub(crate) fn figures(machine: &Machine) -> Vec<Figure> {
    let mut figures = Figures::default();
    let experiments = &machine.experiments;
    for level in &machine.levels {
        figures.headline(format!("{} latency", level.name), Lower, &level.latency.ns);
        figures.detail(format!("{} size", level.name), Higher, &level.size);
    }
    if let Some(clock) = result(experiments.clock.as_ref()) {
        figures.headline("core clock", Higher, &clock.core);
        figures.detail("reading the counter", Lower, &clock.read_cost);
    }
    latency(machine, &mut figures);
    memory(machine, &mut figures);
    translation(machine, &mut figures);
    depth(machine, &mut figures);
    others(machine, &mut figures);
    switches(machine, &mut figures);
    figures.0
}

fn result<T>(outcome: Option<&Outcome<T>>) -> Option<&T> {
    outcome.and_then(|outcome| outcome.result.as_ref())
}

/// The kind of pages that was asked for, and whether it was had.
fn pages(supply: &PageSupply) -> String {
    let had = if supply.share < 0.5 && supply.asked != "4K" { " (not had)" } else { "" };
    format!("{} pages{had}", supply.asked)
}

fn latency(machine: &Machine, figures: &mut Figures) {
    for curve in result(machine.experiments.latency.as_ref()).iter().flat_map(|all| &all.curves) {
        let kind = format!("{} {}, {}", curve.pattern.word(), curve.access.word(), pages(&curve.pages));
        for point in &curve.points {
            let pitch = if point.pitch.0 == 64 { String::new() } else { format!(", every {}", point.pitch) };
            figures.detail(format!("{kind}, {}{pitch}", point.size), Lower, &point.latency.ns);
        }
    }
    for point in result(machine.experiments.stride.as_ref()).iter().flat_map(|all| &all.points) {
        let name = format!("stride {} {} in {}", point.direction.word(), point.stride, point.size);
        figures.detail(name, Lower, &point.latency.ns);
    }
    let found = result(machine.experiments.prefetch.as_ref()).and_then(|all| all.states.first());
    for point in found.iter().flat_map(|state| &state.probes) {
        let (word, number) = point.probe.word();
        let number = number.map(|number| format!(" {number}")).unwrap_or_default();
        figures.detail(format!("prefetch {word}{number} in {}", point.size), Lower, &point.latency.ns);
    }
    for curve in result(machine.experiments.windows.as_ref()).iter().flat_map(|all| &all.curves) {
        let by = if curve.vectorised { " vectorised" } else { "" };
        for point in &curve.points {
            let name = format!("window {}{by}, {}, in {}", curve.window, pages(&curve.pages), point.area);
            figures.detail(name, Lower, &point.cost.ns);
        }
    }
}

fn memory(machine: &Machine, figures: &mut Figures) {
    if let Some(bandwidth) = result(machine.experiments.bandwidth.as_ref()) {
        figures.headline("bandwidth of all CPUs", Higher, &bandwidth.platform_maximum);
        figures.headline("bandwidth of one CPU", Higher, &bandwidth.single_maximum);
        for stream in &bandwidth.streams {
            let threads = counted(stream.threads, "thread");
            let name =
                format!("{} in {} ({}), {threads}", stream.operation.word(), stream.within, stream.size);
            figures.detail(name, Higher, &stream.rate);
        }
    }
    if let Some(numa) = result(machine.experiments.numa.as_ref()) {
        for placed in &numa.placements {
            let name = format!("memory placed {:?}", placed.kind).to_lowercase();
            figures.headline(format!("{name}, latency"), Lower, &placed.latency.ns);
            figures.detail(format!("{name}, {} at once", placed.chains), Lower, &placed.parallel.ns);
        }
        for pair in &numa.matrix {
            let name = format!("node {} to {}", pair.from, pair.to);
            figures.headline(format!("{name}, latency"), Lower, &pair.latency.ns);
            figures.headline(format!("{name}, read rate"), Higher, &pair.read_rate);
        }
    }
}

fn translation(machine: &Machine, figures: &mut Figures) {
    for kind in result(machine.experiments.tlb.as_ref()).iter().flat_map(|all| &all.kinds) {
        for level in &kind.levels {
            let name = format!("TLB level {}, {}", level.level, pages(&kind.pages));
            figures.headline(format!("{name}, miss"), Lower, &level.miss.ns);
            figures.detail(format!("{name}, entries"), Higher, &level.entries);
        }
    }
}

fn depth(machine: &Machine, figures: &mut Figures) {
    for kind in result(machine.experiments.mlp.as_ref()).iter().flat_map(|all| &all.kinds) {
        let kind_of_pages = pages(&kind.pages);
        figures.headline(format!("misses at once, {kind_of_pages}"), Higher, &kind.effective);
        figures.headline(format!("two misses in sequence, {kind_of_pages}"), Lower, &kind.in_sequence.ns);
        figures.headline(format!("miss of many at once, {kind_of_pages}"), Lower, &kind.per_access.ns);
        for point in &kind.chains {
            let name = format!("{} side by side, {kind_of_pages}", counted(point.chains, "chain"));
            figures.detail(name, Lower, &point.round.ns);
        }
    }
    if let Some(rob) = result(machine.experiments.rob.as_ref()) {
        figures.headline("re-order buffer", Higher, &rob.entries);
        for cliff in &rob.cliffs {
            figures.detail(format!("look ahead over {}", cliff.filler), Higher, &cliff.gap);
        }
    }
}

fn others(machine: &Machine, figures: &mut Figures) {
    for crowd in result(machine.experiments.threads.as_ref()).iter().flat_map(|all| &all.crowds) {
        let name =
            format!("{} in {} each ({})", counted(crowd.threads, "thread"), crowd.within, size(crowd.size));
        figures.detail(name, Lower, &crowd.latency.ns);
    }
    if let Some(c2c) = result(machine.experiments.c2c.as_ref()) {
        for class in &c2c.classes {
            figures.headline(format!("line handed over, {}", class.nearness.words()), Lower, &class.ns);
        }
        for pair in &c2c.pairs {
            figures.detail(
                format!("line handed over, CPU {} to {}", pair.from, pair.to),
                Lower,
                &pair.latency.ns,
            );
        }
        for shared in &c2c.false_sharing {
            let [a, b] = shared.cpus;
            let by = if shared.locked { "locked" } else { "plain" };
            figures.detail(format!("one line shared, CPU {a} and {b}, {by}"), Lower, &shared.together.ns);
        }
    }
}

fn switches(machine: &Machine, figures: &mut Figures) {
    let Some(yields) = result(machine.experiments.yields.as_ref()) else { return };
    for switch in &yields.user {
        let flags = if switch.flags { " and flags" } else { "" };
        let name = format!(
            "switch, {} registers{flags}, {} vectors, at {}",
            switch.live,
            switch.vectors,
            counted(switch.sites, "site")
        );
        figures.detail(name, Lower, &switch.cost.ns);
    }
    for hand_over in &yields.kernel {
        let to = if hand_over.same_cpu {
            "on one CPU".to_owned()
        } else {
            format!("to CPU {}", hand_over.partner_cpu)
        };
        figures.headline(format!("threads by {}, {to}", hand_over.by.word()), Lower, &hand_over.cost.ns);
    }
    for call in &yields.calls {
        figures.detail(format!("call: {}", call.what.word()), Lower, &call.cost.ns);
    }
}

fn size(size: Bytes) -> String {
    size.to_string()
}

fn counted(count: u32, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

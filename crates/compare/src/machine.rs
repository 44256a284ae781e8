//! The figures of a machine record. What runs at the core clock is compared in cycles, since the
//! clock is a figure of its own; what lies beyond the core in nanoseconds.
//!
//! To add an experiment: a function here, called in [`figures`]; what it is for stands in headline
//! figures, its points are details.

use crate::figure::{Better, Figure, Figures};
use records::machine::{Direction, Machine, Outcome, PageSupply};
use units::Bytes;

use Better::{Higher, Lower};

pub(crate) fn figures(machine: &Machine) -> Vec<Figure> {
    let mut figures = Figures::default();
    let experiments = &machine.experiments;
    for level in &machine.levels {
        let of_core = matches!(level.name.as_str(), "L1" | "L2");
        let latency = if of_core { &level.latency.cycles } else { &level.latency.ns };
        figures.headline(format!("{} latency", level.name), Lower, latency);
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
    probe(machine, &mut figures);
    figures.0
}

/// Of a fleet probe. How disturbed it was is told with the environment.
fn probe(machine: &Machine, figures: &mut Figures) {
    let Some(probe) = result(machine.experiments.probe.as_ref()) else { return };
    for (name, quantity) in probe.figures().into_iter().filter(|(name, _)| *name != "void_share") {
        let lower = name.ends_with("_latency") || name == "memory_spread";
        figures.headline(format!("probe: {name}"), if lower { Lower } else { Higher }, quantity);
    }
    for node in &probe.nodes {
        figures.headline(format!("probe: node {}, bandwidth", node.node), Higher, &node.bandwidth);
        figures.headline(format!("probe: node {}, latency", node.node), Lower, &node.latency.ns);
    }
}

fn result<T>(outcome: Option<&Outcome<T>>) -> Option<&T> {
    outcome.and_then(|outcome| outcome.result.as_ref())
}

/// The kind of pages that was asked for. Whether it was had is told with the environment: the same
/// figure on other pages is what a comparison is to find.
fn pages(supply: &PageSupply) -> String {
    format!("{} pages", supply.asked)
}

/// For each experiment that asks for huge pages, the share of its memory that has them.
pub(crate) fn huge_pages(machine: &Machine) -> Vec<(&'static str, f64)> {
    let experiments = &machine.experiments;
    let latency = result(experiments.latency.as_ref()).map(|all| all.curves.iter().map(|curve| &curve.pages));
    let windows = result(experiments.windows.as_ref()).map(|all| all.curves.iter().map(|curve| &curve.pages));
    let mlp = result(experiments.mlp.as_ref()).map(|all| all.kinds.iter().map(|kind| &kind.pages));
    let tlb = result(experiments.tlb.as_ref()).map(|all| all.kinds.iter().map(|kind| &kind.pages));
    let all: [(&'static str, Vec<&PageSupply>); 7] = [
        ("huge pages in latency", latency.into_iter().flatten().collect()),
        ("huge pages in windows", windows.into_iter().flatten().collect()),
        ("huge pages in mlp", mlp.into_iter().flatten().collect()),
        ("huge pages in tlb", tlb.into_iter().flatten().collect()),
        (
            "huge pages in stride",
            result(experiments.stride.as_ref()).map(|all| &all.pages).into_iter().collect(),
        ),
        (
            "huge pages in prefetch",
            result(experiments.prefetch.as_ref()).map(|all| &all.pages).into_iter().collect(),
        ),
        ("huge pages in rob", result(experiments.rob.as_ref()).map(|all| &all.pages).into_iter().collect()),
    ];
    let had = |(topic, supplies): (&'static str, Vec<&PageSupply>)| {
        let shares: Vec<f64> = supplies
            .iter()
            .filter(|supply| !supply.asked.starts_with("4K"))
            .map(|supply| supply.share)
            .collect();
        (!shares.is_empty()).then(|| (topic, shares.iter().sum::<f64>() / shares.len() as f64))
    };
    all.into_iter().filter_map(had).collect()
}

fn latency(machine: &Machine, figures: &mut Figures) {
    for curve in result(machine.experiments.latency.as_ref()).iter().flat_map(|all| &all.curves) {
        let kind = format!("{} {}, {}", curve.pattern.word(), curve.access.word(), pages(&curve.pages));
        for point in &curve.points {
            let pitch = if point.pitch.0 == 64 { String::new() } else { format!(", every {}", point.pitch) };
            figures.detail(format!("{kind}, {}{pitch}", point.size), Lower, &point.latency.ns);
        }
    }
    let strides = result(machine.experiments.stride.as_ref()).map(|all| &all.points);
    let largest = strides.and_then(|points| points.iter().map(|point| point.size).max());
    for point in result(machine.experiments.stride.as_ref()).iter().flat_map(|all| &all.points) {
        let name = format!("stride {} {} in {}", point.direction.word(), point.stride, point.size);
        if largest == Some(point.size) && point.direction == Direction::Random {
            figures.headline(name, Lower, &point.latency.ns);
        } else {
            figures.detail(name, Lower, &point.latency.ns);
        }
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
            figures.headline(format!("{name}, miss"), Lower, &level.miss.cycles);
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
        figures.detail(name, Lower, &switch.cost.cycles);
    }
    for hand_over in &yields.kernel {
        if hand_over.same_cpu {
            let name = format!("threads by {}, on one CPU", hand_over.by.word());
            figures.headline(name, Lower, &hand_over.cost.cycles);
            continue;
        }
        let to = format!("to CPU {}", hand_over.partner_cpu);
        figures.headline(format!("threads by {}, {to}", hand_over.by.word()), Lower, &hand_over.cost.ns);
    }
    for call in &yields.calls {
        figures.detail(format!("call: {}", call.what.word()), Lower, &call.cost.cycles);
    }
}

fn size(size: Bytes) -> String {
    size.to_string()
}

fn counted(count: u32, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

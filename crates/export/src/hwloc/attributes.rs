//! What was measured, from which CPUs, to which node.

use super::set::Set;
use records::host::Host;
use records::machine::Machine;
use units::Quantity;

pub(super) struct Attribute {
    /// As hwloc calls it.
    pub(super) name: &'static str,
    /// hwloc's flags: 4, a value belongs to an initiator; and 1, higher is better, or 2, lower is.
    pub(super) flags: u32,
    pub(super) values: Vec<AttributeValue>,
}

pub(super) struct AttributeValue {
    /// The CPUs that it was measured from.
    pub(super) initiator: Set,
    /// The node that it was measured to.
    pub(super) target: u32,
    pub(super) value: u64,
}

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn of(machine: &Machine) -> Vec<Attribute> {
    let (latencies, rates) = measured(machine);
    // A second name for the same: what was measured is reading.
    let rows = [
        ("Bandwidth", 5, &rates, 1.0 / MIB),
        ("Latency", 6, &latencies, 1.0),
        ("ReadBandwidth", 5, &rates, 1.0 / MIB),
        ("ReadLatency", 6, &latencies, 1.0),
    ];
    rows.into_iter().map(|(name, flags, pairs, scale)| attribute(name, flags, pairs, scale)).collect()
}

/// A quantity with its initiator and target.
type Pair<'a> = (Set, u32, &'a Quantity);

fn attribute(name: &'static str, flags: u32, pairs: &[Pair<'_>], scale: f64) -> Attribute {
    let value = |(initiator, target, quantity): &Pair<'_>| {
        let value = (quantity.value()? * scale).round();
        let attribute = AttributeValue { initiator: initiator.clone(), target: *target, value: value as u64 };
        (value >= 1.0).then_some(attribute)
    };
    Attribute { name, flags, values: pairs.iter().filter_map(value).collect() }
}

/// Latencies and rates: of the NUMA experiment, of a probe, or of the only node.
fn measured(machine: &Machine) -> (Vec<Pair<'_>>, Vec<Pair<'_>>) {
    let (host, experiments) = (&machine.host, &machine.experiments);
    if let Some(numa) = experiments.numa.as_ref().and_then(|outcome| outcome.result.as_ref()) {
        let latency = |pair| -> Pair<'_> {
            let pair: &records::machine::NodePair = pair;
            (cpus_of(host, pair.from), pair.to, &pair.latency.ns)
        };
        // One CPU read: what its whole node reads was not measured.
        let rate = |pair| -> Pair<'_> {
            let pair: &records::machine::NodePair = pair;
            (Set::from_iter([pair.cpu]), pair.to, &pair.read_rate)
        };
        return (numa.matrix.iter().map(latency).collect(), numa.matrix.iter().map(rate).collect());
    }
    let probe = experiments.probe.as_ref().and_then(|outcome| outcome.result.as_ref());
    if let Some(probe) = probe.filter(|probe| !probe.nodes.is_empty()) {
        let latencies =
            probe.nodes.iter().map(|node| (cpus_of(host, node.node), node.node, &node.latency.ns));
        let rates = probe.nodes.iter().map(|node| (cpus_of(host, node.node), node.node, &node.bandwidth));
        return (latencies.collect(), rates.collect());
    }
    let [node] = &host.nodes[..] else {
        // Several nodes, and no figure says of which it is; or none, which hwloc takes for one.
        let none = (Vec::new(), Vec::new());
        return if host.nodes.is_empty() { of_only_node(machine, 0, &all_cpus(host)) } else { none };
    };
    of_only_node(machine, node.id, &all_cpus(host))
}

fn of_only_node<'m>(machine: &'m Machine, node: u32, cpus: &Set) -> (Vec<Pair<'m>>, Vec<Pair<'m>>) {
    let experiments = &machine.experiments;
    let probe = experiments.probe.as_ref().and_then(|outcome| outcome.result.as_ref());
    let memory = machine.levels.iter().find(|level| level.name == "DRAM").map(|level| &level.latency.ns);
    let latency = memory.or_else(|| probe.map(|probe| &probe.memory_latency.ns));
    let bandwidth = experiments.bandwidth.as_ref().and_then(|outcome| outcome.result.as_ref());
    let reads = bandwidth
        .into_iter()
        .flat_map(|bandwidth| &bandwidth.streams)
        .filter(|stream| stream.within == "DRAM" && stream.operation == records::machine::StreamKind::Read);
    let rate = reads.max_by_key(|stream| stream.threads).map(|stream| &stream.rate);
    let rate = rate.or_else(|| probe.map(|probe| &probe.bandwidth_all));
    let pair = |quantity| (cpus.clone(), node, quantity);
    (latency.map(pair).into_iter().collect(), rate.map(pair).into_iter().collect())
}

fn cpus_of(host: &Host, node: u32) -> Set {
    let node = host.nodes.iter().find(|known| known.id == node);
    node.map(|node| node.cpus.iter().collect::<Set>().within(&all_cpus(host))).unwrap_or_default()
}

fn all_cpus(host: &Host) -> Set {
    host.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
}

//! Other CPUs for a program's threads, where these disturb one another, and memory spread over
//! nodes.

use crate::settings::form::Form;
use heap::changes::layout::CPUS;
use records::host::Host;
use records::recipe::Setting;
use std::collections::BTreeSet;

/// CPUs that threads may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    pub says: String,
    pub cpus: Vec<u32>,
}

/// Which CPUs to keep a program's threads on, nearest to one another first; none where there is no
/// choice.
pub(crate) fn cpus(host: &Host) -> Vec<Cpus> {
    let usable: BTreeSet<u32> = host.usable_cpus().into_iter().filter(|cpu| (*cpu as usize) < CPUS).collect();
    // The first CPU has most of the kernel's own work.
    let Some(&last) = usable.last() else { return Vec::new() };
    let of =
        |all: &mut dyn Iterator<Item = u32>| -> Vec<u32> { all.filter(|cpu| usable.contains(cpu)).collect() };
    let siblings = host.cpu(last).and_then(|cpu| cpu.siblings.get());
    let core = siblings.map_or(Vec::new(), |all| of(&mut all.iter()));
    let furthest = host.caches_of(last).into_iter().max_by_key(|cache| cache.level);
    let near = furthest.map_or(Vec::new(), |cache| of(&mut cache.shared_by.iter()));
    let node = host.node_of(last).map_or(Vec::new(), |node| of(&mut node.cpus.iter()));
    let mut sizes = BTreeSet::from([0, usable.len()]);
    [
        ("all threads on one CPU", vec![last]),
        ("all threads on one core", core),
        ("all threads on CPUs of one last-level cache", near),
        ("all threads on one node", node),
    ]
    .into_iter()
    .filter(|(_, cpus)| sizes.insert(cpus.len()))
    .map(|(says, cpus)| Cpus { says: says.to_owned(), cpus })
    .collect()
}

/// The nodes that have memory, if there are several, as bits.
pub(crate) fn nodes(host: &Host) -> Option<u64> {
    let has_memory =
        |node: &&records::host::Node| node.id < 64 && node.total.value().is_none_or(|all| all.0 > 0);
    let nodes: Vec<u32> = host.nodes.iter().filter(has_memory).map(|node| node.id).collect();
    (nodes.len() > 1).then(|| nodes.iter().fold(0, |bits, node| bits | 1 << node))
}

pub(crate) fn on_cpus(forms: &[Cpus]) -> Vec<Form> {
    let form = |form: &Cpus| {
        let setting = Setting::OnCpus { cpus: form.cpus.clone(), says: form.says.clone() };
        Form::new(&form.says, vec![setting])
    };
    forms.iter().map(form).collect()
}

/// CPUs as the library takes them.
pub(crate) fn mask(cpus: &[u32]) -> [u64; CPUS / 64] {
    let mut mask = [0; CPUS / 64];
    for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CPUS) {
        mask[cpu as usize / 64] |= 1_u64 << (cpu % 64);
    }
    mask
}

pub(crate) fn over_nodes(nodes: u64) -> Vec<Form> {
    let says = format!("pages in turn over {} nodes", nodes.count_ones());
    vec![Form::new(&says, vec![Setting::OverNodes { nodes }])]
}

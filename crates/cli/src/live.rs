//! This host, read, probed, and with what only running something can tell.

use host::Source;
use lab::smt;
use records::host::{Fact, Host};
use std::path::Path;

/// Reads and probes this host, and finds out which of its CPUs slow each other down.
pub(crate) fn host() -> Host {
    let mut host = host_without_trying();
    try_siblings(&mut host);
    host
}

/// Reads and probes this host; nothing is run on its other CPUs.
pub(crate) fn host_without_trying() -> Host {
    host::read_with(&Source::open(Path::new("/")), &lab::probe::LiveProber)
}

/// Fills in which pairs of CPUs slow each other down, by running them.
pub(crate) fn try_siblings(host: &mut Host) {
    let cpus: Vec<usize> = host.usable_cpus().into_iter().map(|c| c as usize).collect();
    if cpus.len() < 2 {
        host.topology.smt.measured = Fact::unknown("only one CPU may be used");
        return;
    }
    let mut claimed: Vec<(usize, usize)> = Vec::new();
    for cpu in &host.cpus {
        let others =
            cpu.siblings.get().into_iter().flat_map(records::host::CpuList::iter).filter(|&c| c > cpu.id);
        claimed.extend(others.map(|other| (cpu.id as usize, other as usize)));
    }
    host.topology.smt.measured = match smt::hyperthread_pairs(&cpus, &claimed, 1) {
        Ok(found) => {
            Fact::Known(found.slowed.iter().filter_map(|(a, b)| format!("{a},{b}").parse().ok()).collect())
        }
        Err(error) => Fact::unknown(error.to_string()),
    };
}

//! `--cpu N`: is there such a CPU, and may this process run on it?

use crate::failure::Refusal;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::path::Path;

/// Refuses a CPU that is not there, not online, or not ours.
pub(crate) fn check(cpu: usize) -> Result<(), Refusal> {
    check_under(Path::new("/"), cpu, |cpu| {
        let allowed = sched_getaffinity(None).ok()?;
        (cpu < CpuSet::MAX_CPU).then(|| allowed.is_set(cpu))
    })
}

/// `allowed` says whether this process may run there, if it can be known.
fn check_under(root: &Path, cpu: usize, allowed: impl Fn(usize) -> Option<bool>) -> Result<(), Refusal> {
    let cpus = root.join("sys/devices/system/cpu");
    let what = format!("--cpu {cpu}");
    let online = std::fs::read_to_string(cpus.join("online")).unwrap_or_default();
    let online = online.trim();
    if !cpus.join(format!("cpu{cpu}")).exists() && !online.is_empty() {
        return Err(Refusal::wrong_use(what, format!("there is no such CPU; this host has {online}")));
    }
    let is_online: Option<records::host::CpuList> = online.parse().ok();
    if is_online.is_some_and(|list| !list.contains(cpu as u32)) {
        return Err(Refusal::not_possible_here(what, "that CPU is offline")
            .would_help(format!("as root: echo 1 > /sys/devices/system/cpu/cpu{cpu}/online")));
    }
    if allowed(cpu) == Some(false) {
        return Err(Refusal::not_possible_here(what, "this process may not run there")
            .would_help("see taskset and the cpuset of its control group"));
    }
    Ok(())
}

//! Figures of profiles: before and after the change.

use crate::evidence::{Evidence, Found, needs, not_identifiable, ratio, resolved};
use crate::missing::Missing;
use crate::programs::{FIRST_TOUCH_FASTER, PADDED, PADDED_FASTER, SHARED, TRIAD};
use records::profile::{Profile, Sharing, StallingLoad};
use units::{Quantity, Unit};

/// Of the document's machine.
const L1_BYTES: f64 = 32768.0;

/// CPUs that two threads must have had on average for what one does to the other to show.
const TOGETHER: f64 = 1.5;

/// Threads that hardly ran at the same time decide nothing.
fn together(evidence: &Evidence<'_>) -> Result<(), Missing> {
    for name in [SHARED, PADDED] {
        let summary = &evidence.profile(name)?.summary;
        let (cpu_time, elapsed) = (resolved(&summary.cpu_time)?.0, resolved(&summary.elapsed)?.0);
        let cpus = cpu_time.value / elapsed.value;
        if cpus < TOGETHER {
            return not_identifiable(format!(
                "two threads had {cpus:.1} CPUs: they hardly ran at the same time, as on a busy machine"
            ));
        }
    }
    Ok(())
}

pub(super) fn memory_bound(evidence: &Evidence<'_>) -> Found {
    together(evidence)?;
    Ok(evidence.profile(SHARED)?.summary.memory_bound.clone())
}

pub(super) fn first_function(evidence: &Evidence<'_>) -> Found {
    match evidence.profile(SHARED)?.functions.first() {
        Some(function) => Ok(function.time.clone()),
        None => not_identifiable("no function was sampled"),
    }
}

pub(super) fn object_size(evidence: &Evidence<'_>) -> Found {
    let Some(object) = evidence.profile(SHARED)?.objects.first() else {
        return not_identifiable("no data was waited for");
    };
    let (bytes, disturbed) = resolved(&object.bytes)?;
    Ok(Quantity::modelled(bytes.scaled(1.0 / L1_BYTES), Unit::Ratio).disturbed_by(disturbed))
}

/// Of those that were timed, the load that is waited for most.
fn slowest(profile: &Profile) -> Result<&Quantity, Missing> {
    let timed = |load: &&StallingLoad| load.latency.value().is_some();
    match profile.loads.iter().find(timed) {
        Some(load) => Ok(&load.latency),
        None => not_identifiable("no load was timed: probes need hardware breakpoints"),
    }
}

pub(super) fn latency(evidence: &Evidence<'_>) -> Found {
    together(evidence)?;
    ratio(slowest(evidence.profile(SHARED)?)?, slowest(evidence.profile(PADDED)?)?)
}

pub(super) fn in_shared_lines(evidence: &Evidence<'_>) -> Found {
    together(evidence)?;
    let profile = evidence.profile(SHARED)?;
    if !profile.lines.iter().any(|line| line.sharing == Sharing::False) {
        return not_identifiable("no line was seen to be shared: the threads hardly ran at the same time");
    }
    ratio(&profile.summary.by_level.dirty, &profile.summary.memory_bound)
}

pub(super) fn padding_faster(evidence: &Evidence<'_>) -> Found {
    together(evidence)?;
    Ok(evidence.figure(PADDED_FASTER)?.clone())
}

pub(super) fn padding_bound(evidence: &Evidence<'_>) -> Found {
    together(evidence)?;
    let (padded, shared) = (evidence.profile(PADDED)?, evidence.profile(SHARED)?);
    ratio(&padded.summary.memory_bound, &shared.summary.memory_bound)
}

pub(super) fn triad_bound(evidence: &Evidence<'_>) -> Found {
    Ok(evidence.profile(TRIAD)?.summary.memory_bound.clone())
}

/// Each thread on a node of its own.
pub(super) fn first_touch(evidence: &Evidence<'_>) -> Found {
    evidence.needs_nodes(2, "a second NUMA node")?;
    Ok(evidence.figure(FIRST_TOUCH_FASTER)?.clone())
}

pub(super) fn traffic(evidence: &Evidence<'_>) -> Found {
    let host = &evidence.machine()?.host;
    match host.topology.sockets.value() {
        Some(sockets) if sockets < 2 => needs(&format!("two sockets: this host shows {sockets}")),
        Some(_) if host.counters.devices.iter().any(|device| device.name.starts_with("uncore")) => {
            Err(Missing::NoTest(
                "the kernel lists counters of the sockets' memory controllers and links".to_owned(),
            ))
        }
        Some(sockets) => needs(&format!(
            "counters of memory controllers and links: the kernel lists none for these {sockets} sockets"
        )),
        None => not_identifiable("the host does not say how many sockets it has"),
    }
}

//! Figures that shots alone do not give: of guests and hosts, nodes, counters, L1 hits.

use super::figures::{burst, huge, small};
use crate::evidence::{Evidence, Found, needs, not_identifiable, ratio, resolved, result};
use records::machine::{Numa, PlacementKind, PlacementResult, StreamKind};
use units::{Quantity, Unit};

const PMU: &str = "a PMU that counts cache misses; guests rarely have one";
const NODES: &str = "a second NUMA node";

pub(super) fn counted_misses(_: &Evidence<'_>) -> Found {
    needs(PMU)
}

pub(super) fn counted_hits(_: &Evidence<'_>) -> Found {
    needs(PMU)
}

pub(super) fn guest_and_host(evidence: &Evidence<'_>) -> Found {
    needs(if evidence.is_guest()? {
        "the host below this guest, to measure on"
    } else {
        "a guest on this host"
    })
}

pub(super) fn small_in_guest(evidence: &Evidence<'_>) -> Found {
    if !evidence.is_guest()? {
        return needs("a guest on this host");
    }
    let (small, huge) = (small(evidence)?, huge(evidence)?);
    let (found, _) = resolved(&ratio(burst(small, 1)?, burst(huge, 1)?)?)?;
    not_identifiable(format!(
        "{:.2} [{:.2}, {:.2}] here, but no program can tell from inside which pages the host has ({} and {})",
        found.value, found.lo, found.hi, small.combination, huge.combination
    ))
}

pub(super) fn host_pages(_: &Evidence<'_>) -> Found {
    needs("a host whose huge pages can be switched, and a guest on it")
}

pub(super) fn by_cpuid(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    match &kind.effective_by_cpuid {
        Some(by_cpuid) => ratio(by_cpuid, &kind.effective),
        None => not_identifiable("this is a guest, whose hypervisor intercepts CPUID"),
    }
}

fn numa<'a>(evidence: &Evidence<'a>) -> Result<Option<&'a Numa>, crate::missing::Missing> {
    let Some(outcome) = &evidence.machine()?.experiments.numa else {
        return Err(crate::missing::Missing::NotRun("the record has no numa experiment".to_owned()));
    };
    Ok(outcome.result.as_ref().filter(|numa| numa.nodes.len() > 1))
}

fn placed(numa: &Numa, kind: PlacementKind) -> Result<&PlacementResult, crate::missing::Missing> {
    match numa.placements.iter().find(|placement| placement.kind == kind) {
        Some(placement) => Ok(placement),
        None => not_identifiable("this placement was not measured"),
    }
}

pub(super) fn remote_adds(evidence: &Evidence<'_>) -> Found {
    let Some(numa) = numa(evidence)? else { return needs(NODES) };
    let [off, local] = [PlacementKind::Off, PlacementKind::Local].map(|kind| placed(numa, kind));
    ratio(&off?.latency.ticks, &local?.latency.ticks)
}

pub(super) fn remote_parallelism(evidence: &Evidence<'_>) -> Found {
    let Some(numa) = numa(evidence)? else { return needs(NODES) };
    let [off, local] = [PlacementKind::Off, PlacementKind::Local].map(|kind| placed(numa, kind));
    ratio(&off?.parallelism, &local?.parallelism)
}

/// While one thread reads what L1 holds, a vector a load.
pub(super) fn further_l1_hit(evidence: &Evidence<'_>) -> Found {
    let experiments = &evidence.machine()?.experiments;
    let bandwidth = result("bandwidth", experiments.bandwidth.as_ref())?;
    let clock = result("clock", experiments.clock.as_ref())?;
    let stream = bandwidth
        .streams
        .iter()
        .find(|s| s.operation == StreamKind::Read && s.within == "L1" && s.threads == 1);
    let Some(stream) = stream else { return not_identifiable("reads from L1 were not resolved") };
    let (rate, disturbed) = resolved(&stream.rate)?;
    let (core, _) = resolved(&clock.core)?;
    let cycles = core.scaled(f64::from(bandwidth.vector_bytes)).over(rate);
    Ok(Quantity::modelled(cycles, Unit::Cycles).disturbed_by(disturbed))
}

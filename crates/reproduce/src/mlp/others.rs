//! Figures that shots alone do not give: of guests and hosts, nodes, counters, L1 hits.

use super::figures::{burst, huge, small};
use crate::evidence::{Evidence, Found, needs, not_identifiable, ratio, resolved, result};
use crate::missing::Missing;
use records::machine::{Numa, PlacementKind, PlacementResult, StreamKind};
use units::{Quantity, Unit};

pub(super) fn counted_misses(evidence: &Evidence<'_>) -> Found {
    evidence.counted(|counters| &counters.cache_misses, "perf stat")
}

pub(super) fn counted_hits(evidence: &Evidence<'_>) -> Found {
    evidence.counted(|counters| &counters.hardware, "perf stat")
}

pub(super) fn guest_and_host(evidence: &Evidence<'_>) -> Found {
    if evidence.is_guest()? {
        return needs("the host below this guest, to measure on");
    }
    Err(Missing::NoTest(A_GUEST.to_owned()))
}

/// No guest is started here.
const A_GUEST: &str = "this is no guest, and a guest to measure in would have to be started on it";

pub(super) fn small_in_guest(evidence: &Evidence<'_>) -> Found {
    if !evidence.is_guest()? {
        return Err(Missing::NoTest(A_GUEST.to_owned()));
    }
    let (small, huge) = (small(evidence)?, huge(evidence)?);
    let (found, _) = resolved(&ratio(burst(small, 1)?, burst(huge, 1)?)?)?;
    not_identifiable(format!(
        "{:.2} [{:.2}, {:.2}] here, but no program can tell from inside which pages the host has ({} and {})",
        found.value, found.lo, found.hi, small.combination, huge.combination
    ))
}

pub(super) fn host_pages(evidence: &Evidence<'_>) -> Found {
    if evidence.is_guest()? {
        return needs("the host below this guest, whose huge pages are to be switched");
    }
    Err(Missing::NoTest(A_GUEST.to_owned()))
}

pub(super) fn by_cpuid(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    match &kind.effective_by_cpuid {
        Some(by_cpuid) => ratio(by_cpuid, &kind.effective),
        None => not_identifiable("this is a guest, whose hypervisor intercepts CPUID"),
    }
}

fn placed(numa: &Numa, kind: PlacementKind) -> Result<&PlacementResult, Missing> {
    match numa.placements.iter().find(|placement| placement.kind == kind) {
        Some(placement) => Ok(placement),
        None => not_identifiable("this placement was not measured"),
    }
}

pub(super) fn remote_adds(evidence: &Evidence<'_>) -> Found {
    let numa = evidence.numa()?;
    let [off, local] = [PlacementKind::Off, PlacementKind::Local].map(|kind| placed(numa, kind));
    ratio(&off?.latency.ticks, &local?.latency.ticks)
}

pub(super) fn remote_parallelism(evidence: &Evidence<'_>) -> Found {
    let numa = evidence.numa()?;
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

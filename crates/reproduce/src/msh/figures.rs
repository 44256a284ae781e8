//! Figures of switches and of harvests.

use crate::evidence::{Evidence, Found, combined, not_identifiable, quotient, ratio, result};
use crate::missing::Missing;
use crate::programs::{
    CHASE, CONTRACT, LOADS_LOOSE, LOADS_OF_EIGHT, LOADS_OF_ONE, LOADS_TIGHT, SCAN, THROUGHPUT,
};
use records::machine::{HandOver, UserSwitch, Yields};
use units::Quantity;

pub(super) fn top_down(evidence: &Evidence<'_>) -> Found {
    evidence.counted(|counters| &counters.hardware, "perf stat --topdown")
}

fn yields<'a>(evidence: &Evidence<'a>) -> Result<&'a Yields, Missing> {
    result("yield", evidence.machine()?.experiments.yields.as_ref())
}

/// The switches that save the fewest and the most registers.
fn switches(yields: &Yields) -> Result<(&Quantity, &Quantity), Missing> {
    let registers = |switch: &&UserSwitch| (switch.live + switch.vectors, switch.flags);
    // With several sites the jump is hard to predict, which is another matter.
    let few = || yields.user.iter().filter(|switch| switch.sites == 1);
    match (few().min_by_key(registers), few().max_by_key(registers)) {
        (Some(fewest), Some(most)) => Ok((&fewest.cost.ns, &most.cost.ns)),
        _ => not_identifiable("no switch was measured"),
    }
}

pub(super) fn registers(evidence: &Evidence<'_>) -> Found {
    let (fewest, most) = switches(yields(evidence)?)?;
    ratio(most, fewest)
}

pub(super) fn kernel_over_user(evidence: &Evidence<'_>) -> Found {
    let yields = yields(evidence)?;
    let (_, user) = switches(yields)?;
    let cost = |hand_over: &&HandOver| hand_over.cost.ns.value().unwrap_or(f64::INFINITY);
    let kernel = yields.kernel.iter().filter(|hand_over| hand_over.same_cpu);
    match kernel.min_by(|a, b| cost(a).total_cmp(&cost(b))) {
        Some(kernel) => ratio(&kernel.cost.ns, user),
        None => not_identifiable("no hand-over on one CPU was measured"),
    }
}

pub(super) fn profiling(evidence: &Evidence<'_>) -> Found {
    Ok(evidence.profile(CHASE)?.summary.overhead.clone())
}

pub(super) fn slowdown(evidence: &Evidence<'_>) -> Found {
    Ok(evidence.run(CONTRACT)?.slowdown.share.clone())
}

pub(super) fn trade_off(evidence: &Evidence<'_>) -> Found {
    ratio(evidence.figure(LOADS_LOOSE)?, evidence.figure(LOADS_TIGHT)?)
}

pub(super) fn eight_over_one(evidence: &Evidence<'_>) -> Found {
    ratio(evidence.figure(LOADS_OF_EIGHT)?, evidence.figure(LOADS_OF_ONE)?)
}

pub(super) fn throughput(evidence: &Evidence<'_>) -> Found {
    Ok(evidence.figure(THROUGHPUT)?.clone())
}

/// Absences are in nanoseconds, the bound is in microseconds.
pub(super) fn absences(evidence: &Evidence<'_>) -> Found {
    let run = evidence.run(SCAN)?;
    let asked = &run.bounds.max_absence;
    combined(&run.absences.p99, asked, |p99, asked| quotient(p99, asked.scaled(1000.0)))
}

pub(super) fn of_smt(evidence: &Evidence<'_>) -> Found {
    evidence.hyperthreads("the document's servers (masstree, sphinx) are not here to run on both")
}

pub(super) fn server_under_load(_: &Evidence<'_>) -> Found {
    Err(Missing::NoTest("it takes a server under a varying load (TailBench)".to_owned()))
}

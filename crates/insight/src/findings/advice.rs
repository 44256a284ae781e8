//! What to do about the waiting, from the figures of a profile.
//!
//! To add a finding: a function here that returns it where the figures show it, and its line in
//! [`of`].

use records::profile::{Finding, FindingKind, Level, Pattern, StallingLoad, Summary};
use units::{Estimate, Quantity, Unit};

/// Less than this share of the CPU time is no finding.
const LEAST_SHARE: f64 = 0.1;
/// One load with less than this is not worth a change of its own.
const LEAST_LOAD: f64 = 0.05;
/// A prefetch costs an instruction or a few; a load that waits less than this each time gains
/// nothing by one.
const LEAST_CYCLES: f64 = 15.0;
/// Prefetches for more loads than this are not proposed one by one.
const MOST_PREFETCHES: usize = 3;

/// All findings, those that promise most first; those of sharing are told apart already.
pub(crate) fn of(summary: &Summary, loads: &[StallingLoad], shared: Vec<Finding>) -> Vec<Finding> {
    let mut found: Vec<Finding> = shared;
    found.extend(harvest(loads));
    found.extend(prefetches(loads));
    found.extend(page_faults(summary));
    found.sort_by(|a, b| value(&b.gain).total_cmp(&value(&a.gain)));
    found
}

/// Other work could run in the stalls of loads that wait for longer than a yield takes.
fn harvest(loads: &[StallingLoad]) -> Option<Finding> {
    let parts: Vec<(&StallingLoad, Estimate)> =
        loads.iter().filter_map(|load| Some((load, load.harvestable.estimate()?))).collect();
    let sum = |part: fn(&Estimate) -> f64| parts.iter().map(|(_, share)| part(share)).sum::<f64>().min(1.0);
    let gain = Estimate::new(sum(|share| share.value), sum(|share| share.lo), sum(|share| share.hi));
    if gain.value < LEAST_SHARE {
        return None;
    }
    let worth = parts.iter().filter(|(_, share)| share.value > 0.0).count();
    let (most, _) = parts.iter().max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
    let says = format!(
        "the core waits at {worth} {} for longer than a yield takes: 'gleaner harvest --profile' runs other programs meanwhile",
        if worth == 1 { "load" } else { "loads" }
    );
    Some(at(most, FindingKind::Harvest, says, Quantity::modelled(gain, Unit::Ratio)))
}

/// Loads whose addresses are known iterations before: they wait since the core does not look that
/// far ahead.
fn prefetches(loads: &[StallingLoad]) -> Vec<Finding> {
    let is_worth = |load: &&StallingLoad| {
        load.pattern == Pattern::Parallel
            && !matches!(load.level, Level::L1 | Level::Dirty)
            && value(&load.stall) >= LEAST_LOAD
            && load.stall_each.estimate().is_some_and(|each| each.value >= LEAST_CYCLES)
    };
    let finding = |load: &StallingLoad| {
        let says = "iterations of its loop do not wait for one another, and the core waits for this load all the same: \
                    prefetch it several iterations ahead (__builtin_prefetch), or work on several at once"
            .to_owned();
        let stall = load.stall.estimate()?;
        let gain = Estimate { lo: 0.0, ..stall };
        Some(at(load, FindingKind::Prefetch, says, Quantity::modelled(gain, Unit::Ratio)))
    };
    loads.iter().filter(is_worth).filter_map(finding).take(MOST_PREFETCHES).collect()
}

fn page_faults(summary: &Summary) -> Option<Finding> {
    let share = summary.page_faults.estimate().filter(|share| share.value >= LEAST_SHARE)?;
    Some(Finding {
        kind: FindingKind::HugePages,
        object: None,
        function: None,
        file: None,
        line: None,
        says: "page faults cost much: keep memory instead of giving it back, touch it once, or ask for huge pages \
               (madvise MADV_HUGEPAGE; for malloc, GLIBC_TUNABLES=glibc.malloc.hugetlb=1)"
            .to_owned(),
        gain: Quantity::modelled(Estimate { lo: 0.0, ..share }, Unit::Ratio),
    })
}

fn at(load: &StallingLoad, kind: FindingKind, says: String, gain: Quantity) -> Finding {
    Finding {
        kind,
        object: load.object.clone(),
        function: load.function.clone(),
        file: load.file.clone(),
        line: load.line,
        says,
        gain,
    }
}

fn value(share: &Quantity) -> f64 {
    share.value().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::profile::Profile;

    /// A real profile, with its first load as `change` makes it, and no others.
    fn found(change: impl Fn(&mut StallingLoad)) -> Vec<FindingKind> {
        let fixture = include_bytes!("../../../records/fixtures/profile.v1.clock-three-loops.json");
        let mut profile = records::parse::<Profile>(fixture).unwrap().body;
        profile.loads.truncate(1);
        let load = &mut profile.loads[0];
        (load.stall, load.stall_each) = (share(0.4), Quantity::modelled(Estimate::exact(80.0), Unit::Cycles));
        (load.pattern, load.level, load.harvestable) = (Pattern::Chain, Level::Dram, share(0.0));
        change(load);
        of(&profile.summary, &profile.loads, Vec::new()).iter().map(|finding| finding.kind).collect()
    }

    fn share(value: f64) -> Quantity {
        Quantity::measured(Estimate::exact(value), Unit::Ratio)
    }

    #[test]
    fn what_helps_follows_from_how_a_load_waits() {
        assert_eq!(found(|_| ()), []);
        assert_eq!(found(|load| load.harvestable = share(0.3)), [FindingKind::Harvest]);
        assert_eq!(found(|load| load.harvestable = share(0.09)), []);
        assert_eq!(found(|load| load.pattern = Pattern::Parallel), [FindingKind::Prefetch]);
        let hits = |load: &mut StallingLoad| {
            load.pattern = Pattern::Parallel;
            load.stall_each = Quantity::modelled(Estimate::exact(2.0), Unit::Cycles);
        };
        assert_eq!(found(hits), [], "a load that hits is not to be prefetched");
        let both = |load: &mut StallingLoad| {
            (load.pattern, load.harvestable) = (Pattern::Parallel, share(0.3));
        };
        assert_eq!(found(both), [FindingKind::Prefetch, FindingKind::Harvest], "most first");
    }
}

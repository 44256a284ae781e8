//! What to do about the waiting, from the figures of a profile.
//!
//! To add a finding: a function here that returns it where the figures show it, and its line in
//! [`of`].

use super::LEAST_SHARE;
use records::profile::{Finding, FindingKind, Level, Pattern, StallingLoad, Summary};
use std::collections::BTreeMap;
use units::{Estimate, Quantity, Unit};

/// A prefetch costs an instruction or a few; a load that waits less than this each time gains
/// nothing by one.
const LEAST_CYCLES: f64 = 15.0;
/// What is read here and there over more than this does not fit what the TLB of any core reaches
/// by pages of 4 KiB (3,072 of them on Zen 4, 2,048 on Golden Cove).
const BEYOND_TLB_BYTES: f64 = 16e6;

/// All findings, those that promise most first; those of sharing and of stores are told already.
pub(crate) fn of(summary: &Summary, loads: &[StallingLoad], told: Vec<Finding>) -> Vec<Finding> {
    let mut found: Vec<Finding> = told;
    found.extend(waits(loads));
    found.extend(page_faults(summary));
    found.sort_by(|a, b| value(&b.gain).total_cmp(&value(&a.gain)));
    found
}

/// Data that is waited for, and what helps by how it is read: one finding for each, at the load
/// that waits for it longest.
fn waits(loads: &[StallingLoad]) -> Vec<Finding> {
    let mut by_data: BTreeMap<(Option<&str>, Option<&str>), Vec<&StallingLoad>> = BTreeMap::new();
    for load in loads.iter().filter(|load| !matches!(load.level, Level::L1 | Level::Dirty)) {
        let function = load.function.as_deref().filter(|_| load.object.is_none());
        by_data.entry((load.object.as_deref(), function)).or_default().push(load);
    }
    by_data.into_values().filter_map(|loads| waits_for(&loads)).collect()
}

fn waits_for(loads: &[&StallingLoad]) -> Option<Finding> {
    let first = loads.iter().max_by(|a, b| value(&a.stall).total_cmp(&value(&b.stall)))?;
    let sum = |part: fn(Estimate) -> f64| {
        loads.iter().filter_map(|load| load.stall.estimate()).map(part).sum::<f64>().min(1.0)
    };
    let stall = Estimate { value: sum(|it| it.value), lo: 0.0, hi: sum(|it| it.hi) };
    if stall.value < LEAST_SHARE {
        return None;
    }
    let (kind, says) = match first.pattern {
        Pattern::Parallel => {
            let waits = first.stall_each.estimate().is_some_and(|each| each.value >= LEAST_CYCLES);
            let says = "iterations of its loop do not wait for one another, and the core waits for this load all \
                        the same: prefetch it several iterations ahead (__builtin_prefetch), or work on several at once; gleaner \
                        speed tries prefetches without source";
            waits.then_some((FindingKind::Prefetch, says))?
        }
        Pattern::Chain => (
            FindingKind::Chain,
            "each load takes its address from the one before, so they are waited for one by one: keep nodes in \
             the order in which they are visited, make them smaller, or follow several chains at once",
        ),
        // What caches serve memory does not deliver.
        Pattern::Stream if first.beyond_l2 => (
            FindingKind::Bandwidth,
            "it goes through its data faster than memory delivers it: go over it less often (in blocks that fit \
             a cache), or make it smaller",
        ),
        _ if first.beyond_l2 => (
            FindingKind::Pad,
            "its data is read here and there and is too large for the caches near the core: make it smaller, or \
             keep together what is used together",
        ),
        Pattern::Stream | Pattern::Unresolved => return None,
    };
    let is_wide = first.footprint.estimate().is_some_and(|bytes| bytes.lo >= BEYOND_TLB_BYTES);
    let by_pages = is_wide && first.pattern != Pattern::Stream;
    let pages = if by_pages {
        "; so much lies on more pages than the TLB holds: huge pages (gleaner speed tries them)"
    } else {
        ""
    };
    Some(at(first, kind, format!("{says}{pages}"), Quantity::modelled(stall, Unit::Ratio)))
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
               (madvise MADV_HUGEPAGE; for malloc, GLIBC_TUNABLES=glibc.malloc.hugetlb=1; gleaner speed tries both)"
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
        assert_eq!(found(|_| ()), [FindingKind::Chain]);
        assert_eq!(found(|load| load.stall = share(0.09)), []);
        assert_eq!(found(|load| load.pattern = Pattern::Parallel), [FindingKind::Prefetch]);
        assert_eq!(found(|load| load.pattern = Pattern::Stream), [FindingKind::Bandwidth]);
        let hits = |load: &mut StallingLoad| {
            load.pattern = Pattern::Parallel;
            load.stall_each = Quantity::modelled(Estimate::exact(2.0), Unit::Cycles);
        };
        assert_eq!(found(hits), [], "a load that hits is not to be prefetched");
        assert_eq!(found(|load| load.level = Level::L1), []);
        assert_eq!(found(|load| load.level = Level::Dirty), [], "that is told by what threads share");
    }

    #[test]
    fn loads_of_one_object_are_one_finding() {
        let fixture = include_bytes!("../../../records/fixtures/profile.v1.clock-three-loops.json");
        let mut profile = records::parse::<Profile>(fixture).unwrap().body;
        profile.loads.truncate(2);
        for (load, part) in profile.loads.iter_mut().zip([0.06, 0.08]) {
            (load.stall, load.pattern, load.level) = (share(part), Pattern::Chain, Level::Dram);
            load.object = Some("malloc in build (p.c:7)".to_owned());
        }
        let found = of(&profile.summary, &profile.loads, Vec::new());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((value(&found[0].gain) - 0.14).abs() < 1e-9, "{found:?}");
        assert_eq!(found[0].line, profile.loads[1].line);
    }
}

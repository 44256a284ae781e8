//! Which sites of the primary pay, as far as a run saw it.
//!
//! The runtime sees where the primary goes on behind its yields, as addresses of the rewritten
//! file, and after which of them the next yield came too soon for a miss. The file's mapping tells
//! which loads each of its yields stands for (`docs/twin-format.md`): a site's outcome is that of
//! the yields that stand for its load.

use crate::launch::SiteOutcomes;
use crate::rewrite::rewritten;
use records::plan::{PlannedModule, Site};
use records::run::{SiteRun, SwitchedOff};
use runtime_abi::control::loses;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use twin_format::Yields;
use units::{Quantity, Unit, share};

/// What was seen at all yields that stand for one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LoadOutcomes {
    outcomes: u64,
    /// Of them, how often the next yield came too soon for a miss.
    soon: u64,
    /// How often one of the yields was switched off for that, and for how long in all.
    offs: u64,
    off: Duration,
}

/// What became of the planned sites of a primary whose rewritten file this is: of those that were
/// seen, and of those that were switched off meanwhile.
pub(crate) fn sites(
    planned: &PlannedModule,
    rewritten: &[u8],
    seen: &[SiteOutcomes],
) -> (Vec<SiteRun>, Vec<SwitchedOff>) {
    let (mut found, mut off) = (Vec::new(), Vec::new());
    let yields = rewritten::yields(rewritten).unwrap_or_default();
    let by_load = outcomes_by_load(&yields, seen);
    let mut sites: Vec<&Site> = planned.sites.iter().collect();
    sites.sort_by_key(|site| site.place.address);
    for site in sites {
        let Some(of) = by_load.get(&site.place.address) else { continue };
        found.push(run(planned, site, of.outcomes, of.soon));
        if of.offs > 0 {
            off.push(switched_off(planned, site, of));
        }
    }
    (found, off)
}

/// What was seen, by the load that it was seen for. A yield that serves several loads counts for
/// each of them.
fn outcomes_by_load(yields: &Yields, seen: &[SiteOutcomes]) -> BTreeMap<u64, LoadOutcomes> {
    // Of two rows of one yield, the first one counts.
    let seen: HashMap<u64, &SiteOutcomes> = seen.iter().rev().map(|of| (of.resume, of)).collect();
    let mut by_load: BTreeMap<u64, LoadOutcomes> = BTreeMap::new();
    for (row, origins) in yields.iter() {
        let Some(of) = seen.get(&row.resume) else { continue };
        for &load in origins {
            let all = by_load.entry(load).or_default();
            all.outcomes += of.outcomes;
            all.soon += of.soon;
            all.offs += of.offs;
            all.off += of.off;
        }
    }
    by_load
}

fn switched_off(planned: &PlannedModule, site: &Site, seen: &LoadOutcomes) -> SwitchedOff {
    let times = if seen.offs == 1 { "once".to_owned() } else { format!("{} times", seen.offs) };
    SwitchedOff {
        file: planned.path.clone(),
        role: planned.role,
        place: site.place.clone(),
        why: format!(
            "the load nearly always hit a cache (the next yield came too soon for a miss), while other sites gained; {times}, for {:.1} s in all",
            seen.off.as_secs_f64()
        ),
    }
}

fn run(planned: &PlannedModule, site: &Site, outcomes: u64, soon: u64) -> SiteRun {
    let hits = share(soon, outcomes);
    SiteRun {
        file: planned.path.clone(),
        role: planned.role,
        place: site.place.clone(),
        yields: None,
        watched: outcomes,
        hits: hits.map_or_else(
            || Quantity::unresolved("none of its yields was timed"),
            |hits| Quantity::measured(hits, Unit::Ratio),
        ),
        why_not: loses(outcomes, soon).then(|| {
            format!(
                "it does not pay: the load hit a cache in {soon} of {outcomes} yields that were timed (the next one came too soon for a miss)"
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twin_format::YieldRow;

    #[test]
    fn a_load_has_the_outcomes_of_every_yield_that_stands_for_it() {
        let row = |place| YieldRow { place, resume: place + 3, switch: None };
        let mut yields = Yields::default();
        // Two functions; one of them has a load that gets a yield of its own, besides the site that
        // it belongs to.
        yields.push(row(0x5000), &[0x1000]);
        yields.push(row(0x5010), &[0x1010, 0x1018]);
        yields.push(row(0x5020), &[0x1018]);
        yields.push(row(0x5040), &[0x2000]);
        let seen = |resume, outcomes, soon| SiteOutcomes {
            resume,
            outcomes,
            soon,
            offs: 1,
            off: Duration::from_secs(2),
        };
        let all = [
            seen(0x5003, 10, 1),
            seen(0x5013, 20, 2),
            seen(0x5023, 30, 3),
            seen(0x5003, 50, 5),
            seen(0x7777, 60, 6),
        ];
        let by_load = outcomes_by_load(&yields, &all);
        let counts: Vec<_> =
            by_load.iter().map(|(&load, of)| (load, of.outcomes, of.soon, of.offs)).collect();
        assert_eq!(counts, [(0x1000, 10, 1, 1), (0x1010, 20, 2, 1), (0x1018, 50, 5, 2)]);
        assert_eq!(by_load[&0x1018].off, Duration::from_secs(4));
    }

    #[test]
    fn the_interval_of_the_hits_decides_whether_a_site_pays() {
        for (soon, outcomes) in
            [(99, 99), (97, 100), (180, 200), (185, 200), (9_059, 10_000), (9_056, 10_000)]
        {
            assert_eq!(
                loses(outcomes, soon),
                outcomes >= 100 && share(soon, outcomes).unwrap().lo > 0.9,
                "{soon} of {outcomes}"
            );
        }
    }
}

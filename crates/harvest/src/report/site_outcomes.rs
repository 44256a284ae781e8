//! Which sites of the primary pay, as far as a run saw it.
//!
//! The runtime sees where the primary goes on behind its yields, as addresses of the rewritten file, and after which of them
//! the next yield came too soon for a miss. Which site that is, is told by the rewritten file: its mapping
//! (`docs/twin-format.md`) lists units, and in a unit's twin yields stand in the order of the plan's sites. Each has the two
//! instructions that `docs/harvest-abi.md` fixes for the switch; it goes on behind them.

use crate::launch::Visits;
use crate::rewrite::rewritten::Mapping;
use records::plan::{PlannedModule, Site};
use records::run::{SiteRun, SwitchedOff};
use runtime_abi::control::loses;
use std::collections::HashMap;
use units::{Estimate, Quantity, Unit};

const SWITCH: [u8; 12] = [0x65, 0x48, 0x89, 0x04, 0x25, 0x08, 0, 0, 0, 0xff, 0x60, 0x08];

/// What became of the planned sites of a primary whose rewritten file this is: of those that were seen, and of those that were
/// switched off meanwhile.
pub(crate) fn sites(
    planned: &PlannedModule,
    rewritten: &[u8],
    seen: &[Visits],
) -> (Vec<SiteRun>, Vec<SwitchedOff>) {
    let (mut found, mut off) = (Vec::new(), Vec::new());
    let seen: HashMap<u64, &Visits> = seen.iter().rev().map(|visits| (visits.resume, visits)).collect();
    for (site, resume) in matched(planned, rewritten) {
        let Some(of) = seen.get(&resume) else { continue };
        found.push(run(planned, site, of.visits, of.soon));
        if of.offs > 0 {
            off.push(switched_off(planned, site, of));
        }
    }
    (found, off)
}

fn switched_off(planned: &PlannedModule, site: &Site, seen: &Visits) -> SwitchedOff {
    let times = if seen.offs == 1 { "once".to_owned() } else { format!("{} times", seen.offs) };
    SwitchedOff {
        file: planned.path.clone(),
        role: planned.role,
        place: site.place.clone(),
        why: format!(
            "nearly always the next yield came too soon for a miss, while other sites paid; {times}, for {:.1} s in all",
            seen.off.as_secs_f64()
        ),
    }
}

fn run(planned: &PlannedModule, site: &Site, visits: u64, soon: u64) -> SiteRun {
    let share = wilson(soon, visits);
    SiteRun {
        file: planned.path.clone(),
        role: planned.role,
        place: site.place.clone(),
        yields: Quantity::unresolved("yields are not counted"),
        watched: visits,
        hits: Quantity::measured(share, Unit::Ratio),
        why_not: loses(visits, soon).then(|| {
            format!(
                "it does not pay: after {soon} of {visits} yields that were watched, the next one came too soon for a miss"
            )
        }),
    }
}

/// A share with its 95% interval (Wilson's).
fn wilson(some: u64, all: u64) -> Estimate {
    const Z: f64 = 1.96;
    let (n, p) = (all as f64, some as f64 / all as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Estimate::new(p, (middle - half).max(0.0), (middle + half).min(1.0))
}

/// Sites with the places where the program goes on behind their yields; those of units in which yields and sites are not one
/// for one are left out.
fn matched<'p>(planned: &'p PlannedModule, rewritten: &[u8]) -> Vec<(&'p Site, u64)> {
    // Large programs have tens of thousands of both: a unit's sites are looked up, not looked for.
    let mut sites: Vec<&Site> = planned.sites.iter().collect();
    sites.sort_by_key(|site| site.place.address);
    let before = |address| sites.partition_point(|site| site.place.address < address);
    let mut all = Vec::new();
    for unit in units(rewritten).unwrap_or_default() {
        let its = &sites[before(unit.original.start)..before(unit.original.end)];
        if its.len() == unit.resumes.len() {
            all.extend(its.iter().copied().zip(unit.resumes));
        }
    }
    all
}

struct UnitOfFile {
    original: std::ops::Range<u64>,
    resumes: Vec<u64>,
}

fn units(rewritten: &[u8]) -> Option<Vec<UnitOfFile>> {
    let mapping = Mapping::of(rewritten)?;
    mapping
        .rows(16, 32)
        .map(|[start, twin, _, sizes, _]| {
            let (size, twin_size) = (sizes & 0xffff_ffff, sizes >> 32);
            let code = mapping.image.bytes_at(units::Svma(twin), twin_size as usize)?;
            let resumes = code
                .windows(SWITCH.len())
                .enumerate()
                .filter(|(at, window)| *window == SWITCH && !is_spin(code, *at))
                .map(|(at, _)| twin + (at + SWITCH.len()) as u64)
                .collect();
            Some(UnitOfFile { original: start..start + size, resumes })
        })
        .collect()
}

/// Whether the switch at this place is one of waiting by turning round: in front of it stands `mov rax, [… + SPIN]`, where else a
/// displacement is zero or missing.
fn is_spin(code: &[u8], at: usize) -> bool {
    at > 0 && i32::from(code[at - 1]) == runtime_abi::context::SPIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_visits_say_little() {
        let few = wilson(10, 10);
        assert!(few.value == 1.0 && few.lo < 0.75, "{few:?}");
        let many = wilson(990, 1000);
        assert!(many.lo > 0.98 && many.hi < 1.0, "{many:?}");
        // The same interval decides whether a site pays.
        for (soon, visits) in [(99, 99), (97, 100), (180, 200), (185, 200), (9_059, 10_000), (9_056, 10_000)]
        {
            assert_eq!(
                loses(visits, soon),
                visits >= 100 && wilson(soon, visits).lo > 0.9,
                "{soon} of {visits}"
            );
        }
        assert!(wilson(0, 50).lo == 0.0 && wilson(0, 50).hi < 0.1);
    }
}

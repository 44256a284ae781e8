//! Claims of the host that the measurement contradicts: what a reader should know before trusting
//! either.

use records::machine::Machine;
use std::collections::{BTreeMap, BTreeSet};
use units::Bytes;

/// A level holds data at its speed up to well above its size where it is not shared, and up to far
/// less where it is: within these factors of the claim, nothing is odd.
const SIZE_ABOVE: f64 = 1.25;
const SIZE_BELOW: f64 = 0.5;

/// Entries of translation buffers are found to within a few percent.
const ENTRIES_ABOVE: f64 = 1.1;
const ENTRIES_BELOW: f64 = 0.9;

/// If less than this share of an area's memory has the pages that were asked for, its curve is of
/// mixed pages.
const PAGES_AS_ASKED: f64 = 0.95;

/// Each in one line, said once.
pub fn findings(machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    for c in &machine.host.contradictions {
        let claims: Vec<String> =
            c.claims.iter().map(|(source, says)| format!("{source} says {says}")).collect();
        lines.push(format!("{}: {}; {}", c.about, claims.join(", "), c.judgement));
    }
    for level in &machine.levels {
        let (Some(size), Some(claimed)) = (level.size.estimate(), level.size_claimed.value()) else {
            continue;
        };
        if size.lo > claimed * SIZE_ABOVE || size.hi < claimed * SIZE_BELOW {
            lines.push(format!(
                "{}: the host claims {}, but {} could be used",
                level.name,
                Bytes(claimed as u64),
                Bytes(size.value as u64)
            ));
        }
    }
    lines.extend(translation(machine));
    lines.extend(pages(machine));
    once(lines)
}

fn translation(machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    let tlb = machine.experiments.tlb.as_ref().and_then(|o| o.result.as_ref());
    let kinds = tlb.map_or(&[][..], |t| &t.kinds);
    for kind in kinds {
        // Scattered pages are held against the same buffers' entries for pages that lie together:
        // the summary does.
        if kind.pages.asked == "4K" && kinds.iter().any(|k| k.pages.asked == "4K-cut") {
            continue;
        }
        for level in &kind.levels {
            let (Some(found), Some(claimed)) = (level.entries.estimate(), level.claimed.value()) else {
                continue;
            };
            if found.hi < claimed * ENTRIES_BELOW || found.lo > claimed * ENTRIES_ABOVE {
                lines.push(format!(
                    "L{} dTLB, {} pages: CPUID claims {claimed:.0} entries, {:.0} could be used (other threads may share it)",
                    level.level, kind.pages.asked, found.value
                ));
            }
        }
    }
    lines
}

/// A line for each kind of page, however many curves lack it.
fn pages(machine: &Machine) -> Vec<String> {
    let latency = machine.experiments.latency.as_ref().and_then(|o| o.result.as_ref());
    let mut lacking: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for curve in latency.map_or(&[][..], |l| &l.curves) {
        if curve.pages.share < PAGES_AS_ASKED {
            lacking.entry(&curve.pages.asked).or_default().push(curve.pages.share);
        }
    }
    let line = |(asked, shares): (&str, Vec<f64>)| {
        let least = shares.iter().copied().fold(1.0, f64::min) * 100.0;
        let curves =
            if shares.len() == 1 { "a curve".to_owned() } else { format!("{} curves", shares.len()) };
        format!("only {least:.0}% of the memory of {curves} got the requested {asked} pages")
    };
    lacking.into_iter().map(line).collect()
}

/// Without repetitions; the first of each stays.
fn once(lines: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.into_iter().filter(|line| seen.insert(line.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::Contradiction;
    use records::machine::{Access, Curve, LatencyCurves, Outcome, PageSupply, Pattern, Status};

    #[test]
    fn what_is_odd_is_said_once() {
        let text = include_str!("../../records/fixtures/machine.v1.interrupted.json");
        let mut machine = records::parse::<Machine>(text.as_bytes()).unwrap().body;
        let claim = |source: &str, what: &str| (source.to_owned(), what.to_owned());
        let contradiction = Contradiction {
            about: "L3 size".to_owned(),
            claims: vec![claim("sysfs", "1 MiB"), claim("CPUID", "2 MiB")],
            judgement: "believe neither".to_owned(),
        };
        machine.host.contradictions = vec![contradiction.clone(), contradiction];
        let curve = |share| Curve {
            pattern: Pattern::Random,
            access: Access::Read,
            pages: PageSupply { asked: "1G".to_owned(), share },
            points: Vec::new(),
        };
        let curves = LatencyCurves {
            line: Bytes(64),
            curves: vec![curve(0.25), curve(0.5), curve(1.0)],
            single: Vec::new(),
            pages_refused: Vec::new(),
        };
        machine.experiments.latency = Some(Outcome {
            status: Status::Done,
            why: None,
            would_help: None,
            seconds: 1.0,
            result: Some(curves),
        });
        let told = findings(&machine);
        let line = "L3 size: sysfs says 1 MiB, CPUID says 2 MiB; believe neither";
        assert_eq!(told.iter().filter(|l| *l == line).count(), 1, "{told:?}");
        let line = "only 25% of the memory of 2 curves got the requested 1G pages";
        assert_eq!(told.iter().filter(|l| l.contains("1G pages")).collect::<Vec<_>>(), [line]);
    }
}

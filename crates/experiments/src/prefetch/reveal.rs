//! What patterns reveal of prefetchers. Pure.

use super::plan::PAGE_BYTES;
use crate::prefetch_reach::{self, FOLLOWED_SHARE};
use records::machine::{Probe, ProbePoint, Revealed};
use units::{Bytes, Estimate, Quantity, Unit};

/// For each size.
pub(super) fn all(points: &[ProbePoint], line: Bytes) -> Vec<Revealed> {
    let mut sizes: Vec<Bytes> = points.iter().map(|p| p.size).collect();
    sizes.dedup();
    sizes
        .into_iter()
        .map(|size| {
            let here: Vec<(Probe, Estimate)> = points
                .iter()
                .filter(|p| p.size == size)
                .filter_map(|p| Some((p.probe, p.latency.ns.estimate()?)))
                .collect();
            of_size(size, &here, line)
        })
        .collect()
}

fn of_size(size: Bytes, points: &[(Probe, Estimate)], line: Bytes) -> Revealed {
    let of = |probe: Probe| points.iter().find(|p| p.0 == probe).map(|p| p.1);
    let row = |number: fn(Probe) -> Option<u64>| -> Vec<(f64, Estimate)> {
        points.iter().filter_map(|&(probe, e)| Some((number(probe)? as f64, e))).collect()
    };
    let Some(random) = of(Probe::Random) else {
        let why =
            || Quantity::unresolved("the random order, to which all patterns are compared, was not resolved");
        return Revealed {
            size,
            ahead_forward: why(),
            ahead_backward: why(),
            learns_after: why(),
            longest_stride: why(),
            streams: why(),
            page_crossing: why(),
            remarks: Vec::new(),
        };
    };
    let forward = of(Probe::Forward { lines: 1 });
    let ahead = |e: Option<Estimate>| match e {
        Some(e) => Quantity::measured(random.over(e), Unit::Count),
        None => Quantity::unresolved("the stream was not resolved"),
    };
    let runs = row(|p| if let Probe::Run { lines } = p { Some(lines) } else { None });
    let strides = row(|p| if let Probe::Forward { lines } = p { Some(lines) } else { None });
    let bytes: Vec<(f64, Estimate)> = strides.iter().map(|s| (s.0 * line.0 as f64, s.1)).collect();
    // A stream among many is followed while it is nearer to one alone than to a random order.
    let mut streams: Vec<(f64, Estimate)> = forward.map(|f| (1.0, f)).into_iter().collect();
    streams.extend(row(|p| if let Probe::Streams { count } = p { Some(count) } else { None }));
    let middle = forward.map_or(0.0, |f| f64::midpoint(f.value, random.value));
    let mut revealed = Revealed {
        size,
        ahead_forward: ahead(forward),
        ahead_backward: ahead(of(Probe::Backward { lines: 1 })),
        learns_after: learns_after(random, &runs),
        longest_stride: prefetch_reach::last_followed(
            &bytes,
            |e| e.over(random).hi < FOLLOWED_SHARE,
            Unit::Bytes,
        ),
        streams: match forward {
            Some(f) if f.over(random).hi < FOLLOWED_SHARE => {
                prefetch_reach::last_followed(&streams, |e| e.value < middle, Unit::Count)
            }
            _ => Quantity::unresolved("a single ascending stream is not prefetched"),
        },
        page_crossing: page_crossing(&runs, PAGE_BYTES / line.0),
        remarks: Vec::new(),
    };
    revealed.remarks = remarks(&revealed, random, of(Probe::RandomInPages));
    revealed
}

/// Lines of a run that cost as much as elsewhere before further ones come at less than half of
/// that.
fn learns_after(random: Estimate, runs: &[(f64, Estimate)]) -> Quantity {
    let mut before = (1.0, random);
    for &(lines, mean) in runs {
        let more = lines - before.0;
        let further = mean.scaled(lines).minus(before.1.scaled(before.0)).scaled(1.0 / more);
        if further.hi < random.value / 2.0 {
            return Quantity::measured(Estimate::new(before.0, before.0, lines - 1.0), Unit::Count);
        }
        before = (lines, mean);
    }
    Quantity::unresolved("further lines of a run never cost less than half of a random access")
}

/// What two pages in a row cost beyond twice one's steady half: the price of the boundary.
fn page_crossing(runs: &[(f64, Estimate)], page: u64) -> Quantity {
    let whole = |lines: u64| runs.iter().find(|r| r.0 as u64 == lines).map(|r| r.1.scaled(lines as f64));
    match (whole(page / 2), whole(page), whole(page * 2)) {
        // one = start + page · pace; two = start + crossing + 2 · page · pace; pace from the second
        // half of one.
        (Some(half), Some(one), Some(two)) => {
            Quantity::measured(two.minus(one.scaled(3.0)).minus(half.scaled(-2.0)), Unit::Nanos)
        }
        _ => Quantity::unresolved("not all runs of half a page, one page and two pages were resolved"),
    }
}

fn remarks(revealed: &Revealed, random: Estimate, in_pages: Option<Estimate>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(crossing) = revealed.page_crossing.estimate() {
        if crossing.lo > random.value / 2.0 {
            remarks.push("prefetched streams stop at page boundaries and start again behind them".to_owned());
        } else if crossing.hi < random.value / 2.0 {
            remarks.push("prefetched streams continue across page boundaries".to_owned());
        }
    }
    if let (Some(forward), Some(backward)) =
        (revealed.ahead_forward.estimate(), revealed.ahead_backward.estimate())
    {
        let same = forward.value / backward.value;
        if backward.hi < 1.0 / FOLLOWED_SHARE && forward.lo > 1.0 / FOLLOWED_SHARE {
            remarks.push("descending streams are not prefetched".to_owned());
        } else if (0.8..1.25).contains(&same) {
            remarks.push("descending streams are prefetched as well as ascending ones".to_owned());
        }
    }
    if in_pages.is_some_and(|e| e.over(random).hi < FOLLOWED_SHARE) {
        remarks.push(
            "random accesses inside a page are cheaper than across pages: regions are prefetched".to_owned(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Latency;

    /// A machine that misses at 100 ns, follows after `learns` lines at 5 ns a line, anew after
    /// `restart` ns per page, `streams` at a time, strides up to `stride` lines.
    fn machine(learns: u64, restart: f64, streams: u64, stride: u64) -> Vec<ProbePoint> {
        let run = |lines: u64| {
            let full = lines.min(learns) as f64 * 100.0 + lines.saturating_sub(learns) as f64 * 5.0;
            (full + ((lines - 1) / 64) as f64 * restart) / lines as f64
        };
        let mut probes =
            vec![(Probe::Random, 100.0), (Probe::RandomInPages, 99.0), (Probe::Backward { lines: 1 }, 98.0)];
        probes.extend(
            [1, 2, 4, 8, 16].map(|l| (Probe::Forward { lines: l }, if l <= stride { 5.0 } else { 95.0 })),
        );
        probes.extend([2, 3, 4, 8, 16, 32, 64, 128].map(|l| (Probe::Run { lines: l }, run(l))));
        probes.extend(
            [2, 4, 8, 16].map(|c| (Probe::Streams { count: c }, if c <= streams { 6.0 } else { 80.0 })),
        );
        probes
            .into_iter()
            .map(|(probe, ns)| {
                let q = |unit| Quantity::measured(Estimate::new(ns, ns * 0.999, ns * 1.001), unit);
                let latency = Latency { ns: q(Unit::Nanos), cycles: q(Unit::Cycles), ticks: q(Unit::Ticks) };
                ProbePoint { size: Bytes(1 << 27), probe, latency, blocks: 9, voided: 0 }
            })
            .collect()
    }

    #[test]
    fn a_known_prefetcher_is_recognised() {
        let found = &all(&machine(3, 100.0, 8, 4), Bytes(64))[0];
        assert_eq!(found.learns_after.value(), Some(3.0));
        let span = |q: &Quantity| q.estimate().map(|e| (e.value, e.hi));
        assert_eq!(span(&found.longest_stride), Some((256.0, 512.0)));
        assert_eq!(span(&found.streams), Some((8.0, 16.0)));
        assert!((found.ahead_forward.value().unwrap() - 20.0).abs() < 0.1);
        let crossing = found.page_crossing.estimate().unwrap();
        assert!((crossing.value - 100.0).abs() < 1.0, "{crossing:?}");
        assert!(found.remarks.iter().any(|r| r.contains("stop at page")), "{:?}", found.remarks);
        assert!(
            found.remarks.iter().any(|r| r.contains("descending streams are not")),
            "{:?}",
            found.remarks
        );
    }

    #[test]
    fn one_that_crosses_pages_is_told_from_one_that_stops() {
        let found = &all(&machine(1, 0.0, 16, 16), Bytes(64))[0];
        assert_eq!(found.learns_after.value(), Some(1.0));
        assert!(found.remarks.iter().any(|r| r.contains("continue across")), "{:?}", found.remarks);
    }

    #[test]
    fn no_prefetcher_reveals_nothing() {
        let mut points = machine(1000, 0.0, 0, 0);
        for p in &mut points {
            p.latency = points_of(100.0);
        }
        let found = &all(&points, Bytes(64))[0];
        for q in [&found.learns_after, &found.longest_stride, &found.streams] {
            assert!(q.value().is_none(), "{q:?}");
        }
        assert!(all(&[], Bytes(64)).is_empty());
    }

    fn points_of(ns: f64) -> Latency {
        let q = |unit| Quantity::measured(Estimate::new(ns, ns * 0.99, ns * 1.01), unit);
        Latency { ns: q(Unit::Nanos), cycles: q(Unit::Cycles), ticks: q(Unit::Ticks) }
    }
}

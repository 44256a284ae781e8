//! Table 2, what each level allows a processor that does nothing but wait, and the hop terms of
//! table 1.

use super::figures::fit;
use crate::evidence::{Evidence, combined, not_identifiable, ratio, resolved, result};
use crate::missing::Missing;
use crate::tables::{here, nothing, paper};
use records::machine::NodePair;
use records::reproduction::ClaimTable;
use units::{Bytes, Estimate, Quantity, Unit, middle_sorted};

const DOUBLE_BYTES: f64 = 8.0;

/// Levels of table 2, with the MFLOPS that each allows.
const MEGAFLOPS: [(&str, f64); 6] = [
    ("SL cache", 75.5),
    ("home memory", 20.3),
    ("same corner", 14.5),
    ("neighbour corner", 13.6),
    ("next but one corner", 12.9),
    ("spatial diagonal", 12.2),
];

/// Sign changes of doubles a microsecond, by the level that the doubles come from. As there, a
/// level's cost is without that of the first one, which is the program's own. There a window costs
/// nothing beyond its lines; here it does, and short windows are slower than long runs.
pub(super) fn megaflops(evidence: &Evidence<'_>) -> Result<ClaimTable, Missing> {
    let fit = fit(evidence)?;
    let windows = result("windows", evidence.machine()?.experiments.windows.as_ref())?;
    let doubles = windows.line.0 as f64 / DOUBLE_BYTES;
    let lines = WINDOW / windows.line.0 as f64;
    let of_paper = |&(name, value): &(&str, f64)| {
        let rate = (Some((value, value)), Unit::Count);
        paper(name, &[rate, rate, (None, Unit::Nanos)])
    };
    let mut rows: Vec<_> = MEGAFLOPS.iter().map(of_paper).collect();
    let Some((first, others)) = fit.levels.split_first() else {
        return not_identifiable("the fit has no levels");
    };
    let mut begin = &first.size;
    for (number, level) in others.iter().enumerate() {
        let line = over(&level.cost, &first.cost);
        let window = match (line, level.per_window.as_ref().zip(first.per_window.as_ref())) {
            (Some(line), Some((fixed, own))) => over(fixed, own).map(|fixed| sum(fixed, line.scaled(lines))),
            _ => None,
        };
        let from = begin.value().map_or_else(String::new, |size| format!(", beyond {}", Bytes(size as u64)));
        let cells = vec![
            line.map_or_else(nothing, |line| rate(line, doubles)),
            window.map_or_else(nothing, |window| rate(window, lines * doubles)),
            line.map_or_else(nothing, |line| Quantity::modelled(line, Unit::Nanos)),
        ];
        rows.push(here(format!("level {}{from}", number + 2), cells));
        begin = &level.size;
    }
    let columns = ["MFLOPS in long runs", "in windows of 4 KiB", "time of a line in long runs"];
    Ok(ClaimTable {
        id: "mflops".to_owned(),
        title: "Sign changes a microsecond (MFLOPS), where nothing but waiting for data takes time"
            .to_owned(),
        place: "table 2".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: Some(format!("levels here are those of the fit to windows on {} pages", fit.pages)),
    })
}

/// The document's longest window.
const WINDOW: f64 = 4096.0;

fn over(level: &Quantity, first: &Quantity) -> Option<Estimate> {
    resolved(&combined(level, first, Estimate::minus).ok()?).ok().map(|(estimate, _)| estimate)
}

/// Half widths add in quadrature.
fn sum(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value + b.value;
    let below = (a.value - a.lo).hypot(b.value - b.lo);
    Estimate::new(value, value - below, value + (a.hi - a.value).hypot(b.hi - b.value))
}

/// None where the level may cost no more than the first.
fn rate(waits: Estimate, doubles: f64) -> Quantity {
    if waits.lo <= 0.0 {
        return Quantity::unresolved("it may cost no more than the first level");
    }
    let of = |ns: f64| 1000.0 * doubles / ns;
    Quantity::modelled(Estimate::new(of(waits.value), of(waits.hi), of(waits.lo)), Unit::Count)
}

/// Beyond the SL cache, nanoseconds for each 128 bytes: hub, routers and memory of table 1.
const HOPS: [(&str, f64); 5] = [
    ("home memory", 110.0 + 468.0),
    ("one router", 358.0 + 68.0 + 468.0),
    ("two routers", 358.0 + 2.0 * 68.0 + 468.0),
    ("three routers", 358.0 + 3.0 * 68.0 + 468.0),
    ("four routers", 358.0 + 4.0 * 68.0 + 468.0),
];

/// What memory costs by how far away it is: by routers there, by the distance that firmware claims
/// here.
pub(super) fn hops(evidence: &Evidence<'_>) -> Result<ClaimTable, Missing> {
    let home = HOPS[0].1;
    let mut rows: Vec<_> = HOPS
        .iter()
        .map(|&(name, ns)| {
            let over = ns / home;
            paper(name, &[(Some((ns, ns)), Unit::Nanos), (Some((over, over)), Unit::Ratio)])
        })
        .collect();
    evidence.machine()?;
    let note = match evidence.numa() {
        Ok(numa) => {
            let from_here: Vec<&NodePair> =
                numa.matrix.iter().filter(|pair| pair.from == numa.local).collect();
            let local = from_here.iter().find(|pair| pair.to == numa.local).map(|pair| &pair.latency.ns);
            for (distance, pairs) in by_distance(&from_here) {
                let latency = pooled(&pairs);
                let over = local.and_then(|local| ratio(&latency, local).ok());
                let nodes: Vec<String> = pairs.iter().map(|pair| pair.to.to_string()).collect();
                let name = format!("distance {distance} (node {})", nodes.join(", "));
                rows.push(here(name, vec![latency, over.unwrap_or_else(nothing)]));
            }
            "here a load that waits for the one before, from the measuring CPU's node".to_owned()
        }
        Err(missing) => format!("no rows here: {}", missing.told()),
    };
    Ok(ClaimTable {
        id: "hops".to_owned(),
        title: "What memory costs by how far away it is".to_owned(),
        place: "table 1; equations 3".to_owned(),
        columns: ["time", "over home memory"].map(str::to_owned).to_vec(),
        rows,
        note: Some(note),
    })
}

/// Nearest first; those of which firmware claims nothing come last.
fn by_distance<'a>(pairs: &[&'a NodePair]) -> Vec<(String, Vec<&'a NodePair>)> {
    let claimed = |pair: &NodePair| pair.distance_claimed.value().unwrap_or(f64::MAX);
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| claimed(a).total_cmp(&claimed(b)).then(a.to.cmp(&b.to)));
    let groups = sorted.chunk_by(|a, b| claimed(a) == claimed(b));
    groups
        .map(|group| {
            let named =
                group[0].distance_claimed.value().map_or_else(|| "unknown".to_owned(), |d| d.to_string());
            (named, group.to_vec())
        })
        .collect()
}

/// The median; the interval holds those of all.
fn pooled(pairs: &[&NodePair]) -> Quantity {
    let estimates: Vec<Estimate> = pairs.iter().filter_map(|pair| pair.latency.ns.estimate()).collect();
    let mut values: Vec<f64> = estimates.iter().map(|e| e.value).collect();
    values.sort_by(f64::total_cmp);
    let Some(middle) = middle_sorted(&values) else { return nothing() };
    let lo = estimates.iter().map(|e| e.lo).fold(f64::INFINITY, f64::min);
    let hi = estimates.iter().map(|e| e.hi).fold(f64::NEG_INFINITY, f64::max);
    Quantity::measured(Estimate::new(middle, lo, hi), Unit::Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::{Fact, Node};
    use records::machine::{Machine, Numa, Outcome, Status};
    use units::Latency;

    fn nanos(value: f64) -> Latency {
        let e = Estimate::new(value, value - 1.0, value + 1.0);
        Latency { ns: Quantity::measured(e, Unit::Nanos), ..Latency::unresolved("x") }
    }

    /// Four nodes, of which one is near and two are far.
    fn four_nodes() -> Machine {
        let fixture = include_bytes!("../../../records/fixtures/machine.v1.interrupted.json");
        let mut machine = records::parse::<Machine>(fixture).expect("a record").body;
        let node = |id| Node {
            id,
            cpus: id.to_string().parse().expect("a list"),
            total: Fact::unknown("x"),
            free: Fact::unknown("x"),
            distances: Fact::unknown("x"),
            hugetlb: Vec::new(),
        };
        machine.host.nodes = (0..4).map(node).collect();
        let pair = |(to, distance, ns): (u32, f64, f64)| NodePair {
            from: 0,
            cpu: 0,
            to,
            distance_claimed: Quantity::claimed(distance, Unit::Count),
            latency: nanos(ns),
            read_rate: nothing(),
        };
        let matrix = [(0, 10.0, 100.0), (1, 12.0, 130.0), (2, 32.0, 200.0), (3, 32.0, 210.0)].map(pair);
        let numa = Numa {
            local: 0,
            nodes: vec![0, 1, 2, 3],
            size: Bytes::mib(64),
            placements: Vec::new(),
            matrix: matrix.to_vec(),
            left_out: Vec::new(),
        };
        machine.experiments.numa = Some(Outcome {
            status: Status::Done,
            why: None,
            would_help: None,
            seconds: 1.0,
            result: Some(numa),
        });
        machine
    }

    #[test]
    fn nodes_are_hops_by_their_distance() {
        let mut machine = four_nodes();
        let table = hops(&Evidence { machine: Some(&machine), ..Evidence::default() }).unwrap();
        let rows: Vec<_> = table.rows.iter().filter(|row| row.here).collect();
        let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["distance 10 (node 0)", "distance 12 (node 1)", "distance 32 (node 2, 3)"]);
        assert_eq!(rows[2].cells[0].value(), Some(210.0), "the upper of two");
        assert_eq!(rows[1].cells[1].value(), Some(1.3));
        machine.host.nodes.truncate(1);
        let table = hops(&Evidence { machine: Some(&machine), ..Evidence::default() }).unwrap();
        assert!(table.rows.iter().all(|row| !row.here));
        assert!(table.note.unwrap().contains("needs a second NUMA node"));
    }

    #[test]
    fn rates_are_those_of_table_2() {
        // The SL cache: 53 ns for 32 bytes.
        assert!((rate(Estimate::exact(53.0), 4.0).value().unwrap() - 75.5).abs() < 0.05);
        assert_eq!(
            sum(Estimate::new(3.0, 0.0, 6.0), Estimate::new(5.0, 1.0, 9.0)),
            Estimate::new(8.0, 3.0, 13.0)
        );
        let home = Estimate::exact(4.0 * 53.0 + HOPS[0].1);
        assert!((rate(home, 16.0).value().unwrap() - 20.3).abs() < 0.05);
        assert_eq!(rate(Estimate::new(1.0, -0.1, 2.0), 8.0).value(), None);
    }
}

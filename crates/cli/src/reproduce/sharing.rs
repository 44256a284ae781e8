//! The two problems of `vtune`: profiles before and after, and how much the change gains.

use super::programs::{Source, Workshop};
use ::reproduce::Evidence;
use ::reproduce::Missing;
use ::reproduce::programs::{FIRST_TOUCH_FASTER, PADDED, PADDED_FASTER, SHARED, TRIAD};
use ::reproduce::rounds::times_as_fast;
use lab::pin::Pinned;
use lab::stop::Stop;
use records::host::{Host, Node};
use units::{Progress, Quantity};

const SOURCES: &[Source] = &[
    ("pin.h", include_str!("../../../../programs/sharing/pin.h")),
    ("linear_regression.c", include_str!("../../../../programs/sharing/linear_regression.c")),
    ("triad.c", include_str!("../../../../programs/sharing/triad.c")),
];

/// Adds all that the claims need, or as much as can be had: then it says why no more.
pub(super) fn gather(
    evidence: &mut Evidence<'_>,
    quick: bool,
    stop: Stop,
    progress: &mut dyn Progress,
) -> Result<(), Missing> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err(Missing::Hardware("a second CPU: threads must run at the same time".to_owned()));
    }
    progress.at("compiling", 0.0);
    let workshop = Workshop::new(SOURCES, stop)?;
    workshop.compile("linear_regression.c", &["-O1", "-g"], SHARED)?;
    workshop.compile("linear_regression.c", &["-O1", "-g", "-DPAD=128"], PADDED)?;
    workshop.compile("triad.c", &["-O1", "-g"], TRIAD)?;
    for (part, name) in [SHARED, PADDED, TRIAD].into_iter().enumerate() {
        progress.at(&format!("profile of {name}"), 0.05 + 0.15 * part as f64);
        let program = format!("./{name}");
        let verb =
            ["profile", "-q", "--frequency", "4000", "--no-stacks", "-o", "profile.json", "--", &program];
        evidence.profiles.push((name, workshop.record(&verb, "profile.json")?));
    }
    let rounds = if quick { 3 } else { 9 };
    let mut pairs = Vec::new();
    for round in 0..rounds {
        progress.at("elapsed times", 0.5 + 0.5 * f64::from(round) / f64::from(rounds));
        // In turn first and second, so that whatever drifts meets both.
        let mut pair = [0.0; 2];
        for turn in [round % 2, 1 - round % 2] {
            let side = usize::from(turn == 1);
            pair[side] = workshop.seconds([SHARED, PADDED][side], &[])?;
        }
        pairs.push(pair);
    }
    evidence.figures.push((PADDED_FASTER, times_as_fast(&pairs)));
    if let Some(cpus) = evidence.machine.and_then(|machine| on_two_nodes(&machine.host)) {
        progress.at("triads on two nodes", 0.95);
        evidence.figures.push((FIRST_TOUCH_FASTER, first_touch(&workshop, cpus, rounds)?));
    }
    Ok(())
}

/// A CPU of each of two nodes that this process may use.
fn on_two_nodes(host: &Host) -> Option<[usize; 2]> {
    let usable = host.usable_cpus();
    let first = |node: &Node| node.cpus.iter().find(|cpu| usable.contains(cpu));
    let mut cpus = host.nodes.iter().filter_map(first).map(|cpu| cpu as usize);
    Some([cpus.next()?, cpus.next()?])
}

/// The triad's threads take the CPUs that they may use one after the other.
fn first_touch(workshop: &Workshop, cpus: [usize; 2], rounds: i32) -> Result<Quantity, Missing> {
    workshop.compile("triad.c", &["-O1", "-DPARALLEL"], "triad-first-touch")?;
    let _pinned = Pinned::among(&cpus).map_err(|error| Missing::NotRun(error.to_string()))?;
    let one = |name| workshop.seconds(name, &[]);
    let pairs: Result<Vec<[f64; 2]>, Missing> =
        (0..rounds).map(|_| Ok([one(TRIAD)?, one("triad-first-touch")?])).collect();
    Ok(times_as_fast(&pairs?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::{CpuList, Fact};

    #[test]
    fn threads_go_to_two_nodes_where_there_are_two() {
        let node = |cpus: &str| Node {
            id: 0,
            cpus: cpus.parse().expect("a list"),
            total: Fact::unknown("x"),
            free: Fact::unknown("x"),
            distances: Fact::unknown("x"),
            hugetlb: Vec::new(),
        };
        let host = |nodes: &[&str], allowed: &str| {
            let mut host = Host { nodes: nodes.iter().map(|cpus| node(cpus)).collect(), ..Host::default() };
            let allowed: CpuList = allowed.parse().expect("a list");
            host.topology.allowed = Fact::Known(allowed.clone());
            host.topology.online = Fact::Known(allowed);
            host
        };
        assert_eq!(on_two_nodes(&host(&["0-3", "4-7"], "2-5")), Some([2, 4]));
        assert_eq!(on_two_nodes(&host(&["0-3", "4-7"], "0-3")), None);
        assert_eq!(on_two_nodes(&host(&["0-3"], "0-3")), None);
    }
}

//! What the program waits for: the line of its source, and a look-up's time beside that of its
//! loads.

use records::profile::StallingLoad;
use units::{Estimate, Quantity, Unit};

/// A line of the source, with the share of CPU time in which the core waited for its loads.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitedLine {
    pub line: u32,
    pub stall: Quantity,
}

/// Lines of the source file with this name, those that are waited for most first.
pub fn lines(loads: &[StallingLoad], file: &str) -> Vec<WaitedLine> {
    let mut lines: Vec<(u32, Estimate)> = Vec::new();
    for load in loads {
        let (Some(of), Some(line), Some(stall)) = (&load.file, load.line, load.stall.estimate()) else {
            continue;
        };
        if !of.ends_with(file) {
            continue;
        }
        match lines.iter_mut().find(|(other, _)| *other == line) {
            Some((_, sum)) => *sum = both(*sum, stall),
            None => lines.push((line, stall)),
        }
    }
    lines.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let with_unit = |(line, stall)| WaitedLine { line, stall: Quantity::measured(stall, Unit::Ratio) };
    lines.into_iter().map(with_unit).collect()
}

/// The sum of two independent shares: half widths add in quadrature.
fn both(a: Estimate, b: Estimate) -> Estimate {
    let negative = Estimate { value: -b.value, lo: -b.hi, hi: -b.lo };
    a.minus(negative)
}

/// Of the loads that were timed, the one that takes longest.
pub fn longest(loads: &[StallingLoad]) -> Option<&StallingLoad> {
    let timed = loads.iter().filter_map(|load| Some((load, load.latency.value()?)));
    timed.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(load, _)| load)
}

/// A look-up's CPU time beside that of its loads one after the other, both in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct LookUp {
    pub loads: Quantity,
    pub taken: Quantity,
    pub is: Compared,
}

/// What a look-up took, by the intervals of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    AsLoads,
    Less,
    More,
}

impl LookUp {
    /// `load` is the model's time of a load; a look-up has `visited` of them, and there were so
    /// many `look_ups` in the program's CPU time.
    pub fn of(load: &Quantity, visited: f64, cpu_time: &Quantity, look_ups: f64) -> Option<Self> {
        let loads = load.estimate()?.scaled(visited);
        let taken = cpu_time.estimate()?.scaled(1e9 / look_ups);
        let is = if taken.overlaps(&loads) {
            Compared::AsLoads
        } else if taken.hi < loads.lo {
            Compared::Less
        } else {
            Compared::More
        };
        let loads = Quantity::modelled(loads, Unit::Nanos);
        Some(Self { loads, taken: Quantity::measured(taken, Unit::Nanos), is })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::profile::Profile;

    #[test]
    fn shares_of_one_line_are_added_with_their_intervals() {
        let sum = both(Estimate::new(0.8, 0.77, 0.83), Estimate::new(0.1, 0.06, 0.14));
        assert!(
            (sum.value - 0.9).abs() < 1e-9 && (sum.lo - 0.85).abs() < 1e-9 && (sum.hi - 0.95).abs() < 1e-9
        );
    }

    #[test]
    fn the_loads_of_a_line_count_together() {
        let path = testkit::root().join("crates/records/fixtures/profile.v1.clock-three-loops.json");
        let mut loads = records::read::<Profile>(&path).unwrap().body.loads;
        let found = lines(&loads, "t.c");
        assert_eq!(found.iter().map(|line| line.line).collect::<Vec<_>>(), [7, 8, 13, 14]);
        assert!((found[0].stall.value().unwrap() - 0.600_23).abs() < 1e-5, "{:?}", found[0]);
        assert!(lines(&loads, "other.c").is_empty());

        assert_eq!(longest(&loads), None, "no load was timed");
        loads[1].latency = Quantity::claimed(90.0, Unit::Nanos);
        loads[2].latency = Quantity::claimed(100.0, Unit::Nanos);
        assert_eq!(longest(&loads), Some(&loads[2]));
    }

    #[test]
    fn a_look_up_is_compared_by_both_intervals() {
        let seconds = |value, lo, hi| Quantity::measured(Estimate::new(value, lo, hi), Unit::Seconds);
        let load = Quantity::modelled(Estimate::new(100.0, 90.0, 110.0), Unit::Nanos);
        let of = |cpu_time: &Quantity| LookUp::of(&load, 5.0, cpu_time, 1e6).unwrap();
        let same = of(&seconds(0.54, 0.53, 0.56));
        assert_eq!(same.is, Compared::AsLoads);
        assert_eq!(same.loads.value(), Some(500.0));
        assert!((same.taken.value().unwrap() - 540.0).abs() < 1e-6);
        assert_eq!(of(&seconds(0.3, 0.29, 0.31)).is, Compared::Less);
        assert_eq!(of(&seconds(0.8, 0.79, 0.81)).is, Compared::More);
        assert_eq!(LookUp::of(&Quantity::unresolved("x"), 5.0, &seconds(1.0, 0.9, 1.1), 1e6), None);
    }
}

//! Made-up runs, whose truth is known: how often the same is called different, and how often a
//! change of a tenth is found.

use gleaner_compare::{Comparison, GateOutcome, Member, Options, Side, Verdict, compare};
use records::machine::{
    Blocks, Clock, Effort, Experiments, Grade, Level, Machine, Memory, Outcome, Run, Status,
};
use records::{AnyRecord, Header};
use units::{Estimate, Latency, Quantity, Unit};

/// A generator of its own, so that the room's is not tested by itself.
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)
    }

    /// Close to normal, with deviation 1, by twelve shares.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// As timings are: a hard floor, and now and then a run that is much slower.
    fn noise(&mut self, spread: f64) -> f64 {
        let odd = if self.share() < 0.05 { 5.0 * spread } else { 0.0 };
        spread * self.normal() + odd * self.share()
    }
}

fn measured(value: f64, wide: f64, unit: Unit) -> Quantity {
    Quantity::measured(Estimate::new(value, value * (1.0 - wide), value * (1.0 + wide)), unit)
}

/// Twelve levels, which nothing has, for as many headline figures; the first one `slower`.
fn run(random: &mut Random, spread: f64, slower: f64, number: usize) -> Member {
    let level = |at: usize, random: &mut Random| {
        let factor = if at == 0 { slower } else { 1.0 };
        let ns = 1.3_f64.powi(at as i32 + 1) * factor * (1.0 + random.noise(spread)).max(0.1);
        let latency = |unit, per_ns: f64| measured(ns * per_ns, spread / 2.0, unit);
        Level {
            name: format!("L{}", at + 1),
            size: measured(32768.0 * 4_f64.powi(at as i32), 0.0, Unit::Bytes),
            size_claimed: Quantity::unresolved("made up"),
            latency: Latency {
                ns: latency(Unit::Nanos, 1.0),
                cycles: latency(Unit::Cycles, 4.0),
                ticks: latency(Unit::Ticks, 2.0),
            },
            note: None,
        }
    };
    let machine = Machine {
        host: records::host::Host::default(),
        run: Run {
            host_name: None,
            cpu: 1,
            seed: number as u64,
            effort: Effort::Quick,
            seconds: 1.0,
            tsc: measured(2e9, 0.0, Unit::Hertz),
            blocks: Blocks { valid: 100, ..Blocks::default() },
            grade: Grade { verdict: records::machine::Verdict::Quiet, reasons: Vec::new() },
            memory: Memory::default(),
            interrupted: false,
        },
        levels: (0..12).map(|at| level(at, random)).collect(),
        experiments: Experiments::default(),
    };
    member(number, &machine)
}

fn member(number: usize, machine: &Machine) -> Member {
    let header = Header {
        kind: "machine".to_owned(),
        version: 1,
        gleaner: "0.1.0".to_owned(),
        created: "2026-01-31T12:00:00Z".to_owned(),
    };
    let body = serde_json::to_value(machine).unwrap();
    Member { name: format!("{number}.json"), record: AnyRecord { header, body } }
}

fn side(name: &str, runs: impl Iterator<Item = Member>) -> Side {
    Side { name: name.to_owned(), runs: runs.collect() }
}

const OPTIONS: Options = Options { min_effect: 0.05, seed: 1 };

fn one(random: &mut Random, runs: usize, spread: f64, slower: f64) -> Comparison {
    let base = side("base", (0..runs).map(|n| run(random, spread, 1.0, n)));
    let new = side("new", (0..runs).map(|n| run(random, spread, slower, runs + n)));
    compare(&[base, new], &OPTIONS).unwrap()
}

fn share_regressed(count: usize, runs: usize, spread: f64, slower: f64) -> f64 {
    let mut random = Random(7 + runs as u64);
    let regressed = |comparison: &Comparison| comparison.against[0].gate.outcome == GateOutcome::Regressed;
    let found = (0..count).filter(|_| regressed(&one(&mut random, runs, spread, slower))).count();
    found as f64 / count as f64
}

#[test]
fn the_same_is_hardly_ever_called_different() {
    for (runs, spread) in [(2, 0.02), (3, 0.05), (5, 0.02), (5, 0.10), (10, 0.10)] {
        let share = share_regressed(200, runs, spread, 1.0);
        println!("{runs} runs, spread {spread}: {share}");
        assert!(share <= 0.05, "{share} of comparisons of {runs} runs with a spread of {spread}");
    }
}

#[test]
fn a_tenth_is_found() {
    for (runs, spread) in [(3, 0.005), (5, 0.01), (7, 0.015), (10, 0.02)] {
        let share = share_regressed(100, runs, spread, 1.1);
        println!("{runs} runs, spread {spread}: {share}");
        assert!(share >= 0.95, "{share} of comparisons of {runs} runs with a spread of {spread}");
    }
}

#[test]
fn only_what_changed_regressed_and_the_rest_is_equivalent() {
    let comparison = one(&mut Random(3), 5, 0.005, 1.1);
    let figures = &comparison.against[0].figures;
    let verdict = |name: &str| figures.iter().find(|f| f.name == name).unwrap().gate;
    assert_eq!(verdict("L1 latency"), Some(Verdict::Regressed));
    assert_eq!(verdict("L2 latency"), Some(Verdict::Equivalent));
    assert_eq!(comparison.against[0].gate.counts.regressed, 1);
    assert_eq!(comparison.against[0].gate.counts.equivalent, 11);
}

#[test]
fn one_run_a_side_is_insufficient() {
    let comparison = one(&mut Random(3), 1, 0.005, 1.5);
    let against = &comparison.against[0];
    assert_eq!(against.gate.outcome, GateOutcome::Insufficient);
    assert!(against.figures.iter().all(|figure| figure.verdict == Verdict::Inconclusive));
    assert!(against.figures[0].floor.is_none());
}

#[test]
fn the_same_records_give_the_same_words() {
    let text = || gleaner_compare::text(&one(&mut Random(9), 3, 0.02, 1.1));
    assert_eq!(text(), text());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let mut random = Random(1);
    let mut member = |n| run(&mut random, 0.01, 1.0, n);
    let (first, second) = (member(1), member(2));
    let refused = |sides: &[Side]| compare(sides, &OPTIONS).unwrap_err().to_string();
    let of = |members: &[&Member]| side("side", members.iter().map(|&m| m.clone()));
    assert_eq!(refused(&[of(&[&first])]), "side has nothing to be compared with");
    assert_eq!(refused(&[of(&[&first]), of(&[])]), "side: no record in it");
    let copy = Member { name: "copy.json".to_owned(), ..first.clone() };
    assert_eq!(refused(&[of(&[&first]), of(&[&second, &copy])]), "1.json and copy.json are the same run");
    let mut other = second.clone();
    other.record.header.kind = "run".to_owned();
    assert_eq!(
        refused(&[of(&[&first]), of(&[&other])]),
        "2.json is a run record, 1.json a machine record: only records of one kind can be compared"
    );
    let mut machine: Machine = serde_json::from_value(second.record.body.clone()).unwrap();
    machine.levels.clear();
    let empty = self::member(3, &machine);
    assert_eq!(refused(&[of(&[&first]), of(&[&empty])]), "3.json: it has no figure to compare");
}

#[test]
fn what_differs_around_the_runs_is_told() {
    let mut random = Random(1);
    let mut with = |kernel: &str, number| {
        let member = run(&mut random, 0.01, 1.0, number);
        let mut machine: Machine = serde_json::from_value(member.record.body).unwrap();
        machine.host.identity.kernel = records::host::Fact::Known(kernel.to_owned());
        machine.run.interrupted = number == 4;
        machine.experiments.clock = Some(Outcome::<Clock> {
            status: Status::Failed,
            why: None,
            would_help: None,
            seconds: 0.0,
            result: None,
        });
        self::member(number, &machine)
    };
    let base = side("base", [with("6.1", 1), with("6.1", 2)].into_iter());
    let new = side("new", [with("6.1", 3), with("6.8", 4)].into_iter());
    let text = gleaner_compare::text(&compare(&[base, new], &OPTIONS).unwrap());
    assert!(text.contains("kernel: 6.1 -> 6.1; 6.8"), "{text}");
    assert!(text.contains("! its runs differ in kernel: 6.1; 6.8"), "{text}");
    assert!(text.contains("! 4.json was stopped early"), "{text}");
}

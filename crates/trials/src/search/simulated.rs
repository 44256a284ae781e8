//! The search on runs that are made up: how often chance is called a gain, and what is found.

use super::*;
use records::recipe::Setting;

/// Settings are known by a tunable's name; each makes runs faster by a factor, and runs differ.
struct Simulated {
    effects: Vec<(&'static str, f64)>,
    /// With other arguments.
    elsewhere: Vec<(&'static str, f64)>,
    noise: f64,
    run: f64,
    random: Rng,
    clock: f64,
    runs: usize,
}

fn setting(name: &str) -> Setting {
    Setting::Tunable { name: name.to_owned(), value: String::new() }
}

impl Runner for Simulated {
    fn run(&mut self, way: &Way) -> Result<Outcome, TrialError> {
        let effects = if way.other.is_some() { &self.elsewhere } else { &self.effects };
        let factor: f64 = effects
            .iter()
            .filter(|(name, _)| way.settings.contains(&setting(name)))
            .map(|(_, factor)| factor)
            .product();
        let normal: f64 = (0..12).map(|_| self.random.below(1000) as f64 / 1000.0 - 0.5).sum();
        // Now and then something else runs.
        let disturbed = if self.random.below(20) == 0 { 1.2 } else { 1.0 };
        let seconds = self.run / factor * (self.noise * normal).exp() * disturbed;
        self.clock += seconds;
        self.runs += 1;
        Ok(Outcome { seconds, cpu_seconds: seconds, took: seconds, peak: Bytes(1 << 20), wrong: None })
    }

    fn cannot_be_repeated(&self) -> Option<String> {
        None
    }

    fn compared(&self) -> Vec<String> {
        Vec::new()
    }

    fn seconds(&self) -> f64 {
        self.clock
    }

    fn runs(&self) -> usize {
        self.runs
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

fn simulated(effects: &[(&'static str, f64)], noise: f64, seed: u64) -> Simulated {
    let effects = effects.to_vec();
    let elsewhere = effects.clone();
    Simulated { effects, elsewhere, noise, run: 2.0, random: Rng::new(seed), clock: 0.0, runs: 0 }
}

fn asked(others: usize) -> Asked {
    Asked {
        budget: Duration::from_secs(180),
        is_budget_named: false,
        others: vec![Vec::new(); others],
        any_output: false,
        memory: None,
    }
}

fn searched(runner: &mut Simulated, others: usize) -> Found {
    searched_by(runner, &asked(others))
}

fn searched_by(runner: &mut Simulated, asked: &Asked) -> Found {
    let contender = |&(name, _): &(&str, f64)| Contender {
        says: name.to_owned(),
        forms: Ok(vec![Form::new("", vec![setting(name)])]),
    };
    let contenders = runner.effects.iter().map(contender).collect();
    found(runner, contenders, asked, &mut Rng::new(3), &mut |_| {}).unwrap()
}

#[test]
fn chance_is_seldom_kept() {
    let same = [("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0), ("e", 1.0), ("f", 1.0)];
    for (noise, run) in [(0.005, 2.0), (0.03, 2.0), (0.1, 2.0), (0.1, 0.2)] {
        let search = |seed| searched(&mut Simulated { run, ..simulated(&same, noise, seed) }, 0);
        let kept = (0..200).filter(|&seed| search(seed).verdict == Verdict::Faster).count();
        assert!(kept <= 10, "{kept} of 200 at {noise}");
    }
}

#[test]
fn what_helps_is_found_and_the_rest_is_not_carried() {
    let effects = [("a", 1.0), ("b", 1.10), ("c", 0.9), ("d", 1.08), ("e", 1.001)];
    let mut right = 0;
    for seed in 0..50 {
        let mut runner = simulated(&effects, 0.01, seed);
        let found = searched(&mut runner, 0);
        assert!(runner.clock < 190.0, "{}", runner.clock);
        let faster = found.faster.value().unwrap_or(1.0);
        let has = |name| found.settings.contains(&setting(name));
        assert!(!has("c"), "{found:#?}");
        right += usize::from(has("b") && has("d") && (1.12..1.26).contains(&faster));
    }
    assert!(right >= 45, "{right} of 50");
}

#[test]
fn what_costs_other_arguments_time_is_left_out() {
    let mut kept = 0;
    for seed in 0..20 {
        let mut runner = simulated(&[("a", 1.2), ("b", 1.15)], 0.01, seed);
        runner.elsewhere = vec![("a", 0.8), ("b", 1.0)];
        let found = searched(&mut runner, 1);
        assert!(!found.settings.contains(&setting("a")), "{found:#?}");
        kept += usize::from(found.settings.contains(&setting("b")) && found.others.len() == 1);
    }
    assert!(kept >= 14, "{kept} of 20");
}

#[test]
fn a_budget_that_decides_nothing_is_told_at_once() {
    let mut long = simulated(&[("a", 2.0)], 0.01, 1);
    long.run = 30.0;
    let asked = Asked { is_budget_named: true, ..asked(0) };
    let found = searched_by(&mut long, &asked);
    assert!(matches!(&found.verdict, Verdict::NotResolved { why } if why.contains("15 runs")), "{found:#?}");
    assert_eq!(found.runs, 2);
    // Where it is not the user's, it is made longer.
    let mut long = simulated(&[("a", 2.0)], 0.01, 1);
    long.run = 30.0;
    assert_eq!(searched(&mut long, 0).verdict, Verdict::Faster);
}

#[test]
fn what_is_too_short_or_sleeps_is_left() {
    let mut short = simulated(&[("a", 2.0)], 0.01, 1);
    short.run = 0.01;
    let found = searched(&mut short, 0);
    assert!(matches!(&found.verdict, Verdict::LeaveIt { why } if why.contains("ms")), "{found:#?}");
    assert_eq!(found.runs, 2);
}

#[test]
fn short_runs_that_differ_much_are_repeated_while_there_is_time() {
    let found = |seed| {
        let mut runner = simulated(&[("a", 1.06)], 0.1, seed);
        runner.run = 0.2;
        let found = searched(&mut runner, 0);
        assert!(runner.clock < 190.0, "{}", runner.clock);
        found.verdict == Verdict::Faster
    };
    let kept = (0..40).filter(|&seed| found(seed)).count();
    assert!(kept >= 28, "{kept} of 40");
}

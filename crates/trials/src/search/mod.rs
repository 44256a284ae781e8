//! All changes within a budget, and the best of them together.
//!
//! ```text
//! as it is   two runs: can the program be run again at all, and with the same outcome?
//! screen     all forms in turns with the program as it is; those without hope end after two rounds
//! combine    the best form first; each further one is kept if it helps on top of what is kept
//! confirm    what is kept against the program as it is, by fresh runs: these alone decide
//! others     the same with the other arguments that the user names
//! ```
//!
//! Whatever screening picks by chance, confirming does not know of: of programs that no change
//! makes faster, one in forty is called faster at most.

mod combine;
mod confirm;
mod real;
mod screen;
#[cfg(test)]
mod simulated;

pub(crate) use combine::pair;

use crate::change::Candidate;
use crate::program::{Program, TrialError};
use crate::settings::form::Form;
use lab::rng::Rng;
use lab::stop::Stop;
use records::recipe::{ChangeOutcome, OtherArguments, Setting, TriedChange, Verdict};
use std::ffi::OsString;
use std::time::Duration;
use units::{Bytes, Quantity, Unit};

/// What is asked of a search.
#[derive(Clone, Debug)]
pub struct Asked {
    /// For all runs together. At least [`LEAST_RUNS`] are made where the user names no budget.
    pub budget: Duration,
    pub is_budget_named: bool,
    /// Other arguments in the place of the program's own, with which it must not get slower.
    pub others: Vec<Vec<OsString>>,
    /// Changes are tried though the output differs from run to run.
    pub any_output: bool,
    /// What the program may take of memory.
    pub memory: Option<Bytes>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub verdict: Verdict,
    pub settings: Vec<Setting>,
    pub faster: Quantity,
    pub without: Quantity,
    pub with: Quantity,
    pub memory: Quantity,
    pub tried: Vec<TriedChange>,
    pub others: Vec<OtherArguments>,
    pub compared: Vec<String>,
    pub runs: usize,
}

/// A verdict takes this number of runs where the budget is none of the user's, however long.
const LEAST_RUNS: f64 = 15.0;
/// Less is not worth a recipe.
const LEAST_GAIN: f64 = 1.02;
/// Of runs that are shorter, starting the program is most.
const SHORTEST_RUN: f64 = 0.04;
/// A program that has a CPU for less of its time waits for something else.
const LEAST_RUNNING: f64 = 0.1;
/// Parts of the budget until which changes are screened, and combined.
const UNTIL_SCREENED: f64 = 0.5;
const UNTIL_COMBINED: f64 = 0.65;

/// With which arguments, and which settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Way {
    pub settings: Vec<Setting>,
    /// The number of the user's other arguments, if not the program's own.
    pub other: Option<usize>,
}

/// What a run was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// All of it, with what does not count.
    pub took: f64,
    pub peak: Bytes,
    /// Why it counts for nothing: it failed, or left something else than without the settings.
    pub wrong: Option<String>,
}

/// What makes runs: real ones, or simulated ones in tests.
pub(crate) trait Runner {
    fn run(&mut self, way: &Way) -> Result<Outcome, TrialError>;
    /// Why no run can tell, if the runs as it is differ too much.
    fn cannot_be_repeated(&self) -> Option<String>;
    fn compared(&self) -> Vec<String>;
    /// Since the search began.
    fn seconds(&self) -> f64;
    fn runs(&self) -> usize;
    fn is_stopped(&self) -> bool;
}

/// A change among those that are searched.
pub(crate) struct Contender {
    pub says: String,
    pub forms: Result<Vec<Form>, String>,
}

/// Searches. `told` is called with what is done next.
pub fn search(
    program: &Program,
    candidates: &[Candidate],
    asked: &Asked,
    stop: Stop,
    told: &mut dyn FnMut(&str),
) -> Result<Found, TrialError> {
    let mut contenders = Vec::new();
    for Candidate { change, .. } in candidates {
        let forms = change.forms();
        if forms.is_ok() || !change.is_guess() {
            contenders.push(Contender { says: change.says(), forms });
        }
    }
    let mut runner = real::Real::new(program, asked, stop);
    found(&mut runner, contenders, asked, &mut Rng::new(1), told)
}

pub(crate) fn found(
    runner: &mut dyn Runner,
    contenders: Vec<Contender>,
    asked: &Asked,
    random: &mut Rng,
    told: &mut dyn FnMut(&str),
) -> Result<Found, TrialError> {
    let (mut tried, mut forms) = (Vec::new(), Vec::new());
    for contender in contenders {
        match contender.forms {
            Ok(of_it) => forms.push((contender.says, of_it)),
            Err(why) => tried.push(not_tried(contender.says, why)),
        }
    }
    told("runs as it is");
    let mut as_it_is = Vec::new();
    while as_it_is.len() < 2 && !runner.is_stopped() {
        as_it_is.push(runner.run(&Way::default())?);
    }
    if runner.is_stopped() {
        return Ok(without_settings(stopped(), tried, runner));
    }
    if let Some(why) = as_it_is_why(&as_it_is, runner, asked) {
        let why_not = |(says, _)| not_tried(says, "the program is left as it is".to_owned());
        tried.extend(forms.into_iter().map(why_not));
        return Ok(without_settings(Verdict::LeaveIt { why }, tried, runner));
    }
    if forms.is_empty() {
        let why =
            "the profile shows no data, and the code no place, for which a change without source is known";
        return Ok(without_settings(Verdict::LeaveIt { why: why.to_owned() }, tried, runner));
    }
    let run = as_it_is.iter().map(|one| one.took).fold(f64::INFINITY, f64::min);
    let is_short = run * LEAST_RUNS > asked.budget.as_secs_f64();
    if is_short && asked.is_budget_named {
        let why_not = |(says, _)| not_tried(says, "the budget is too short".to_owned());
        tried.extend(forms.into_iter().map(why_not));
        let why = format!(
            "a run takes {run:.1} s, and a verdict {LEAST_RUNS} runs: --budget of {:.0}s and more",
            (LEAST_RUNS * run).ceil()
        );
        return Ok(without_settings(Verdict::NotResolved { why }, tried, runner));
    }
    let budget = asked.budget.as_secs_f64().max(LEAST_RUNS * run);
    if is_short {
        told(&format!("a run takes {run:.0} s: this takes up to {:.0} minutes", (budget / 60.0).ceil()));
    }
    let limits = screen::Limits { until: UNTIL_SCREENED * budget, run, memory: asked.memory };
    let screened = screen::screen(runner, forms, &limits, random, told)?;
    tried.extend(screened.out);
    let mut best = combine::combine(runner, screened.best, UNTIL_COMBINED * budget, &mut tried, told)?;
    let mut confirmed = None;
    let mut others = Vec::new();
    while !best.is_empty() && !runner.is_stopped() {
        told("what is kept, once more against the program as it is");
        let settings = combine::together(&best);
        let against =
            confirm::confirm(runner, &settings, (budget, run), (combine::expected(&best), screened.spread))?;
        let holds = against.is_gain(LEAST_GAIN);
        confirmed = Some(against);
        if !holds {
            break;
        }
        others = confirm::with_others(runner, &settings, asked.others.len(), told)?;
        let Some(slower) = others.iter().position(|other| !other.holds()) else { break };
        told("a change that costs other arguments time is left out");
        best = combine::without_slowest(runner, best, slower, &mut tried)?;
    }
    Ok(decided(runner, best, confirmed.as_ref(), &others, tried, asked))
}

/// Why the program is best left as it is, by two runs of it.
fn as_it_is_why(runs: &[Outcome], runner: &dyn Runner, asked: &Asked) -> Option<String> {
    let least = |of: fn(&Outcome) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let (seconds, cpu) = (least(|run| run.seconds), least(|run| run.cpu_seconds));
    let took = least(|run| run.took);
    if let Some(why) = runs.iter().find_map(|run| run.wrong.clone()) {
        return Some(format!("as it is, {why}"));
    }
    if let Some(why) = runner.cannot_be_repeated().filter(|_| !asked.any_output) {
        return Some(why);
    }
    if took < SHORTEST_RUN {
        return Some(format!("a run takes {:.0} ms: most of that is starting it", 1e3 * took));
    }
    (cpu < LEAST_RUNNING * seconds).then(|| {
        let running = 100.0 * cpu / seconds;
        format!("it runs for {running:.0}% of its time and waits for something else than memory")
    })
}

fn not_tried(says: String, why: String) -> TriedChange {
    TriedChange {
        says,
        form: String::new(),
        outcome: ChangeOutcome::NotTried { why },
        faster: Quantity::unresolved("it was not run"),
        pairs: 0,
    }
}

fn stopped() -> Verdict {
    Verdict::NotResolved { why: "it was stopped".to_owned() }
}

fn without_settings(verdict: Verdict, tried: Vec<TriedChange>, runner: &dyn Runner) -> Found {
    let not_run = || Quantity::unresolved("nothing was kept");
    Found {
        verdict,
        settings: Vec::new(),
        faster: not_run(),
        without: not_run(),
        with: not_run(),
        memory: not_run(),
        tried,
        others: Vec::new(),
        compared: runner.compared(),
        runs: runner.runs(),
    }
}

/// The verdict, by the fresh runs.
fn decided(
    runner: &dyn Runner,
    best: Vec<combine::Kept>,
    confirmed: Option<&confirm::Against>,
    others: &[confirm::Against],
    mut tried: Vec<TriedChange>,
    asked: &Asked,
) -> Found {
    // A search that is stopped may have left out a change since what it confirmed.
    let is_open = best.is_empty() || runner.is_stopped();
    let kept = confirmed.filter(|against| !is_open && against.is_gain(LEAST_GAIN));
    let Some(against) = kept else {
        let percent = 100.0 * (LEAST_GAIN - 1.0);
        let why = match confirmed {
            _ if runner.is_stopped() => None,
            Some(against) if against.may_be_gain(LEAST_GAIN) && !best.is_empty() => None,
            _ => Some(format!("none of the changes makes it {percent:.0}% faster")),
        };
        let dropped = "it was not confirmed by fresh runs";
        tried.extend(
            best.into_iter().map(|kept| kept.told(ChangeOutcome::Dropped { why: dropped.to_owned() })),
        );
        let verdict = match why {
            Some(why) => Verdict::LeaveIt { why },
            None if runner.is_stopped() => stopped(),
            None => Verdict::NotResolved {
                why: "runs differ by more than what is gained: a quieter machine, or a longer --budget"
                    .to_owned(),
            },
        };
        let mut found = without_settings(verdict, tried, runner);
        if let Some(against) = confirmed {
            found.faster = against.faster();
            [found.without, found.with] = against.seconds();
        }
        return found;
    };
    let settings = combine::together(&best);
    tried.splice(0..0, best.into_iter().map(|kept| kept.told(ChangeOutcome::Kept)));
    let of_other = |(against, arguments): (&confirm::Against, &Vec<OsString>)| OtherArguments {
        arguments: arguments.iter().map(|word| records::text_of(word.as_ref())).collect(),
        faster: against.faster(),
        pairs: against.pairs.len(),
    };
    Found {
        verdict: Verdict::Faster,
        settings,
        faster: against.faster(),
        without: against.seconds()[0].clone(),
        with: against.seconds()[1].clone(),
        memory: Quantity::measured(against.memory(), Unit::Bytes),
        tried,
        others: others.iter().zip(&asked.others).map(of_other).collect(),
        compared: runner.compared(),
        runs: runner.runs(),
    }
}

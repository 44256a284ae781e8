//! All forms in turns with the program as it is, to find those that may be worth it. What is said
//! here decides nothing for good.

use super::combine::Kept;
use super::{LEAST_GAIN, Outcome, Runner, Way};
use crate::pairs::Pairs;
use crate::program::TrialError;
use crate::settings::form::Form;
use lab::rng::Rng;
use records::recipe::{ChangeOutcome, TriedChange};
use units::Bytes;

/// How far screening goes.
pub(crate) struct Limits {
    /// Seconds since the search began.
    pub until: f64,
    /// What a run takes.
    pub run: f64,
    pub memory: Option<Bytes>,
}

/// What is left of it.
pub(crate) struct Screened {
    /// The best form of each change that may be a gain, best first.
    pub best: Vec<Kept>,
    pub out: Vec<TriedChange>,
    /// How much the logarithms of the ratios of pairs differ.
    pub spread: f64,
}

/// After two rounds a form that is slower than this has no hope.
const HOPELESS: f64 = 0.99;
/// What seems to gain less is not gone on with.
const LEAST: f64 = 1.01;
/// Of the least gain that is kept, what a mean may be off by when screening ends.
const CLEAR: f64 = 1.0 / 3.0;
/// Of the memory that there is, a change may not fill more than this.
const MOST_OF_MEMORY: f64 = 0.9;

struct Contest {
    says: String,
    forms: Vec<(Form, Pairs)>,
    /// Why it is out.
    out: Option<String>,
}

pub(crate) fn screen(
    runner: &mut dyn Runner,
    changes: Vec<(String, Vec<Form>)>,
    limits: &Limits,
    random: &mut Rng,
    told: &mut dyn FnMut(&str),
) -> Result<Screened, TrialError> {
    let mut contests: Vec<Contest> = changes
        .into_iter()
        .map(|(says, forms)| {
            let forms = forms.into_iter().map(|form| (form, Pairs::default())).collect();
            Contest { says, forms, out: None }
        })
        .collect();
    fit(&mut contests, limits, runner.seconds());
    let mut round: u32 = 0;
    loop {
        let number: usize = contests.iter().filter(|one| one.out.is_none()).map(|one| one.forms.len()).sum();
        let takes = limits.run * (number + 1) as f64;
        let is_over = round >= 2 && runner.seconds() + takes > limits.until;
        if number == 0 || is_over || runner.is_stopped() {
            break;
        }
        round += 1;
        told(&format!("round {round}: {number} ways and as it is"));
        one_round(runner, &mut contests, limits, random)?;
        if round > 1 {
            let error = spread(&contests) / f64::from(round).sqrt();
            contests.iter_mut().filter(|one| one.out.is_none()).for_each(|one| one.narrow(error));
            if error < CLEAR * LEAST_GAIN.ln() {
                break;
            }
        }
    }
    let spread = spread(&contests);
    let (mut best, mut out) = (Vec::new(), Vec::new());
    for mut contest in contests {
        contest.narrow(0.0);
        contest.forms.truncate(1);
        let why = contest.out.take();
        let Some((form, pairs)) = contest.forms.into_iter().next() else { continue };
        let is_gain = pairs.middle().is_some_and(|mean| mean >= LEAST.ln());
        let kept = Kept { says: contest.says, form, pairs };
        match why {
            Some(why) if kept.pairs.len() == 0 && kept.pairs.failed().is_none() => {
                out.push(kept.told(ChangeOutcome::NotTried { why }));
            }
            Some(why) => out.push(kept.told(ChangeOutcome::Dropped { why })),
            None if is_gain => best.push(kept),
            None if kept.pairs.len() == 0 => {
                out.push(kept.told(ChangeOutcome::NotTried { why: "the search ended before it".to_owned() }));
            }
            None => out.push(kept.told(ChangeOutcome::Dropped { why: "it is not faster".to_owned() })),
        }
    }
    best.sort_by(|one, other| other.pairs.middle().partial_cmp(&one.pairs.middle()).expect("finite"));
    Ok(Screened { best, out, spread })
}

/// Leaves out what the time does not reach for: forms first, then changes that promise least.
fn fit(contests: &mut [Contest], limits: &Limits, now: f64) {
    let room = ((limits.until - now) / (2.0 * limits.run)).max(2.0) as usize - 1;
    let number = |contests: &[Contest]| -> usize {
        contests.iter().filter(|one| one.out.is_none()).map(|one| one.forms.len()).sum()
    };
    while number(contests) > room {
        let most = contests.iter().filter(|one| one.out.is_none()).map(|one| one.forms.len()).max();
        let is_left = |one: &&mut Contest| one.out.is_none() && Some(one.forms.len()) == most;
        match contests.iter_mut().rev().find(is_left) {
            Some(one) if one.forms.len() > 1 => {
                one.forms.pop();
            }
            Some(one) => one.out = Some("the budget ends before it".to_owned()),
            None => return,
        }
    }
}

/// Each form that is left, and the program as it is, once, in any order.
fn one_round(
    runner: &mut dyn Runner,
    contests: &mut [Contest],
    limits: &Limits,
    random: &mut Rng,
) -> Result<(), TrialError> {
    let mut order: Vec<Option<(usize, usize)>> = vec![None];
    for (n, contest) in contests.iter().enumerate().filter(|(_, contest)| contest.out.is_none()) {
        order.extend((0..contest.forms.len()).map(|form| Some((n, form))));
    }
    random.shuffle(&mut order);
    let mut outcomes = Vec::new();
    for way in order {
        if runner.is_stopped() {
            return Ok(());
        }
        let settings = way.map_or_else(Vec::new, |(n, form)| contests[n].forms[form].0.settings.clone());
        outcomes.push((way, runner.run(&Way { settings, other: None })?));
    }
    let as_it_is = outcomes.iter().find(|(way, _)| way.is_none()).map(|(_, outcome)| outcome.clone());
    let Some(as_it_is) = as_it_is else { return Ok(()) };
    for (way, outcome) in outcomes {
        let Some((n, form)) = way else { continue };
        match wrong(&outcome, &as_it_is, limits) {
            None => contests[n].forms[form].1.push(as_it_is.seconds, outcome.seconds),
            Some(why) => contests[n].forms[form].1.fail(why),
        }
    }
    Ok(())
}

fn wrong(outcome: &Outcome, as_it_is: &Outcome, limits: &Limits) -> Option<String> {
    let too_much = || {
        let memory = limits.memory?;
        let fills = outcome.peak.0 as f64 > MOST_OF_MEMORY * memory.0 as f64 && outcome.peak > as_it_is.peak;
        fills.then(|| format!("it takes {} of {memory} of memory", outcome.peak))
    };
    outcome.wrong.clone().or_else(too_much)
}

impl Contest {
    /// The best form stays, and those that may be better by the error of what is known; without
    /// hope none does.
    fn narrow(&mut self, error: f64) {
        let failed = self.forms.iter().find_map(|(_, pairs)| pairs.failed().map(str::to_owned));
        if self.forms.iter().any(|(_, pairs)| pairs.failed().is_none()) {
            self.forms.retain(|(_, pairs)| pairs.failed().is_none());
        } else {
            self.forms.truncate(1);
            self.out = self.out.take().or(failed);
            return;
        }
        self.forms.sort_by(|(_, one), (_, other)| {
            let mean = |pairs: &Pairs| pairs.middle().unwrap_or(f64::NEG_INFINITY);
            mean(other).total_cmp(&mean(one))
        });
        let Some(best) = self.forms[0].1.middle() else { return };
        self.forms.retain(|(_, pairs)| pairs.middle().is_some_and(|middle| middle + error >= best));
        if self.out.is_none() && best + error < HOPELESS.ln() {
            self.out = Some("it is slower".to_owned());
        }
    }
}

/// The standard deviation within forms, over all that have several pairs.
fn spread(contests: &[Contest]) -> f64 {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for (_, pairs) in contests.iter().flat_map(|contest| &contest.forms) {
        if let Some((square, of)) = pairs.squares() {
            squares += square;
            degrees += of;
        }
    }
    if degrees > 0.0 { f64::sqrt(squares / degrees) } else { 0.0 }
}

//! The best form, and each further one that helps on top of it.

use super::{Runner, Way};
use crate::pairs::Pairs;
use crate::program::TrialError;
use crate::settings::form::Form;
use records::recipe::{ChangeOutcome, Setting, TriedChange};
use units::{Quantity, Unit};

/// A change in the form that is kept, for now.
#[derive(Clone)]
pub(crate) struct Kept {
    pub says: String,
    pub form: Form,
    pub pairs: Pairs,
}

/// Pairs that say whether a change helps on top of others; if they do not, as many once more.
const PAIRS: usize = 3;
const MOST_PAIRS: usize = 2 * PAIRS;
/// What helps by less than this is left out: each part of a recipe is one more to carry.
const LEAST: f64 = 1.005;

impl Kept {
    /// What the record says of it.
    pub(crate) fn told(self, outcome: ChangeOutcome) -> TriedChange {
        const MISSED: f64 = 0.05;
        let faster = self.pairs.faster(MISSED);
        TriedChange {
            says: self.says,
            form: self.form.says,
            outcome,
            faster: faster.map_or_else(
                || Quantity::unresolved("one pair says nothing of how much pairs differ"),
                |faster| Quantity::measured(faster, Unit::Ratio),
            ),
            pairs: self.pairs.len(),
        }
    }
}

pub(crate) fn together(kept: &[Kept]) -> Vec<Setting> {
    kept.iter().flat_map(|one| one.form.settings.iter().cloned()).collect()
}

/// Goes through the changes, best first. Those that help no more go to `out`.
pub(crate) fn combine(
    runner: &mut dyn Runner,
    changes: Vec<Kept>,
    until: f64,
    out: &mut Vec<TriedChange>,
    told: &mut dyn FnMut(&str),
) -> Result<Vec<Kept>, TrialError> {
    let mut kept: Vec<Kept> = Vec::new();
    for mut change in changes {
        if kept.is_empty() {
            kept.push(change);
            continue;
        }
        let before = together(&kept);
        let with = [&before[..], &change.form.settings].concat();
        told(&format!("on top of what is kept: {}", change.says));
        let mut pairs = Pairs::default();
        let is_open = |pairs: &Pairs| {
            let seems_so = pairs.middle().is_none_or(|mean| mean >= LEAST.ln());
            pairs.len() < PAIRS || (pairs.len() < MOST_PAIRS && seems_so && pairs.clear_mean().is_none())
        };
        while is_open(&pairs) && !runner.is_stopped() && runner.seconds() < until {
            let [one, other] = pair(runner, &before, &with, None, pairs.len())?;
            if let Some(why) = other.wrong {
                pairs.fail(why);
                break;
            }
            pairs.push(one.seconds, other.seconds);
        }
        let why = match (pairs.failed(), pairs.clear_mean()) {
            (Some(why), _) => format!("with the others, {why}"),
            (None, Some(mean)) if mean >= LEAST.ln() => {
                change.pairs = pairs;
                kept.push(change);
                continue;
            }
            (None, None) if pairs.len() < 2 => {
                "the budget ended before it was tried with the others".to_owned()
            }
            _ => "it does not help on top of the others".to_owned(),
        };
        out.push(change.told(ChangeOutcome::Dropped { why }));
    }
    Ok(kept)
}

/// What they gain together, by the pairs so far: each is known on top of those before it.
pub(crate) fn expected(kept: &[Kept]) -> f64 {
    kept.iter().filter_map(|one| one.pairs.middle()).sum()
}

/// One run each way; which is first alternates.
pub(crate) fn pair(
    runner: &mut dyn Runner,
    one: &[Setting],
    other: &[Setting],
    arguments: Option<usize>,
    number: usize,
) -> Result<[super::Outcome; 2], TrialError> {
    let mut both = [super::Outcome::default(), super::Outcome::default()];
    for turn in [number % 2, 1 - number % 2] {
        let settings = if turn == 0 { one.to_vec() } else { other.to_vec() };
        both[turn] = runner.run(&Way { settings, other: arguments })?;
    }
    Ok(both)
}

/// The changes without the one that costs these other arguments most.
pub(crate) fn without_slowest(
    runner: &mut dyn Runner,
    mut kept: Vec<Kept>,
    arguments: usize,
    out: &mut Vec<TriedChange>,
) -> Result<Vec<Kept>, TrialError> {
    let mut slowest = (f64::INFINITY, 0);
    for (number, change) in kept.iter().enumerate().filter(|_| kept.len() > 1) {
        let mut pairs = Pairs::default();
        while pairs.len() < PAIRS && !runner.is_stopped() {
            let [one, other] = pair(runner, &[], &change.form.settings, Some(arguments), pairs.len())?;
            if other.wrong.is_some() {
                pairs = Pairs::default();
                break;
            }
            pairs.push(one.seconds, other.seconds);
        }
        let mean = pairs.middle().unwrap_or(f64::NEG_INFINITY);
        if mean < slowest.0 {
            slowest = (mean, number);
        }
    }
    let gone = kept.remove(slowest.1);
    let why = "with other arguments it costs time, or something goes wrong".to_owned();
    out.push(gone.told(ChangeOutcome::Dropped { why }));
    Ok(kept)
}

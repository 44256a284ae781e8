//! Settings against the program as it is, by runs that nothing was chosen by.

use super::combine::pair;
use super::{Outcome, Runner};
use crate::pairs::Pairs;
use crate::program::TrialError;
use records::recipe::Setting;
use units::{Estimate, Quantity, Unit, median};

/// What pairs of runs say.
#[derive(Default)]
pub(crate) struct Against {
    pub pairs: Pairs,
    peaks: [Vec<f64>; 2],
}

/// It is looked at twice at most, and each time may be wrong by half of one in twenty.
const LOOKS: usize = 2;
const MISSED: f64 = 0.05 / LOOKS as f64;
const LEAST_PAIRS: usize = 5;
/// Of the first look: screening may have seen less than there is.
const MOST_AT_FIRST: usize = 20;
/// With other arguments the program must keep this much of its pace.
const LEAST_OF_OTHERS: f64 = 0.98;
const PAIRS_OF_OTHERS: usize = 5;

pub(crate) fn confirm(
    runner: &mut dyn Runner,
    settings: &[Setting],
    (budget, run): (f64, f64),
    (expected, spread): (f64, f64),
) -> Result<Against, TrialError> {
    let mut against = Against::default();
    let (began, mut pair) = (runner.seconds(), 2.0 * run);
    for look in 0..LOOKS {
        let room = ((budget - runner.seconds()) / pair).max(0.0) as usize;
        let number = if look == 0 {
            number(expected, spread).min(MOST_AT_FIRST).min(room.max(LEAST_PAIRS))
        } else {
            // As many as tell the least gain that is kept, if there is time for them.
            number(0.0, spread).min(room)
        };
        against.go_on(runner, settings, None, number)?;
        if against.pairs.failed().is_some() || against.is_decided() || number == 0 {
            break;
        }
        pair = (runner.seconds() - began) / against.pairs.len() as f64;
    }
    Ok(against)
}

/// How many pairs tell a gain like the one that screening saw, when pairs differ so much: the error
/// of their mean is a third of the gain then.
fn number(expected: f64, spread: f64) -> usize {
    let gain = expected.max(super::LEAST_GAIN.ln());
    ((3.0 * spread / gain).powi(2).ceil() as usize).max(LEAST_PAIRS)
}

/// What is kept, with the other arguments.
pub(crate) fn with_others(
    runner: &mut dyn Runner,
    settings: &[Setting],
    number: usize,
    told: &mut dyn FnMut(&str),
) -> Result<Vec<Against>, TrialError> {
    let mut all = Vec::new();
    for other in 0..number {
        told(&format!("with other arguments, {} of {number}", other + 1));
        let mut against = Against::default();
        against.go_on(runner, settings, Some(other), PAIRS_OF_OTHERS)?;
        all.push(against);
    }
    Ok(all)
}

impl Against {
    fn go_on(
        &mut self,
        runner: &mut dyn Runner,
        settings: &[Setting],
        arguments: Option<usize>,
        number: usize,
    ) -> Result<(), TrialError> {
        for _ in 0..number {
            if runner.is_stopped() {
                break;
            }
            let both = pair(runner, &[], settings, arguments, self.pairs.len())?;
            if let Some(why) = both.iter().find_map(|run| run.wrong.clone()) {
                self.pairs.fail(why);
                break;
            }
            self.push(&both);
        }
        Ok(())
    }

    fn push(&mut self, [one, other]: &[Outcome; 2]) {
        self.pairs.push(one.seconds, other.seconds);
        self.peaks[0].push(one.peak.0 as f64);
        self.peaks[1].push(other.peak.0 as f64);
    }

    fn estimate(&self) -> Option<Estimate> {
        self.pairs.faster(MISSED).filter(|_| self.pairs.failed().is_none())
    }

    pub(crate) fn is_gain(&self, least: f64) -> bool {
        self.estimate().is_some_and(|faster| faster.lo > 1.0 && faster.value >= least)
    }

    pub(crate) fn may_be_gain(&self, least: f64) -> bool {
        self.estimate().is_some_and(|faster| faster.value >= least)
    }

    fn is_decided(&self) -> bool {
        self.is_gain(super::LEAST_GAIN) || self.estimate().is_some_and(|faster| faster.hi < super::LEAST_GAIN)
    }

    /// With other arguments nothing is lost that counts.
    pub(crate) fn holds(&self) -> bool {
        self.estimate().is_some_and(|faster| faster.value >= LEAST_OF_OTHERS)
    }

    pub(crate) fn faster(&self) -> Quantity {
        let why = || Quantity::unresolved(self.pairs.failed().unwrap_or("too few runs").to_owned());
        self.estimate().map_or_else(why, |faster| Quantity::measured(faster, Unit::Ratio))
    }

    pub(crate) fn seconds(&self) -> [Quantity; 2] {
        if self.pairs.len() == 0 {
            return [(); 2].map(|()| Quantity::unresolved("too few runs"));
        }
        self.pairs.seconds().map(|seconds| Quantity::measured(seconds, Unit::Seconds))
    }

    /// How much more memory there is at the peak, from run to run.
    pub(crate) fn memory(&self) -> Estimate {
        let more: Vec<f64> =
            self.peaks[0].iter().zip(&self.peaks[1]).map(|(one, other)| other - one).collect();
        let ends = |end: fn(f64, f64) -> f64, from| more.iter().copied().fold(from, end);
        Estimate::new(median(&more), ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY))
    }
}

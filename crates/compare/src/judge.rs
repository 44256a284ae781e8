//! A comparison, from the sides to the gate.

use crate::bootstrap::{self, Ratio};
use crate::comparison::{
    Against, Compared, Comparison, Counts, Gate, GateOutcome, Options, SideSummary, SideValue,
};
use crate::environment;
use crate::figure::{Better, Figure};
use crate::random::Random;
use crate::several;
use crate::sides::{self, OnSide, Read, Refused, Side};
use crate::spread;
use crate::verdict::{Judged, LEVEL, Verdict, verdict};
use units::student;
use units::{Estimate, Quantity, Unit};

/// Compares each further side with the first one.
pub fn compare(sides: &[Side], options: &Options) -> Result<Comparison, Refused> {
    let (kind, sides) = sides::read(sides)?;
    let [base, rest @ ..] = &sides[..] else { return Err(Refused("no record to compare".to_owned())) };
    if rest.is_empty() {
        return Err(Refused(format!("{} has nothing to be compared with", base.name)));
    }
    let pairs: Vec<Vec<Pair<'_>>> = rest.iter().map(|new| pairs(base, new, options)).collect();
    // One family over all sides: more sides give chance more opportunities. Headline figures are a
    // family of their own, for hundreds of details would hide what changed in them.
    let headline = probabilities(&pairs, true);
    let mut gated = several::holm(&headline).into_iter();
    let mut headline = several::benjamini_hochberg(&headline).into_iter();
    let mut details = several::benjamini_hochberg(&probabilities(&pairs, false)).into_iter();
    let mut against = Vec::new();
    for (new, pairs) in rest.iter().zip(&pairs) {
        let compared = |pair: &Pair<'_>| {
            if pair.figure.headline {
                pair.compared(gated.next(), headline.next().unwrap_or(1.0), options)
            } else {
                pair.compared(None, details.next().unwrap_or(1.0), options)
            }
        };
        let figures: Vec<Compared> = pairs.iter().map(compared).collect();
        against.push(Against {
            side: summary(new),
            environment: environment::differences(&circumstances(base), &circumstances(new)),
            gate: gate(base, new, &figures),
            only_in_base: only(base, new),
            only_in_new: only(new, base),
            figures,
        });
    }
    let Options { min_effect, seed } = *options;
    Ok(Comparison { kind, min_effect, level: LEVEL, seed, base: summary(base), against })
}

/// A figure that both sides have.
struct Pair<'a> {
    figure: &'a Figure,
    unit: Unit,
    base: OnSide,
    new: OnSide,
    ratio: Ratio,
    degrees: f64,
    p: f64,
    floor: Option<f64>,
}

/// Degrees of freedom where there is no run to tell how runs differ: the blocks' intervals stand
/// for themselves.
const BLOCKS_ALONE: f64 = 1e6;

fn pairs<'a>(base: &'a Read, new: &Read, options: &Options) -> Vec<Pair<'a>> {
    let both = base
        .names()
        .into_iter()
        .filter_map(|figure| Some((figure, base.figure(&figure.name)?, new.figure(&figure.name)?)));
    let both: Vec<(&Figure, OnSide, OnSide)> = both.filter(|(_, a, b)| a.unit == b.unit).collect();
    let usual = usual(&both);
    let pair = |(figure, base, new): (&'a Figure, OnSide, OnSide)| {
        let mut random = Random::of(options.seed, &figure.name);
        let ratio = bootstrap::ratio(&base.values, &new.values, usual, &mut random);
        let degrees = match (base.values.len() + new.values.len()).saturating_sub(2) {
            0 => BLOCKS_ALONE,
            degrees => degrees as f64,
        };
        let p = if ratio.log == 0.0 { 1.0 } else { student::two_sided(ratio.log / ratio.error, degrees) };
        let floor =
            spread_of(&base).map(|own| spread::limit(spread::with_usual(own, base.values.len(), usual)));
        Pair { figure, unit: base.unit, base, new, ratio, degrees, p, floor }
    };
    both.into_iter().map(pair).collect()
}

fn spread_of(side: &OnSide) -> Option<f64> {
    spread::robust(&side.values.iter().map(|value| value.log).collect::<Vec<_>>())
}

/// How far apart runs are at least, as a rule: what a quarter of the figures of both sides stay
/// below. A few very noisy figures do not hide what changed in the others.
fn usual(both: &[(&Figure, OnSide, OnSide)]) -> f64 {
    let mut spreads: Vec<f64> =
        both.iter().flat_map(|(_, base, new)| [base, new]).filter_map(spread_of).collect();
    spreads.sort_by(f64::total_cmp);
    spreads.get(spreads.len() / 4).copied().unwrap_or(0.0)
}

fn probabilities(pairs: &[Vec<Pair<'_>>], headline: bool) -> Vec<f64> {
    pairs.iter().flatten().filter(|pair| pair.figure.headline == headline).map(|pair| pair.p).collect()
}

impl Pair<'_> {
    fn compared(&self, by_holm: Option<f64>, displayed: f64, options: &Options) -> Compared {
        let known = self.base.values.len() > 1 && self.new.values.len() > 1;
        let judge = |p: f64| {
            let sign = if self.figure.better == Better::Lower { 1.0 } else { -1.0 };
            let judged =
                Judged { worse: sign * self.ratio.log, error: self.ratio.error, degrees: self.degrees, p };
            match self.floor {
                Some(floor) if known => verdict(&judged, options.min_effect, floor),
                _ => Verdict::Inconclusive,
            }
        };
        Compared {
            name: self.figure.name.clone(),
            unit: self.unit,
            better: self.figure.better,
            headline: self.figure.headline,
            base: value(&self.base),
            new: value(&self.new),
            ratio: self.interval(LEVEL),
            adjusted: self.interval(self.level_for(by_holm.unwrap_or(displayed))),
            floor: self.floor,
            p: self.p,
            p_holm: by_holm,
            p_benjamini_hochberg: displayed,
            verdict: judge(displayed),
            gate: by_holm.map(judge),
        }
    }

    /// The level at which this figure alone excludes 1 if and only if its adjusted probability is
    /// at most the level of all.
    fn level_for(&self, adjusted: f64) -> f64 {
        if adjusted > 0.0 { (LEVEL * self.p / adjusted).clamp(1e-12, LEVEL) } else { 1e-12 }
    }

    fn interval(&self, level: f64) -> Quantity {
        let reach = student::beyond(level, self.degrees) * self.ratio.error;
        let [value, lo, hi] = [0.0, -reach, reach].map(|by| (self.ratio.log + by).exp());
        Quantity::measured(Estimate::new(value, lo, hi), Unit::Ratio)
    }
}

fn value(side: &OnSide) -> SideValue {
    let median = bootstrap::middle(&side.values).exp();
    SideValue { median, runs: side.values.len(), disturbed: side.disturbed }
}

fn only(one: &Read, other: &Read) -> Vec<String> {
    let names = one.names().into_iter().map(|figure| &figure.name);
    names.filter(|name| one.figure(name).is_some() && other.figure(name).is_none()).cloned().collect()
}

fn circumstances(side: &Read) -> Vec<Vec<environment::Circumstance>> {
    side.runs.iter().map(|run| run.circumstances.clone()).collect()
}

fn summary(side: &Read) -> SideSummary {
    let mut doubts = environment::mixed(&circumstances(side));
    doubts.extend(side.runs.iter().flat_map(|run| run.doubts.clone()));
    SideSummary {
        name: side.name.clone(),
        runs: side.runs.iter().map(|run| run.name.clone()).collect(),
        doubts,
    }
}

fn gate(base: &Read, new: &Read, figures: &[Compared]) -> Gate {
    let counts = Counts::of(figures.iter().filter_map(|figure| figure.gate));
    let single = [base, new].into_iter().find(|side| side.runs.len() < 2);
    let headline = figures.iter().filter(|figure| figure.headline).count();
    let (outcome, why) = if let Some(side) = single {
        (GateOutcome::Insufficient, format!("{} is one run: how much runs differ is not known", side.name))
    } else if counts.regressed > 0 {
        (GateOutcome::Regressed, format!("{} of {headline} headline figures regressed", counts.regressed))
    } else if headline == 0 {
        (GateOutcome::Inconclusive, "no headline figure on both sides".to_owned())
    } else if counts.inconclusive > 0 {
        let why =
            format!("nothing regressed; {} of {headline} headline figures inconclusive", counts.inconclusive);
        (GateOutcome::Inconclusive, why)
    } else {
        (GateOutcome::Pass, format!("nothing regressed among {headline} headline figures"))
    };
    Gate { outcome, counts, why }
}

//! What a comparison says, for people and for scripts.

use crate::environment::Difference;
use crate::figure::Better;
use crate::verdict::Verdict;
use serde::Serialize;
use units::{Quantity, Unit};

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The smallest effect that matters, as a share.
    pub min_effect: f64,
    pub seed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The kind of all records.
    pub kind: String,
    pub min_effect: f64,
    /// The level of tests: intervals hold with the rest.
    pub level: f64,
    pub seed: u64,
    pub base: SideSummary,
    /// One for each side behind BASE.
    pub against: Vec<Against>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SideSummary {
    pub name: String,
    pub runs: Vec<String>,
    /// What makes the side's runs doubtful as runs of the same thing.
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Against {
    pub side: SideSummary,
    pub environment: Vec<Difference>,
    pub gate: Gate,
    /// Headline figures, then the others, in the order of the record.
    pub figures: Vec<Compared>,
    /// Figures that only one side resolved.
    pub only_in_base: Vec<String>,
    pub only_in_new: Vec<String>,
}

/// What a gate makes of it: headline figures alone, adjusted by Holm's method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    pub outcome: GateOutcome,
    pub counts: Counts,
    /// What the outcome rests on, or what is missing.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    Pass,
    Regressed,
    /// Nothing regressed, but of some headline figures it is not known.
    Inconclusive,
    /// A side has one run: how much runs differ is not known.
    Insufficient,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub regressed: usize,
    pub improved: usize,
    pub equivalent: usize,
    pub inconclusive: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub name: String,
    pub unit: Unit,
    pub better: Better,
    pub headline: bool,
    pub base: SideValue,
    pub new: SideValue,
    /// NEW over BASE, with its own 95% interval.
    pub ratio: Quantity,
    /// The same with an interval that allows for the number of figures: by Holm's method for
    /// headline figures, by that of Benjamini and Hochberg for the others. It excludes 1 where the
    /// adjusted probability is at most the level.
    pub adjusted: Quantity,
    /// How far two runs of BASE differ, as a share.
    pub floor: Option<f64>,
    /// That the difference is chance: of this figure alone, and adjusted by both methods, for
    /// headline figures and for the others separately.
    pub p: f64,
    pub p_holm: Option<f64>,
    pub p_benjamini_hochberg: f64,
    /// For display.
    pub verdict: Verdict,
    /// For a gate; headline figures alone.
    pub gate: Option<Verdict>,
}

/// A figure on one side.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SideValue {
    /// Of the runs' values.
    pub median: f64,
    pub runs: usize,
    /// Runs in which other work ran beside all of its blocks.
    pub disturbed: usize,
}

impl Counts {
    pub(crate) fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Regressed => counts.regressed += 1,
                Verdict::Improved => counts.improved += 1,
                Verdict::Equivalent => counts.equivalent += 1,
                Verdict::Inconclusive => counts.inconclusive += 1,
            }
        }
        counts
    }
}

//! What a figure's ratio means.

use serde::Serialize;
use units::student;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Worse, by more than the least effect and the A/A floor.
    Regressed,
    /// Neither different nor the same, as far as these runs tell.
    Inconclusive,
    Improved,
    /// The same, to within the least effect.
    Equivalent,
}

/// The ratio of one figure, as it is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// The logarithm of how many times worse NEW is.
    pub(crate) worse: f64,
    pub(crate) error: f64,
    pub(crate) degrees: f64,
    /// That it is chance, adjusted for the number of figures.
    pub(crate) p: f64,
}

/// The level of all tests and, from 1, of all intervals.
pub(crate) const LEVEL: f64 = 0.05;

/// `least` is the smallest effect that matters, `floor` how far two runs of BASE differ, as shares.
pub(crate) fn verdict(judged: &Judged, least: f64, floor: f64) -> Verdict {
    let threshold = least.max(floor).ln_1p();
    if judged.p <= LEVEL && judged.worse.abs() > threshold {
        return if judged.worse > 0.0 { Verdict::Regressed } else { Verdict::Improved };
    }
    // Two one-sided tests: the effect is below +least and above -least, each at the level.
    let reach = student::beyond(2.0 * LEVEL, judged.degrees) * judged.error;
    if judged.worse.abs() + reach < least.ln_1p() { Verdict::Equivalent } else { Verdict::Inconclusive }
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_its_case() {
        let of = |share: f64, error: f64, p: f64, floor: f64| {
            verdict(&Judged { worse: share.ln_1p(), error, degrees: 8.0, p }, 0.05, floor)
        };
        assert_eq!(of(0.10, 0.01, 0.001, 0.02), Verdict::Regressed);
        assert_eq!(of(-0.10, 0.01, 0.001, 0.02), Verdict::Improved);
        assert_eq!(of(0.10, 0.01, 0.001, 0.12), Verdict::Inconclusive, "below the floor");
        assert_eq!(of(0.10, 0.05, 0.08, 0.02), Verdict::Inconclusive, "by chance");
        assert_eq!(of(0.01, 0.01, 0.4, 0.02), Verdict::Equivalent);
        assert_eq!(of(0.02, 0.001, 0.0001, 0.0), Verdict::Equivalent, "different, but too little to matter");
        assert_eq!(of(0.04, 0.01, 0.01, 0.0), Verdict::Inconclusive);
    }
}

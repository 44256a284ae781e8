//! One claim of a document, as the ledger holds it.

use crate::evidence::Evidence;
use crate::missing::Missing;
use units::{Estimate, Quantity, Unit};

#[derive(Debug)]
pub struct Claim {
    /// Unique in its document.
    pub id: &'static str,
    /// Section, table or figure.
    pub place: &'static str,
    /// In the document's own words.
    pub quote: &'static str,
    /// The figure that is compared.
    pub statistic: &'static str,
    /// Its lowest and highest value by the document; `None` where that gives no number.
    pub paper: Option<(f64, f64)>,
    pub unit: Unit,
    pub shape: Shape,
    /// A reason, should the shape differ.
    pub differs: Option<Reason>,
    /// Where the document's own data say something else than its text.
    pub reading: Option<&'static str>,
    /// The command whose record holds the figure.
    pub command: &'static str,
    /// Takes the figure from the evidence.
    pub find: fn(&Evidence<'_>) -> Result<Quantity, Missing>,
}

/// Why a shape may differ. Nothing here measures reasons, so each is told as untested; and one that
/// is about the host only where the host is so.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    text: &'static str,
    is_so: Option<fn(&Evidence<'_>) -> bool>,
}

impl Reason {
    pub const fn of(text: &'static str) -> Self {
        Self { text, is_so: None }
    }

    /// The same, told only where the host's record says that it may be.
    pub const fn where_host(text: &'static str, is_so: fn(&Evidence<'_>) -> bool) -> Self {
        Self { text, is_so: Some(is_so) }
    }

    pub(crate) fn told(self, evidence: &Evidence<'_>) -> Option<String> {
        let may_be = self.is_so.is_none_or(|is_so| is_so(evidence));
        may_be.then(|| format!("a possible reason, not tested: {}", self.text))
    }
}

/// The values that a figure may have for its claim to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    least: f64,
    most: f64,
}

impl Shape {
    pub const fn above(least: f64) -> Self {
        Self { least, most: f64::INFINITY }
    }

    pub const fn below(most: f64) -> Self {
        Self { least: f64::NEG_INFINITY, most }
    }

    pub const fn between(least: f64, most: f64) -> Self {
        Self { least, most }
    }

    /// Whether all, none or a part of an interval has this shape.
    pub fn holds(self, here: Estimate) -> Held {
        let inside = |x: f64| self.least < x && x < self.most;
        if inside(here.lo) && inside(here.hi) {
            Held::Wholly
        } else if here.hi <= self.least || here.lo >= self.most {
            Held::Not
        } else {
            Held::InPart
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Wholly,
    Not,
    InPart,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.least.is_finite(), self.most.is_finite()) {
            (true, true) => write!(f, "between {} and {}", self.least, self.most),
            (true, false) => write!(f, "above {}", self.least),
            (false, true) => write!(f, "below {}", self.most),
            (false, false) => f.write_str("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_holds_wholly_in_part_or_not() {
        let e = |lo: f64, hi: f64| Estimate::new(f64::midpoint(lo, hi), lo, hi);
        let above = Shape::above(1.5);
        assert_eq!(above.holds(e(1.6, 2.0)), Held::Wholly);
        assert_eq!(above.holds(e(1.4, 2.0)), Held::InPart);
        assert_eq!(above.holds(e(1.0, 1.5)), Held::Not);
        let between = Shape::between(0.9, 1.1);
        assert_eq!(between.holds(e(0.95, 1.05)), Held::Wholly);
        assert_eq!(between.holds(e(0.5, 2.0)), Held::InPart, "it holds the shape and more");
        assert_eq!(between.holds(e(1.1, 1.2)), Held::Not);
        assert_eq!(Shape::below(0.8).holds(Estimate::exact(0.7)), Held::Wholly);
        assert_eq!(
            [above, between, Shape::below(0.8)].map(|s| s.to_string()),
            ["above 1.5", "between 0.9 and 1.1", "below 0.8"]
        );
    }
}

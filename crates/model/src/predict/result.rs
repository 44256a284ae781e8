//! A prediction as it is shown and written.

use super::combine::Run;
use super::figure::{Figure, Served};
use crate::pattern::Access;
use serde::Serialize;
use units::{Estimate, Quantity, Unit};

pub use super::figure::Source;

#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// In all, in nanoseconds.
    pub time: Quantity,
    pub accesses: f64,
    /// In the mean.
    pub per_access: Quantity,
    /// Nearest first; empty where no level is known.
    pub levels: Vec<LevelPart>,
    /// Each access of the pattern, in its order.
    pub parts: Vec<Part>,
    pub remarks: Vec<String>,
}

/// What one level has to do with it.
#[derive(Clone, Debug, Serialize)]
pub struct LevelPart {
    /// Or `computing`: what `work` adds to the time.
    pub level: String,
    /// Of the accesses; none for `computing`.
    pub share: Quantity,
    /// Of the mean access: its part of `per_access`, where nothing runs beside it.
    pub time: Quantity,
}

/// One access of a pattern, once.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub pattern: String,
    pub pages: String,
    /// Whether they are those of ordinary programs, as the access does not say.
    pub pages_by_default: bool,
    pub accesses: f64,
    pub time: Quantity,
    pub per_access: Quantity,
    pub levels: Vec<LevelPart>,
    pub source: Source,
    /// The data that told the time.
    pub by: String,
}

fn nanos(estimate: Estimate) -> Quantity {
    Quantity::modelled(estimate, Unit::Nanos)
}

/// `accesses` are those that shares and times are of.
fn level_parts(served: &[Served], accesses: f64) -> Vec<LevelPart> {
    let part = |served: &Served| LevelPart {
        level: served.level.clone(),
        share: Quantity::modelled(served.share.scaled(1.0 / accesses), Unit::Ratio),
        time: nanos(served.time.scaled(1.0 / accesses)),
    };
    served.iter().map(part).collect()
}

impl Part {
    pub(crate) fn of(access: &Access, accesses: f64, figure: &Figure) -> Self {
        Self {
            pattern: access.text.clone(),
            pages: figure.pages.clone(),
            pages_by_default: access.options.pages.is_none(),
            accesses,
            time: nanos(figure.time.scaled(accesses)),
            per_access: nanos(figure.time),
            levels: level_parts(&figure.levels, 1.0),
            source: figure.source,
            by: figure.why.clone(),
        }
    }
}

impl Prediction {
    /// Whether some access says what it computes.
    pub fn tells_computing(&self) -> bool {
        // No other word of an access holds this one.
        self.parts.iter().any(|part| part.pattern.contains("work"))
    }

    pub(crate) fn of(run: &Run, parts: Vec<Part>) -> Self {
        Self {
            time: nanos(run.time),
            accesses: run.accesses,
            per_access: nanos(run.time.scaled(1.0 / run.accesses)),
            levels: level_parts(&run.levels, run.accesses),
            parts,
            remarks: run.remarks.clone(),
        }
    }
}

//! What is predicted of one kind of access: its time, and the levels that serve it.

use units::Estimate;

/// Which data told the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Fitted levels of this machine.
    Fit,
    /// The sizes and latencies of levels in the record.
    Levels,
    /// Measured points, interpolated.
    Curve,
}

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Of one access, in nanoseconds.
    pub(crate) time: Estimate,
    /// Nearest first; the times sum up to `time`.
    pub(crate) levels: Vec<Served>,
    pub(crate) source: Source,
    /// The data, and why not better ones.
    pub(crate) why: String,
    /// The kind of pages that the data are of.
    pub(crate) pages: String,
    /// What each access brings from memory, in bytes.
    pub(crate) from_memory: f64,
    /// The part of `time` that is latency of memory, which grows beside other traffic.
    pub(crate) waits: f64,
    pub(crate) remarks: Vec<String>,
}

/// What one level does for an access in the mean.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) level: String,
    /// Of the accesses.
    pub(crate) share: Estimate,
    /// Of the mean access, in nanoseconds.
    pub(crate) time: Estimate,
}

/// The sum of figures that may all be off in the same direction, as figures of one record are.
pub(crate) fn sum(all: impl IntoIterator<Item = Estimate>) -> Estimate {
    let add = |a: Estimate, b: Estimate| Estimate::new(a.value + b.value, a.lo + b.lo, a.hi + b.hi);
    all.into_iter().fold(Estimate::exact(0.0), add)
}

/// The larger one, bound by bound.
pub(crate) fn largest(all: impl IntoIterator<Item = Estimate>) -> Estimate {
    let larger =
        |a: Estimate, b: Estimate| Estimate::new(a.value.max(b.value), a.lo.max(b.lo), a.hi.max(b.hi));
    all.into_iter().fold(Estimate::exact(0.0), larger)
}

/// With an interval of at least this share of the value, up and down.
pub(crate) fn widened(estimate: Estimate, share: f64) -> Estimate {
    let by = estimate.value.abs() * share;
    let (lo, hi) = (estimate.lo.min(estimate.value - by), estimate.hi.max(estimate.value + by));
    Estimate::new(estimate.value, lo.max(0.0), hi)
}

/// The product of positive figures that may be off in the same direction.
pub(crate) fn product(a: Estimate, b: Estimate) -> Estimate {
    Estimate::new(a.value * b.value, a.lo * b.lo, a.hi * b.hi)
}

/// The quotient of positive figures, at its bounds.
pub(crate) fn quotient(a: Estimate, b: Estimate) -> Estimate {
    Estimate::new(a.value / b.value, a.lo / b.hi, a.hi / b.lo)
}

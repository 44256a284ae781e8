//! A cache that others fill, too: the guests of a host share its last one.
//!
//! A chase finds less of it than its data sheet says. What others load there takes its place as
//! time passes, however fast this program is: the cache keeps a line for a time, not for a number
//! of the program's own accesses. So accesses that come back soon find more there than a chase of
//! the same area, and slow ones less. With `C` lines in all and others that load `R` of them in a
//! nanosecond, the time `t` for which a line is kept is that within which
//!
//! ```text
//! own lines loaded within t + R · t = C
//! ```
//!
//! The record's curve of chases tells `R`: half of the loads miss at the area at which a lap takes
//! just that time. On a host that splits its cache by ways, the part is a cache of its own, of the
//! size that chases find: the interval reaches to that.

use super::curve::MeasuredCurve;
use super::known::{Known, MEMORY};

/// The last cache of a record, as its neighbours leave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shared {
    /// Its place among the record's levels.
    pub(crate) level: usize,
    /// Lines, for all that use it.
    pub(crate) lines: f64,
    /// Lines that others load there in a nanosecond.
    pub(crate) rate: f64,
}

/// The same, as accesses of some pace find it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Filled {
    pub(crate) level: usize,
    pub(crate) lines: f64,
    /// Lines that others load there for each access.
    pub(crate) by_others: f64,
}

impl Shared {
    /// As it is for accesses that take this long, in nanoseconds.
    pub(crate) fn beside(self, pace: f64) -> Filled {
        Filled { level: self.level, lines: self.lines, by_others: self.rate * pace }
    }

    /// `None` where chases find all of it, or the record does not tell.
    pub(crate) fn of(known: &Known<'_>) -> Option<Self> {
        let [.., cache, memory] = &known.levels[..] else { return None };
        let curve = MeasuredCurve::random_reads(known.latencies()?)?;
        let line = known.line() as f64;
        let half = f64::midpoint(cache.latency.value, memory.latency.value);
        let (lines, found) = (cache.claimed? / line, curve.exceeds_from(half)? / line);
        (memory.name == MEMORY && found < lines).then(|| Self {
            level: known.levels.len() - 2,
            lines,
            rate: (lines - found) / (found * half),
        })
    }
}

//! How many guests a primary may have, and how long each may stay.
//!
//! While a miss is served there is time for so many guests as each needs a *segment*: a switch, a hit, and what it
//! displaces. More make the primary late, by the share that `--max-slowdown` allows; more than there are misses in
//! flight gain nothing. The absence is bounded by the ring's length times the quantum: by what was asked for, and by
//! the time of a miss, since beyond that a guest that does not miss itself only makes the primary late. But a guest is not
//! asked to give way so often that it does little else.

use super::gain::plus;
use crate::plan::prices::Pricing;
use records::plan::{Bounds, Prices};
use units::{Estimate, Quantity, Unit};

/// A guest that finds nothing to wait for may stay for so many switches, whatever a miss takes.
const BUSY: f64 = 16.0;

/// What a user asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    pub scavengers: u32,
    /// The guests are the primary's own threads, as many as it has.
    pub siblings: bool,
    pub ring: Option<u32>,
    pub max_slowdown: f64,
    pub max_absence_seconds: f64,
}

/// What one guest takes between two of its misses at the least.
pub(super) fn segment(prices: &Prices) -> Estimate {
    let pollution = prices.pollution.estimate().unwrap_or(Estimate::exact(0.0));
    plus(plus(prices.yield_cost(2, false, 0), prices.hit()), pollution)
}

/// Ring and quantum for these wishes.
pub fn bounds(prices: &Prices, asked: &Asked) -> Bounds {
    let segment = segment(prices).value.max(1.0);
    let miss = prices.miss().1.value;
    let overlap = prices.overlap.value().unwrap_or(f64::INFINITY);
    let in_time = (miss * (1.0 + asked.max_slowdown) / segment - 1.0).floor();
    let absence = prices.cycles_in(asked.max_absence_seconds);
    // A guest that may stay for less than two switches does nothing but switch.
    let yield_cost = prices.yield_cost(2, false, 0).value;
    let shortest = (2.0 * yield_cost).max(1.0);
    let by_absence = (absence / shortest).floor();
    let wanted = asked.ring.map_or(in_time.min(overlap.floor()), f64::from);
    let (guests, told) = if asked.siblings {
        (f64::INFINITY, "as many as there are threads".to_owned())
    } else {
        (f64::from(asked.scavengers), format!("{} scavengers", asked.scavengers))
    };
    let ring = wanted.min(guests).min(by_absence).max(1.0);
    // Of what a guest may stay, some passes uncounted.
    let uncounted = f64::from(twin::UNCOUNTED);
    let counted = absence * uncounted / (uncounted + 1.0);
    let busy = (BUSY * yield_cost).max(miss * (1.0 + asked.max_slowdown) / ring).floor();
    let quantum = (counted / ring).floor().min(busy).clamp(shortest, f64::from(i32::MAX));
    let by_hand = match asked.ring {
        Some(ring) => format!("{ring} by hand"),
        None => format!(
            "{miss:.0} × {:.2} ÷ {segment:.0} − 1 = {in_time:.0} in time, {overlap:.0} misses at once",
            1.0 + asked.max_slowdown
        ),
    };
    let arithmetic = format!(
        "ring {ring:.0}: {by_hand}, {told}, {by_absence:.0} within the absence; quantum {quantum:.0}: {counted:.0} of {absence:.0} cycles ÷ {ring:.0}, at most {busy:.0}: a miss ÷ {ring:.0}, or {BUSY:.0} switches"
    );
    Bounds {
        max_absence: Quantity::claimed(asked.max_absence_seconds * 1e6, Unit::Micros),
        max_slowdown: Quantity::claimed(asked.max_slowdown, Unit::Ratio),
        quantum: quantum as u32,
        ring: ring as u32,
        arithmetic,
    }
}

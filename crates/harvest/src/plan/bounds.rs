//! Ring and quantum: how many guests a primary thread may have, and how long each may run at once.
//!
//! A guest needs a *segment* between two of its own misses: a switch, a hit, and the cost of the
//! lines it displaces. While a miss of the primary is served, there is time for as many guests as
//! there are segments in it. More guests make the primary late, by the share that `--max-slowdown`
//! allows; more guests than misses that the core can have in flight gain nothing.
//!
//! ```text
//!  miss 350 cycles, slowdown 5 %, segment 35 cycles:
//!  350 × 1.05 ÷ 35 − 1 (the primary's own) = 9 guests
//! ```
//!
//! The longest absence is about the ring's length times the quantum. It is kept below
//! `--max-absence`, and near the time of a miss: beyond that, a guest that does not miss only makes
//! the primary late. But the quantum is never so short that a guest does little else than switch.

use super::gain::plus;
use model::prices::Pricing;
use records::plan::{Bounds, Prices};
use units::{Estimate, Quantity, Unit};

/// A guest that does not miss may run for the time of this many switches, however short a miss is.
const BUSY_SWITCHES: f64 = 16.0;

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    pub scavengers: u32,
    pub ring: Option<u32>,
    pub max_slowdown: f64,
    pub max_absence_seconds: f64,
}

/// The least time, in cycles, of one guest between two of its misses.
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
    // A guest that runs for less than two switches does nothing but switch.
    let yield_cost = prices.yield_cost(2, false, 0).value;
    let shortest = (2.0 * yield_cost).max(1.0);
    let by_absence = (absence / shortest).floor();
    let wanted = asked.ring.map_or(in_time.min(overlap.floor()), f64::from);
    let ring = wanted.min(f64::from(asked.scavengers)).min(by_absence).max(1.0);
    // The budget does not count every cycle that a guest runs.
    let uncounted = f64::from(twin::UNCOUNTED);
    let counted = absence * uncounted / (uncounted + 1.0);
    let busy = (BUSY_SWITCHES * yield_cost).max(miss * (1.0 + asked.max_slowdown) / ring).floor();
    let quantum = (counted / ring).floor().min(busy).clamp(shortest, f64::from(i32::MAX));
    let by_hand = match asked.ring {
        Some(ring) => format!("{ring} by --ring"),
        None => format!(
            "{in_time:.0} guests while a miss is served ({miss:.0} × {:.2} ÷ {segment:.0} − 1), {overlap:.0} misses at once",
            1.0 + asked.max_slowdown
        ),
    };
    let short =
        format!(", at most {busy:.0} (the longer of a miss ÷ {ring:.0} and {BUSY_SWITCHES:.0} switches)");
    let arithmetic = format!(
        "ring {ring:.0}, the least of {by_hand}, {} scavengers, {by_absence:.0} guests within --max-absence; quantum {quantum:.0} cycles: {counted:.0} of the {absence:.0} cycles of --max-absence ÷ {ring:.0}{short}",
        asked.scavengers
    );
    Bounds {
        max_absence: Quantity::claimed(asked.max_absence_seconds * 1e6, Unit::Micros),
        max_slowdown: Quantity::claimed(asked.max_slowdown, Unit::Ratio),
        quantum: quantum as u32,
        ring: ring as u32,
        arithmetic,
    }
}

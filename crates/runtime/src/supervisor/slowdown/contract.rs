//! How many guests a primary's thread may have, and when, so that what it loses by them comes close
//! to what `--max-slowdown` allows, and stays below. Pure: time and samples in, decisions out.
//!
//! 1. *Credit* of lost time grows with time, by the share that may be lost.
//! 2. What guests cost is measured while they are in the ring, and taken from the credit.
//! 3. With credit, guests are in; without, they wait until there is enough for another phase.
//! 4. What a ring of each length costs is remembered: the mean of its latest samples.
//! 5. A ring is worth its length, for as much of the time as its cost leaves it:
//!    about `length * min(1, share / cost)`. The next phase has the one that is worth most.
//! 6. A length of which nothing is known is expected to cost what the nearest known one says, in
//!    proportion; of equals the shortest is taken. So it is tried, and then known.
//! 7. Now and then a neighbour of the best is taken, since what is known gets old.
//!
//! Example, with 5 % allowed: the share is 0.9 * 0.05 / (1 + 0.9 * 0.05) = 4.3 %. Four guests that
//! cost 6 % are worth 4 * 4.3 / 6 = 2.9, three that cost 4 % are worth 3: the ring has three.

use crate::supervisor::figures::{
    ALLOWS_ALL, COST_KNOWN_FOR_NS, COST_SAMPLES, CREDIT_NS, FIRST_NEEDS_NS, PHASE_LEAST_NS, TRIES_EVERY,
    TRIES_UP, USED_PART,
};
use runtime_abi::control::SCAVENGERS;

/// What a ring of one length costs, as a share of the time.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mean: f64,
    samples: u32,
    at: u64,
}

impl Cost {
    fn learn(&mut self, now: u64, lost: f64) {
        if !self.is_known(now) {
            self.samples = 0;
        }
        self.samples = (self.samples + 1).min(COST_SAMPLES);
        self.mean += (lost - self.mean) / f64::from(self.samples);
        self.at = now;
    }

    fn is_known(&self, now: u64) -> bool {
        self.samples > 0 && now.saturating_sub(self.at) <= COST_KNOWN_FOR_NS
    }
}

/// Zero everywhere is a contract that has not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contract {
    /// The share of time that may be lost.
    share: f64,
    credit: f64,
    /// The length of the ring in this phase, or the next; and the longest.
    pub(crate) ring: u32,
    longest: u32,
    phases: u32,
    /// What guests cost after they left, by the cache contents that they displaced.
    debt: f64,
    /// What guests cost lately, as many as there were; below zero: not known.
    latest: f64,
    /// By length, less one.
    costs: [Cost; SCAVENGERS],
}

impl Contract {
    /// For a slowdown of at most `slowdown`, with rings up to `longest`.
    pub(crate) fn new(slowdown: f64, longest: u32) -> Self {
        let used = USED_PART * slowdown;
        let longest = longest.min(SCAVENGERS as u32);
        Self {
            share: used / (1.0 + used),
            credit: 0.0,
            ring: longest,
            longest,
            phases: 0,
            debt: 0.0,
            latest: -1.0,
            costs: [Cost::default(); SCAVENGERS],
        }
    }

    /// Sets the longest ring.
    pub(crate) fn limit(&mut self, longest: u32) {
        let longest = longest.min(SCAVENGERS as u32);
        if longest != self.longest {
            self.longest = longest;
            self.ring = self.ring.min(longest).max(longest.min(1));
        }
    }

    /// Whether guests may cost what they like, so that nothing follows from samples.
    pub(crate) fn allows_all(&self) -> bool {
        self.share > ALLOWS_ALL
    }

    /// Time passed: credit grows.
    pub(crate) fn passes(&mut self, ns: f64) {
        self.credit = (self.credit + self.share * ns).min(self.share * CREDIT_NS);
    }

    /// Of `ns` the share `lost` was lost.
    pub(crate) fn charge(&mut self, ns: f64, lost: f64) {
        self.credit -= ns * lost;
    }

    /// Sets what is lost after each guest phase: the more, the rarer phases are.
    pub(crate) fn owes(&mut self, ns: f64) {
        self.debt = ns;
    }

    /// Whether a phase with guests may begin.
    pub(crate) fn allows(&self) -> bool {
        self.share > 0.0 && self.ring > 0 && self.credit >= self.phase_needs()
    }

    fn phase_needs(&self) -> f64 {
        let least = FIRST_NEEDS_NS / 4.0;
        let needs =
            if self.latest < 0.0 { FIRST_NEEDS_NS } else { self.latest * PHASE_LEAST_NS + 2.0 * self.debt };
        needs.clamp(least, (self.share * CREDIT_NS / 2.0).max(least))
    }

    /// Credit that loans to scavengers at home may use up: what the next phase does not need; where
    /// no guest is aboard, half of it, so that those that come aboard have some for visits.
    pub(crate) fn spared(&self, guests: u32) -> f64 {
        let needs = if self.ring > 0 { self.phase_needs() } else { 0.0 };
        let part = if guests == 0 { 0.5 } else { 1.0 };
        if self.share <= 0.0 { 0.0 } else { (part * (self.credit - needs)).max(0.0) }
    }

    /// Adds a sample: with `guests` in the ring the share `lost` is lost now. Returns whether they
    /// go on.
    pub(crate) fn sample(&mut self, now: u64, guests: u32, lost: f64) -> bool {
        let at = (guests as usize).clamp(1, SCAVENGERS) - 1;
        self.costs[at].learn(now, lost);
        self.latest = self.costs[at].mean.max(0.0);
        self.credit >= 0.0
    }

    /// A phase begins: chooses its length.
    pub(crate) fn choose(&mut self, now: u64) {
        self.phases = self.phases.wrapping_add(1);
        if self.allows_all() || self.longest == 0 {
            self.ring = self.longest;
            return;
        }
        let mut best = (0, -1.0);
        for ring in 1..=self.longest {
            let worth = self.worth(now, ring);
            // Lengths that are expected to cost in proportion are worth the same.
            if worth > best.1 + 1e-9 {
                best = (ring, worth);
            }
        }
        self.ring = match self.phases % TRIES_EVERY {
            0 => best.0.saturating_sub(1).max(1),
            TRIES_UP => (best.0 + 1).min(self.longest),
            _ => best.0,
        };
    }

    fn worth(&self, now: u64, ring: u32) -> f64 {
        let part = (self.share / self.expected(now, ring).max(self.share)).min(1.0);
        // Samples differ: of about equals the one that is in for longer, as beginnings cost more.
        f64::from(ring) * part * (3.0 + part) / 4.0
    }

    /// What a ring of this length is expected to cost.
    fn expected(&self, now: u64, ring: u32) -> f64 {
        let known = (1..=self.longest).filter(|length| self.costs[*length as usize - 1].is_known(now));
        known.min_by_key(|length| length.abs_diff(ring)).map_or(0.0, |nearest| {
            self.costs[nearest as usize - 1].mean * f64::from(ring) / f64::from(nearest)
        })
    }
}

#[cfg(test)]
mod tests;

//! What a yield is expected to gain, in core cycles for each time its load runs.

use super::priors::MissRates;
use super::subject::{Candidate, Subject};
use model::prices::Pricing;
use records::plan::{Gain, Origin, Prices, Role};
use units::{Basis, Estimate, Quantity, Unit};

pub(super) struct Worth<'a, R> {
    pub prices: &'a Prices,
    pub rates: &'a R,
    pub subject: &'a Subject,
    /// What a load costs that misses, and the level that serves it.
    pub miss: (String, Estimate),
    /// What a guest loses that gives way at a load that hits; 0 for a primary.
    pub lost_turn: f64,
}

/// The primary waits for a miss, and guests have that time. One that gives way leaves it to the
/// others; where they are few, they come round before the miss is served, and the rest of its time
/// is nobody's.
pub(super) fn lost_turn(role: Role, prices: &Prices, segment: Estimate, ring: u32) -> f64 {
    if role != Role::Scavenger {
        return 0.0;
    }
    let ring = f64::from(ring.max(1));
    let round = ring * segment.value;
    ((prices.miss().1.value - round) / ring).max(0.0)
}

impl<R: MissRates> Worth<'_, R> {
    /// What is left of the gain of one yield that serves all of these.
    pub(super) fn net(&self, members: &[&Candidate]) -> Estimate {
        self.weighed(members).net
    }

    /// Of one yield that serves all of these: it is worth its cost if any of them misses, and their
    /// misses overlap.
    pub(super) fn together(&self, members: &[&Candidate]) -> Gain {
        let Weighed { from, p, at_once, cost, lost, net } = self.weighed(members);
        let (level, miss) = self.miss.clone();
        let basis = if from == Origin::Prior { Basis::Claimed } else { Basis::Modelled };
        Gain {
            p_miss: with_basis(p, Unit::Ratio, basis),
            p_miss_from: from,
            miss: Quantity::modelled(miss, Unit::Cycles),
            miss_level: level,
            at_once: at_once.map(|e| Quantity::modelled(e, Unit::Count)),
            yield_cost: Quantity::modelled(cost, Unit::Cycles),
            pollution: self.prices.pollution.clone(),
            lost_turn: (self.lost_turn > 0.0).then(|| Quantity::modelled(lost, Unit::Cycles)),
            net: Quantity::modelled(net, Unit::Cycles),
        }
    }

    fn weighed(&self, members: &[&Candidate]) -> Weighed {
        let mut hit = Estimate::exact(1.0);
        let mut from = Origin::Profile;
        for member in members {
            let (rate, origin) = self.rates.rate(self.subject, member);
            hit = times(hit, Estimate { value: 1.0 - rate.value, lo: 1.0 - rate.hi, hi: 1.0 - rate.lo });
            if origin == Origin::Prior {
                from = Origin::Prior;
            }
        }
        let p = Estimate { value: 1.0 - hit.value, lo: 1.0 - hit.hi, hi: 1.0 - hit.lo };
        let saved = members[0].saved;
        let cost = self.prices.yield_cost(saved.general(), saved.flags, u32::from(saved.vectors));
        let pollution = self.prices.pollution.estimate().unwrap_or(Estimate::exact(0.0));
        // What a profile saw the core wait is what was left after misses had overlapped.
        let round = members[0].round.filter(|_| from == Origin::Prior);
        let at_once = round.map(|round| self.prices.at_once(round)).filter(|e| e.value > 1.0);
        let each = at_once.map_or(self.miss.1, |at_once| shared(self.miss.1, at_once));
        let lost = Estimate::new(1.0 - p.value, 1.0 - p.hi, 1.0 - p.lo).scaled(self.lost_turn);
        let net = times(p, each).minus(cost).minus(pollution).minus(lost);
        Weighed { from, p, at_once, cost, lost, net }
    }
}

/// A gain, before it is told.
struct Weighed {
    from: Origin,
    p: Estimate,
    at_once: Option<Estimate>,
    cost: Estimate,
    lost: Estimate,
    net: Estimate,
}

fn with_basis(e: Estimate, unit: Unit, basis: Basis) -> Quantity {
    Quantity::Resolved { value: e.value, lo: e.lo, hi: e.hi, unit, basis, disturbed: None, bound: None }
}

/// Why it does not pay, with its figures.
pub(super) fn told(gain: &Gain, least: f64) -> String {
    let value = |q: &Quantity| q.value().unwrap_or(0.0);
    let overlap = gain.at_once.as_ref().map_or(String::new(), |q| format!(" ÷ {:.0} at once", value(q)));
    let lost = gain.lost_turn.as_ref().map_or(String::new(), |q| format!(" − {:.0}", value(q)));
    let than = if least > 0.0 { format!(", less than {least:.0}") } else { String::new() };
    format!(
        "{:.3} × {:.0}{overlap} − {:.0} − {:.0}{lost} = {:.1} cycles{than}",
        value(&gain.p_miss),
        value(&gain.miss),
        value(&gain.yield_cost),
        value(&gain.pollution),
        value(&gain.net)
    )
}

/// The sum of two independent estimates.
pub(super) fn plus(a: Estimate, b: Estimate) -> Estimate {
    a.minus(b.scaled(-1.0))
}

/// A miss served at once with others: the widest interval.
fn shared(miss: Estimate, at_once: Estimate) -> Estimate {
    Estimate::new(miss.value / at_once.value, miss.lo / at_once.hi, miss.hi / at_once.lo)
}

/// The product of two estimates that are not negative: the widest interval.
fn times(a: Estimate, b: Estimate) -> Estimate {
    Estimate::new(a.value * b.value, a.lo * b.lo, a.hi * b.hi)
}

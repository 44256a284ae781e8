//! Fits of curves that are no levels: accesses in sequence, chains side by side, and latency beside
//! traffic.

use crate::fit::Residual;
use crate::hinge::{self, Bounds};
use records::machine::{LoadedCurve, Machine};
use serde::Serialize;
use units::{Estimate, Quantity, Unit};

/// What was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// `T(n) = n·M + C` of n dependent accesses: the slope is M, the start C.
    Sequence,
    /// The time in which k chains take a step each: the start is a lone access, the slope what each
    /// chain adds while misses still overlap (the serial part), the bend how many overlap, and the
    /// slope behind it what a further one takes.
    Chains,
    /// The latency of a load beside traffic: the start is that without traffic, the bend the rate
    /// up to which it hardly grows.
    Loaded,
}

#[derive(Clone, Debug, Serialize)]
pub struct Bend {
    pub curve: Curve,
    /// The kind of pages, or of traffic.
    pub on: String,
    pub start: Quantity,
    /// For each access, chain, or GB/s.
    pub slope: Quantity,
    /// Count, or bytes a second.
    pub bend: Quantity,
    pub slope_behind: Quantity,
    pub residual: Residual,
}

/// Nanoseconds for each GB/s, in place of each byte a second.
pub(crate) const GIGA: f64 = 1e9;

/// All such fits that the record has points for.
pub fn bends(machine: &Machine) -> Vec<Bend> {
    let mut all = Vec::new();
    let mlp = machine.experiments.mlp.as_ref().and_then(|outcome| outcome.result.as_ref());
    for kind in mlp.iter().flat_map(|mlp| &mlp.kinds) {
        let sequence = kind.sequence.iter();
        let sequence = sequence.filter_map(|s| Some((f64::from(s.accesses), s.time.ns.value()?)));
        all.extend(one(Curve::Sequence, &kind.pages.asked, sequence));
        let chains = kind.chains.iter().filter_map(|c| Some((f64::from(c.chains), c.round.ns.value()?)));
        all.extend(one(Curve::Chains, &kind.pages.asked, chains));
    }
    let bandwidth = machine.experiments.bandwidth.as_ref().and_then(|outcome| outcome.result.as_ref());
    for curve in bandwidth.iter().flat_map(|bandwidth| &bandwidth.loaded) {
        all.extend(one(Curve::Loaded, curve.traffic.word(), loaded(curve).into_iter()));
    }
    all
}

/// GB/s and nanoseconds.
pub(crate) fn loaded(curve: &LoadedCurve) -> Vec<(f64, f64)> {
    let points = curve.points.iter();
    points.filter_map(|p| Some((p.rate.value()? / GIGA, p.latency.ns.value()?))).collect()
}

fn one(curve: Curve, on: &str, points: impl Iterator<Item = (f64, f64)>) -> Option<Bend> {
    let points: Vec<(f64, f64)> = points.filter(|point| point.1 > 0.0).collect();
    let fitted = hinge::fit(&points)?;
    let quantity =
        |bounds: Bounds, unit: Unit| Quantity::modelled(Estimate::new(bounds.0, bounds.1, bounds.2), unit);
    let none = || Quantity::unresolved("the points show no bend");
    let place = |bounds: Bounds| match curve {
        Curve::Loaded => {
            let (at, lo, hi) = bounds;
            quantity((at * GIGA, lo * GIGA, hi * GIGA), Unit::BytesPerSecond)
        }
        _ => quantity(bounds, Unit::Count),
    };
    Some(Bend {
        curve,
        on: on.to_owned(),
        start: quantity(fitted.start, Unit::Nanos),
        slope: quantity(fitted.slope, Unit::Nanos),
        bend: fitted.bend.map_or_else(none, |(at, _)| place(at)),
        slope_behind: fitted.bend.map_or_else(none, |(_, behind)| quantity(behind, Unit::Nanos)),
        residual: Residual::of(fitted.hinge.relative_residuals(&points)),
    })
}

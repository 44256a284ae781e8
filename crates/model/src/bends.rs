//! Fits of curves that are no levels: accesses in sequence, chains side by side, and latency beside
//! traffic.

use crate::fit::Residual;
use crate::hinge::{self, Bounds, Hinge};
use crate::identify::{self, Identifiable};
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
    /// Relative, of each point under a fit to all others.
    pub held_back: Residual,
    pub identifiable: Identifiable,
}

/// A bend in the form of a fit of levels, for scripts that read one form.
#[derive(Clone, Debug, Serialize)]
pub struct BendAsLevels {
    pub of: &'static str,
    pub on: String,
    /// What each access costs up to the size; behind the bend, a level of its own.
    pub levels: Vec<BendLevel>,
    /// What is paid besides, however many there are.
    pub start: Quantity,
    pub residual: Residual,
    pub held_back: Residual,
    pub identifiable: Identifiable,
}

/// Sizes are counts of accesses or chains, or bytes a second.
#[derive(Clone, Debug, Serialize)]
pub struct BendLevel {
    pub size: Quantity,
    pub cost: Quantity,
}

impl Bend {
    pub fn as_levels(&self) -> BendAsLevels {
        let end = || Quantity::unresolved("no end within the points measured");
        let first = BendLevel { size: self.bend.clone(), cost: self.slope.clone() };
        let behind = BendLevel { size: end(), cost: self.slope_behind.clone() };
        let mut levels = vec![first];
        if self.bend.estimate().is_some() {
            levels.push(behind);
        }
        BendAsLevels {
            of: match self.curve {
                Curve::Sequence => "sequence",
                Curve::Chains => "mlp",
                Curve::Loaded => "loaded",
            },
            on: self.on.clone(),
            levels,
            start: self.start.clone(),
            residual: self.residual,
            held_back: self.held_back,
            identifiable: self.identifiable.clone(),
        }
    }
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
    let sane = |point: &(f64, f64)| (0.0..1e12).contains(&point.0) && (1e-3..1e12).contains(&point.1);
    let points: Vec<(f64, f64)> = points.filter(sane).collect();
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
        held_back: Residual::of(hinge::held_back(&points, fitted.hinge.bend.is_some())),
        identifiable: identifiable(&points, &fitted.hinge),
    })
}

fn identifiable(points: &[(f64, f64)], hinge: &Hinge) -> Identifiable {
    let names: &[&str] = match hinge.bend {
        Some(_) => &["start", "slope", "bend", "slope behind"],
        None => &["start", "slope"],
    };
    let row = |&(x, y): &(f64, f64)| match hinge.bend {
        None => vec![1.0 / y, x / y],
        Some((at, behind)) => {
            let moved = if x > at { at * (hinge.slope - behind) } else { 0.0 };
            vec![1.0 / y, x.min(at) / y, moved / y, (x - at).max(0.0) / y]
        }
    };
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    identify::of_rows(&names, &points.iter().map(row).collect::<Vec<_>>(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bend_reads_as_levels_too() {
        let points = (1..=48).map(f64::from).map(|x| (x, 150.0 + 0.5 * x + 7.0 * (x - 20.0).max(0.0)));
        let found = one(Curve::Chains, "thp", points).expect("enough points").as_levels();
        let costs: Vec<f64> = found.levels.iter().filter_map(|level| level.cost.value()).collect();
        assert_eq!((found.of, costs.len(), found.identifiable.rank), ("mlp", 2, 4));
        assert!((costs[1] - 7.5).abs() < 0.1 && (found.levels[0].size.value().unwrap() - 20.0).abs() < 0.5);
        assert!(found.held_back.median < 0.01, "{:?}", found.held_back);
        let line = (1..=8).map(f64::from).map(|x| (x, 40.0 + 90.0 * x));
        let line = one(Curve::Sequence, "4K", line).expect("enough points").as_levels();
        assert_eq!((line.levels.len(), line.identifiable.parameters), (1, 2));
    }
}

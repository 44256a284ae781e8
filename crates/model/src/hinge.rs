//! Curves that are straight up to a bend and straight behind it: time over a count, or latency over
//! a rate.
//!
//! ```text
//! y(x) = start + slope · x + more · (x - bend)        the last term is zero up to the bend
//! ```
//!
//! Neither slope is negative, and the second is not smaller than the first. As everywhere here,
//! residuals are relative to the measured value. Whether there is a bend at all is decided by
//! Bayes' criterion, in which a bend counts twice.

use crate::least_squares::Normal;
use units::student;

/// How likely the truth is to lie outside the bounds.
const MISSED: f64 = 0.05;

/// Places for a bend between the smallest and the largest x.
const PLACES: usize = 200;

#[derive(Clone, Debug)]
pub(crate) struct Hinge {
    pub(crate) start: f64,
    pub(crate) slope: f64,
    /// Where it bends, and what the slope is behind.
    pub(crate) bend: Option<(f64, f64)>,
    residual: f64,
}

/// A value with its bounds.
pub(crate) type Bounds = (f64, f64, f64);

/// The fit, and the bounds of start, slope, bend and slope behind.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) hinge: Hinge,
    pub(crate) start: Bounds,
    pub(crate) slope: Bounds,
    pub(crate) bend: Option<(Bounds, Bounds)>,
}

#[derive(Clone, Copy)]
enum Held {
    Start(f64),
    Slope(f64),
    Behind(f64),
}

impl Hinge {
    fn at(points: &[(f64, f64)], bend: Option<f64>, held: Option<Held>) -> Self {
        let columns = if bend.is_some() { 3 } else { 2 };
        let mut normal = Normal::new(columns);
        // In units of the largest x and y, columns are of one size.
        let scale = points.iter().map(|point| point.0).fold(0.0, f64::max);
        let row = |x: f64, y: f64| [1.0 / y, x / scale / y, (x - bend.unwrap_or(x)).max(0.0) / scale / y];
        for &(x, y) in points {
            normal.add(&row(x, y)[..columns], 1.0);
        }
        let heavy = 1e4;
        let mut hold = |row: &[f64; 3]| normal.add(&row[..columns], heavy);
        match held {
            Some(Held::Start(to)) => hold(&[heavy / to, 0.0, 0.0]),
            Some(Held::Slope(to)) => hold(&[0.0, heavy / to / scale, 0.0]),
            Some(Held::Behind(to)) => hold(&[0.0, heavy / to / scale, heavy / to / scale]),
            None => {}
        }
        let (found, residual) = normal.solve();
        let slope = found[1] / scale;
        let bend = bend.map(|at| (at, slope + found[2] / scale));
        Self { start: found[0], slope, bend, residual }
    }

    fn best(points: &[(f64, f64)], held: Option<Held>) -> Option<Self> {
        places(points)
            .map(|at| Self::at(points, Some(at), held))
            .min_by(|a, b| a.residual.total_cmp(&b.residual))
    }

    pub(crate) fn y(&self, x: f64) -> f64 {
        let behind = self.bend.map_or(0.0, |(at, behind)| (behind - self.slope) * (x - at).max(0.0));
        self.start + self.slope * x + behind
    }

    fn bic(&self, n: f64) -> f64 {
        let parameters = if self.bend.is_some() { 5.0 } else { 2.0 };
        n * (self.residual / n).max(1e-12).ln() + parameters * n.ln()
    }

    pub(crate) fn relative_residuals(&self, points: &[(f64, f64)]) -> Vec<f64> {
        points.iter().map(|&(x, y)| (self.y(x) / y - 1.0).abs()).collect()
    }
}

/// Relative, of each point under a fit of the same kind to all others.
pub(crate) fn held_back(points: &[(f64, f64)], with_bend: bool) -> Vec<f64> {
    let off = |left_out: usize| {
        let mut others = points.to_vec();
        let point = others.remove(left_out);
        let bent = if with_bend { Hinge::best(&others, None) } else { None };
        bent.unwrap_or_else(|| Hinge::at(&others, None, None)).relative_residuals(&[point])[0]
    };
    (0..points.len()).map(off).collect()
}

/// Candidates for the bend: there are points on both sides.
fn places(points: &[(f64, f64)]) -> impl Iterator<Item = f64> + use<> {
    let smallest = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let largest = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let step = (largest - smallest) / PLACES as f64;
    (1..PLACES).map(move |place| smallest + step * place as f64)
}

/// Fits points `(x, y)` with positive `y`; `None` if they are fewer than five.
pub(crate) fn fit(points: &[(f64, f64)]) -> Option<Fitted> {
    if points.len() < 5 {
        return None;
    }
    let n = points.len() as f64;
    let line = Hinge::at(points, None, None);
    let bent = Hinge::best(points, None).filter(|bent| points.len() >= 8 && bent.bic(n) < line.bic(n));
    let hinge = bent.unwrap_or(line);
    let most = most(&hinge, n);
    let again = |held: Held| match hinge.bend {
        Some(_) => Hinge::best(points, Some(held)).map_or(f64::INFINITY, |moved| moved.residual),
        None => Hinge::at(points, None, Some(held)).residual,
    };
    let bounds = |value: f64, held: fn(f64) -> Held| {
        // A held value of nothing is not held at all: such a value has no bounds but itself.
        let far = |sign: f64| {
            value * (1.0 + sign * outwards(|share| again(held(value * (1.0 + sign * share))) <= most))
        };
        if value > 0.0 { (value, far(-1.0).max(0.0), far(1.0)) } else { (0.0, 0.0, 0.0) }
    };
    let bend = hinge.bend.map(|(at, behind)| {
        let inside = |place: &f64| Hinge::at(points, Some(*place), None).residual <= most;
        let within: Vec<f64> = places(points).filter(inside).chain([at]).collect();
        let lo = within.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = within.iter().copied().fold(0.0, f64::max);
        ((at, lo, hi), bounds(behind, Held::Behind))
    });
    Some(Fitted {
        start: bounds(hinge.start, Held::Start),
        slope: bounds(hinge.slope, Held::Slope),
        bend,
        hinge,
    })
}

/// The largest residual that does not contradict the points.
fn most(hinge: &Hinge, n: f64) -> f64 {
    let left = (n - if hinge.bend.is_some() { 4.0 } else { 2.0 }).max(1.0);
    let t = student::beyond(MISSED, left);
    hinge.residual.max(1e-12) * (1.0 + t * t / left)
}

/// The largest share of change that is still inside, up to nine tenths.
fn outwards(inside: impl Fn(f64) -> bool) -> f64 {
    let (mut within, mut without) = (0.0, 0.005);
    while without < 0.9 && inside(without) {
        (within, without) = (without, 2.0 * without);
    }
    for _ in 0..5 {
        let middle = f64::midpoint(within, without);
        if inside(middle) {
            within = middle;
        } else {
            without = middle;
        }
    }
    without.min(0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut random = units::Rng::new(3);
        let noise = |random: &mut units::Rng| 0.99 + 0.02 * random.below(1000) as f64 / 1000.0;
        (1..=48).map(|x| (f64::from(x), y(f64::from(x)) * noise(&mut random))).collect()
    }

    #[test]
    fn a_bend_is_found_again() {
        let fitted = fit(&noisy(|x| 150.0 + 0.5 * x + 7.0 * (x - 20.0).max(0.0))).expect("enough points");
        let ((at, lo, hi), behind) = fitted.bend.expect("a bend");
        assert!(lo <= 20.0 && 20.0 <= hi && (at - 20.0).abs() < 0.5, "{at} [{lo}, {hi}]");
        assert!(behind.1 <= 7.5 && 7.5 <= behind.2, "{behind:?}");
        assert!(fitted.start.1 <= 150.0 && 150.0 <= fitted.start.2, "{fitted:?}");
    }

    #[test]
    fn points_held_back_are_foretold() {
        let points = noisy(|x| 150.0 + 0.5 * x + 7.0 * (x - 20.0).max(0.0));
        assert!(held_back(&points, true).iter().all(|off| *off < 0.03));
        assert!(held_back(&points, false).iter().any(|off| *off > 0.1), "a line does not describe them");
    }

    #[test]
    fn a_line_has_none() {
        let fitted = fit(&noisy(|x| 40.0 + 90.0 * x)).expect("enough points");
        assert!(fitted.bend.is_none(), "{fitted:?}");
        assert!(fitted.slope.1 <= 90.0 && 90.0 <= fitted.slope.2, "{fitted:?}");
    }
}

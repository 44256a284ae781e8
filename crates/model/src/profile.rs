//! Profile likelihood of a break: how far it may be moved, all else being fitted anew, until the
//! points contradict it.

use crate::points::Points;
use crate::staircase::Staircase;

/// Twice the logarithm of the likelihood falls by as much at the ends of a 95% interval: the 95th
/// percentile of chi square with one degree of freedom.
const FALL: f64 = 3.841;

/// Octaves of the first step outwards, and as far as a break is followed.
const FIRST: f64 = 0.01;
const FARTHEST: f64 = 3.0;

/// Halvings between the last place inside and the first one outside.
const HALVINGS: usize = 5;

/// From where to where a break may lie.
pub(crate) fn interval(points: &Points, best: &Staircase, k: usize) -> (f64, f64) {
    let inside = |octaves: f64| fall(points, best, k, octaves) <= FALL;
    let end = |sign: f64| {
        let (mut within, mut without) = (0.0, FIRST);
        while without < FARTHEST && inside(sign * without) {
            (within, without) = (without, 2.0 * without);
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(within, without);
            if inside(sign * middle) {
                within = middle;
            } else {
                without = middle;
            }
        }
        best.breaks[k] * (sign * without).exp2()
    };
    (end(-1.0), end(1.0))
}

/// By how much twice the logarithm of the likelihood falls when a break is moved.
fn fall(points: &Points, best: &Staircase, k: usize, octaves: f64) -> f64 {
    let Some(moved) = best.with_break_at(points, k, best.breaks[k] * octaves.exp2()) else {
        return f64::INFINITY;
    };
    let n = points.len() as f64;
    let left = (n - best.parameters() as f64).max(1.0);
    // Residuals of the best fit are smaller than the noise, by as much as its parameters took up.
    left * (moved.residual().max(1e-12) / best.residual().max(1e-12)).ln()
}

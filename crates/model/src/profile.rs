//! Profile likelihood: how far a break or a cost may be moved, all else being fitted anew, until
//! the points contradict it.

use crate::points::Points;
use crate::staircase::{Fixed, Staircase};
use units::student;

/// How likely the truth is to lie outside an interval.
const MISSED: f64 = 0.05;

/// By how much farther parameters may lie where walks are among them, which the same points chose:
/// without it intervals held 92.9% of the costs of 300 made-up machines.
const CHOSEN: f64 = 1.1;

/// Octaves of the first step outwards, and as far as a parameter is followed.
const FIRST: f64 = 0.01;
const FARTHEST: f64 = 3.0;

/// Halvings between the last place inside and the first one outside.
const HALVINGS: usize = 5;

/// From where to where a parameter may lie; it is positive.
pub(crate) fn interval(
    points: &Points,
    best: &Staircase,
    value: f64,
    fixed: impl Fn(f64) -> Fixed,
) -> (f64, f64) {
    let n = points.len() as f64;
    // Degrees of freedom.
    let left = (n - best.parameters() as f64).max(1.0);
    let chosen = if best.has_walks() { CHOSEN } else { 1.0 };
    let t = chosen * student::beyond(MISSED, left);
    let most = best.residual().max(1e-12) * (1.0 + t * t / left);
    let inside = |octaves: f64| {
        let moved = best.with(points, fixed(value * octaves.exp2()));
        moved.is_some_and(|moved| moved.residual() <= most)
    };
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
        value * (sign * without).exp2()
    };
    (end(-1.0), end(1.0))
}

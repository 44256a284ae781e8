//! Whether the points tell the parameters of a fit apart: rank and condition of the sensitivities,
//! and which parameters can only be moved together.

use crate::sample::Sample;
use crate::staircase::Staircase;
use crate::walks::SCALE;
use serde::Serialize;

/// Singular values below this share of the largest are zero.
const ZERO: f64 = 1e-6;

/// Pairs of parameters with a correlation of at least this size are listed.
const TOGETHER: f64 = 0.8;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Identifiable {
    pub parameters: usize,
    /// How many of them, or of their combinations, the points determine.
    pub rank: usize,
    /// Of the sensitivities, each scaled to length one: how many times better the best determined
    /// combination is known than the worst.
    pub condition: f64,
    /// Parameters that the points hardly tell apart.
    pub together: Vec<Together>,
    /// What no points of this kind can tell.
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Together {
    pub parameters: [String; 2],
    pub correlation: f64,
}

pub(crate) fn identify(samples: &[Sample], best: &Staircase, remarks: Vec<String>) -> Identifiable {
    let (names, rows) = sensitivities(samples, best);
    of_rows(&names, &rows, remarks)
}

/// A row for each point: by how much of its time the fit changes with each parameter.
pub(crate) fn of_rows(names: &[String], rows: &[Vec<f64>], remarks: Vec<String>) -> Identifiable {
    let n = names.len();
    let norm = |i: usize| rows.iter().map(|row| row[i] * row[i]).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let norms: Vec<f64> = (0..n).map(norm).collect();
    let square =
        |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>() / (norms[i] * norms[j]);
    let (values, vectors) = eigen((0..n).map(|i| (0..n).map(|j| square(i, j)).collect()).collect());
    let singular: Vec<f64> = values.iter().map(|value| value.max(0.0).sqrt()).collect();
    let largest = singular.iter().copied().fold(0.0, f64::max);
    let smallest = singular.iter().copied().fold(f64::INFINITY, f64::min);
    let counts = |k: &usize| singular[*k] > ZERO * largest;
    let covariance = |i: usize, j: usize| -> f64 {
        (0..n).filter(counts).map(|k| vectors[i][k] * vectors[j][k] / values[k]).sum()
    };
    let mut together = Vec::new();
    for i in 0..n {
        for j in 0..i {
            let correlation = covariance(i, j) / (covariance(i, i) * covariance(j, j)).sqrt();
            if correlation.abs() >= TOGETHER {
                together.push(Together { parameters: [names[j].clone(), names[i].clone()], correlation });
            }
        }
    }
    Identifiable {
        parameters: n,
        rank: (0..n).filter(counts).count(),
        // JSON has no infinity.
        condition: (largest / smallest).min(1.0 / f64::EPSILON),
        together,
        remarks,
    }
}

/// For each point, by how much of its time the fit changes with each parameter. Costs are those of
/// levels, not steps; breaks are taken in their logarithms.
fn sensitivities(samples: &[Sample], best: &Staircase) -> (Vec<String>, Vec<Vec<f64>>) {
    let costs = best.costs();
    let mut names = Vec::new();
    for level in 1..=costs.len() {
        names.push(format!("cost of level {level}"));
        if best.with_lines {
            names.push(format!("cost of a line in level {level}"));
        }
    }
    names.extend((1..=best.breaks.len()).map(|level| format!("size of level {level}")));
    if best.has_walks() {
        names.push("entries that an access loads".to_owned());
    }
    let each = if best.with_lines { 2 } else { 1 };
    let row = |sample: &Sample| {
        let mut row = Vec::with_capacity(names.len());
        let ends = best.breaks.iter().copied().chain([f64::INFINITY]);
        let mut from = 0.0_f64;
        for end in ends {
            let share = ((end.min(sample.area) - from) / sample.area).max(0.0);
            row.push(share / sample.time);
            if best.with_lines {
                row.push(share * sample.lines / sample.time);
            }
            from = end;
        }
        for (&at, step) in best.breaks.iter().zip(&best.steps[1..]) {
            let inside = if sample.area > at { at / sample.area } else { 0.0 };
            row.push(-inside * (step.0 + step.1 * sample.lines) / sample.time);
        }
        if best.has_walks() {
            of_walks(&mut row, sample, best, each);
        }
        row
    };
    let rows = samples.iter().map(row).collect();
    (names, rows)
}

/// What walks add to a point's row: they pay the same steps, behind larger areas.
fn of_walks(row: &mut Vec<f64>, sample: &Sample, best: &Staircase, each: usize) {
    let first_break = each * best.steps.len();
    for (k, (&at, step)) in best.breaks.iter().zip(&best.steps[1..]).enumerate() {
        let from = at * SCALE;
        let spilt = (1.0 - from / sample.area).max(0.0);
        for part in 0..each {
            let change = best.walks.loads * spilt / sample.time;
            row[each * (k + 1) + part] += change;
            row[each * k + part] -= change;
        }
        if spilt > 0.0 {
            row[first_break + k] -= best.walks.loads * (from / sample.area) * (step.0 + step.1) / sample.time;
        }
    }
    row.push(best.walks_time(sample.area) / best.walks.loads / sample.time);
}

/// Values and vectors (as columns) of a symmetric matrix, by Jacobi's rotations.
fn eigen(mut a: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = a.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    // Each sweep makes what is off the diagonal smaller; matrices of this size need about eight.
    for _ in 0..50 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        if off < 1e-24 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (upper, lower) = a.split_at_mut(q);
                for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
                for row in &mut vectors {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
            }
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_taken_apart() {
        let (mut values, _) = eigen(vec![vec![2.0, 1.0, 0.0], vec![1.0, 2.0, 0.0], vec![0.0, 0.0, 5.0]]);
        values.sort_by(f64::total_cmp);
        for (found, known) in values.iter().zip([1.0, 3.0, 5.0]) {
            assert!((found - known).abs() < 1e-12, "{values:?}");
        }
    }

    fn of(breaks: &[f64]) -> Identifiable {
        let time =
            |area: f64| 2.0 + 8.0 * (1.0_f64 - 65536.0 / area).max(0.0) + 60.0 * (1.0 - 4e6 / area).max(0.0);
        let areas = (0..60).map(|i| 4096.0 * (f64::from(i) / 3.0).exp2());
        let samples: Vec<Sample> = areas.map(|area| Sample { area, lines: 1.0, time: time(area) }).collect();
        let best = Staircase::at(&crate::points::Points::new(&samples), breaks);
        identify(&samples, &best, Vec::new())
    }

    #[test]
    fn levels_that_are_seen_whole_are_told_apart() {
        let found = of(&[65536.0, 4e6]);
        assert_eq!((found.parameters, found.rank), (5, 5));
        assert!(found.condition < 20.0 && found.together.is_empty(), "{found:?}");
    }

    #[test]
    fn a_level_between_two_measured_areas_is_not() {
        let found = of(&[66000.0, 72000.0, 4e6]);
        assert!(found.rank < found.parameters && found.condition > 1e3, "{found:?}");
    }
}

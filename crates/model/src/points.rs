//! All points of a fit, summed up so that the sums of any breaks are at hand.
//!
//! The column of a break `b` is `(1 - b/a)/t` at points with areas `a > b`, and zero elsewhere. The
//! product of two columns, summed over points, is `S0 - (b + c)·S1 + b·c·S2`, where `Sm` sums
//! `1/(a^m t²)` over the points behind both breaks. So a fit costs no more for more points.

use crate::least_squares::Normal;
use crate::sample::Sample;
use crate::walks::SCALE;

/// Sums over the points from one on; the first index is the power of the lines.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Of `1/(a^m t²)`, by m.
    square: [[f64; 3]; 3],
    /// Of `1/(a^m t)`.
    right: [[f64; 2]; 2],
}

pub(crate) struct Points {
    /// Ascending.
    areas: Vec<f64>,
    /// Over the points from each one on; one more than there are points.
    from: Vec<Sums>,
    pub(crate) with_lines: bool,
}

impl Points {
    pub(crate) fn new(samples: &[Sample]) -> Self {
        let with_lines = samples.iter().any(|s| s.lines != samples[0].lines);
        let mut samples = samples.to_vec();
        samples.sort_by(|a, b| a.area.total_cmp(&b.area));
        let mut sums = Sums::default();
        let mut from = vec![sums];
        for sample in samples.iter().rev() {
            let (time, inverse) = (sample.time, 1.0 / sample.area);
            for power in 0..3 {
                let lines = sample.lines.powi(power as i32);
                for m in 0..3 {
                    sums.square[power][m] += lines * inverse.powi(m as i32) / (time * time);
                }
            }
            for power in 0..2 {
                let lines = sample.lines.powi(power as i32);
                for m in 0..2 {
                    sums.right[power][m] += lines * inverse.powi(m as i32) / time;
                }
            }
            from.push(sums);
        }
        from.reverse();
        Self { areas: samples.iter().map(|s| s.area).collect(), from, with_lines }
    }

    pub(crate) fn len(&self) -> usize {
        self.areas.len()
    }

    /// From the smallest area to the largest one.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.areas[0], self.areas[self.areas.len() - 1])
    }

    /// Columns for each level: one, or with lines two.
    pub(crate) fn each(&self) -> usize {
        if self.with_lines { 2 } else { 1 }
    }

    /// The same, where each step comes once more for `loads` entries of page tables, behind
    /// [`SCALE`] times its break: the fixed part and that of one line, whatever lines a window has.
    pub(crate) fn normal_with_walks(&self, breaks: &[f64], loads: f64) -> Normal {
        if loads == 0.0 {
            return self.normal(breaks);
        }
        let each = self.each();
        let n = each * (breaks.len() + 1);
        let entries = breaks.iter().map(|&at| at * SCALE);
        // Columns of the data, and those of entries: sums do not ask for an order of breaks.
        let all = self.normal(&breaks.iter().copied().chain(entries).collect::<Vec<_>>());
        let mut map = vec![vec![0.0; n]; each * (2 * breaks.len() + 1)];
        for (column, row) in map.iter_mut().enumerate() {
            let (k, p) = (column / each, column % each);
            if k <= breaks.len() {
                row[column] = 1.0;
            } else if p == 0 {
                for part in 0..each {
                    row[each * (k - breaks.len()) + part] = loads;
                }
            }
        }
        all.combined(&map)
    }

    /// The sums of a fit with these breaks; a first level lies before them.
    pub(crate) fn normal(&self, breaks: &[f64]) -> Normal {
        let each = self.each();
        let starts: Vec<f64> = std::iter::once(0.0).chain(breaks.iter().copied()).collect();
        let behind: Vec<&Sums> =
            starts.iter().map(|&start| &self.from[self.areas.partition_point(|&a| a <= start)]).collect();
        let n = each * starts.len();
        let mut square = vec![vec![0.0; n]; n];
        let mut right = vec![0.0; n];
        for (k, (&b, sums)) in starts.iter().zip(&behind).enumerate() {
            for p in 0..each {
                right[each * k + p] = sums.right[p][0] - b * sums.right[p][1];
            }
            for (j, &c) in starts[..=k].iter().enumerate() {
                let behind_both = if b >= c { sums } else { &behind[j] };
                for p in 0..each {
                    for q in 0..each {
                        let s = &behind_both.square[p + q];
                        let product = s[0] - (b + c) * s[1] + b * c * s[2];
                        square[each * k + p][each * j + q] = product;
                        square[each * j + q][each * k + p] = product;
                    }
                }
            }
        }
        Normal::from_sums(square, right, self.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rows() {
        let sample = |i: i32| Sample {
            area: 1000.0 * f64::from(i),
            lines: f64::from(i % 3 + 1),
            time: 5.0 + f64::from(i % 5),
        };
        let samples: Vec<Sample> = (1..30).map(sample).collect();
        let breaks = [2500.0, 9000.0, 9500.0];
        let mut rows = Normal::new(8);
        for s in &samples {
            let parts = [1.0].into_iter().chain(breaks.map(|b| (1.0 - b / s.area).max(0.0)));
            let row: Vec<f64> = parts.flat_map(|part| [part / s.time, part * s.lines / s.time]).collect();
            rows.add(&row, 1.0);
        }
        let (by_rows, by_sums) = (rows.solve(), Points::new(&samples).normal(&breaks).solve());
        assert!((by_rows.1 - by_sums.1).abs() < 1e-9, "{by_rows:?} {by_sums:?}");
        for (a, b) in by_rows.0.iter().zip(&by_sums.0) {
            assert!((a - b).abs() < 1e-6, "{by_rows:?} {by_sums:?}");
        }
    }

    #[test]
    fn sums_with_walks_are_those_of_the_rows() {
        let sample = |i: i32| Sample {
            area: 4096.0 * (f64::from(i) / 2.0).exp2(),
            lines: f64::from(i % 3 + 1),
            time: 5.0 + f64::from(i % 5),
        };
        let samples: Vec<Sample> = (1..40).map(sample).collect();
        let (breaks, loads) = ([30000.0, 400_000.0], 0.7);
        let mut rows = Normal::new(6);
        for s in &samples {
            let behind = |from: f64| (1.0 - from / s.area).max(0.0);
            let mut row = vec![1.0 / s.time, s.lines / s.time];
            for at in breaks {
                let entries = loads * behind(at * SCALE);
                row.push((behind(at) + entries) / s.time);
                row.push((behind(at) * s.lines + entries) / s.time);
            }
            rows.add(&row, 1.0);
        }
        let (by_rows, by_sums) =
            (rows.solve(), Points::new(&samples).normal_with_walks(&breaks, loads).solve());
        assert!((by_rows.1 - by_sums.1).abs() < 1e-9, "{by_rows:?} {by_sums:?}");
        for (a, b) in by_rows.0.iter().zip(&by_sums.0) {
            assert!((a - b).abs() < 1e-6, "{by_rows:?} {by_sums:?}");
        }
    }
}

//! Starts for the search for breaks: the best division of the areas into segments.
//!
//! Between two breaks the mean over an area `a` is `t(a) = c - e/a`: `c` is what the level costs,
//! and `e` is what the levels before it save. So each segment is fitted alone, and dynamic
//! programming finds the division with the smallest sum of residuals, for each number of segments.
//! The segments need not meet, and neighbours may contradict each other: what is found here are
//! places to start from, not levels.

use crate::least_squares::Normal;
use crate::sample::Sample;

/// Fewer areas do not tell a segment from noise.
const FEWEST_AREAS: usize = 2;

/// For each number of segments, from one on, where those behind the first begin: between the last
/// area of a segment and the first of the next. Numbers for which there are too few areas are left
/// out.
pub(crate) fn divisions(samples: &[Sample], most: usize, with_lines: bool) -> Vec<Vec<f64>> {
    let mut samples = samples.to_vec();
    samples.sort_by(|a, b| a.area.total_cmp(&b.area));
    let groups: Vec<&[Sample]> = samples.chunk_by(|a, b| a.area == b.area).collect();
    let n = groups.len();
    let alone = residuals(&groups, with_lines);
    // best[j]: the smallest sum for the first j areas; from[k][j]: where its last segment begins.
    let mut best: Vec<f64> = (0..=n).map(|j| if j == 0 { f64::INFINITY } else { alone[0][j - 1] }).collect();
    let mut from: Vec<Vec<usize>> = vec![vec![0; n + 1]];
    let mut all = Vec::new();
    for segments in 1..=most {
        if segments > 1 {
            let mut next = vec![f64::INFINITY; n + 1];
            let mut place = vec![0; n + 1];
            for j in segments * FEWEST_AREAS..=n {
                for i in (segments - 1) * FEWEST_AREAS..=j - FEWEST_AREAS {
                    let sum = best[i] + alone[i][j - 1 - i];
                    if sum < next[j] {
                        (next[j], place[j]) = (sum, i);
                    }
                }
            }
            best = next;
            from.push(place);
        }
        if !best[n].is_finite() {
            break;
        }
        let mut breaks = Vec::new();
        let mut end = n;
        for place in from[1..].iter().rev() {
            end = place[end];
            breaks.push((groups[end - 1][0].area * groups[end][0].area).sqrt());
        }
        breaks.reverse();
        all.push(breaks);
    }
    all
}

/// What the best line leaves of the areas from `i` on: that of the first, of the first two …
fn residuals(groups: &[&[Sample]], with_lines: bool) -> Vec<Vec<f64>> {
    let columns = if with_lines { 4 } else { 2 };
    let of_start = |i: usize| {
        let mut normal = Normal::new(columns);
        let mut until = |group: &&[Sample]| {
            for sample in *group {
                let (one, inverse) = (1.0 / sample.time, -groups[i][0].area / sample.area / sample.time);
                let row = [one, inverse, one * sample.lines, inverse * sample.lines];
                normal.add(&row[..columns], 1.0);
            }
            normal.solve().1
        };
        groups[i..].iter().map(&mut until).collect()
    };
    (0..groups.len()).map(of_start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_where_the_curve_bends() {
        let areas = (0..40).map(|i| 4096.0 * (f64::from(i) / 3.0).exp2());
        let time = |area: f64| 2.0 + 20.0 * (1.0_f64 - 65536.0 / area).max(0.0);
        let samples: Vec<Sample> = areas.map(|area| Sample { area, lines: 1.0, time: time(area) }).collect();
        let all = divisions(&samples, 3, false);
        assert_eq!(all.len(), 3);
        assert!((all[1][0] / 65536.0).log2().abs() < 0.4, "{:?}", all[1]);
    }
}

//! `T(n) = n·M + C` under all measurements at once. Pure.
//!
//! Each measured time is an interval, which leaves of all pairs (M, C) the strip between two lines.
//! What all strips have in common is a convex polygon; its corners, each where two edges of strips
//! cross, hold the least and greatest M and C. Twelve strips have few enough corners to look at all
//! of them.

use units::Estimate;

/// n accesses took between `lo` and `hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeStrip {
    pub n: f64,
    pub time: Estimate,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SequenceFit {
    /// M, one access.
    pub per_access: Estimate,
    /// C, what comes to all.
    pub constant: Estimate,
    /// By how much every interval had to be widened on either side for any line to meet all; 0
    /// where none had to.
    pub widened: f64,
    /// Which n contradict each other most, where they do.
    pub conflict: Vec<u32>,
}

/// All lines that meet the strips; widened as little as need be where none does. Nothing for fewer
/// than two n.
pub(crate) fn fit(strips: &[TimeStrip]) -> Option<SequenceFit> {
    let first = strips.first()?.n;
    if strips.iter().all(|s| s.n == first) {
        return None;
    }
    if let Some((m, c)) = corners(strips, 0.0) {
        return Some(line(m, c, 0.0, Vec::new()));
    }
    let widened = needed(strips);
    // A little more, so that the polygon is more than a point lost to rounding.
    let (m, c) = corners(strips, widened * (1.0 + 1e-6) + 1e-9)?;
    Some(line(m, c, widened, conflict(strips)))
}

fn line(m: (f64, f64), c: (f64, f64), widened: f64, conflict: Vec<u32>) -> SequenceFit {
    let middle = |(lo, hi): (f64, f64)| Estimate::new(f64::midpoint(lo, hi), lo, hi);
    SequenceFit { per_access: middle(m), constant: middle(c), widened, conflict }
}

/// Least and greatest M, and C, over the polygon; nothing if it is empty.
fn corners(strips: &[TimeStrip], wider: f64) -> Option<((f64, f64), (f64, f64))> {
    let edges: Vec<(f64, f64)> =
        strips.iter().flat_map(|s| [(s.n, s.time.lo - wider), (s.n, s.time.hi + wider)]).collect();
    let scale = edges.iter().map(|e| e.1.abs()).fold(1.0, f64::max);
    let inside = |m: f64, c: f64| {
        strips.iter().all(|s| {
            let t = s.n * m + c;
            t >= s.time.lo - wider - 1e-9 * scale && t <= s.time.hi + wider + 1e-9 * scale
        })
    };
    let mut bounds: Option<((f64, f64), (f64, f64))> = None;
    for (i, a) in edges.iter().enumerate() {
        for b in &edges[i + 1..] {
            if a.0 == b.0 {
                continue;
            }
            let m = (b.1 - a.1) / (b.0 - a.0);
            let c = a.1 - a.0 * m;
            if inside(m, c) {
                let (ms, cs) = bounds.get_or_insert(((m, m), (c, c)));
                *ms = (ms.0.min(m), ms.1.max(m));
                *cs = (cs.0.min(c), cs.1.max(c));
            }
        }
    }
    bounds
}

/// The least widening with which some line meets all strips.
fn needed(strips: &[TimeStrip]) -> f64 {
    let (mut no, mut yes) = (0.0, strips.iter().map(|s| s.time.hi.abs()).fold(1.0, f64::max));
    for _ in 0..60 {
        let middle = f64::midpoint(no, yes);
        if corners(strips, middle).is_some() {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

/// In the plane, strips without a common point have three among them without one (or two, of one
/// n): those that would have to be widened most.
fn conflict(strips: &[TimeStrip]) -> Vec<u32> {
    let mut worst = (0.0, Vec::new());
    for (i, a) in strips.iter().enumerate() {
        for (j, b) in strips.iter().enumerate().skip(i + 1) {
            for c in &strips[j + 1..] {
                let three = [*a, *b, *c];
                if corners(&three, 0.0).is_none() {
                    let wider = needed(&three);
                    if wider > worst.0 {
                        worst = (wider, three.iter().map(|s| s.n as u32).collect());
                    }
                }
            }
        }
    }
    worst.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strips(m: f64, c: f64, errors: &[f64], width: f64) -> Vec<TimeStrip> {
        errors
            .iter()
            .enumerate()
            .map(|(i, e)| {
                let n = (i + 1) as f64;
                let t = n * m + c + e;
                TimeStrip { n, time: Estimate::new(t, t - width, t + width) }
            })
            .collect()
    }

    #[test]
    fn exact_times_give_the_exact_line() {
        let line = fit(&strips(200.0, 45.0, &[0.0; 12], 0.0)).unwrap();
        assert!((line.per_access.value - 200.0).abs() < 1e-6 && (line.constant.value - 45.0).abs() < 1e-6);
        assert!(line.widened == 0.0 && line.conflict.is_empty());
    }

    #[test]
    fn a_contradiction_is_named() {
        let mut errors = [0.0; 12];
        errors[6] = 30.0;
        let line = fit(&strips(200.0, 45.0, &errors, 5.0)).unwrap();
        assert!(line.conflict.contains(&7) && line.conflict.len() == 3, "{:?}", line.conflict);
        // Seven lies 20 beyond what a line through its neighbours allows; half of it falls to
        // either side.
        assert!((line.widened - 10.0).abs() < 0.1, "{}", line.widened);
        assert!((line.per_access.value - 200.0).abs() < 5.0, "{line:?}");
    }

    #[test]
    fn one_n_is_no_line() {
        assert_eq!(fit(&strips(200.0, 45.0, &[0.0], 1.0)), None);
        assert_eq!(fit(&[]), None);
    }

    proptest! {
        /// Whatever the errors, as long as intervals are as wide, the true line is among those
        /// found.
        #[test]
        fn bounds_hold_the_truth(
            m in 10.0f64..1000.0,
            c in -50.0f64..200.0,
            errors in proptest::collection::vec(-1.0f64..1.0, 2..12),
            width in 0.1f64..20.0,
        ) {
            let errors: Vec<f64> = errors.iter().map(|e| e * width).collect();
            let line = fit(&strips(m, c, &errors, width)).unwrap();
            prop_assert!(line.widened == 0.0);
            prop_assert!(line.per_access.lo <= m + 1e-6 && m <= line.per_access.hi + 1e-6, "{:?}", line);
            prop_assert!(line.constant.lo <= c + 1e-6 && c <= line.constant.hi + 1e-6, "{:?}", line);
        }

        /// Too narrow intervals: the widening found is enough, and nine tenths of it are not.
        #[test]
        fn the_widening_is_the_least(errors in proptest::collection::vec(-20.0f64..20.0, 3..12)) {
            let strips = strips(200.0, 45.0, &errors, 0.5);
            let line = fit(&strips).unwrap();
            if line.widened > 0.01 {
                prop_assert!(corners(&strips, line.widened + 1e-6).is_some());
                prop_assert!(corners(&strips, line.widened * 0.9).is_none());
                prop_assert!(!line.conflict.is_empty());
            }
        }
    }
}

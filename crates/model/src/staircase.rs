//! The expected time of an access at random in an area, where memory is a staircase of levels.
//!
//! Level k begins behind the first `b_k` bytes and costs `d_k` more than the level before it. The
//! mean of the steps over an area `a` is
//!
//! ```text
//! t(a) = d_0 + d_1 · (1 - b_1/a) + d_2 · (1 - b_2/a) + …        terms with b_k >= a are zero
//! ```
//!
//! A term of this form is also what a TLB with a reach of `b_k` adds. Entries of page tables spill
//! from the same levels, at larger areas ([`walks`]), where the criterion prefers that.
//!
//! For windows, each `d_k` is a fixed part and a part for each line. Costs do not fall from level
//! to level, so no `d_k` is negative. Residuals are relative to the measured time.
//!
//! Intervals come from the profile likelihood, those of costs near zero and of predictions from
//! residuals dealt out anew. Of six hundred made-up machines, they held the truth in 94% to 95% of
//! cases. They say nothing of the difference between runs.

use crate::points::Points;
use crate::sample::Sample;
use crate::segments;
use crate::walks::{self, SCALE, Tables, Walks};
use units::Rng;

pub(crate) const MOST_LEVELS: usize = 7;
/// Octaves by which breaks are moved, again and again, one after the other.
const FINER: [f64; 3] = [0.125, 0.03, 0.01];
/// The weight of a parameter that is held, in points.
const HEAVY: f64 = 1e4;
const RESAMPLES: usize = 100;
/// Where the search for the entries that an access loads begins, by the most that walks can load.
const WALK_STARTS: [f64; 5] = [0.1, 0.2, 0.4, 0.6, 0.8];

/// A parameter that is held while the others are fitted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fixed {
    Break {
        k: usize,
        at: f64,
    },
    /// What an access costs in this level: its fixed part, or its part for each line.
    Cost {
        level: usize,
        of_lines: bool,
        at: f64,
    },
    /// Entries of page tables that an access loads.
    Loads {
        at: f64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Staircase {
    /// Where the second level and those after it begin, in bytes; ascending.
    pub(crate) breaks: Vec<f64>,
    /// What each level adds: a fixed part, and a part for each line.
    pub(crate) steps: Vec<(f64, f64)>,
    pub(crate) with_lines: bool,
    pub(crate) walks: Walks,
    residual: f64,
}

impl Staircase {
    pub(crate) fn at(points: &Points, breaks: &[f64]) -> Self {
        Self::at_but(points, breaks, Walks::default(), None)
    }

    fn at_but(points: &Points, breaks: &[f64], walks: Walks, fixed: Option<Fixed>) -> Self {
        let each = points.each();
        let mut normal = points.normal_with_walks(breaks, walks.loads);
        if let Some(Fixed::Cost { level, of_lines, at }) = fixed {
            // So heavy a point that the steps up to this level add up to the cost.
            let wanted = |i: usize| i / each <= level && i % each == usize::from(of_lines);
            let row = (0..each * (breaks.len() + 1)).map(|i| if wanted(i) { HEAVY / at } else { 0.0 });
            normal.add(&row.collect::<Vec<_>>(), HEAVY);
        }
        let (found, residual) = normal.solve();
        let step = |part: &[f64]| (part[0], part.get(1).copied().unwrap_or(0.0));
        let steps = found.chunks(each).map(step).collect();
        Self { breaks: breaks.to_vec(), steps, with_lines: points.with_lines, walks, residual }
    }

    /// With entries of page tables: as many as fit best, up to what walks can load; `None` if the
    /// areas do not tell.
    fn with_walks(&self, points: &Points, tables: Tables) -> Option<Self> {
        let most = tables.most_loads();
        let starts = WALK_STARTS.iter().map(|share| Walks { loads: share * most });
        let tried = starts.map(|walks| Self::at_but(points, &self.breaks, walks, None));
        let best = tried.min_by(|a, b| a.residual.total_cmp(&b.residual))?.refined(points, &FINER);
        (walks::within(&best.breaks, points.range().1) && best.walks.loads <= most).then_some(best)
    }

    /// Moves each break by steps that become smaller, while the residual falls.
    fn refined(self, points: &Points, octaves: &[f64]) -> Self {
        self.refined_but(points, octaves, None)
    }

    /// With this parameter fixed, and the others where they fit best then; `None` if the order of
    /// breaks does not allow it.
    pub(crate) fn with(&self, points: &Points, fixed: Fixed) -> Option<Self> {
        let (mut breaks, mut walks) = (self.breaks.clone(), self.walks);
        match fixed {
            Fixed::Break { k, at } => breaks[k] = at,
            Fixed::Loads { at } => walks.loads = at,
            Fixed::Cost { .. } => (),
        }
        let ordered = breaks.windows(2).all(|pair| pair[0] < pair[1]);
        let moved = || Self::at_but(points, &breaks, walks, Some(fixed));
        ordered.then(|| moved().refined_but(points, &[0.06, 0.015], Some(fixed)))
    }

    pub(crate) fn residual(&self) -> f64 {
        self.residual
    }

    fn refined_but(mut self, points: &Points, octaves: &[f64], fixed: Option<Fixed>) -> Self {
        for &octave in octaves {
            for _ in 0..12 {
                let before = self.residual;
                let moves = |k: &usize| !matches!(fixed, Some(Fixed::Break { k: held, .. }) if held == *k);
                for k in (0..self.breaks.len()).filter(moves) {
                    for factor in [octave.exp2(), (-octave).exp2()] {
                        let mut breaks = self.breaks.clone();
                        breaks[k] *= factor;
                        let ordered = breaks.windows(2).all(|pair| pair[0] < pair[1]);
                        let moved = Self::at_but(points, &breaks, self.walks, fixed);
                        if ordered && moved.residual < self.residual {
                            self = moved;
                        }
                    }
                }
                if self.walks.loads > 0.0 && !matches!(fixed, Some(Fixed::Loads { .. })) {
                    // It is known less well than a break, so it takes longer steps first.
                    for factor in [4.0, -4.0, 1.0, -1.0].map(|steps: f64| (steps * octave).exp2()) {
                        let walks = Walks { loads: self.walks.loads * factor };
                        let moved = Self::at_but(points, &self.breaks, walks, fixed);
                        if moved.residual < self.residual {
                            self = moved;
                        }
                    }
                }
                if self.residual > before * 0.999 {
                    break;
                }
            }
        }
        self
    }

    /// With one more break, where it helps most.
    fn inserted(&self, points: &Points) -> Self {
        let (smallest, largest) = points.range();
        let places = ((largest / smallest).log2() * 4.0) as i32;
        let candidates = (1..places).filter_map(|place| {
            let from = smallest * (f64::from(place) / 4.0).exp2();
            let far = self.breaks.iter().all(|&other| (from / other).log2().abs() > 0.2);
            let mut breaks = self.breaks.clone();
            breaks.push(from);
            breaks.sort_by(f64::total_cmp);
            far.then(|| Self::at(points, &breaks))
        });
        let best = candidates.min_by(|a, b| a.residual.total_cmp(&b.residual));
        best.unwrap_or_else(|| self.clone()).refined(points, &FINER)
    }

    /// With one more break. A break that was the best with fewer levels may be in the way with
    /// more: each is taken out once and put where it helps most now.
    fn grown(&self, points: &Points) -> Self {
        let mut best = self.inserted(points);
        for k in 0..best.breaks.len() {
            let mut breaks = best.breaks.clone();
            breaks.remove(k);
            let moved = Self::at(points, &breaks).inserted(points);
            if moved.breaks.len() == best.breaks.len() && moved.residual < best.residual {
                best = moved;
            }
        }
        best
    }

    /// One fit for each number of levels, from one to [`MOST_LEVELS`].
    fn of_each_number(samples: &[Sample]) -> Vec<Self> {
        let points = &Points::new(samples);
        let starts = segments::divisions(samples, MOST_LEVELS, points.with_lines);
        let mut all = vec![Self::at(points, &[])];
        while all.len() < MOST_LEVELS {
            let grown = all[all.len() - 1].grown(points);
            let divided =
                starts.get(all.len()).map(|breaks| Self::at(points, breaks).refined(points, &FINER));
            let better = divided.filter(|divided| divided.residual < grown.residual);
            all.push(better.unwrap_or(grown));
        }
        all
    }

    pub(crate) fn parameters(&self) -> usize {
        let each = if self.with_lines { 2 } else { 1 };
        each * self.steps.len() + self.breaks.len() + usize::from(self.has_walks())
    }

    pub(crate) fn has_walks(&self) -> bool {
        self.walks.loads > 0.0
    }

    /// Bayes' information criterion. A break counts twice: it is put where noise is best explained
    /// by one, out of many places. So do walks, which would take an unlikely curve's residuals.
    fn bic(&self, samples: usize) -> f64 {
        let n = samples as f64;
        let counted = self.parameters() + self.breaks.len() + usize::from(self.has_walks());
        n * (self.residual / n).max(1e-12).ln() + counted as f64 * n.ln()
    }

    pub(crate) fn time(&self, area: f64, lines: f64) -> f64 {
        let parts = std::iter::once(1.0).chain(self.breaks.iter().map(|&from| beyond(from, area)));
        let data: f64 = parts.zip(&self.steps).map(|(part, step)| part * (step.0 + step.1 * lines)).sum();
        data + self.walks_time(area)
    }

    /// What entries of page tables that have spilt add to an access.
    pub(crate) fn walks_time(&self, area: f64) -> f64 {
        let spilt = self.breaks.iter().map(|&from| beyond(from * SCALE, area));
        let steps = self.steps.iter().skip(1).map(|step| step.0 + step.1);
        self.walks.loads * spilt.zip(steps).map(|(share, step)| share * step).sum::<f64>()
    }

    /// What an access costs in each level: the steps up to it, added.
    pub(crate) fn costs(&self) -> Vec<(f64, f64)> {
        let add = |sum: &mut (f64, f64), step: &(f64, f64)| {
            *sum = (sum.0 + step.0, sum.1 + step.1);
            Some(*sum)
        };
        self.steps.iter().scan((0.0, 0.0), add).collect()
    }

    pub(crate) fn relative_residuals(&self, samples: &[Sample]) -> Vec<f64> {
        samples.iter().map(|s| (self.time(s.area, s.lines) / s.time - 1.0).abs()).collect()
    }
}

/// Share of an area that lies behind its first `from` bytes.
fn beyond(from: f64, area: f64) -> f64 {
    (1.0 - from / area).max(0.0)
}

/// A fit with the number of levels that the criterion prefers.
pub(crate) struct Chosen {
    pub(crate) best: Staircase,
    /// By how much the criterion is worse with one level less and with one more.
    pub(crate) one_less: Option<f64>,
    pub(crate) one_more: Option<f64>,
    /// Fits to resampled residuals.
    pub(crate) resampled: Vec<Staircase>,
    /// For each break, whether both halves of the areas, fitted apart, have it.
    pub(crate) confirmed: Vec<bool>,
    /// Relative residuals of each half under the fit to the other half.
    pub(crate) held_back: Vec<f64>,
    /// By how much the criterion is worse without walks; `None` where it prefers that.
    pub(crate) no_walks: Option<f64>,
}

/// Fits samples, with walks of these tables if they may be seen; `None` if there are too few for
/// two halves.
pub(crate) fn choose(samples: &[Sample], tables: Option<Tables>) -> Option<Chosen> {
    let mut areas: Vec<f64> = samples.iter().map(|s| s.area).collect();
    areas.sort_by(f64::total_cmp);
    areas.dedup();
    if areas.len() < 12 {
        return None;
    }
    let all = Staircase::of_each_number(samples);
    let scores: Vec<f64> = all.iter().map(|fit| fit.bic(samples.len())).collect();
    let index = (0..all.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b]))?;
    let points = &Points::new(samples);
    let with_walks = |fit: &Staircase| tables.and_then(|tables| fit.with_walks(points, tables));
    let walked: Vec<Option<Staircase>> = all.iter().map(with_walks).collect();
    let score = |fit: &Option<Staircase>| fit.as_ref().map_or(f64::INFINITY, |fit| fit.bic(samples.len()));
    let walked_scores: Vec<f64> = walked.iter().map(score).collect();
    let walked_index = (0..walked.len()).min_by(|&a, &b| walked_scores[a].total_cmp(&walked_scores[b]))?;
    let no_walks = Some(scores[index] - walked_scores[walked_index]).filter(|&worse| worse > 0.0);
    let (index, scores, best) = match (&walked[walked_index], no_walks) {
        (Some(best), Some(_)) => (walked_index, walked_scores, best.clone()),
        _ => (index, scores, all[index].clone()),
    };
    let worse = |other: Option<&f64>| other.map(|s| s - scores[index]).filter(|worse| worse.is_finite());

    let half = |odd: bool| -> Vec<Sample> {
        let place = |s: &Sample| areas.partition_point(|&area| area < s.area);
        samples.iter().filter(|s| (place(s) % 2 == 1) == odd).copied().collect()
    };
    let halves = [half(false), half(true)];
    let fits = halves.each_ref().map(|half| {
        let fit = Staircase::of_each_number(half).swap_remove(index);
        let tables = tables.filter(|_| no_walks.is_some());
        let walked = tables.and_then(|tables| fit.with_walks(&Points::new(half), tables));
        walked.unwrap_or(fit)
    });
    let has = |fit: &Staircase, at: f64| fit.breaks.iter().any(|&b| (b / at).log2().abs() < 0.5);
    let confirmed = best.breaks.iter().map(|&at| fits.iter().all(|fit| has(fit, at))).collect();
    let mut held_back = fits[0].relative_residuals(&halves[1]);
    held_back.extend(fits[1].relative_residuals(&halves[0]));

    Some(Chosen {
        one_less: worse(index.checked_sub(1).and_then(|i| scores.get(i))),
        one_more: worse(scores.get(index + 1)),
        resampled: resample(samples, &best),
        best,
        confirmed,
        held_back,
        no_walks,
    })
}

/// Fits to what the fit predicts, with its own residuals dealt out anew.
fn resample(samples: &[Sample], best: &Staircase) -> Vec<Staircase> {
    // Residuals of a fit are smaller than the noise, by as much as its parameters took up.
    let left = samples.len().saturating_sub(best.parameters()).max(1) as f64;
    let larger = (samples.len() as f64 / left).sqrt();
    let ratio = |s: &Sample| 1.0 + larger * (s.time / best.time(s.area, s.lines) - 1.0);
    let ratios: Vec<f64> = samples.iter().map(ratio).map(|ratio| ratio.max(0.01)).collect();
    let mut random = Rng::new(1);
    let mut once = |_| {
        let dealt = samples.iter().map(|s| {
            let ratio = ratios[random.below(ratios.len() as u64) as usize];
            Sample { time: best.time(s.area, s.lines) * ratio, ..*s }
        });
        let dealt: Vec<Sample> = dealt.collect();
        let points = Points::new(&dealt);
        Staircase::at_but(&points, &best.breaks, best.walks, None).refined(&points, &[0.06, 0.02, 0.005])
    };
    (0..RESAMPLES).map(&mut once).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels of 32K, 1M and 16M that end in memory, with noise of 1% that is not random.
    fn known() -> Vec<Sample> {
        let truth = [(0.0, 4.0), (32768.0, 10.0), (1048576.0, 30.0), (16777216.0, 80.0)];
        let mut random = Rng::new(7);
        let areas = (0..64).map(|i| 4096.0 * (f64::from(i) / 3.0).exp2());
        areas
            .map(|area| {
                let time: f64 = truth.iter().map(|&(from, cost)| cost * beyond(from, area)).sum();
                let noise = 0.99 + 0.02 * random.below(1000) as f64 / 1000.0;
                Sample { area, lines: 1.0, time: time * noise }
            })
            .collect()
    }

    #[test]
    fn a_known_hierarchy_is_found_again() {
        let chosen = choose(&known(), None).expect("enough areas");
        assert_eq!(chosen.best.steps.len(), 4, "{:?}", chosen.best);
        for (found, known) in chosen.best.breaks.iter().zip([32768.0, 1048576.0, 16777216.0]) {
            assert!((found / known - 1.0_f64).abs() < 0.15, "{:?}", chosen.best);
        }
        let memory = chosen.best.costs()[3].0;
        assert!((memory / 124.0 - 1.0).abs() < 0.03, "{memory}");
        assert_eq!(chosen.confirmed, [true; 3]);
    }

    #[test]
    fn a_flat_curve_has_one_level() {
        let flat: Vec<Sample> = known().iter().map(|s| Sample { time: 5.0, ..*s }).collect();
        assert_eq!(choose(&flat, None).expect("enough areas").best.steps.len(), 1);
    }

    #[test]
    fn few_areas_are_not_fitted() {
        assert!(choose(&known()[..11], None).is_none());
    }
}

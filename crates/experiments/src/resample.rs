//! Figures that rest on many settings at once, such as the place of a cliff, and their intervals:
//! how each figure would vary if the blocks had fallen otherwise. Pure.

use lab::campaign::{LEAST_BLOCKS, Series};
use lab::rng::Rng;
use lab::stats;
use units::Estimate;

/// How often each figure is computed anew from resampled blocks.
pub(crate) const RESAMPLES: usize = 300;

/// A setting (a gap, a number of accesses or pages) and the values of its blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingBlocks {
    pub at: f64,
    pub values: Vec<f64>,
}

impl SettingBlocks {
    pub(crate) fn median(&self) -> f64 {
        stats::median(&self.values)
    }

    /// The median of a resample: as many values, drawn from these with repetition.
    pub(crate) fn redrawn(&self, rng: &mut Rng) -> f64 {
        let n = self.values.len();
        let drawn: Vec<f64> = (0..n).map(|_| self.values[rng.below(n as u64) as usize]).collect();
        stats::median(&drawn)
    }
}

/// The undisturbed blocks of a series; `None` where they are too few.
pub(crate) fn sample(
    at: f64,
    series: &Series,
    value: impl Fn(&lab::campaign::Block) -> f64,
) -> Option<SettingBlocks> {
    let counted = series.counted();
    (counted.len() >= LEAST_BLOCKS)
        .then(|| SettingBlocks { at, values: counted.into_iter().map(value).collect() })
}

/// Settings that lack blocks on a whole core are left out where at least this share of the others
/// have them: the two kinds do not make one curve.
const WHOLE_CORE_SHARE: f64 = 0.8;

/// The points of one curve: blocks on a whole core where nearly all settings have them, else
/// whatever blocks there are.
pub(crate) fn curve<'a>(
    series: impl IntoIterator<Item = (f64, &'a Series)>,
    value: impl Fn(&lab::campaign::Block) -> f64,
) -> Vec<SettingBlocks> {
    let all: Vec<(f64, &Series)> = series.into_iter().collect();
    let whole = mostly_whole(all.iter().map(|s| s.1));
    let fitting = all.into_iter().filter(|(_, s)| !whole || !s.lacks_whole_core());
    fitting.filter_map(|(at, s)| sample(at, s, &value)).collect()
}

/// Whether nearly all of these settings have blocks on a whole core.
pub(crate) fn mostly_whole<'a>(series: impl IntoIterator<Item = &'a Series>) -> bool {
    let (mut all, mut whole) = (0u32, 0u32);
    for s in series {
        all += 1;
        whole += u32::from(!s.lacks_whole_core());
    }
    f64::from(whole) >= WHOLE_CORE_SHARE * f64::from(all)
}

pub(crate) fn medians(samples: &[SettingBlocks]) -> Vec<(f64, f64)> {
    samples.iter().map(|s| (s.at, s.median())).collect()
}

/// A figure from the medians of all settings, with the interval in which it falls when blocks are
/// drawn anew. `None` where the medians themselves give none, or fewer than half of the draws do.
pub(crate) fn figure(
    samples: &[SettingBlocks],
    rng: &mut Rng,
    f: impl Fn(&[(f64, f64)]) -> Option<f64>,
) -> Option<Estimate> {
    let value = f(&medians(samples))?;
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| f(&samples.iter().map(|s| (s.at, s.redrawn(rng))).collect::<Vec<_>>()))
        .collect();
    if drawn.len() < RESAMPLES / 2 {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    Some(Estimate::new(value, stats::quantile_sorted(&drawn, 0.025), stats::quantile_sorted(&drawn, 0.975)))
}

/// What disturbed a figure that rests on all of these series, if anything did.
pub(crate) fn disturbed<'a>(series: impl IntoIterator<Item = &'a Series>) -> Option<String> {
    let (mut all, mut disturbed, mut shared) = (0, 0, 0);
    for s in series {
        all += 1;
        disturbed += usize::from(s.disturbed().is_some());
        shared += usize::from(s.lacks_whole_core());
    }
    // A few settings among many do not carry the figure.
    if disturbed * 4 <= all {
        return None;
    }
    let what = if shared * 2 > disturbed {
        "another hyperthread of this core was at work"
    } else {
        "other tasks were running"
    };
    Some(format!("{what} during {disturbed} of {all} settings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_on_a_shared_core_do_not_mix_with_others() {
        use lab::campaign::Reading;
        use lab::interference::Interference;
        let series = |core_shared: bool| {
            let mut s = Series::wanting(true);
            for _ in 0..5 {
                let interference = Interference { core_shared, ..Interference::default() };
                s.add(Reading { values: vec![1.0], cycles_per_tick: (1.0, 1.0), interference, moved: 0 });
            }
            s
        };
        for (shared, left, marked) in [(0, 10, false), (2, 8, false), (3, 10, true), (10, 10, true)] {
            let all: Vec<Series> = (0..10).map(|i| series(i < shared)).collect();
            assert_eq!(curve(all.iter().map(|s| (1.0, s)), |b| b.values[0]).len(), left, "{shared}");
            assert_eq!(disturbed(&all).is_some_and(|why| why.contains("hyperthread")), marked, "{shared}");
        }
    }

    #[test]
    fn a_figure_s_interval_follows_the_noise() {
        let mut rng = Rng::new(1);
        let mut samples = |noise: u64| -> Vec<SettingBlocks> {
            (0..10)
                .map(|i| SettingBlocks {
                    at: f64::from(i),
                    values: (0..9)
                        .map(|_| f64::from(i) + (rng.below(1000) * noise) as f64 / 1000.0)
                        .collect(),
                })
                .collect()
        };
        let sum = |points: &[(f64, f64)]| Some(points.iter().map(|p| p.1).sum());
        let (quiet, loud) = (samples(1), samples(100));
        let quiet = figure(&quiet, &mut Rng::new(2), sum).unwrap();
        let loud = figure(&loud, &mut Rng::new(2), sum).unwrap();
        assert!(quiet.contains(50.0) && quiet.hi - quiet.lo < 4.0, "{quiet:?}");
        assert!(loud.hi - loud.lo > 20.0 * (quiet.hi - quiet.lo), "{loud:?}");
        assert_eq!(figure(&samples(1), &mut Rng::new(2), |_| None), None);
    }
}

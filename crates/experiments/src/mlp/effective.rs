//! How many misses overlap, from times. Pure.

use crate::resample::{RESAMPLES, SettingBlocks};
use lab::rng::Rng;
use lab::stats;
use units::Estimate;

/// More accesses never take less time: neighbours that say otherwise are noise, and share their
/// mean.
fn rising(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &(_, time) in points {
        pools.push((time, 1));
        while let [.., (a, n), (b, m)] = pools[..] {
            if a <= b {
                break;
            }
            pools.truncate(pools.len() - 2);
            pools.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    let times = pools.into_iter().flat_map(|(time, n)| std::iter::repeat_n(time, n));
    points.iter().zip(times).map(|(p, time)| (p.0, time)).collect()
}

/// The largest number of accesses that take less than this time, and the largest that could be
/// meant where numbers were left out. Nothing where all of them do, or none.
fn below(points: &[(f64, f64)], time: f64) -> Option<(f64, f64)> {
    let rising = rising(points);
    let beyond = rising.iter().position(|p| p.1 >= time)?;
    let last = rising[..beyond].last()?;
    Some((last.0, rising[beyond].0 - 1.0))
}

/// The largest N whose time stays below that of two accesses in sequence.
pub(crate) fn effective(
    bursts: &[SettingBlocks],
    in_sequence: &SettingBlocks,
    rng: &mut Rng,
) -> Result<Estimate, String> {
    let points: Vec<(f64, f64)> = bursts.iter().map(|s| (s.at, s.median())).collect();
    let Some(most) = points.last().map(|p| p.0) else { return Err("no burst was measured".to_owned()) };
    let Some((value, _)) = below(&points, in_sequence.median()) else {
        return Err(format!(
            "{most:.0} independent accesses take less time than two in sequence, or two independent accesses take more"
        ));
    };
    let (mut los, mut his) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let drawn: Vec<(f64, f64)> = bursts.iter().map(|s| (s.at, s.redrawn(rng))).collect();
        let (lo, hi) = below(&drawn, in_sequence.redrawn(rng)).unwrap_or((most, most));
        los.push(lo);
        his.push(hi);
    }
    let lo = stats::quantile_sorted(&stats::sorted(&los), 0.025).floor();
    let hi = stats::quantile_sorted(&stats::sorted(&his), 0.975).ceil();
    Ok(Estimate::new(value, lo, hi))
}

/// What chains side by side amount to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Throughput {
    /// The fewest chains within a twentieth of the highest throughput.
    pub saturation: Estimate,
    /// Accesses in flight then.
    pub sustained: Estimate,
    /// Time per access.
    pub per_access: Estimate,
}

const SATURATED_RATIO: f64 = 1.05;

/// From the time of a round in which each of k chains takes a step; the first sample is a lone
/// chain's.
pub(crate) fn throughput(rounds: &[SettingBlocks], rng: &mut Rng) -> Option<Throughput> {
    if rounds.first()?.at != 1.0 || rounds.len() < 3 {
        return None;
    }
    let of = |times: &[f64]| -> [f64; 3] {
        let per: Vec<f64> = rounds.iter().zip(times).map(|(s, t)| t / s.at).collect();
        let sorted = stats::sorted(&per);
        // Not the very least, which is half luck.
        let best = stats::median(&sorted[..(sorted.len() / 6).max(3).min(sorted.len())]);
        let first = per.iter().position(|&p| p <= best * SATURATED_RATIO).unwrap_or(0);
        [rounds[first].at, per[0] / best, best]
    };
    let value = of(&rounds.iter().map(SettingBlocks::median).collect::<Vec<f64>>());
    let drawn: Vec<[f64; 3]> =
        (0..RESAMPLES).map(|_| of(&rounds.iter().map(|s| s.redrawn(rng)).collect::<Vec<f64>>())).collect();
    let estimate = |i: usize| {
        let v = stats::sorted(&drawn.iter().map(|d| d[i]).collect::<Vec<f64>>());
        Estimate::new(value[i], stats::quantile_sorted(&v, 0.025), stats::quantile_sorted(&v, 0.975))
    };
    Some(Throughput { saturation: estimate(0), sustained: estimate(1), per_access: estimate(2) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::rng::Rng;
    use proptest::prelude::*;

    fn samples(times: impl Iterator<Item = (f64, f64)>, noise: u64, rng: &mut Rng) -> Vec<SettingBlocks> {
        times
            .map(|(at, t)| SettingBlocks {
                at,
                values: (0..11).map(|_| t + rng.below(noise + 1) as f64).collect(),
            })
            .collect()
    }

    #[test]
    fn the_seed_s_definition() {
        // Ten misses at once, 200 cycles each, every further one 20 cycles more; the eleventh has
        // to wait.
        let time = |n: f64| if n <= 10.0 { 200.0 + 14.0 * n } else { 400.0 + 14.0 * n };
        for noise in [0, 8] {
            let mut rng = Rng::new(noise + 1);
            let bursts = samples((1..=20).map(|n| (f64::from(n), time(f64::from(n)))), noise, &mut rng);
            let two = samples(std::iter::once((2.0, 420.0)), noise, &mut rng).remove(0);
            let m = effective(&bursts, &two, &mut rng).unwrap();
            assert_eq!((m.value, m.lo, m.hi), (10.0, 10.0, 10.0));
        }
    }

    #[test]
    fn noise_widens_and_numbers_left_out_are_counted_in() {
        let mut rng = Rng::new(4);
        let bursts = samples((1..=30).map(|n| (f64::from(n), 200.0 + 10.0 * f64::from(n))), 60, &mut rng);
        let two = SettingBlocks { at: 2.0, values: vec![430.0; 9] };
        let m = effective(&bursts, &two, &mut rng).unwrap();
        assert!(m.lo < m.hi && m.contains(20.0), "{m:?}");
        let sparse = samples([1.0, 16.0, 24.0, 32.0].into_iter().map(|n| (n, 200.0 + 10.0 * n)), 0, &mut rng);
        let m = effective(&sparse, &two, &mut rng).unwrap();
        assert_eq!((m.value, m.lo, m.hi), (16.0, 16.0, 23.0));
    }

    #[test]
    fn no_end_is_not_resolved() {
        let mut rng = Rng::new(4);
        let bursts = samples((1..=64).map(|n| (f64::from(n), 200.0)), 5, &mut rng);
        let why =
            effective(&bursts, &SettingBlocks { at: 2.0, values: vec![400.0; 9] }, &mut rng).unwrap_err();
        assert!(why.starts_with("64 independent accesses take less"), "{why}");
        assert!(effective(&[], &SettingBlocks { at: 2.0, values: vec![400.0; 9] }, &mut rng).is_err());
    }

    #[test]
    fn chains_saturate_at_the_buffers() {
        for buffers in [10.0, 16.0, 24.0] {
            let mut rng = Rng::new(5);
            let time = |k: f64| 400.0 * (k / buffers).max(1.0);
            let rounds = samples((1..=48).map(|k| (f64::from(k), time(f64::from(k)))), 6, &mut rng);
            let t = throughput(&rounds, &mut rng).unwrap();
            assert!((t.sustained.value / buffers - 1.0).abs() < 0.05, "{buffers} {t:?}");
            assert!(t.saturation.value >= buffers * 0.9 && t.saturation.value <= buffers + 1.0, "{t:?}");
        }
        assert_eq!(throughput(&[], &mut Rng::new(1)), None);
    }

    proptest! {
        #[test]
        fn rising_rises_and_keeps_the_sum(times in proptest::collection::vec(0.0f64..1000.0, 1..40)) {
            let points: Vec<(f64, f64)> = times.iter().enumerate().map(|(i, &t)| (i as f64, t)).collect();
            let risen = rising(&points);
            prop_assert_eq!(risen.len(), points.len());
            prop_assert!(risen.windows(2).all(|w| w[0].1 <= w[1].1 + 1e-9));
            let sum = |p: &[(f64, f64)]| p.iter().map(|p| p.1).sum::<f64>();
            prop_assert!((sum(&risen) - sum(&points)).abs() < 1e-6 * (1.0 + sum(&points)));
        }
    }
}

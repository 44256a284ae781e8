//! Where the time of two misses jumps from one latency to two. Pure.

use crate::resample::{self, RESAMPLES, SettingBlocks};
use lab::rng::Rng;
use lab::stats;
use units::Estimate;

/// A jump is at least this share of a lone miss. It should be all of it, but for what fillers and
/// clock take of either.
const LEAST_JUMP: f64 = 0.35;
/// It is made within two steps of gap, or within this share of the gap and a few fillers: which
/// instructions share an entry, and when entries come free, differs from pair to pair.
const JUMP_WITHIN_GAP_SHARE: f64 = 0.10;
const JUMP_WITHIN_FILLERS: f64 = 6.0;
/// Up to this part of the jump a gap counts as below it.
const BELOW_JUMP: f64 = 0.15;
/// From this part of the jump on a gap counts as above it.
const ABOVE_JUMP: f64 = 0.85;

/// The last gap below the jump and the first one above it, as indices. Points ascend in gap, the
/// first few with gaps so small that any core holds both misses.
pub(crate) fn bracket(points: &[(f64, f64)]) -> Option<(usize, usize)> {
    if points.len() < 5 {
        return None;
    }
    let alone = alone(points);
    (1..points.len() - 1).find_map(|i| {
        // Fillers take time of their own where the core works off few of them in a cycle: a slope,
        // and no jump.
        let slope = slope(&points[..=i]);
        let rise = |j: usize| points[j].1 - points[i].1 - slope * (points[j].0 - points[i].0);
        let reach = points[i].0 * (1.0 + JUMP_WITHIN_GAP_SHARE) + JUMP_WITHIN_FILLERS;
        let near = points.iter().rposition(|p| p.0 <= reach).unwrap_or(i);
        let end = near.max(i + 2).min(points.len() - 1);
        let top = (i + 1..=end).max_by(|&a, &b| rise(a).total_cmp(&rise(b)))?;
        let jump = rise(top);
        if jump < LEAST_JUMP * alone {
            return None;
        }
        let high = (i + 1..=top).find(|&j| rise(j) >= ABOVE_JUMP * jump)?;
        let low = (i..high).rev().find(|&j| rise(j) <= BELOW_JUMP * jump)?;
        // One wild point falls back again.
        let after = &points[high + 1..(high + 4).min(points.len())];
        let stay = after.iter().filter(|p| p.1 - points[i].1 > 0.5 * jump).count();
        (stay * 2 >= after.len()).then_some((low, high))
    })
}

fn alone(points: &[(f64, f64)]) -> f64 {
    stats::median(&points.iter().take(4).map(|p| p.1).collect::<Vec<f64>>())
}

fn slope(below: &[(f64, f64)]) -> f64 {
    let near = &below[below.len().saturating_sub(12)..];
    if near.len() < 4 { 0.0 } else { stats::robust_line(near).map_or(0.0, |l| l.0.max(0.0)) }
}

/// The gap at which the time has made this share of the jump.
fn crossing(points: &[(f64, f64)], share: f64) -> Option<f64> {
    let (low, high) = bracket(points)?;
    let below = stats::median(&points[low.saturating_sub(2)..=low].iter().map(|p| p.1).collect::<Vec<f64>>());
    let beyond = &points[high..(high + 3).min(points.len())];
    let above = stats::median(&beyond.iter().map(|p| p.1).collect::<Vec<f64>>());
    let threshold = below + share * (above - below);
    // A jump in two parts gets there only beyond; some of what is there is not below its median.
    let at = (low + 1..points.len()).find(|&i| points[i].1 >= threshold)?;
    let (a, b) = (points[at - 1], points[at]);
    let part = if b.1 > a.1 { ((threshold - a.1) / (b.1 - a.1)).clamp(0.0, 1.0) } else { 1.0 };
    Some(a.0 + (b.0 - a.0) * part)
}

/// The gap at half the jump; the interval reaches from a quarter to three quarters of it, and never
/// claims to know better than one filler.
pub(crate) fn find(samples: &[SettingBlocks], rng: &mut Rng) -> Option<Estimate> {
    let points = resample::medians(samples);
    let value = crossing(&points, 0.5)?;
    let (mut los, mut his) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let drawn: Vec<(f64, f64)> = samples.iter().map(|s| (s.at, s.redrawn(rng))).collect();
        los.extend(crossing(&drawn, 0.25));
        his.extend(crossing(&drawn, 0.75));
    }
    if los.len() < RESAMPLES / 2 {
        return None;
    }
    let lo = stats::quantile_sorted(&stats::sorted(&los), 0.025);
    let hi = stats::quantile_sorted(&stats::sorted(&his), 0.975);
    Some(Estimate::new(value, lo.min(value - 0.5), hi.max(value + 0.5)))
}

/// Gaps to look at next: between the two sides of the jump, and just beside them so that both sides
/// stay known.
pub(crate) fn between(points: &[(f64, f64)], pieces: u32) -> Vec<u32> {
    let Some((low, high)) = bracket(points) else { return Vec::new() };
    let (from, to) = (points[low].0 as u32, points[high].0 as u32);
    let step = f64::from(to - from) / f64::from(pieces);
    let beside = (step.round() as u32).max(1);
    let mut gaps: Vec<u32> = (1..pieces)
        .map(|i| from + (f64::from(i) * step).round() as u32)
        .filter(|&g| g > from && g < to)
        .collect();
    gaps.extend([from.saturating_sub(beside), to + beside]);
    gaps.sort_unstable();
    gaps.dedup();
    let known: Vec<u32> = points.iter().map(|p| p.0 as u32).collect();
    gaps.retain(|g| *g > 0 && !known.contains(g));
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: f64 = 560.0;

    fn time(gap: f64, cliff: f64, slope: f64) -> f64 {
        LATENCY + slope * gap + if gap > cliff { LATENCY } else { 0.0 }
    }

    fn coarse() -> Vec<f64> {
        (0..=30).map(|i| (8.0 * 2f64.powf(f64::from(i) / 3.77)).round().min(2000.0)).collect()
    }

    fn samples(gaps: &[f64], cliff: f64, slope: f64, noise: u64, rng: &mut Rng) -> Vec<SettingBlocks> {
        gaps.iter()
            .map(|&at| SettingBlocks {
                at,
                values: (0..7).map(|_| time(at, cliff, slope) + rng.below(noise) as f64).collect(),
            })
            .collect()
    }

    /// Coarse, then three rounds between, as the experiment does it.
    fn search(cliff: f64, slope: f64, noise: u64, seed: u64) -> Option<Estimate> {
        let mut rng = Rng::new(seed);
        let mut known = samples(&coarse(), cliff, slope, noise, &mut rng);
        for _ in 0..4 {
            let gaps = between(&resample::medians(&known), 8);
            let gaps: Vec<f64> = gaps.into_iter().map(f64::from).collect();
            known.extend(samples(&gaps, cliff, slope, noise, &mut rng));
            known.sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        find(&known, &mut rng)
    }

    #[test]
    fn a_jump_in_two_parts_is_found() {
        for part in [0.55, 0.65, 0.7, 0.74, 0.8, 0.9] {
            let at = |gap: f64| match gap {
                gap if gap < 130.0 => LATENCY,
                gap if gap < 140.0 => LATENCY * (1.0 + part),
                _ => 2.0 * LATENCY,
            };
            let known: Vec<SettingBlocks> = (1..30_u32)
                .map(|i| SettingBlocks { at: f64::from(10 * i), values: vec![at(f64::from(10 * i)); 7] })
                .collect();
            let e = find(&known, &mut Rng::new(1)).unwrap_or_else(|| panic!("{part}"));
            assert!((119.0..=141.0).contains(&e.value) && e.lo <= e.value && e.value <= e.hi, "{part} {e:?}");
        }
    }

    #[test]
    fn any_cliff_is_found_to_a_filler() {
        for seed in 0..3 {
            for cliff in [40.0, 62.0, 117.0, 187.0, 224.0, 318.0, 512.0, 1270.0, 1800.0] {
                for slope in [0.0, 0.1, 0.35] {
                    let e = search(cliff, slope, 60, seed).unwrap_or_else(|| panic!("{cliff} {slope}"));
                    assert!((e.value - cliff).abs() <= 1.5, "{cliff} {slope}: {e:?}");
                    assert!(e.contains(cliff) || e.contains(cliff + 1.0), "{cliff} {slope}: {e:?}");
                }
            }
        }
    }

    #[test]
    fn a_cliff_that_is_made_over_several_fillers_is_found() {
        for (cliff, width) in [(200.0, 8.0), (318.0, 6.0), (1256.0, 20.0), (62.0, 4.0)] {
            let mut rng = Rng::new(3);
            let time = |gap: f64| LATENCY * (1.0 + ((gap - cliff) / width + 0.5).clamp(0.0, 1.0)) + 0.1 * gap;
            let mut known: Vec<SettingBlocks> = Vec::new();
            let mut gaps = coarse();
            for _ in 0..5 {
                known.extend(gaps.iter().map(|&at| SettingBlocks {
                    at,
                    values: (0..7).map(|_| time(at) + rng.below(60) as f64).collect(),
                }));
                known.sort_by(|a, b| a.at.total_cmp(&b.at));
                gaps = between(&resample::medians(&known), 7).into_iter().map(f64::from).collect();
            }
            let e = find(&known, &mut rng).unwrap_or_else(|| panic!("{cliff}"));
            assert!((e.value - cliff).abs() <= width / 4.0 + 1.0, "{cliff}: {e:?}");
            assert!(e.hi - e.lo > width / 4.0, "a gradual cliff has a wide interval: {e:?}");
        }
    }

    #[test]
    fn slow_fillers_are_no_cliff() {
        for seed in 0..10 {
            for slope in [0.0, 0.3, 1.0, 2.0] {
                assert_eq!(search(1e9, slope, 60, seed), None, "{slope}");
            }
        }
    }

    #[test]
    fn a_cliff_on_a_steep_slope_is_found() {
        for cliff in [56.0, 88.0] {
            let e = search(cliff, 1.5, 40, 1).unwrap();
            assert!((e.value - cliff).abs() <= 2.0, "{e:?}");
        }
    }

    #[test]
    fn wild_points_are_no_cliff() {
        let mut points: Vec<(f64, f64)> = coarse().into_iter().map(|g| (g, time(g, 318.0, 0.1))).collect();
        points[6].1 += 700.0;
        let (low, high) = bracket(&points).unwrap();
        assert!(points[low].0 <= 318.0 && points[high].0 > 318.0);
        assert_eq!(bracket(&points[..3]), None);
    }
}

//! A buffer's entries from what pages cost beyond lines. Pure.
//!
//! When n pages are read at random and a buffer holds C of them, a read misses with probability
//! 1 - C/n, whatever the buffer replaces. So the cost over n is flat as far as C and then `offset +
//! miss·(1 - C/n)`: a curve with a knee at C whose height is what a miss costs.

use lab::stats;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    pub entries: f64,
    /// What a miss costs.
    pub miss: f64,
    /// The cost before the knee.
    pub offset: f64,
}

impl Knee {
    pub(crate) fn cost(&self, pages: f64) -> f64 {
        self.offset + self.miss * (1.0 - self.entries / pages).max(0.0)
    }
}

/// The least cycles that a miss costs.
const LEAST_MISS_CYCLES: f64 = 1.5;
/// A knee must explain this share of what is not flat.
const LEAST_EXPLAINED_SHARE: f64 = 0.5;
/// Beyond this multiple of the entries other effects show (caches filled with page tables), so the
/// fit uses nearer points only.
const NEAR_MULTIPLE: f64 = 2.0;

/// The knee in `(pages, cost)`, ascending in pages.
pub(crate) fn knee(points: &[(f64, f64)]) -> Option<Knee> {
    let mut found = best(points)?;
    for _ in 0..3 {
        let near: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|p| p.0 >= found.entries / 3.0 && p.0 <= found.entries * NEAR_MULTIPLE)
            .collect();
        match best(&near) {
            Some(nearer) if (nearer.entries / found.entries - 1.0).abs() < 0.001 => return Some(nearer),
            Some(nearer) => found = nearer,
            None => return None,
        }
    }
    Some(found)
}

fn best(points: &[(f64, f64)]) -> Option<Knee> {
    if points.len() < 8 {
        return None;
    }
    let all: Vec<f64> = points.iter().map(|p| p.1).collect();
    let flat = stats::median(&all);
    let flat_loss = without_wild(all.iter().map(|y| (y - flat).abs()));
    let loss = |knee: &Knee| without_wild(points.iter().map(|p| (p.1 - knee.cost(p.0)).abs()));
    // At least three points on either side of the knee.
    let (from, to) = (points[2].0, points[points.len() - 4].0);
    let coarse = scan(points, from, to, 1.01, &loss)?;
    let fine = scan(points, coarse.entries / 1.015, coarse.entries * 1.015, 1.0005, &loss)?;
    (fine.miss >= LEAST_MISS_CYCLES && loss(&fine) < LEAST_EXPLAINED_SHARE * flat_loss).then_some(fine)
}

/// The sum of what a fit leaves over, without the worst tenth.
fn without_wild(left: impl Iterator<Item = f64>) -> f64 {
    let sorted = stats::sorted(&left.collect::<Vec<f64>>());
    sorted[..sorted.len() - sorted.len() / 10].iter().sum()
}

fn scan(points: &[(f64, f64)], from: f64, to: f64, step: f64, loss: &dyn Fn(&Knee) -> f64) -> Option<Knee> {
    let mut best: Option<(f64, Knee)> = None;
    let mut entries = from;
    while entries <= to {
        if let Some(knee) = at(points, entries) {
            let loss = loss(&knee);
            if best.is_none_or(|(least, _)| loss < least) {
                best = Some((loss, knee));
            }
        }
        entries *= step;
    }
    best.map(|(_, knee)| knee)
}

/// Offset and height of a knee at this place, by medians: one wild point does not bend it.
fn at(points: &[(f64, f64)], entries: f64) -> Option<Knee> {
    let before: Vec<f64> = points.iter().filter(|p| p.0 <= entries).map(|p| p.1).collect();
    if before.is_empty() {
        return None;
    }
    let offset = stats::median(&before);
    // Each point weighs by how much it can tell: just behind the knee any small error is divided by
    // almost nothing.
    let mut heights: Vec<(f64, f64)> = points
        .iter()
        .filter(|p| p.0 > entries)
        .map(|p| (1.0 - entries / p.0, p.1 - offset))
        .map(|(share, rise)| (rise / share, share))
        .collect();
    heights.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = heights.iter().map(|h| h.1).sum::<f64>() / 2.0;
    let mut weight = 0.0;
    let miss = heights.iter().find(|h| {
        weight += h.1;
        weight >= half
    })?;
    Some(Knee { entries, miss: miss.0, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::rng::Rng;

    fn curve(knees: &[Knee], noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(seed);
        (0..72)
            .map(|i| {
                let pages = (16.0 * 2f64.powf(f64::from(i) / 8.0)).round();
                let jitter = rng.below(1001) as f64 / 1000.0 * noise;
                (pages, knees.iter().map(|k| k.cost(pages)).sum::<f64>() + jitter)
            })
            .collect()
    }

    fn part(points: &[(f64, f64)], from: f64, to: f64) -> Vec<(f64, f64)> {
        points.iter().copied().filter(|p| p.0 >= from && p.0 <= to).collect()
    }

    #[test]
    fn finds_a_knee_in_noise() {
        for (entries, miss) in [(32.0, 5.0), (64.0, 7.0), (72.0, 7.0), (96.0, 7.0), (256.0, 9.0)] {
            for seed in 0..20 {
                let k = Knee { entries, miss, offset: 0.0 };
                let found = knee(&part(&curve(&[k], 0.3, seed), 16.0, 460.0 + entries)).unwrap();
                assert!((found.entries / entries - 1.0).abs() < 0.1, "{entries} {found:?}");
                assert!((found.miss - miss).abs() < 1.0, "{miss} {found:?}");
            }
        }
    }

    #[test]
    fn finds_a_large_knee_although_walks_get_dearer() {
        for entries in [512.0, 1024.0, 1536.0, 2048.0, 3072.0] {
            for seed in 0..20 {
                let k = Knee { entries, miss: 50.0, offset: 7.0 };
                let dearer = Knee { entries: entries * 2.0, miss: 60.0, offset: 0.0 };
                let found = knee(&part(&curve(&[k, dearer], 3.0, seed), 150.0, 8192.0)).unwrap();
                assert!((found.entries / entries - 1.0).abs() < 0.1, "{entries} {found:?}");
                assert!((found.miss / 50.0 - 1.0).abs() < 0.25, "{found:?}");
            }
        }
    }

    #[test]
    fn wild_points_do_not_bend_it() {
        let k = Knee { entries: 72.0, miss: 7.0, offset: 0.0 };
        let mut points = part(&curve(&[k], 0.1, 3), 16.0, 460.0);
        for i in [3, 17, 30] {
            points[i].1 += 40.0;
        }
        let found = knee(&points).unwrap();
        assert!((found.entries / 72.0 - 1.0).abs() < 0.1 && (found.miss - 7.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn no_knee_in_noise_alone() {
        for seed in 0..50 {
            let flat = Knee { entries: 1e9, miss: 0.0, offset: 7.0 };
            assert_eq!(knee(&curve(&[flat], 2.0, seed)), None);
        }
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&[(1.0, 1.0); 5]), None);
    }
}

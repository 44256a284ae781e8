//! Levels from a latency curve: where it is flat, where it steps, where it only slopes. Pure.
//!
//! A level is a stretch of sizes over which the latency hardly changes. Its size is the largest one
//! that still belongs to it. Where a shared cache fills up gradually there is no plateau but a
//! shoulder: a stretch where the curve climbs clearly less than on both sides. That is a level too,
//! and its entry says so.

use lab::campaign::CLOCK_TOLERANCE;
use lab::stats;
use units::Estimate;

/// A point of the curve: size in bytes and latency (any unit, positive).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    pub size: f64,
    pub latency: Estimate,
    /// What its fastest blocks say (their 5th percentile).
    pub quiet: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundLevel {
    /// Indices of the first and last point that belong to the level.
    pub from: usize,
    pub to: usize,
    pub latency: Estimate,
    /// Largest size that belongs to the level; `None` for the last level.
    pub size: Option<Estimate>,
    /// It slopes: the latency is the range over the stretch, not that of a plateau.
    pub slope: bool,
}

/// A plateau's latencies lie within this factor of each other.
const FLAT_RATIO: f64 = 1.10;
/// Memory's latency goes on rising a little with size, for the TLB's sake; beyond this factor that
/// is worth a note.
const RISING_MEMORY_RATIO: f64 = 1.25;
/// A plateau is at least this long, in octaves of size.
const LEAST_OCTAVES: f64 = 0.9;
/// Two levels differ by at least this factor.
const LEVELS_APART_RATIO: f64 = 1.25;
/// A shoulder climbs by less than this many octaves of latency per octave of size.
const SHOULDER_SLOPE: f64 = 0.40;
/// What figures in core cycles may all be wrong by alike, whatever blocks say: the clock is read
/// with a chain of adds before and after a block, never while its loads run, and readings may
/// differ by so much before a block is void.
pub(crate) const OF_CYCLES: f64 = CLOCK_TOLERANCE;
/// The same of figures in ticks and nanoseconds: the counter's steps, the cost of reading it.
pub(crate) const OF_TICKS: f64 = 0.002;
/// The share of a level's sizes whose fastest blocks may lie below its quiet floor.
const LUCKY_SHARE: f64 = 0.05;
/// Shares of the step from one level to the next. A sharp edge, all of them within
/// [`SHARP_OCTAVES`], ends the level where the first is reached: a few lines too many already push
/// many out. A cache whose sets are filled unevenly, because the pages under it are scattered in
/// physical memory, gives way over an octave around its size: half the step is nearest to it.
const FIRST_OF_STEP: f64 = 0.15;
const THIRD_OF_STEP: f64 = 0.35;
const HALF_OF_STEP: f64 = 0.5;
const TWO_THIRDS_OF_STEP: f64 = 0.65;
/// In octaves of size.
const SHARP_OCTAVES: f64 = 0.3;

/// The levels, from the smallest sizes to the largest. Points must ascend in size. From
/// `memory_from` on, a size well beyond every cache, the points are one level whether they are flat
/// or not. Of the slopes between plateaus only as many count as levels as are missing from the
/// `caches` that the host claims: a long way from the last cache to memory may look like a level of
/// its own.
pub fn find(points: &[CurvePoint], memory_from: Option<f64>, caches: Option<usize>) -> Vec<FoundLevel> {
    let mut stretches = plateaus(points);
    if let Some(size) = memory_from {
        memory(points, &mut stretches, size);
    }
    stretches.sort_by_key(|s| s.from);
    let found = shoulders(points, &stretches);
    let missing = caches.map_or(found.len(), |caches| (caches + 1).saturating_sub(stretches.len()));
    // The first ones: caches are nearer than memory.
    stretches.extend(found.into_iter().take(missing));
    stretches.sort_by_key(|s| s.from);
    let mut levels: Vec<FoundLevel> = stretches.iter().map(|s| s.level(points)).collect();
    for i in 1..levels.len() {
        let (inner, outer) = (levels[i - 1].latency.value, levels[i].latency.value);
        let at = |share: f64| end_of(points, &levels[i - 1], inner + share * (outer - inner));
        let (first, last) = (at(FIRST_OF_STEP), at(TWO_THIRDS_OF_STEP));
        let sharp = (last.1 / first.0).log2() < SHARP_OCTAVES;
        let (lo, value) = if sharp {
            (first.0, first.0)
        } else {
            let edge = points.partition_point(|p| p.size <= last.0);
            let held = held(&points[levels[i - 1].from..edge], inner, levels[i].latency.lo);
            (at(THIRD_OF_STEP).0.min(held), at(HALF_OF_STEP).0)
        };
        levels[i - 1].size = Some(Estimate::new(value, lo, last.1));
    }
    levels
}

#[derive(Clone, Copy, Debug)]
struct CurveStretch {
    from: usize,
    to: usize,
    slope: bool,
}

impl CurveStretch {
    fn level(&self, points: &[CurvePoint]) -> FoundLevel {
        let inside = &points[self.from..=self.to];
        let latency = middle(&calm(inside), OF_CYCLES);
        FoundLevel { from: self.from, to: self.to, latency, size: None, slope: self.slope }
    }
}

/// What many points of one level say together: the median of their values, with the range of nine
/// in ten of them, and of most of their own intervals. That is wider than the interval of the
/// median: levels do depend a little on the size they are measured at.
///
/// Interference can lift all points alike, and then their intervals agree on what is too high. It
/// cannot lower any: nothing that neighbours, interrupts or a disturbed cache do makes a load
/// faster than the level is. So the interval reaches down to the quiet floor, which the fastest
/// blocks of the calmest sizes show (not the very fastest one, which may owe it to a wrong reading
/// of the clock), and to both sides by what all points may be wrong by alike.
pub(crate) fn middle(points: &[CurvePoint], systematic: f64) -> Estimate {
    let of = |f: fn(&CurvePoint) -> f64, q| {
        stats::quantile_sorted(&stats::sorted(&points.iter().map(f).collect::<Vec<f64>>()), q)
    };
    let value = of(|p| p.latency.value, 0.5);
    let floor = of(|p| p.quiet.min(p.latency.value), LUCKY_SHARE);
    let lo = of(|p| p.latency.value, 0.05).min(of(|p| p.latency.lo, 0.25)).min(floor);
    let hi = of(|p| p.latency.value, 0.95).max(of(|p| p.latency.hi, 0.75));
    Estimate::new(value, lo * (1.0 - systematic), hi * (1.0 + systematic))
}

/// The points of a stretch that lie away from its edges, where the neighbouring levels shine
/// through: the half octave at each end is left out where enough remains.
fn calm(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let (first, last) = (points[0].size, points[points.len() - 1].size);
    let margin = 2f64.powf(((last / first).log2() * 0.25).min(0.75));
    let inner: Vec<CurvePoint> =
        points.iter().copied().filter(|p| p.size >= first * margin && p.size <= last / margin).collect();
    if inner.len() >= 3 { inner } else { points.to_vec() }
}

fn octaves(points: &[CurvePoint], from: usize, to: usize) -> f64 {
    (points[to].size / points[from].size).log2()
}

/// Flat stretches, longest first, none overlapping another, neighbours of equal height joined.
fn plateaus(points: &[CurvePoint]) -> Vec<CurveStretch> {
    let mut found: Vec<CurveStretch> = Vec::new();
    let mut free = vec![true; points.len()];
    loop {
        let best = (0..points.len())
            .filter_map(|from| {
                let to = flat_end(points, &free, from)?;
                (octaves(points, from, to) >= LEAST_OCTAVES && to - from >= 2).then_some((from, to))
            })
            .max_by(|a, b| octaves(points, a.0, a.1).total_cmp(&octaves(points, b.0, b.1)));
        let Some((from, to)) = best else { break };
        free[from..=to].fill(false);
        found.push(CurveStretch { from, to, slope: false });
    }
    found.sort_by_key(|s| s.from);
    let mut joined: Vec<CurveStretch> = Vec::new();
    for s in found {
        let height = |s: &CurveStretch| s.level(points).latency.value;
        match joined.last_mut() {
            Some(last) if height(&s) < height(last) * LEVELS_APART_RATIO => {
                // Two flat pieces with less than a level's step between them.
                if octaves(points, s.from, s.to) > octaves(points, last.from, last.to) && last.from > 0 {
                    *last = CurveStretch { from: last.from, ..s };
                } else {
                    last.to = s.to;
                }
            }
            _ => joined.push(s),
        }
    }
    joined
}

fn flat_end(points: &[CurvePoint], free: &[bool], from: usize) -> Option<usize> {
    let (mut lo, mut hi) = (f64::INFINITY, 0f64);
    let mut end = None;
    for (i, p) in points.iter().enumerate().skip(from) {
        lo = lo.min(p.latency.value);
        hi = hi.max(p.latency.value);
        if !free[i] || hi > lo * FLAT_RATIO {
            break;
        }
        end = Some(i);
    }
    end
}

/// Makes the points from `size` on the last level, together with a plateau that runs into them.
fn memory(points: &[CurvePoint], stretches: &mut Vec<CurveStretch>, size: f64) {
    let first = points.partition_point(|p| p.size < size);
    if first + 1 >= points.len() {
        return;
    }
    let mut all = CurveStretch { from: first, to: points.len() - 1, slope: false };
    let height = all.level(points).latency.value;
    let joins =
        |s: &CurveStretch| s.to >= first || s.level(points).latency.value * LEVELS_APART_RATIO > height;
    if let Some(early) = stretches.iter().find(|s| joins(s)) {
        // A plateau that only touches the first of them is another level if it lies much lower.
        if early.level(points).latency.value * LEVELS_APART_RATIO > height {
            all.from = all.from.min(early.from);
        }
    }
    for s in stretches.iter_mut() {
        s.to = s.to.min(all.from.saturating_sub(1));
    }
    stretches.retain(|s| s.from < all.from && s.to > s.from);
    let inside = points[all.from..].iter().map(|p| p.latency.value);
    let (lo, hi) = inside.fold((f64::INFINITY, 0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    all.slope = hi > lo * RISING_MEMORY_RATIO;
    stretches.push(all);
}

/// Between two plateaus that lie more than two octaves apart there may be a level that never gets
/// flat.
fn shoulders(points: &[CurvePoint], stretches: &[CurveStretch]) -> Vec<CurveStretch> {
    let mut found = Vec::new();
    let gaps: Vec<(usize, usize)> = stretches.windows(2).map(|w| (w[0].to, w[1].from)).collect();
    for (left, right) in gaps {
        if right <= left + 3 || octaves(points, left, right) < 2.0 {
            continue;
        }
        let slope = |i: usize, j: usize| {
            (points[j].latency.value / points[i].latency.value).log2() / octaves(points, i, j)
        };
        let best = (left + 1..right)
            .flat_map(|i| (i + 2..right).map(move |j| (i, j)))
            .filter(|&(i, j)| octaves(points, i, j) >= LEAST_OCTAVES)
            .filter(|&(i, j)| {
                let inside = slope(i, j);
                inside < SHOULDER_SLOPE && inside < slope(left, i) / 2.0 && inside < slope(j, right) / 1.5
            })
            .filter(|&(i, j)| {
                let apart = |a: usize, b: usize| {
                    points[b].latency.value / points[a].latency.value >= LEVELS_APART_RATIO
                };
                apart(left, i) && apart(j, right)
            })
            .max_by(|a, b| octaves(points, a.0, a.1).total_cmp(&octaves(points, b.0, b.1)));
        if let Some((from, to)) = best {
            found.push(CurveStretch { from, to, slope: true });
        }
    }
    found
}

/// What the inner level surely holds. Of an area gone through again and again in the same order it
/// can serve no more than it holds, whichever lines it keeps: size times share of hits is a lower
/// bound at every size, even where other things (page walks, neighbours) make loads dearer before
/// the level is full. `outer` is the least that a miss may cost; where that is no more than a hit,
/// nothing is learnt.
fn held(points: &[CurvePoint], inner: f64, outer: f64) -> f64 {
    if outer <= inner {
        return f64::INFINITY;
    }
    let served = |p: &CurvePoint| p.size * ((outer - p.latency.value) / (outer - inner)).clamp(0.0, 1.0);
    points.iter().map(served).fold(0.0, f64::max)
}

/// The last size at which the latency is at most `threshold`, coming from the level, and the next
/// size measured.
fn end_of(points: &[CurvePoint], level: &FoundLevel, threshold: f64) -> (f64, f64) {
    let last = (level.from..points.len())
        .take_while(|&i| points[i].latency.value <= threshold || i <= level.to)
        .last()
        .unwrap_or(level.from);
    let above = points.get(last + 1).map_or(points[last].size, |p| p.size);
    (points[last].size, above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(f: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        (0..=18 * 8)
            .map(|i| {
                let size = 1024.0 * 2f64.powf(f64::from(i) / 8.0);
                let v = f(size);
                CurvePoint { size, latency: Estimate::new(v, v * 0.999, v * 1.001), quiet: v * 0.999 }
            })
            .collect()
    }

    /// Fraction of a random cycle over `size` that misses a cache of `cache` bytes, with a
    /// transition one octave wide.
    fn miss(size: f64, cache: f64) -> f64 {
        ((size / cache).log2()).clamp(0.0, 1.0)
    }

    #[test]
    fn clean_steps_are_found_where_they_are() {
        let k = 1024.0;
        let points = curve(|s| {
            4.0 + 10.0 * miss(s, 32.0 * k) + 36.0 * miss(s, 1024.0 * k) + 400.0 * miss(s, 16384.0 * k)
        });
        let levels = find(&points, None, None);
        let values: Vec<f64> = levels.iter().map(|l| l.latency.value.round()).collect();
        assert_eq!(values, [4.0, 14.0, 50.0, 450.0]);
        for (level, size) in levels.iter().zip([32.0 * k, 1024.0 * k, 16384.0 * k]) {
            let found = level.size.unwrap();
            assert!(
                found.lo <= size * 1.5 && found.hi >= size && found.hi < size * 2.0,
                "{found:?} for {size}"
            );
        }
        assert_eq!(levels[3].size, None);
        assert!(levels.iter().all(|l| !l.slope));
    }

    #[test]
    fn a_shared_cache_that_gives_way_slowly_is_a_sloping_level() {
        let k = 1024.0;
        let points = curve(|s| {
            let shared = 50.0 * (s / (2048.0 * k)).clamp(1.0, 8.0).powf(0.25);
            4.0 + 10.0 * miss(s, 32.0 * k)
                + (shared - 14.0) * miss(s, 1024.0 * k)
                + 350.0 * miss(s, 16384.0 * k)
        });
        let levels = find(&points, None, None);
        assert_eq!(levels.len(), 4, "{levels:#?}");
        assert_eq!(find(&points, None, Some(3)), levels);
        assert_eq!(
            find(&points, None, Some(2)).len(),
            3,
            "a slope beyond what is claimed is the way to memory"
        );
        assert!(levels[2].slope);
        assert!((50.0..90.0).contains(&levels[2].latency.value));
    }

    #[test]
    fn memory_that_keeps_climbing_is_still_one_level() {
        let k = 1024.0;
        let points = curve(|s| {
            let memory = 350.0 * (s / (32768.0 * k)).max(1.0).powf(0.12);
            4.0 + 10.0 * miss(s, 32.0 * k) + 36.0 * miss(s, 1024.0 * k) + memory * miss(s, 16384.0 * k)
        });
        for from in [None, Some(65536.0 * k)] {
            let levels = find(&points, from, Some(3));
            assert_eq!(levels.len(), 4, "{levels:#?}");
            assert!(levels[3].latency.value > 350.0);
            assert!(levels[2].size.is_some() && levels[3].size.is_none());
        }
    }

    #[test]
    fn page_walks_before_the_edge_do_not_push_it_out() {
        let k = 1024.0;
        // Walks come to ever more loads from 288 KiB on; then the cache gives way, faster than half
        // the step is made.
        let points = curve(|s| {
            let walks = 6.0 * (1.0 - 288.0 * k / s).max(0.0) / (1.0 - 288.0 / 1024.0);
            4.0 + 10.0 * miss(s, 32.0 * k) + (30.0 + walks) * miss(s, 1024.0 * k) + walks
        });
        let size = find(&points, None, None)[1].size.unwrap();
        assert!(size.contains(1024.0 * k) && size.lo > 512.0 * k && size.hi < 2048.0 * k, "{size:?}");
        let half_hit = CurvePoint { size: 2048.0, latency: Estimate::exact(32.0), quiet: 32.0 };
        assert_eq!(held(&[half_hit], 14.0, 50.0), 1024.0);
        assert_eq!(held(&[half_hit], 14.0, 13.0), f64::INFINITY);
    }

    #[test]
    fn noise_makes_no_levels() {
        let mut rng = lab::rng::Rng::new(9);
        let points: Vec<CurvePoint> = curve(|s| if s < 32768.0 { 4.0 } else { 14.0 })
            .into_iter()
            .map(|mut p| {
                let jitter = 1.0 + (rng.below(1000) as f64 / 1000.0 - 0.5) * 0.04;
                p.latency = p.latency.scaled(jitter);
                p.quiet *= jitter;
                p
            })
            .collect();
        assert_eq!(find(&points, None, None).len(), 2);
    }

    /// A level of `truth` cycles at twelve sizes, eleven blocks each, of which `share` are lifted
    /// by up to `by`.
    fn blocks(truth: f64, share: f64, by: f64, seed: u64) -> Vec<CurvePoint> {
        let mut rng = lab::rng::Rng::new(seed);
        let mut uniform = |scale: f64| rng.below(1_000_001) as f64 / 1e6 * scale;
        (0..12)
            .map(|i| {
                let blocks: Vec<f64> = (0..11)
                    .map(|_| {
                        let lifted = if uniform(1.0) < share { uniform(by) } else { 0.0 };
                        truth * (0.999 + uniform(0.002)) + lifted
                    })
                    .collect();
                let latency = stats::median_interval(&blocks, &mut lab::rng::Rng::new(seed + i));
                let quiet = stats::quantile_sorted(&stats::sorted(&blocks), 0.05);
                CurvePoint { size: 65536.0 * 2f64.powf(i as f64 / 6.0), latency, quiet }
            })
            .collect()
    }

    #[test]
    fn a_level_s_interval_holds_the_truth_clean_or_lifted() {
        for seed in 0..50 {
            let clean = middle(&blocks(14.0, 0.0, 0.0, seed), OF_CYCLES);
            assert!(clean.contains(14.0) && clean.relative_half_width() < 0.01, "{clean:?}");
            // Nearly every block lifted: medians and their intervals agree on too much, the floor
            // does not.
            let lifted = blocks(14.0, 0.9, 0.6, seed);
            assert!(lifted.iter().filter(|p| p.latency.lo > 14.0 * 1.002).count() > 6);
            let lifted = middle(&lifted, OF_CYCLES);
            assert!(lifted.contains(14.0) && lifted.lo > 14.0 * 0.99, "{lifted:?}");
        }
    }

    #[test]
    fn a_level_in_two_states_has_an_interval_that_holds_both() {
        for seed in 0..50 {
            let (near, far) = (blocks(40.0, 0.2, 1.0, seed), blocks(52.0, 0.2, 1.0, seed + 100));
            let mixed: Vec<CurvePoint> = near
                .iter()
                .zip(&far)
                .enumerate()
                .map(|(i, (a, b))| if i % 3 == 0 { *a } else { *b })
                .collect();
            let both = middle(&mixed, OF_CYCLES);
            assert!(both.contains(40.0) && both.contains(52.0), "{both:?}");
            // One lucky size among many does not make the floor.
            let mut lucky = near;
            lucky.extend(blocks(40.0, 0.2, 1.0, seed + 200));
            lucky[5].quiet = 20.0;
            assert!(middle(&lucky, OF_CYCLES).lo > 39.0);
        }
    }

    #[test]
    fn few_points_do_not_panic() {
        assert!(find(&[], None, None).is_empty());
        let one = curve(|_| 4.0);
        assert!(find(&one[..1], None, None).is_empty());
        assert!(find(&one[..2], Some(1.0), None).len() <= 1);
    }
}

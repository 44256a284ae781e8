//! Which levels serve the accesses.

use super::figure::{Served, sum};
use super::known::KnownLevel;
use units::Estimate;

/// The split of a mean latency among the two levels between whose latencies it lies.
pub(crate) fn by_time(levels: &[KnownLevel], time: Estimate) -> Vec<Served> {
    let Some(first) = levels.first() else { return Vec::new() };
    let above = levels.iter().position(|level| level.latency.value >= time.value);
    let (near, far) = match above {
        Some(0) => return vec![alone(first, time)],
        Some(above) => (&levels[above - 1], &levels[above]),
        None => return vec![alone(&levels[levels.len() - 1], time)],
    };
    let far_share = |time: f64| {
        let (from, to) = (near.latency.value, far.latency.value);
        ((time - from) / (to - from)).clamp(0.0, 1.0)
    };
    let share = Estimate::new(far_share(time.value), far_share(time.lo), far_share(time.hi));
    let rest = Estimate::new(1.0 - share.value, 1.0 - share.hi, 1.0 - share.lo);
    let served = |level: &KnownLevel, share: Estimate| Served {
        level: level.name.clone(),
        share,
        time: share.scaled(level.latency.value),
    };
    vec![served(near, rest), served(far, share)]
}

fn alone(level: &KnownLevel, time: Estimate) -> Served {
    Served { level: level.name.clone(), share: Estimate::exact(1.0), time }
}

/// All from one level.
pub(crate) fn whole(level: Option<&KnownLevel>, time: Estimate) -> Vec<Served> {
    level.map(|level| alone(level, time)).into_iter().collect()
}

/// Levels of the same name as one.
pub(crate) fn joined(all: impl IntoIterator<Item = Served>) -> Vec<Served> {
    let mut joined: Vec<Served> = Vec::new();
    for served in all {
        match joined.iter_mut().find(|known| known.level == served.level) {
            Some(known) => {
                known.share = sum([known.share, served.share]);
                known.time = sum([known.time, served.time]);
            }
            None => joined.push(served),
        }
    }
    joined
}

/// The name of the level whose latency is nearest to this cost.
pub(crate) fn name_of(levels: &[KnownLevel], cost: f64) -> Option<&str> {
    let far = |level: &&KnownLevel| (level.latency.value / cost).ln().abs();
    levels.iter().min_by(|a, b| far(a).total_cmp(&far(b))).map(|level| level.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, size: f64, ns: f64) -> KnownLevel {
        KnownLevel { name: name.to_owned(), size, claimed: None, latency: Estimate::exact(ns) }
    }

    #[test]
    fn a_time_between_two_levels_is_shared_by_them() {
        let levels = [level("L1", 32e3, 1.0), level("L2", 1e6, 4.0), level("DRAM", f64::INFINITY, 104.0)];
        let split = by_time(&levels, Estimate::new(29.0, 24.0, 34.0));
        let names: Vec<&str> = split.iter().map(|served| served.level.as_str()).collect();
        assert_eq!(names, ["L2", "DRAM"]);
        assert_eq!((split[1].share.lo, split[1].share.value, split[1].share.hi), (0.2, 0.25, 0.3));
        assert!((split.iter().map(|served| served.time.value).sum::<f64>() - 29.0).abs() < 1e-9);
        // Below the first and above the last, one level serves all.
        assert_eq!(by_time(&levels, Estimate::exact(0.9))[0].level, "L1");
        assert_eq!(by_time(&levels, Estimate::exact(500.0))[0].time.value, 500.0);
    }
}

//! Which pairs of CPUs are measured when there are too many for the time. Pure.

use crate::crews;
use lab::rng::Rng;
use records::host::Host;
use records::machine::Nearness;
use std::collections::BTreeMap;

/// Every ordered pair, by how close the two are.
pub(super) fn classes(host: &Host, cpus: &[u32]) -> BTreeMap<Nearness, Vec<(u32, u32)>> {
    let mut classes: BTreeMap<Nearness, Vec<(u32, u32)>> = BTreeMap::new();
    for &a in cpus {
        for &b in cpus.iter().filter(|&&b| b != a) {
            classes.entry(crews::nearness(host, a, b)).or_default().push((a, b));
        }
    }
    classes
}

/// At most `most` pairs, drawn from all classes alike: what a small class leaves over the large
/// ones get.
pub(super) fn draw(
    classes: &BTreeMap<Nearness, Vec<(u32, u32)>>,
    most: usize,
    rng: &mut Rng,
) -> Vec<(Nearness, (u32, u32))> {
    let mut smallest_first: Vec<(&Nearness, &Vec<(u32, u32)>)> = classes.iter().collect();
    smallest_first.sort_by_key(|c| c.1.len());
    let (mut most, mut left) = (most, smallest_first.len());
    let mut drawn = Vec::new();
    for (&nearness, pairs) in smallest_first {
        // One of each class at least.
        let take = (most / left.max(1)).clamp(1, pairs.len());
        let mut pairs = pairs.clone();
        if take < pairs.len() {
            rng.shuffle(&mut pairs);
            pairs.truncate(take);
        }
        most = most.saturating_sub(take);
        left -= 1;
        drawn.extend(pairs.into_iter().map(|p| (nearness, p)));
    }
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;

    #[test]
    fn few_cpus_are_measured_in_full() {
        let classes = classes(&big_host(), &[0, 1, 8, 4]);
        let drawn = draw(&classes, 100, &mut Rng::new(1));
        assert_eq!(drawn.len(), 12);
        assert!(drawn.contains(&(Nearness::SameCore, (8, 0))), "both directions");
    }

    #[test]
    fn many_are_drawn_from_every_class() {
        let host = big_host();
        let classes = classes(&host, &host.usable_cpus());
        assert_eq!(classes.values().map(Vec::len).sum::<usize>(), 16 * 15);
        let drawn = draw(&classes, 60, &mut Rng::new(1));
        assert!(drawn.len() <= 60 && drawn.len() > 50, "{}", drawn.len());
        for (class, pairs) in &classes {
            let n = drawn.iter().filter(|d| d.0 == *class).count();
            assert!(n == 15.min(pairs.len()) || n > 15, "{class:?}: {n}");
        }
        assert_ne!(drawn, draw(&classes, 60, &mut Rng::new(2)));
        assert_eq!(draw(&classes, 0, &mut Rng::new(1)).len(), classes.len());
    }
}

//! Which lines an access loads, and how often each.
//!
//! Lines of one kind are loaded equally often: those of one level of a tree, or those of one band
//! of ranks where keys are skewed.

use crate::pattern::{Access, KEY, Kind};

/// Lines that are loaded equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lines {
    pub(crate) count: f64,
    /// Loads of any of them, for each access of the pattern.
    pub(crate) loads: f64,
    /// Each again after a lap of all, and not drawn at random.
    pub(crate) in_order: bool,
}

impl Lines {
    fn drawn(count: f64, loads: f64) -> Self {
        // Nodes may be smaller than a line, and a line is held as a whole.
        Self { count: count.max(1.0), loads, in_order: false }
    }

    fn in_order(count: f64, loads: f64) -> Self {
        Self { in_order: true, ..Self::drawn(count, loads) }
    }
}

/// What an access loads, and how often.
pub(crate) fn of(access: &Access, line: u64) -> Vec<Lines> {
    let at_once = access.lines(line);
    let (area, bytes) = (access.area.0 as f64, line as f64);
    match access.kind {
        Kind::Chase | Kind::Seq => vec![Lines::in_order(area / bytes, at_once)],
        Kind::Stride { step } => vec![Lines::in_order(area / bytes, (step.0 as f64 / bytes).min(1.0))],
        Kind::Window { size } => vec![Lines::drawn(area / bytes, size.0 as f64 / bytes)],
        Kind::Rand | Kind::Rmw => {
            let nodes = (area / bytes / at_once).max(1.0);
            match access.options.zipf {
                Some(skew) => skewed(nodes, skew, at_once),
                None => vec![Lines::drawn(nodes * at_once, at_once)],
            }
        }
        Kind::Tree { fanout, node } => {
            let levels = levels(area, fanout as f64, node.0 as f64);
            levels.map(|(size, reached)| Lines::drawn(size / bytes, reached * at_once)).collect()
        }
        Kind::Search => {
            // Steps halve what is left: a tree of lines. The last ones stay in the line that the
            // step before them has loaded.
            let halves = levels(area, 2.0, bytes);
            let in_line = (line / KEY).max(1).ilog2();
            let own = halves.map(|(size, reached)| Lines::drawn(size / bytes, reached));
            own.chain((0..in_line).map(|_| Lines::drawn(1.0, 1.0))).collect()
        }
    }
}

/// Loads that wait for each other, for each access: as many as a walk has steps.
pub(crate) fn steps(access: &Access, line: u64) -> f64 {
    match access.kind {
        Kind::Tree { .. } | Kind::Search => loads(&of(access, line)) / access.lines(line),
        _ => 1.0,
    }
}

pub(crate) fn loads(all: &[Lines]) -> f64 {
    all.iter().map(|lines| lines.loads).sum()
}

/// The levels of a tree that has this size in all, from the root on: the bytes of each, and the
/// share of walks that reach it, which is less than 1 where the last level is not full.
fn levels(area: f64, fanout: f64, node: f64) -> impl Iterator<Item = (f64, f64)> {
    let (mut left, mut full) = (area, node);
    std::iter::from_fn(move || {
        let size = full.min(left);
        let level = (size > 0.0).then_some((size, size / full));
        left -= size;
        full *= fanout;
        level
    })
}

/// Ranks of one band differ by less than one part in this many.
const BANDS: f64 = 16.0;

/// Nodes of which the `r`th is loaded in proportion to `r^-skew`, in bands of ranks.
fn skewed(nodes: f64, skew: f64, lines: f64) -> Vec<Lines> {
    // Halfway between two ranks, as the integral over a band stands for the sum of its ranks.
    let end = nodes + 0.5;
    let mut bands = Vec::new();
    let mut from = 0.5;
    while from < end {
        let to = (from + (from / BANDS).floor().max(1.0)).min(end);
        let rank = f64::midpoint(from, to);
        // In relation to its middle. Ranks so far behind that this is no number come never.
        let middle = rank.powf(-skew);
        let weight = if middle > 0.0 { middle * bent(from / rank, to / rank, skew) } else { 0.0 };
        bands.push((to - from, (to - from) * weight));
        from = to;
    }
    let all: f64 = bands.iter().map(|band| band.1).sum();
    bands.iter().map(|(count, weight)| Lines::drawn(count * lines, lines * weight / all)).collect()
}

/// The mean of `x^-skew` between two bounds around 1. A band of one rank has none: it is the rank.
fn bent(from: f64, to: f64, skew: f64) -> f64 {
    if to - from > 1.0 / BANDS {
        return 1.0;
    }
    let antiderivative =
        |x: f64| if (1.0 - skew).abs() < 1e-9 { x.ln() } else { x.powf(1.0 - skew) / (1.0 - skew) };
    (antiderivative(to) - antiderivative(from)) / (to - from)
}

/// What another access loads for each access of this one, of which it has this many.
pub(crate) fn beside(access: &Access, line: u64, as_often: f64) -> Vec<Lines> {
    let more = |lines: Lines| Lines { loads: lines.loads * as_often, ..lines };
    of(access, line).into_iter().map(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Pattern, parse};

    fn lines(text: &str) -> Vec<Lines> {
        let Ok(Pattern::Access(access)) = parse(text) else { panic!("{text}") };
        of(&access, 64)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
    }

    #[test]
    fn bands_of_ranks_have_the_sum_of_their_ranks() {
        for skew in [0.5, 0.99, 1.0, 2.0] {
            let bands = skewed(100_000.0, skew, 1.0);
            let all: f64 = (1..=100_000).map(|rank| f64::from(rank).powf(-skew)).sum();
            let mut rank = 0.0;
            for band in &bands {
                let own: f64 = (0..band.count as u32).map(|i| (rank + 1.0 + f64::from(i)).powf(-skew)).sum();
                rank += band.count;
                assert!((band.loads / (own / all) - 1.0).abs() < 1e-3, "{skew}: {band:?} for {}", own / all);
            }
            near(rank, 100_000.0);
        }
    }

    #[test]
    fn a_tree_has_the_levels_that_its_size_holds() {
        // 1 + 4 + 16 nodes, and half of the next level.
        let all = lines("tree(3392, 4, 64)");
        let shape: Vec<(f64, f64)> = all.iter().map(|lines| (lines.count, lines.loads)).collect();
        assert_eq!(shape, [(1.0, 1.0), (4.0, 1.0), (16.0, 1.0), (32.0, 0.5)]);
        // Nodes of three lines, all of which are read.
        assert_eq!(loads(&lines("tree(4032, 4, 192)")), 9.0);
        // Eight keys a line: 10 steps to one of 1024 lines, and 3 inside it.
        assert!((loads(&lines("search(64K)")) - 13.0).abs() < 0.01);
    }
}

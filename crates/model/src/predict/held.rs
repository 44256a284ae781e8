//! Which share of the lines of each kind a cache holds, and so which level serves their loads.
//!
//! A cache of `C` lines holds what was loaded within some time `t`: the time within which all kinds
//! load `C` different lines (Che's approximation). So the hottest kind is held first, and kinds
//! share the cache by how fast they are loaded.
//!
//! ```text
//! sum of count · held(t) = C        held(t) = 1 - e^-x, x = loads of a line within t
//! ```
//!
//! That is a cache that replaces the oldest line. One that replaces any line at random holds
//! `x / (1 + x)` of a kind. Caches of processors keep nearly the order of age: the first is what is
//! predicted, and the interval reaches to the second. Where all lines are alike, both hold
//! `C / count`.
//!
//! Lines that are passed in order return after a whole lap, neither sooner nor later: a cache holds
//! `min(x, 1)` and `x · (1 - e^(-1/x))` of them, in the mean over a lap.

use super::figure::sum;
use super::known::Known;
use super::lines::{self, Lines};
use super::neighbours::Filled;
use crate::pattern::Access;
use units::{Bytes, Estimate};

#[derive(Clone, Copy)]
enum Replaced {
    Oldest,
    Any,
}

impl Lines {
    /// The share of these lines that was loaded within this many accesses and not replaced since.
    fn held(&self, accesses: f64, replaced: Replaced) -> f64 {
        let each = self.loads * accesses / self.count;
        match (self.in_order, replaced) {
            (false, Replaced::Oldest) => -(-each).exp_m1(),
            (false, Replaced::Any) => each / (1.0 + each),
            (true, Replaced::Oldest) => each.min(1.0),
            (true, Replaced::Any) => each * -(-1.0 / each).exp_m1(),
        }
    }
}

/// Which share of each kind's loads every level serves, nearest first; `None` where the record's
/// levels do not tell. A cache that others fill keeps lines for as long as they leave them there.
pub(crate) fn served(known: &Known<'_>, all: &[Lines], filled: Option<Filled>) -> Option<Vec<Vec<Estimate>>> {
    let line = known.line() as f64;
    let within = known.level_of(all.iter().map(|lines| lines.count).sum::<f64>() * line)?;
    // However small the area, others may drive it out of there.
    let outermost = within + usize::from(filled.is_some_and(|filled| filled.level == within));
    let mut served = vec![Vec::new(); all.len()];
    let mut nearer = vec![[0.0; 2]; all.len()];
    for (place, level) in known.levels[..=outermost].iter().enumerate() {
        let held = match filled {
            Some(filled) if filled.level == place => held(all, filled.lines, filled.by_others),
            _ => held(all, level.size / line, 0.0),
        };
        for (kind, served) in served.iter_mut().enumerate() {
            let here = [0, 1].map(|replaced| (held[kind][replaced] - nearer[kind][replaced]).max(0.0));
            served.push(Estimate::new(here[0], here[0].min(here[1]), here[0].max(here[1])));
        }
        nearer = held;
    }
    Some(served)
}

/// The share of each kind that a cache of this many lines holds, by either way of replacing, while
/// others load this many lines there for each access.
pub(crate) fn held(all: &[Lines], capacity: f64, by_others: f64) -> Vec<[f64; 2]> {
    let [oldest, any] = [Replaced::Oldest, Replaced::Any].map(|replaced| {
        let within = time(all, capacity, by_others, replaced);
        all.iter().map(|lines| within.map_or(1.0, |time| lines.held(time, replaced))).collect::<Vec<_>>()
    });
    oldest.into_iter().zip(any).map(|(oldest, any)| [oldest, any]).collect()
}

/// Within how many accesses a cache is full; `None` if it holds all lines.
fn time(all: &[Lines], capacity: f64, by_others: f64, replaced: Replaced) -> Option<f64> {
    if by_others == 0.0 && all.iter().map(|lines| lines.count).sum::<f64>() <= capacity {
        return None;
    }
    let own = |time: f64| all.iter().map(|lines| lines.count * lines.held(time, replaced)).sum::<f64>();
    let filled = |time: f64| own(time) + by_others * time;
    let mut high = 1.0;
    while filled(high) < capacity {
        high *= 2.0;
        if high == f64::INFINITY {
            return None;
        }
    }
    let mut low = if high > 1.0 { high / 2.0 } else { 0.0 };
    // Until no number lies between the two.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(middle);
        }
        if filled(middle) < capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The area, with the lines of others that are loaded between two loads of the same line.
pub(crate) fn between_loads(access: &Access, others: &[Lines], line: u64) -> Bytes {
    let own = lines::of(access, line);
    let lap = own.iter().map(|lines| lines.count).sum::<f64>() / lines::loads(&own);
    let theirs = others.iter().map(|lines| lines.count * lines.held(lap, Replaced::Oldest));
    Bytes(access.area.0.saturating_add((theirs.sum::<f64>() * line as f64) as u64))
}

/// The mean over several kinds of lines, by their loads: a share for each level.
pub(crate) fn mean(all: &[Lines], served: &[Vec<Estimate>]) -> Vec<Estimate> {
    let loads = lines::loads(all);
    let levels = served.first().map_or(0, Vec::len);
    let of =
        |level: usize| all.iter().zip(served).map(move |(lines, by)| by[level].scaled(lines.loads / loads));
    (0..levels).map(|level| sum(of(level))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Pattern, parse};

    fn access(text: &str) -> Access {
        match parse(text) {
            Ok(Pattern::Access(access)) => access,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn lines(text: &str) -> Vec<Lines> {
        lines::of(&access(text), 64)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
    }

    #[test]
    fn of_lines_that_are_alike_a_cache_holds_its_part() {
        for replaced in held(&lines("rand(64M)"), 4096.0, 0.0)[0] {
            near(replaced, 4096.0 / f64::from(1 << 20));
        }
        assert_eq!(held(&lines("rand(64K)"), 1024.0, 0.0), [[1.0; 2]]);
    }

    #[test]
    fn no_skew_is_no_order() {
        let skewed = lines("rand(64M, zipf=0)");
        near(skewed.iter().map(|lines| lines.count).sum(), f64::from(1 << 20));
        near(lines::loads(&skewed), 1.0);
        for held in held(&skewed, 65536.0, 0.0).into_iter().flatten() {
            near(held, 1.0 / 16.0);
        }
    }

    #[test]
    fn the_more_skew_the_more_a_cache_serves() {
        let mut last = 0.0;
        for skew in ["0", "0.5", "0.99", "1.2", "3"] {
            let all = lines(&format!("rand(64M, zipf={skew})"));
            let hits: f64 =
                all.iter().zip(held(&all, 16384.0, 0.0)).map(|(one, held)| one.loads * held[0]).sum();
            assert!(hits > last && hits <= 1.0 + 1e-9, "{skew}: {hits} after {last}");
            last = hits;
        }
        assert!(last > 0.999);
    }

    #[test]
    fn upper_levels_are_held_and_lower_ones_are_not() {
        let held = held(&lines("tree(64M, 8, 64)"), 8192.0, 0.0);
        assert!(held[0][0] > 0.999 && held[3][0] > 0.99, "{held:?}");
        assert!(held[7][0] < 0.01, "{held:?}");
        assert!(held.windows(2).all(|two| two[0][0] >= two[1][0] && two[0][1] >= two[1][1]), "{held:?}");
    }

    #[test]
    fn what_passes_between_makes_an_area_larger() {
        let pass = |often: f64| {
            let pass = lines::beside(&access("seq(4M)"), 64, often);
            between_loads(&access("chase(1M)"), &pass, 64)
        };
        assert_eq!(pass(0.0), Bytes::mib(1));
        // A line of the pass for each of the chase; four, which are all of it; and never more.
        assert_eq!(pass(1.0), Bytes::mib(2));
        assert_eq!(pass(4.0), Bytes::mib(5));
        assert_eq!(pass(40.0), Bytes::mib(5));
    }

    #[test]
    fn a_pass_takes_of_a_cache_what_it_loads_while_lines_are_held() {
        let mut all = lines("rand(64K)");
        all.extend(lines("seq(1G)"));
        let held = held(&all, 2048.0, 0.0);
        // Both load equally fast: 1024 lines of which each returns, and many that do not.
        for (replaced, share) in [(0, held[0][0]), (1, held[0][1])] {
            assert!(share < 1.0, "{replaced}: {share}");
            near(1024.0 * share + all[1].count * held[1][replaced], 2048.0);
        }
    }

    #[test]
    fn others_leave_what_comes_back_soon() {
        let held = |by_others: f64| held(&lines("rand(1M)"), 65536.0, by_others)[0];
        // Four times as large as the area, and filled by others within 65,536 accesses, within
        // which each of 16,384 lines is loaded four times, and within a sixteenth of that.
        assert_eq!(held(0.0), [1.0; 2]);
        let (soon, late) = (held(1.0), held(16.0));
        assert!(soon[0] > 0.94 && soon[0] < 1.0, "{soon:?}");
        assert!(late[0] > 0.20 && late[0] < 0.23, "{late:?}");
        assert!(soon[1] < soon[0] && late[1] < late[0], "{soon:?} {late:?}");
    }
}

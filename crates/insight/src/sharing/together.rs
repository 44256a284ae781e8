//! Whether two threads use a line at the same time.
//!
//! Samples are too sparse to see one access follow another. But of threads that use a line
//! independently of one another, a known number of pairs of samples lie close together; of threads
//! that take turns, by a barrier or since data is handed over, hardly any do:
//!
//! ```text
//!   a  |||||||||.........|||||||||.........     pairs within the window: only where turns change
//!   b  .........|||||||||.........|||||||||
//! ```
//!
//! With turns of length L and a window w the pairs are w ÷ L of those of independent threads. Two
//! threads that share one CPU take turns, too; then they do not disturb one another.

/// Two samples at most this far apart are at the same time: the distance of samples of one thread.
const WINDOW_NS: u64 = 250_000;
/// Pairs, as a part of those of independent threads, that make threads run together. Turns of more
/// than about a millisecond have less.
const LEAST_RATIO: f64 = 0.2;
/// Fewer pairs may be chance.
const LEAST_PAIRS: u64 = 4;

/// Whether threads whose accesses were at these times, ascending, ran at the same time.
pub(super) fn together(a: &[u64], b: &[u64]) -> bool {
    let (Some(from), Some(to)) = (a.first().min(b.first()), a.last().max(b.last())) else { return false };
    if a.is_empty() || b.is_empty() {
        return false;
    }
    let span = (to - from).max(2 * WINDOW_NS) as f64;
    let expected = a.len() as f64 * b.len() as f64 * 2.0 * WINDOW_NS as f64 / span;
    let pairs = pairs(a, b);
    pairs >= LEAST_PAIRS && pairs as f64 >= LEAST_RATIO * expected
}

fn pairs(a: &[u64], b: &[u64]) -> u64 {
    let (mut low, mut high, mut count) = (0, 0, 0);
    for &at in a {
        while low < b.len() && b[low] + WINDOW_NS < at {
            low += 1;
        }
        high = high.max(low);
        while high < b.len() && b[high] <= at + WINDOW_NS {
            high += 1;
        }
        count += (high - low) as u64;
    }
    count
}

/// Whether anything in `times`, ascending, lies within `within_ns` of a time.
pub(super) fn is_near(times: &[u64], at: u64, within_ns: u64) -> bool {
    let next = times.partition_point(|&time| time < at.saturating_sub(within_ns));
    times.get(next).is_some_and(|&time| time <= at + within_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sample each 300 µs, while `runs` at that time.
    fn times(from_ns: u64, runs: impl Fn(u64) -> bool) -> Vec<u64> {
        (0..6000).map(|at| from_ns + at * 300_000).filter(|&at| runs(at)).collect()
    }

    #[test]
    fn turns_are_not_together() {
        let all = |_| true;
        assert!(together(&times(0, all), &times(100_000, all)));
        let turn = |which: u64, length: u64| move |at: u64| (at / length) % 2 == which;
        for length in [3 * MS, 10 * MS, 100 * MS] {
            let (a, b) = (times(0, turn(0, length)), times(50_000, turn(1, length)));
            assert!(!together(&a, &b), "{length}");
        }
        let handed_over = |at| at > 900 * MS;
        assert!(!together(&times(0, |at| !handed_over(at)), &times(50_000, handed_over)));
        assert!(!together(&[], &times(0, all)));
        assert!(!together(&[5], &[6]), "one pair may be chance");
    }

    #[test]
    fn threads_that_are_often_interrupted_run_together_all_the_same() {
        let runs = |by: u64| move |at: u64| (at / MS).wrapping_mul(by).wrapping_mul(0x9e37_79b9) >> 3 & 3 < 2;
        assert!(together(&times(0, runs(7)), &times(90_000, runs(13))));
    }

    #[test]
    fn what_is_near_is_found() {
        assert!(is_near(&[10, 20, 30], 24, 4));
        assert!(!is_near(&[10, 20, 30], 25, 4));
        assert!(!is_near(&[], 25, 4));
    }
}

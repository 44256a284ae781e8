//! A block whose clock moved is repeated at once where the rig can go on: what its warm-up brought
//! into the caches is still there, and warming a large area costs a hundred times as much as the
//! block. Pure.

use super::series::clock_moved;

/// The last try, and what the clock did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SteadyClockRun<T> {
    pub(super) result: T,
    /// Core cycles per tick before and after the last try.
    pub(super) cycles_per_tick: (f64, f64),
    /// Earlier tries, whose clock moved.
    pub(super) moved: usize,
}

/// Tries until the clock stands still, at most `tries` times. Each try returns its result and the
/// clock after it, which is the next try's clock before.
pub(super) fn run_until_steady<T>(
    first: f64,
    tries: usize,
    mut attempt: impl FnMut() -> (T, f64),
) -> SteadyClockRun<T> {
    let mut before = first;
    let mut moved = 0;
    loop {
        let (result, after) = attempt();
        if !clock_moved(before, after) || moved + 1 >= tries {
            return SteadyClockRun { result, cycles_per_tick: (before, after), moved };
        }
        moved += 1;
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(first: f64, tries: usize, clocks: &[f64]) -> SteadyClockRun<usize> {
        let mut clocks = clocks.iter().enumerate();
        run_until_steady(first, tries, || {
            clocks.next().map(|(i, &clock)| (i, clock)).expect("more tries than asked for")
        })
    }

    #[test]
    fn the_first_try_over_a_steady_clock_is_the_result() {
        assert_eq!(
            over(1.5, 5, &[1.5, 1.2]),
            SteadyClockRun { result: 0, cycles_per_tick: (1.5, 1.5), moved: 0 }
        );
        assert_eq!(
            over(1.5, 5, &[1.4, 1.3, 1.301]),
            SteadyClockRun { result: 2, cycles_per_tick: (1.3, 1.301), moved: 2 }
        );
    }

    #[test]
    fn a_clock_that_never_stands_still_ends_the_tries_and_shows() {
        let never = over(1.0, 3, &[1.1, 1.2, 1.3, 1.4]);
        assert_eq!(never, SteadyClockRun { result: 2, cycles_per_tick: (1.2, 1.3), moved: 2 });
        assert_eq!(over(1.0, 1, &[1.1]), SteadyClockRun { result: 0, cycles_per_tick: (1.0, 1.1), moved: 0 });
    }
}

//! Waiting in tests: always for something that has a name, never for longer than a limit.
//!
//! A limit is generous: machines are busy, and scavengers off the primary run under `SCHED_IDLE`.
//! It is there so that nothing hangs. No test is tried again because a limit was over.

use std::time::{Duration, Instant};

/// A poll costs some microseconds; what is waited for takes milliseconds at least.
const POLL: Duration = Duration::from_millis(5);

/// Waits until this holds; panics with what it waited for when the limit is over.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, limit, || holds().then_some(()));
}

/// Waits until there is a value, and gives it back; panics with what it waited for when the limit
/// is over.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < limit, "waited {limit:?} for this: {what}");
        std::thread::sleep(POLL);
    }
}

#[test]
fn what_was_waited_for_is_told() {
    let mut polls = 0;
    wait_until("the third poll", Duration::from_secs(60), || {
        polls += 1;
        polls == 3
    });
    let waits = || wait_for::<()>("what never comes", Duration::ZERO, || None);
    let why = std::panic::catch_unwind(waits).unwrap_err();
    assert_eq!(why.downcast_ref::<String>().unwrap(), "waited 0ns for this: what never comes");
}

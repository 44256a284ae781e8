//! Whether a thread had its CPU without a break before it was stopped.
//!
//! Where other programs want the CPU, a thread comes back to caches and translation buffers that
//! are full of theirs, and a breakpoint that was set meanwhile stops it right then. What it reads
//! comes from memory, whatever serves the load at other times. So a thread's turns on a CPU are
//! counted before a load is armed and a moment behind: as long as it is the same turn, what probes
//! see is what the program sees.

use super::ThreadId;
use crate::allocations::region::now;
use insight::samples::Steady;
use std::time::Duration;

/// For so long a thread has its CPU before it is stopped: longer than L2 takes to fill.
const SETTLES: Duration = Duration::from_millis(1);
/// How often that is waited for: then the load is armed all the same.
const TRIES: usize = 4;
/// A load that is executed often has been stopped by then.
const UNDER_WAY: Duration = Duration::from_millis(1);

/// The turns of some threads, at a time.
pub(super) struct Turns {
    at_ns: u64,
    of: Vec<(ThreadId, u64)>,
}

impl Turns {
    fn of(threads: &[ThreadId]) -> Self {
        let of = threads.iter().filter_map(|&thread| Some((thread, turns(thread)?))).collect();
        Self { at_ns: now().1, of }
    }

    fn that_go_on(&self) -> impl Iterator<Item = ThreadId> {
        self.of.iter().filter(|(thread, before)| turns(*thread) == Some(*before)).map(|(thread, _)| *thread)
    }
}

/// Waits until one of these threads has kept its CPU for some time, if that comes soon.
pub(super) fn settled(threads: &[ThreadId]) -> Turns {
    let mut turns = Turns::of(threads);
    for _ in 0..TRIES {
        std::thread::sleep(SETTLES);
        if turns.that_go_on().next().is_some() {
            break;
        }
        turns = Turns::of(threads);
    }
    turns
}

/// The stretches of time in which these threads were in the same turn, up to a moment from now.
pub(super) fn stretches(turns: &Turns) -> Vec<Steady> {
    std::thread::sleep(UNDER_WAY);
    let to_ns = now().1;
    let from_ns = turns.at_ns + SETTLES.as_nanos() as u64;
    turns.that_go_on().map(|of| Steady { thread: of.thread, from_ns, to_ns }).collect()
}

/// How often a thread was given a CPU.
fn turns(of: ThreadId) -> Option<u64> {
    let path = format!("/proc/{}/task/{}/schedstat", of.process, of.thread);
    std::fs::read_to_string(path).ok()?.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_has_another_turn_behind() {
        let own = ThreadId {
            process: std::process::id(),
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
        };
        let Some(before) = turns(own) else { return println!("skipped: this kernel counts no turns") };
        std::thread::sleep(SETTLES);
        assert!(turns(own) > Some(before));
        let begun = Turns::of(&[own]);
        std::thread::sleep(SETTLES);
        assert_eq!(begun.that_go_on().count(), 0, "it slept");
        assert!(turns(ThreadId { process: own.process, thread: 0 }).is_none());
    }
}

//! What one member does in a block, on its own CPU.

use super::Member;
use super::barrier::{CountedSpan, StartBarrier};
use crate::core_clock::CoreClock;
use crate::sys;
use crate::tsc;

/// The pieces in a block; one or two of them are lost at its ends.
const PIECES: u64 = 32;

/// What one member measured in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberResult {
    /// Ticks per operation, over the pieces that count.
    pub ticks: f64,
    /// Core cycles per tick before and after.
    pub cycles_per_tick: (f64, f64),
    /// Involuntary switches, and sleeps; one more where the member did not run in time.
    pub switches: u64,
    pub faults: u64,
}

pub(super) fn run_member(
    member: &mut Member,
    core_clock: &CoreClock,
    barrier: &StartBarrier,
) -> MemberResult {
    let wanted = (barrier.ticks() / PIECES).max(1);
    if member.piece == 0 {
        member.piece = loops_for(wanted, member.rig.ticks_per_loop());
    }
    member.rig.warm();
    let span = barrier.arrive();
    // Read only now: the member that is warm first waits for the others, and what happens meanwhile
    // does no harm.
    let before = (sys::thread_usage(), core_clock.cycles_per_tick());
    let tally = span.map(|span| run_in(member, span, wanted)).unwrap_or_default();
    let after = (sys::thread_usage(), core_clock.cycles_per_tick());
    let sleeps =
        if member.rig.sleeps() { 0 } else { after.0.voluntary_switches - before.0.voluntary_switches };
    let missed = !tally.in_time || tally.pieces == 0;
    MemberResult {
        ticks: tally.sum / tally.pieces.max(1) as f64,
        cycles_per_tick: (before.1, after.1),
        switches: (after.0.involuntary_switches - before.0.involuntary_switches + sleeps).max(0) as u64
            + u64::from(missed),
        faults: (after.0.faults - before.0.faults).max(0) as u64,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct PieceTally {
    sum: f64,
    pieces: u64,
    /// It ran before the counted span began.
    in_time: bool,
}

fn run_in(member: &mut Member, span: CountedSpan, wanted: u64) -> PieceTally {
    let mut tally = PieceTally::default();
    let mut from = tsc::now();
    loop {
        let value = member.rig.run(member.piece)[0];
        let to = tsc::now();
        if from < span.begin {
            tally.in_time = true;
            // Only before anything counts: all counted pieces are of one length, so that their mean
            // is the mean over all their operations.
            member.piece = loops_for(wanted, (to - from) as f64 / member.piece as f64);
        } else if to <= span.end {
            tally.sum += value;
            tally.pieces += 1;
        }
        if to >= span.end {
            break;
        }
        from = to;
    }
    member.rig.release();
    tally
}

/// Loops that take about `wanted` ticks.
fn loops_for(wanted: u64, ticks_per_loop: f64) -> u64 {
    (wanted as f64 / ticks_per_loop.max(1e-3)).max(1.0) as u64
}

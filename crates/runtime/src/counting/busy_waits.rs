//! What a primary that busy-waits does between its waits, counted: how long it works until it waits
//! again.
//!
//! ```text
//!            guests      own: a round that found nothing     guests     own: a piece of work
//!   turns ──────────► back ──────────────────────────► turns ────► back ───────────────────► turns
//! ```
//!
//! No yield but those in its waits is needed for it. While it is counted, one counter stands in
//! front of the guests that it goes on with there ([`Area::turns`]), one behind them; they tell how
//! long guests had the thread, and how long it ran itself until the next round. The times are of
//! two kinds: those of a round that found nothing, and longer ones, *pieces of work*. A piece of
//! work counts with half of what guests took in the round before: by that much it was late on
//! average, since what the primary waited for came at some moment of that round.
//!
//! The same work at the same pace, with guests and without, is all that is compared
//! ([`crate::supervisor`]).

use crate::counting::absences::absent;
use crate::counting::area_words::{SAMPLES, row};
use crate::counting::order::SPINS;
use crate::layout::area::Area;
use crate::layout::context::Context;
use core::sync::atomic::Ordering::{Relaxed, Release};

/// A piece of work is longer than [`TURNS`] of the shortest rounds, and than 1/[`PART`] of the
/// usual piece of work.
const TURNS: u64 = 4;
const PART: u64 = 8;
/// A stage lasts as long as this many other stages at least.
const STAGES_LEAST: u64 = 12;
/// It lasts as long as this many at most, until there were [`ENOUGH`] pieces of work.
const STAGES_MOST: u64 = 60;
const ENOUGH: i32 = 64;
/// Fewer pieces of work are no sample.
pub(crate) const FEW: i32 = 16;
/// By 1/[`DRIFT`] the shortest round grows with each stage: waits may be others by then.
const DRIFT: u64 = 32;

/// The stage begins.
pub(crate) fn begin(area: &Area) {
    area.counting.laps[0].store(1, Relaxed);
    for word in [&area.counting.away, &area.counting.turned, &area.counting.lap_ticks] {
        word.store(0, Relaxed);
    }
    let shortest = area.counting.shortest_turn.load(Relaxed);
    area.counting.shortest_turn.store(shortest + shortest / DRIFT, Relaxed);
    area.counting.count.store(1, Relaxed);
}

/// Puts the counter behind the guests aside. The thread's, under the lock.
pub(crate) fn link(area: &Area, code: unsafe extern "C" fn()) {
    let back = area.back();
    back.rip.store(code as *const () as u64, Relaxed);
    back.next.store(area.own().pointer(), Relaxed);
    if let Some(last) = last_aside(area) {
        last.next.store(back.pointer(), Release);
    }
}

/// Takes it out again. The thread's, under the lock.
pub(crate) fn unlink(area: &Area) {
    if let Some(last) = last_aside(area) {
        last.next.store(area.own().pointer(), Release);
    }
    // It may be on its way to the counter.
    let (back, own) = (area.back().pointer(), area.own().pointer());
    let _ = area.turns().next.compare_exchange(back, own, Relaxed, Relaxed);
    area.back().next.store(back, Relaxed);
}

fn last_aside(area: &Area) -> Option<&'static Context> {
    let some = !area.thread.aside.load(Relaxed).is_null();
    // SAFETY: contexts of a ring are alive.
    some.then(|| unsafe { &*area.thread.aside_last.load(Relaxed) })
}

/// The primary went round its busy-wait. Returns whether the stage is over.
pub(crate) fn turned(area: &Area, now: u64) -> bool {
    let returned = area.counting.away.swap(0, Relaxed);
    let before = area.counting.turned.swap(now, Relaxed);
    area.counting.idle_until.store(now, Relaxed);
    // Without either it was at the control context meanwhile, or ran a handler.
    if before != 0 && returned >= before {
        let (guests, own) = (returned - before, now.saturating_sub(returned));
        // Zero while none is known. A primary that is behind with its work goes round once between
        // two pieces of work, and never shorter.
        let shortest =
            area.counting.shortest_turn.load(Relaxed).wrapping_sub(1).min(own.saturating_sub(1)) + 1;
        area.counting.shortest_turn.store(shortest, Relaxed);
        let usual = area.counting.usual_work.load(Relaxed).max(TURNS * shortest);
        let works = own > (TURNS * shortest).max(usual / PART);
        if works {
            // An interruption is no work: it counts little here, and is left out later.
            let usual = usual + own.min(4 * usual) / 8 - usual / 8;
            area.counting.usual_work.store(usual, Relaxed);
            add(area, own + guests / 2);
        }
        let idle = guests + if works { 0 } else { own };
        area.counting.idle.store(area.counting.idle.load(Relaxed) + idle, Relaxed);
        if area.counting.obeyed.load(Relaxed) & SPINS != 0 {
            absent(area, guests);
        }
    }
    let spent = now.saturating_sub(area.counting.stage_began.load(Relaxed));
    let stage = area.orders.stage_ticks();
    let works = area.counting.taken.load(Relaxed) as i32 * area.counting.laps[0].load(Relaxed);
    let over = spent > STAGES_MOST * stage || spent > STAGES_LEAST * stage && works >= ENOUGH;
    if over && works == 0 {
        // The usual piece of work is learnt anew.
        area.counting.usual_work.store(0, Relaxed);
    }
    over
}

/// Adds a piece of work to the samples; each sample is of as many pieces as it takes for all to
/// have space.
fn add(area: &Area, ticks: u64) {
    let sum = area.counting.lap_ticks.load(Relaxed) + ticks;
    let left = area.counting.count.load(Relaxed) - 1;
    area.counting.count.store(left, Relaxed);
    area.counting.lap_ticks.store(sum, Relaxed);
    if left > 0 {
        return;
    }
    let samples = area.samples(row::PLAIN);
    let mut taken = area.counting.taken.load(Relaxed) as usize;
    samples[taken % SAMPLES].store(u32::try_from(sum).unwrap_or(u32::MAX).max(1), Relaxed);
    taken += 1;
    if taken >= SAMPLES {
        for (index, two) in (0..SAMPLES / 2).map(|index| (index, [2 * index, 2 * index + 1])) {
            let sum = two.iter().fold(0_u32, |sum, at| sum.saturating_add(samples[*at].load(Relaxed)));
            samples[index].store(sum, Relaxed);
        }
        for sample in &samples[SAMPLES / 2..] {
            sample.store(0, Relaxed);
        }
        taken = SAMPLES / 2;
        area.counting.laps[0].store(area.counting.laps[0].load(Relaxed).saturating_mul(2), Relaxed);
    }
    area.counting.taken.store(taken as u32, Relaxed);
    area.counting.lap_ticks.store(0, Relaxed);
    area.counting.count.store(area.counting.laps[0].load(Relaxed), Relaxed);
}

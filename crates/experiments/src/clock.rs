//! **clock**: what time is counted in.
//!
//! The time stamp counter ticks at one rate, whatever the core does; the core clock changes. Cycles
//! are computed from ticks by timing a chain of dependent adds, one cycle each. A chain of
//! multiplications, three cycles each, checks that.

use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use lab::core_clock::{self, ClockChain, CoreClock};
use lab::grade::RunTally;
use lab::stats;
use lab::tsc::{self, Anchor};
use records::machine::{Clock, Machine};
use std::time::{Duration, Instant};
use units::{Estimate, Quantity, Unit};

/// Length of a reading, as a factor: long enough that the steps of the counter do not matter.
const READING_FACTOR: u64 = 8;

pub(crate) const ENTRY: Entry = Entry {
    name: "clock",
    about: "time stamp counter and core clock",
    needs: None,
    seconds: ByEffort { quick: 1.0, normal: 3.0, thorough: 10.0 },
    run: |ctx, machine| machine.experiments.clock = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.clock.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Clock, Refused> {
    let muls = CoreClock::of(ClockChain::Muls)?;
    let watch = ctx.budget.mul_f64(0.8);
    let began = Instant::now();
    let before = ctx.station.look();
    let (start, mut middle) = (Anchor::take(), None);
    let (mut by_adds, mut by_muls) = (Vec::new(), Vec::new());
    while began.elapsed() < watch && !ctx.stop.asked() {
        by_adds.push(ctx.station.core_clock().precise(READING_FACTOR));
        by_muls.push(muls.precise(READING_FACTOR));
        if middle.is_none() && began.elapsed() > watch / 2 {
            middle = Some(Anchor::take());
        }
        // Sleeping in between would let the clock fall; a short pause keeps the machine from
        // heating up for nothing.
        if by_adds.len() % 64 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    let end = Anchor::take();
    let interference = ctx.station.look().since(&before);
    ctx.tally.note_watch(&by_adds, &interference);
    let rate = start.rate_until(&end);
    ctx.tsc = rate;
    let (Some(ratio), Some(muls_ratio)) = (core_clock::over_time(&by_adds), core_clock::over_time(&by_muls))
    else {
        return Err(Refused::failed("stopped before the clock was read"));
    };
    let sorted = stats::sorted(&by_adds);
    // The slowest readings are interrupts, not the clock.
    let (lo, hi) = (stats::quantile_sorted(&sorted, 0.05), stats::quantile_sorted(&sorted, 0.99));
    let core = Estimate::new(ratio.value * rate.value, ratio.lo * rate.lo, ratio.hi * rate.hi);
    Ok(Clock {
        tsc: Quantity::measured(rate, Unit::Hertz),
        tsc_claimed: claimed_rate(ctx),
        granularity: Quantity::measured(Estimate::exact(tsc::granularity() as f64), Unit::Ticks),
        read_cost: read_cost(ctx),
        core: Quantity::measured(core, Unit::Hertz),
        cycles_per_tick: Quantity::measured(ratio, Unit::Ratio),
        cycles_per_tick_by_muls: Quantity::measured(muls_ratio, Unit::Ratio),
        core_wander: Quantity::measured(Estimate::exact((hi - lo) / ratio.value), Unit::Ratio),
        drift: drift(&start, middle, &end),
    })
}

/// The clock of the watch, with what blocks of the whole run say of how it varies.
pub(crate) fn widen(clock: &mut Clock, run: &RunTally) {
    let (Some(blocks), Some(ratio), Some(rate)) =
        (core_clock::over_time(&run.cycles_per_tick), clock.cycles_per_tick.estimate(), clock.tsc.value())
    else {
        return;
    };
    let both = Estimate::new(ratio.value, ratio.lo.min(blocks.lo), ratio.hi.max(blocks.hi));
    clock.cycles_per_tick = Quantity::measured(both, Unit::Ratio);
    clock.core = Quantity::measured(both.scaled(rate), Unit::Hertz);
}

fn claimed_rate(ctx: &Context<'_>) -> Quantity {
    match ctx.host.clocks.counter_hz.value() {
        Some(hz) => Quantity::claimed(hz as f64, Unit::Hertz),
        None => Quantity::unresolved(
            ctx.host
                .clocks
                .counter_hz
                .why_unknown()
                .unwrap_or("neither CPUID nor the kernel states it")
                .to_owned(),
        ),
    }
}

fn read_cost(ctx: &mut Context<'_>) -> Quantity {
    let means: Vec<f64> = (0..64)
        .map(|_| {
            let from = tsc::now();
            for _ in 0..256 {
                std::hint::black_box(tsc::now());
            }
            (tsc::end().0 - from) as f64 / 256.0
        })
        .collect();
    Quantity::measured(stats::median_interval(&means, &mut ctx.rng), Unit::Ticks)
}

/// Two halves of the watch, each against the kernel's raw clock.
fn drift(start: &Anchor, middle: Option<Anchor>, end: &Anchor) -> Quantity {
    let Some(middle) = middle else { return Quantity::unresolved("stopped before half of the watch") };
    let (first, second) = (start.rate_until(&middle), middle.rate_until(end));
    let ratio = second.over(first);
    let ppm = |x: f64| (x - 1.0) * 1e6;
    Quantity::measured(Estimate::new(ppm(ratio.value), ppm(ratio.lo), ppm(ratio.hi)), Unit::PartsPerMillion)
}

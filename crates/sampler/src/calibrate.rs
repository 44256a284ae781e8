//! Where samples land behind a load that is known to stall, and what a sample costs: asked of this
//! machine before each run, since it depends on the processor and, in a guest, on its host. Timers
//! that a hypervisor emulates make a sample ten times dearer than it is on bare metal.

use crate::chain::{Chain, thread_cpu_time};
use crate::perf::event::Event;
use crate::perf::open::Clock;
use crate::perf::ring::Ring;
use crate::perf::{event, open};
use insight::measured_share;
use lab::rng::Rng;
use lab::stats::median_interval;
use records::profile::Calibration;
use records::run::Refused;
use std::time::{Duration, Instant};
use units::{Quantity, Unit};

/// Far more than an L2 cache, and quickly written.
const AREA_BYTES: usize = 32 << 20;
/// Probes have a calibration of their own.
const NOT_PROBED: &str = "nothing was probed";
/// Samples a second: enough of them in a short time.
const FREQUENCY_HZ: u64 = 4000;
/// Of this thread's CPU time; on a busy machine it ends earlier.
const LASTS: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_millis(1200);
/// Steps with the clock, and as many without: some milliseconds each.
const STEPS: u64 = 40_000;
/// Less than this is not sharp enough to name a load by one sample.
const SHARP: f64 = 0.9;

/// Runs a chain of loads through a large area, by turns with the clock and without. Counts how many
/// samples land exactly one instruction behind the load, and how much longer the loop takes.
pub(crate) fn calibrate(clock: Clock) -> Calibration {
    calibrate_for(clock, LASTS)
}

/// The same within this CPU time.
pub(crate) fn calibrate_for(clock: Clock, lasts: Duration) -> Calibration {
    let unresolved = |why: &str| Calibration {
        one_behind: Quantity::unresolved(why),
        sample_cost: Quantity::unresolved(why),
        ..Calibration::unresolved(NOT_PROBED)
    };
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let frequency_hz = FREQUENCY_HZ.min(open::highest_frequency_hz());
    let clock = Clock { from_exec: false, frequency_hz, ..clock };
    let rings: Option<Vec<Ring>> = open::cpus()
        .into_iter()
        .filter_map(|cpu| open::open(clock, thread, cpu).ok())
        .map(|event| Ring::of(event, clock.holds).ok())
        .collect();
    let Some(mut rings) = rings.filter(|rings| !rings.is_empty()) else {
        return unresolved("no event could be opened for the calibration");
    };
    let chain = Chain::of(AREA_BYTES);
    let mut behind_load = 0;
    let mut at = chain.start();
    let mut stretch = |enabled: bool| {
        for ring in &rings {
            open::set_enabled(ring.event(), enabled);
        }
        let began = thread_cpu_time();
        let places;
        (at, places) = chain.go(at, STEPS);
        behind_load = places.behind_load;
        thread_cpu_time().saturating_sub(began).as_secs_f64()
    };
    let mut costs = Vec::new();
    let (began, spent) = (Instant::now(), thread_cpu_time());
    while thread_cpu_time().saturating_sub(spent) < lasts && began.elapsed() < LONGEST {
        let (without, with) = (stretch(false), stretch(true));
        costs.push((with - without) / (with * frequency_hz as f64));
    }
    let mut bytes = Vec::new();
    for ring in &mut rings {
        ring.drain(&mut bytes);
    }
    drop(chain);
    let sampled = event::events(&bytes, clock.holds).into_iter().filter_map(|event| match event {
        Event::Sample(sample) if !sample.in_kernel => sample.registers.map(|registers| registers.ip.0),
        _ => None,
    });
    let cost = median_interval(&costs, &mut Rng::new(1));
    Calibration { sample_cost: Quantity::measured(cost, Unit::Seconds), ..counted(sampled, behind_load) }
}

/// Goes through a chain of loads for that long in CPU time, or in time; returns the address behind
/// the load.
pub(crate) fn stall(lasts: Duration, longest: Duration) -> u64 {
    let chain = Chain::of(AREA_BYTES);
    let (mut at, mut behind_load) = (chain.start(), 0);
    let (began, spent) = (Instant::now(), thread_cpu_time());
    while thread_cpu_time().saturating_sub(spent) < lasts && began.elapsed() < longest {
        let places;
        (at, places) = chain.go(at, STEPS / 2);
        behind_load = places.behind_load;
    }
    behind_load
}

/// How many of the sampled addresses are right behind the load.
pub(crate) fn counted(sampled: impl Iterator<Item = u64>, behind_load: u64) -> Calibration {
    // Only samples in the loop count: writing the area and looking at the clock are not part of it.
    let near = behind_load.saturating_sub(16)..behind_load + 64;
    let sampled: Vec<u64> = sampled.filter(|ip| near.contains(ip)).collect();
    let exact = sampled.iter().filter(|&&ip| ip == behind_load).count() as u64;
    Calibration {
        one_behind: measured_share(exact, sampled.len() as u64),
        sample_cost: Quantity::unresolved("what a sample costs was not asked"),
        samples: sampled.len() as u64,
        ..Calibration::unresolved(NOT_PROBED)
    }
}

/// Says so where samples do not land sharply enough.
pub(crate) fn not_sharp(calibration: &Calibration) -> Option<Refused> {
    let sharp = calibration.one_behind.value();
    if sharp.is_some_and(|share| share >= SHARP) {
        return None;
    }
    let how = sharp.map_or("not known".to_owned(), |share| format!("{:.0}%", 100.0 * share));
    Some(Refused {
        what: "naming loads".to_owned(),
        why: format!(
            "samples of a known load that land right behind it: {how}; loads named here may be neighbours of those that stall"
        ),
        would_help: None,
    })
}

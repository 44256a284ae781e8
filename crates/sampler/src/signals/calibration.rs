//! Where samples land, and how often they come: asked in this process, by the same clock. Its rate
//! is at most that of the kernel's tick, which nothing else tells.

use crate::allocations::region::{ClockSettings, Region};
use crate::calibrate::{counted, stall};
use crate::perf::event::Event;
use crate::signals::reader::Reader;
use records::profile::Calibration;
use std::time::Duration;
use units::{Quantity, Unit};

/// Of this thread's CPU time: 150 samples at the most usual tick.
const LASTS: Duration = Duration::from_millis(600);
const LONGEST: Duration = Duration::from_millis(1500);

/// What the clock does here.
pub(crate) struct Found {
    pub calibration: Calibration,
    /// Samples a second of a thread's CPU time.
    pub frequency: Quantity,
    pub period_ns: u64,
    /// Why the kernel's events are not used, if they were asked for.
    pub events_refused: Option<String>,
}

/// Lets the clock run in this process, once; an error says why it cannot.
pub(crate) fn calibrate(period_ns: u64) -> Result<Found, String> {
    let settings = ClockSettings { period_ns, stack_every: 0 };
    let region =
        Region::new(1, Some(settings)).map_err(|e| format!("no shared memory: {}", records::plain(&e)))?;
    // SAFETY: nothing else begins a clock in this process. The memory stays mapped until the clock
    // has ended, below: no other thread has a timer.
    let runs = unsafe { heap::clock::arm::begin(region.memory()) };
    let behind_load = if runs { stall(LASTS, LONGEST) } else { 0 };
    heap::clock::arm::end();
    if !runs {
        return Err("no real-time signal is free in the profiler".to_owned());
    }
    let mut events = Vec::new();
    let mut reader = Reader::of(period_ns, period_ns);
    reader.read(&region, &mut events);
    // Each sample comes in a copy for each period that it stands for: only one counts here.
    let mut sampled: Vec<(u64, u64)> = events
        .iter()
        .filter_map(|event| match event {
            Event::Sample(sample) => Some((sample.time_ns, sample.registers?.ip.0)),
            _ => None,
        })
        .collect();
    sampled.dedup();
    let frequency = reader.frequency().ok_or("timers of CPU time do not expire here")?;
    Ok(Found {
        calibration: counted(sampled.into_iter().map(|(_, ip)| ip), behind_load),
        frequency: Quantity::measured(frequency, Unit::Hertz),
        period_ns: (1e9 / frequency.value) as u64,
        events_refused: None,
    })
}

//! Samples by signals of CPU-time timers, where the kernel's events are forbidden. The preloaded
//! library takes them, so only programs that the profiler starts are sampled.

use super::{Ended, Method, Opened};
use crate::allocations::preload::{Preload, is_there};
use crate::allocations::region::{ClockSettings, Region};
use crate::frequency;
use crate::perf::open::cpus;
use crate::perf::ring::Ring;
use crate::recorder::Recorder;
use crate::request::{Request, SampleError, Subject};
use crate::signals::calibration::{Found, calibrate};
use crate::signals::left_out;
use crate::signals::reader::Reader;
use crate::target::cpu_time_of_children;
use insight::samples::Tally;
use lab::child::cpu_time_of;
use records::profile::{Backend, Calibration, Sampling};
use records::run::Refused;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// Timers of CPU time, with what they do here.
pub(crate) struct BySignals {
    found: Found,
    /// CPU time between two samples, as asked for.
    asked_ns: u64,
}

/// With fewer samples the calibration tells the rate better.
const ENOUGH_FOR_A_RATE: u64 = 100;
/// More than enough to know who calls what.
const STACKS_A_SECOND: f64 = 300.0;

impl BySignals {
    /// Calibrates the timers. Says why the kernel's events are not used, if they were asked for.
    pub(crate) fn of(request: &Request, events_refused: Option<String>) -> Result<Self, SampleError> {
        let asked_ns = 1_000_000_000 / request.frequency_hz.unwrap_or(frequency::HIGHEST_HZ).max(1);
        let found = calibrate(asked_ns).map_err(|why| SampleError::NoSignals { why })?;
        Ok(Self { found: Found { events_refused, ..found }, asked_ns })
    }
}

impl Method for BySignals {
    fn calibration(&self) -> Calibration {
        self.found.calibration.clone()
    }

    /// Without the library there are no samples.
    fn preload(&self, request: &Request) -> Result<(Option<Preload>, Option<Refused>), SampleError> {
        let Subject::Command(words) = &request.subject else { return Err(SampleError::SignalsNotAttached) };
        // That it cannot be executed is said when that is tried.
        if !words.first().is_some_and(|word| is_there(word)) {
            return Ok((None, None));
        }
        let every = (self.found.frequency.value().unwrap_or(0.0) / STACKS_A_SECOND).ceil() as u32;
        let stack_every = if request.finds_out.stacks { every } else { 0 };
        let settings = ClockSettings { period_ns: self.asked_ns, stack_every };
        let preload =
            Preload::of(words, cpus().len(), Some(settings)).map_err(|why| SampleError::NoSignals { why })?;
        if !request.finds_out.allocations {
            preload.region.forgo_allocations();
        }
        Ok((Some(preload), None))
    }

    /// The library opens its timers itself.
    fn open(&self, _: &Request, _: &[u32]) -> Result<Opened, SampleError> {
        Ok((Vec::new(), None))
    }

    fn recorder(&self) -> Recorder {
        Recorder::default().with_signals(Reader::of(self.asked_ns, self.found.period_ns))
    }

    fn cpu_time(&self, _: &[Ring], recorder: &Recorder, before: Duration) -> Quantity {
        let processes = recorder.signals.iter().flat_map(Reader::processes);
        let running: Duration = processes.map(cpu_time_of).sum();
        let cpu_time = cpu_time_of_children().saturating_sub(before) + running;
        Quantity::measured(Estimate::exact(cpu_time.as_secs_f64()), Unit::Seconds)
    }

    fn end(&self, region: Option<&Region>, tally: &mut Tally) {
        if let Some(clock) = region.and_then(Region::clock) {
            clock.is_over.store(1, Relaxed);
            tally.lost += clock.lost.load(Relaxed);
        }
    }

    fn refusals(&self, run: &Ended<'_>) -> Vec<Refused> {
        let mut refusals = run.refusals_of_time();
        if let Some(reader) = run.reader {
            let cpu_time_s = run.cpu_time.value().unwrap_or(0.0);
            refusals.extend(left_out::of(&self.found, reader, run.region, run.tally, cpu_time_s));
        }
        refusals
    }

    fn sampling(&self, run: &Ended<'_>) -> Sampling {
        // This run's own rate, if it has enough to tell.
        let own = run.reader.filter(|_| run.tally.samples >= ENOUGH_FOR_A_RATE).and_then(Reader::frequency);
        let frequency =
            own.map_or_else(|| self.found.frequency.clone(), |own| Quantity::measured(own, Unit::Hertz));
        run.sampling_of_time(Backend::Signal, frequency, true)
    }
}

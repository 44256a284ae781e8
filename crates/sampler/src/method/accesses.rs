//! Samples that are loads and stores, which the hardware chooses.

use super::{Ended, Method, Opened};
use crate::perf::open::{AccessEvent, Clock, Holds};
use crate::perf::ring::{RING_BYTES, Ring};
use crate::perf::rings::rings;
use crate::perf_data::role::latency_kind;
use crate::recorder::Recorder;
use crate::request::{Request, SampleError, Subject};
use records::profile::{Backend, Calibration, Sampling};
use records::run::Refused;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// An event of the hardware.
pub(crate) struct ByAccesses {
    event: AccessEvent,
    clock: Clock,
}

/// Samples a second of each thread, if no frequency is asked for.
const USUAL_HZ: u64 = 4000;

impl ByAccesses {
    pub(crate) fn of(request: &Request, event: AccessEvent) -> Self {
        let clock = Clock {
            frequency_hz: request.frequency_hz.unwrap_or(USUAL_HZ),
            with_kernel: !event.excludes_kernel,
            from_exec: matches!(request.subject, Subject::Command(_)),
            wake_at_bytes: (RING_BYTES / 2) as u32,
            holds: Holds::Accesses(event),
        };
        Self { event, clock }
    }
}

impl Method for ByAccesses {
    fn calibration(&self) -> Calibration {
        Calibration::unresolved("hardware samples name the load itself")
    }

    /// Stacks come with the samples: a clock's samples would be of other instructions.
    fn open(&self, _: &Request, threads: &[u32]) -> Result<Opened, SampleError> {
        Ok((rings(threads, self.clock)?, None))
    }

    fn recorder(&self) -> Recorder {
        let mut recorder = Recorder::default();
        recorder.tally.is_exact = true;
        recorder
    }

    fn cpu_time(&self, _: &[Ring], _: &Recorder, _: Duration) -> Quantity {
        Quantity::unresolved("hardware samples of loads show latency, not time")
    }

    fn overheads(&self, run: &Ended<'_>) -> [Quantity; 2] {
        let beside = run.used.as_secs_f64() / run.elapsed.as_secs_f64().max(1e-9);
        [
            Quantity::unresolved("what a hardware sample costs is not known"),
            Quantity::measured(Estimate::exact(beside), Unit::Ratio),
        ]
    }

    fn refusals(&self, run: &Ended<'_>) -> Vec<Refused> {
        run.lost_samples().into_iter().collect()
    }

    fn sampling(&self, run: &Ended<'_>) -> Sampling {
        let threshold = self.event.config[1];
        Sampling {
            backend: self.event.backend,
            frequency: Quantity::claimed(self.clock.frequency_hz as f64, Unit::Hertz),
            latency: latency_kind(self.event.backend),
            least_latency: if self.event.backend == Backend::Pebs {
                Quantity::claimed(threshold as f64, Unit::Cycles)
            } else {
                Quantity::unresolved("all loads are sampled")
            },
            samples: run.tally.accesses.samples,
            lost: run.tally.lost,
            sees_kernel: self.clock.with_kernel,
            selected: run.request.selected(),
            calibration: run.calibration.clone(),
        }
    }

    fn is_of_accesses(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::event::accesses_of;
    use crate::perf::open;
    use std::time::Instant;

    /// No machine of ours samples loads; but an event of the clock with the same fields is opened,
    /// read and taken apart in the same way.
    #[test]
    fn samples_are_opened_and_taken_apart_alike() {
        let event = AccessEvent {
            backend: Backend::Pebs,
            kind: 1,
            config: [0; 3],
            precise: 0,
            excludes_kernel: true,
        };
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let clock = Clock {
            frequency_hz: 4000,
            with_kernel: false,
            from_exec: false,
            wake_at_bytes: (RING_BYTES / 2) as u32,
            holds: Holds::Accesses(event),
        };
        let opened: Vec<_> =
            open::cpus().into_iter().filter_map(|cpu| open::open(clock, thread, cpu).ok()).collect();
        if opened.is_empty() {
            eprintln!("skipped: events may not be opened here");
            return;
        }
        let mut rings: Vec<Ring> =
            opened.into_iter().map(|event| Ring::of(event, clock.holds).unwrap()).collect();
        let began = Instant::now();
        while began.elapsed().as_millis() < 300 {
            std::hint::black_box(began);
        }
        let mut bytes = Vec::new();
        for ring in &mut rings {
            ring.drain(&mut bytes);
        }
        let samples: Vec<_> = crate::perf_data::records::records(&bytes).all;
        let samples: Vec<_> = samples.into_iter().filter(|record| record.kind == 9).collect();
        assert!(samples.len() > 10, "{}", samples.len());
        for sample in samples {
            let raw = accesses_of(event, &sample).expect("a sample with all of its fields");
            assert_eq!((raw.process, raw.thread), (std::process::id(), thread));
            assert!(raw.ip > 0 && raw.time_ns > 0 && raw.period.is_some_and(|period| period > 0));
        }
    }
}

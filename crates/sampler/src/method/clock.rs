//! Samples by the kernel's events of CPU time.

use super::{Ended, Method, Opened, Probing};
use crate::allocations::preload::Preload;
use crate::calibrate::calibrate;
use crate::frequency;
use crate::perf::open::{Clock, Holds, cpus, highest_frequency_hz, open};
use crate::perf::ring::{RING_BYTES, Ring, STACK_RING_BYTES};
use crate::perf::rings::rings;
use crate::probes;
use crate::recorder::Recorder;
use crate::request::{Request, SampleError, Subject};
use records::profile::{Backend, Calibration, Sampling};
use records::run::Refused;
use std::io;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// The kernel's clock, with the frequency that its calibration allows.
pub(crate) struct ByClock {
    clock: Clock,
    calibration: Calibration,
}

/// Bytes of the stack that are copied at a sample: about thirty frames of compiled programs.
const STACK_BYTES: u32 = 8 << 10;
/// A stack costs more than a sample of registers does, and who calls what is known from fewer.
const SAMPLES_A_STACK: u64 = 16;

impl ByClock {
    /// Calibrates the clock; an error if its events may not be used here.
    pub(crate) fn of(request: &Request) -> Result<Self, SampleError> {
        let mut clock = Clock {
            frequency_hz: frequency::LOWEST_HZ,
            with_kernel: true,
            from_exec: matches!(request.subject, Subject::Command(_)),
            wake_at_bytes: (RING_BYTES / 2) as u32,
            holds: Holds::Registers,
        };
        clock.with_kernel = may_sample_kernel(clock)?;
        let calibration = calibrate(clock);
        clock.frequency_hz = match request.frequency_hz {
            Some(wanted) => wanted.min(highest_frequency_hz()),
            None => frequency::within(request.budget, &calibration),
        };
        Ok(Self { clock, calibration })
    }

    /// Opens the slower event that copies stacks, too. Without it there is a profile all the same.
    fn add_stacks(&self, rings: &mut Vec<Ring>, threads: &[u32]) -> Option<Refused> {
        let slower = Clock {
            frequency_hz: self.clock.frequency_hz.div_ceil(SAMPLES_A_STACK),
            wake_at_bytes: (STACK_RING_BYTES / 2) as u32,
            holds: Holds::Stacks(STACK_BYTES),
            ..self.clock
        };
        match self::rings(threads, slower) {
            Ok(added) => {
                rings.extend(added);
                None
            }
            Err(e) => Some(Refused { what: "call stacks".to_owned(), why: e.to_string(), would_help: None }),
        }
    }
}

impl Method for ByClock {
    fn calibration(&self) -> Calibration {
        self.calibration.clone()
    }

    fn probing(
        &self,
        request: &Request,
        preload: Option<&mut Preload>,
    ) -> (Option<Probing>, Option<Refused>) {
        let Some(preload) = preload.filter(|_| request.finds_out.latencies) else { return (None, None) };
        let l2_bytes = request.caches.l2.map_or(1 << 20, |l2| l2.0);
        match probes::calibrate::calibrate(&mut preload.region, l2_bytes) {
            Ok(found) => (Some(Probing { found, frequency_hz: self.clock.frequency_hz }), None),
            Err(why) => (None, Some(probes::refused(why))),
        }
    }

    fn open(&self, request: &Request, threads: &[u32]) -> Result<Opened, SampleError> {
        let mut rings = rings(threads, self.clock)?;
        let no_stacks = if request.finds_out.stacks { self.add_stacks(&mut rings, threads) } else { None };
        Ok((rings, no_stacks))
    }

    /// The events of registers count time, of all threads.
    fn cpu_time(&self, rings: &[Ring], _: &Recorder, _: Duration) -> Quantity {
        let of_registers = rings.iter().filter(|ring| ring.holds() == Holds::Registers);
        let cpu_time = Duration::from_nanos(of_registers.map(Ring::counted).sum());
        Quantity::measured(Estimate::exact(cpu_time.as_secs_f64()), Unit::Seconds)
    }

    fn refusals(&self, run: &Ended<'_>) -> Vec<Refused> {
        let (clock, tally) = (&self.clock, run.tally);
        let mut refusals = run.refusals_of_time();
        refusals.extend((!clock.with_kernel).then(no_kernel));
        // The CPU time is that of the whole run, and with the kernel's.
        let is_comparable = run.request.window.is_none() && clock.with_kernel;
        let cpu_time_s = run.cpu_time.value().filter(|_| is_comparable).unwrap_or(0.0);
        refusals.extend(frequency::too_few(clock.frequency_hz, cpu_time_s, tally.samples + tally.lost));
        refusals
    }

    fn sampling(&self, run: &Ended<'_>) -> Sampling {
        let frequency = Quantity::claimed(self.clock.frequency_hz as f64, Unit::Hertz);
        run.sampling_of_time(Backend::Clock, frequency, self.clock.with_kernel)
    }
}

/// Whether time in the kernel may be sampled, too; an error if nothing may.
fn may_sample_kernel(clock: Clock) -> Result<bool, SampleError> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for with_kernel in [true, false] {
        for cpu in cpus() {
            match open(Clock { with_kernel, from_exec: true, ..clock }, thread, cpu) {
                Ok(_) => return Ok(with_kernel),
                Err(e) => last = e,
            }
        }
    }
    Err(SampleError::NotAllowed { why: records::plain(&last) })
}

fn no_kernel() -> Refused {
    Refused {
        what: "time in the kernel".to_owned(),
        why: "it may not be sampled here; shares are of the time in user mode".to_owned(),
        would_help: Some("root, CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1".to_owned()),
    }
}

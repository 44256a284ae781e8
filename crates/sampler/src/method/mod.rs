//! What takes the samples of a run. A method is chosen once, at the start, and carries all that
//! differs by it; the run asks it, and never which one it is.
//!
//! ```text
//! clock      the kernel's events of CPU time
//! signals    signals of CPU-time timers, which the preloaded library takes
//! accesses   loads and stores that the hardware chooses
//! ```
//!
//! To add a method: a file here that implements [`Method`], and where it is chosen:
//! `session/mod.rs` for those of time.

pub(crate) mod accesses;
pub(crate) mod clock;
pub(crate) mod signals;

use crate::allocations::preload::{Preload, for_allocations};
use crate::allocations::region::Region;
use crate::calibrate::not_sharp;
use crate::overhead::{overheads, taken_s};
use crate::perf::ring::Ring;
use crate::probes::calibrate::ProbeCalibration;
use crate::recorder::Recorder;
use crate::request::{Request, SampleError};
use crate::signals::reader::Reader;
use insight::samples::Tally;
use records::profile::{Backend, Calibration, Sampling};
use records::run::Refused;
use std::time::Duration;
use units::Quantity;

/// What takes the samples of a run.
pub(crate) trait Method {
    /// Where samples land and what one costs, as far as it is known before the run.
    fn calibration(&self) -> Calibration;

    /// The library that comes into the program, or why there is none. Without it nothing is known
    /// of allocations.
    fn preload(&self, request: &Request) -> Result<(Option<Preload>, Option<Refused>), SampleError> {
        Ok(for_allocations(request))
    }

    /// How loads are probed beside the samples, or why they are not.
    fn probing(&self, _: &Request, _: Option<&mut Preload>) -> (Option<Probing>, Option<Refused>) {
        (None, None)
    }

    /// Opens what tells of these threads: a ring of events for each CPU, or none. Says why there
    /// are no stacks, if there should be.
    fn open(&self, request: &Request, threads: &[u32]) -> Result<Opened, SampleError>;

    /// The recorder of this method's samples.
    fn recorder(&self) -> Recorder {
        Recorder::default()
    }

    /// The CPU time of all threads while they were sampled. The profiler's children had used
    /// `before` when the run began.
    fn cpu_time(&self, rings: &[Ring], recorder: &Recorder, before: Duration) -> Quantity;

    /// The run is over: no more samples are taken. Adds those that were lost.
    fn end(&self, _: Option<&Region>, _: &mut Tally) {}

    /// The share of the program's time that profiling took in all, and beside the program.
    fn overheads(&self, run: &Ended<'_>) -> [Quantity; 2] {
        let taken = taken_s(run.calibration, run.tally.samples, run.probes_s);
        overheads(run.cpu_time, run.used, taken)
    }

    /// What these samples do not show.
    fn refusals(&self, run: &Ended<'_>) -> Vec<Refused>;

    /// How it was sampled, as the record has it.
    fn sampling(&self, run: &Ended<'_>) -> Sampling;

    /// Whether samples are loads and stores, not time.
    fn is_of_accesses(&self) -> bool {
        false
    }
}

/// The rings that were opened, and why there are no stacks among them.
pub(crate) type Opened = (Vec<Ring>, Option<Refused>);

/// How loads are probed.
pub(crate) struct Probing {
    /// What a probe costs and sees.
    pub found: ProbeCalibration,
    /// Samples a second of the clock beside them.
    pub frequency_hz: u64,
}

/// A run that is over.
pub(crate) struct Ended<'a> {
    pub request: &'a Request,
    pub tally: &'a Tally,
    /// The calibration with what probes cost.
    pub calibration: &'a Calibration,
    pub region: Option<&'a Region>,
    /// What read the samples in the region.
    pub reader: Option<&'a Reader>,
    /// The program's CPU time.
    pub cpu_time: &'a Quantity,
    pub elapsed: Duration,
    /// The CPU time of the profiler itself.
    pub used: Duration,
    /// What probes took from the program, in seconds.
    pub probes_s: f64,
}

impl Ended<'_> {
    /// Samples of time, as the record has them.
    fn sampling_of_time(&self, backend: Backend, frequency: Quantity, sees_kernel: bool) -> Sampling {
        Sampling {
            backend,
            frequency,
            latency: None,
            least_latency: Quantity::unresolved("samples of a clock show stall, not latency"),
            samples: self.tally.samples,
            lost: self.tally.lost,
            sees_kernel,
            selected: self.request.selected(),
            calibration: self.calibration.clone(),
        }
    }

    /// What samples of time do not show, whatever takes them.
    fn refusals_of_time(&self) -> Vec<Refused> {
        not_sharp(self.calibration).into_iter().chain(self.lost_samples()).collect()
    }

    fn lost_samples(&self) -> Option<Refused> {
        let lost = self.tally.lost;
        (lost > 0).then(|| Refused {
            what: "samples".to_owned(),
            why: format!("{lost} were lost, since the profiler was not given a CPU in time"),
            would_help: Some("a lower --frequency".to_owned()),
        })
    }
}

//! What to profile and how, and why there may be no profile.

use crate::perf::open::now_ns;
use insight::CacheSizes;
use insight::probes::Latencies;
use insight::samples::Tally;
use lab::inherited::Inherited;
use records::profile::{ProfiledProgram, ProgramEnd, Selected};
use std::ffi::OsString;
use std::time::Duration;
use units::{Bytes, Estimate};

/// What to profile.
#[derive(Clone, Debug)]
pub enum Subject {
    Command(Vec<OsString>),
    Process(u32),
}

/// What is to be found out beside the loads themselves.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub struct FindsOut {
    /// Who calls what waits.
    pub stacks: bool,
    /// Where the data is allocated that the core waits for.
    pub allocations: bool,
    /// Smaller allocations are left out; 0 for none.
    pub allocations_from: Bytes,
    /// What code is called that the program makes while it runs, by asking runtimes to tell.
    pub made_code: bool,
    /// How long loads take, by stopping them now and then; only with `allocations`.
    pub latencies: bool,
}

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// By the kernel's events, or else by signals.
    Auto,
    Clock,
    Signal,
}

/// Where what the program prints goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Its streams are its own.
    AsItIs,
    /// Standard output goes to standard error.
    ToError,
    /// Both go nowhere.
    Nowhere,
}

/// A profile that is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub subject: Subject,
    pub backend: Backend,
    /// Samples a second of each thread's CPU time; if none is given, as many as the budget allows.
    pub frequency_hz: Option<u64>,
    /// The share of the program's time that profiling may take.
    pub budget: f64,
    /// End after this time; a program that was started is left running.
    pub duration: Option<Duration>,
    /// Count only samples of this part of the run: from its beginning, in time.
    pub window: Option<(Duration, Duration)>,
    pub finds_out: FindsOut,
    pub output: Output,
    pub inherited: Inherited,
    pub caches: CacheSizes,
    /// What a yield costs on this machine, if that is known.
    pub yield_cycles: Option<Estimate>,
    pub latencies: Latencies,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error("{what}: {why}")]
    NotStarted { what: String, why: String, missing: bool },
    #[error("process {pid}: {why}")]
    NotAttached { pid: u32, why: String },
    #[error("process {pid}: {threads} threads need more descriptors than this process may have")]
    TooManyFiles { pid: u32, threads: usize },
    #[error("perf_event_open: {why}")]
    NotAllowed { why: String },
    #[error("--system: {why}")]
    NotAllowedForAll { why: String },
    #[error("{what}: {why}")]
    NoCgroup { what: String, why: String },
    #[error("perf events: {why}")]
    NoRing { why: String },
    #[error("samples of loads: {why}")]
    NoHardware { why: String },
    #[error("sampling by signals: {why}")]
    NoSignals { why: String },
    #[error("--backend signal: only for programs that the profiler starts")]
    SignalsNotAttached,
}

impl Request {
    /// The part of the run that counts, if the run begins now, on the clock of the events.
    pub(crate) fn window_from_now_ns(&self) -> Option<(u64, u64)> {
        let now = now_ns();
        let later = |time: Duration| now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.window.map(|(from, to)| (later(from), later(to)))
    }

    /// The part of the run that counts, as the record has it.
    pub(crate) fn selected(&self) -> Option<Selected> {
        self.window.and_then(selected)
    }

    /// When sampling ends, if the program has not ended by then. A program that was started runs on
    /// for its output and its end, and is waited for; one that is attached to has nothing more to
    /// tell when the part of the run that counts is over.
    pub(crate) fn limit(&self) -> Option<Duration> {
        let is_attached = matches!(self.subject, Subject::Process(_));
        let last = self.window.map(|(_, to)| to).filter(|to| is_attached && *to < Duration::MAX);
        self.duration.into_iter().chain(last).min()
    }

    /// What was profiled, as the record has it.
    pub(crate) fn program(&self, ended: ProgramEnd, tally: &Tally) -> ProfiledProgram {
        let (command, pid) = match &self.subject {
            Subject::Command(words) => {
                (words.iter().map(|word| records::text_of(word.as_ref())).collect(), None)
            }
            Subject::Process(pid) => (Vec::new(), Some(*pid)),
        };
        ProfiledProgram {
            command,
            asked: Vec::new(),
            pid,
            perf_data: None,
            ended,
            processes: tally.sampled().count(),
            threads: tally.sampled().map(|(_, process)| process.threads.len()).sum(),
        }
    }
}

/// A part of a run, from its beginning; all of it is no part.
pub(crate) fn selected((from, to): (Duration, Duration)) -> Option<Selected> {
    let to_s = (to < Duration::MAX).then_some(to.as_secs_f64());
    (to_s.is_some() || !from.is_zero()).then_some(Selected { from_s: from.as_secs_f64(), to_s })
}

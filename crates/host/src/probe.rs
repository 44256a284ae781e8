//! What can only be found out by trying: opening perf events, reading model-specific registers.
//!
//! The live side is in the lab, where system calls have a room. Answers can be recorded with a tree
//! and replayed, so the reasoning about them is tested without the hardware.

use crate::source::Source;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Where a recorded tree keeps the answers.
pub const ANSWERS: &str = "gleaner/probes";

/// A perf event to open on the calling thread, as `perf_event_attr` wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Names the event in recordings.
    pub name: &'static str,
    pub kind: u32,
    pub config: u64,
    pub config1: u64,
    /// Skid that is bearable, `precise_ip`: 0 any, 2 none asked for.
    pub precise: u8,
    /// Events from one sample to the next; `None` counts.
    pub period: Option<u64>,
    pub exclude_kernel: bool,
    /// Another event of the same PMU that must lead the group.
    pub leader: Option<u64>,
    /// Watch a variable of the prober's own, and touch it; `config` is not used.
    pub breakpoint: bool,
}

/// Why a trial failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel said no, with this error number.
    Errno(i32),
    /// It was not tried, and why.
    NotTried(String),
}

/// Tries things. Implementations must leave nothing open and nothing changed behind them.
pub trait Prober {
    /// Opens the event for the calling thread, lets it see some work (loads, and writes to the
    /// watched variable), and closes it. The count it read at the end.
    fn event(&self, event: &EventSpec) -> Result<u64, Refusal>;

    /// Reads a model-specific register.
    fn msr(&self, cpu: u32, register: u32) -> Result<u64, Refusal>;
}

/// Answers for the facts of a source when nothing can be tried: those recorded with it.
#[derive(Debug)]
pub struct RecordedProber {
    answers: BTreeMap<String, Result<u64, i32>>,
    otherwise: String,
}

impl RecordedProber {
    pub fn of(source: &Source) -> Self {
        let text = source.text(ANSWERS);
        let otherwise = match &text {
            records::host::Fact::Known(_) => "not tried when this machine was recorded",
            records::host::Fact::Unknown { .. } if source.is_live() => "not tried",
            records::host::Fact::Unknown { .. } => "a recorded machine cannot be tried",
        };
        let answers = text.get().map(|t| t.lines().filter_map(answer).collect()).unwrap_or_default();
        Self { answers, otherwise: otherwise.to_owned() }
    }

    fn find(&self, key: &str) -> Result<u64, Refusal> {
        match self.answers.get(key) {
            Some(answer) => answer.map_err(Refusal::Errno),
            None => Err(Refusal::NotTried(self.otherwise.clone())),
        }
    }
}

/// `cycles = 4711` or `cycles ! 95`.
fn answer(line: &str) -> Option<(String, Result<u64, i32>)> {
    if let Some((key, value)) = line.split_once(" = ") {
        return Some((key.trim().to_owned(), Ok(value.trim().parse().ok()?)));
    }
    let (key, errno) = line.split_once(" ! ")?;
    Some((key.trim().to_owned(), Err(errno.trim().parse().ok()?)))
}

impl Prober for RecordedProber {
    fn event(&self, event: &EventSpec) -> Result<u64, Refusal> {
        self.find(&event_key(event))
    }

    fn msr(&self, cpu: u32, register: u32) -> Result<u64, Refusal> {
        self.find(&msr_key(cpu, register))
    }
}

/// Passes questions on and keeps the answers, for the recorder.
pub struct Keeping<'a> {
    inner: &'a dyn Prober,
    answers: RefCell<BTreeMap<String, Result<u64, i32>>>,
}

impl<'a> Keeping<'a> {
    pub fn new(inner: &'a dyn Prober) -> Self {
        Self { inner, answers: RefCell::default() }
    }

    /// The text that [`RecordedProber`] reads.
    pub fn into_text(self) -> String {
        let line = |(key, answer): (String, Result<u64, i32>)| match answer {
            Ok(value) => format!("{key} = {value}\n"),
            Err(errno) => format!("{key} ! {errno}\n"),
        };
        self.answers.into_inner().into_iter().map(line).collect()
    }

    fn keep(&self, key: String, answer: Result<u64, Refusal>) -> Result<u64, Refusal> {
        match &answer {
            Ok(value) => drop(self.answers.borrow_mut().insert(key, Ok(*value))),
            Err(Refusal::Errno(e)) => drop(self.answers.borrow_mut().insert(key, Err(*e))),
            Err(Refusal::NotTried(_)) => {}
        }
        answer
    }
}

impl Prober for Keeping<'_> {
    fn event(&self, event: &EventSpec) -> Result<u64, Refusal> {
        self.keep(event_key(event), self.inner.event(event))
    }

    fn msr(&self, cpu: u32, register: u32) -> Result<u64, Refusal> {
        self.keep(msr_key(cpu, register), self.inner.msr(cpu, register))
    }
}

fn event_key(event: &EventSpec) -> String {
    let kernel = if event.exclude_kernel { "" } else { " with kernel" };
    format!("event {}{kernel}", event.name)
}

fn msr_key(cpu: u32, register: u32) -> String {
    format!("msr {register:#x} cpu {cpu}")
}

/// Error numbers that say something about perf events and registers; the same on every Linux
/// Gleaner knows.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EIO: i32 = 5;
    pub(crate) const ENXIO: i32 = 6;
    pub(crate) const EACCES: i32 = 13;
    pub(crate) const EBUSY: i32 = 16;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ENOSYS: i32 = 38;
    pub(crate) const ENODATA: i32 = 61;
    pub(crate) const EOPNOTSUPP: i32 = 95;
}

/// The error's name, as manual pages have it.
pub(crate) fn errno_name(number: i32) -> String {
    use errno::{EACCES, EBUSY, EINVAL, EIO, ENODATA, ENODEV, ENOENT, ENOSYS, ENXIO, EOPNOTSUPP, EPERM};
    let name = match number {
        EPERM => "EPERM",
        ENOENT => "ENOENT",
        EIO => "EIO",
        ENXIO => "ENXIO",
        EACCES => "EACCES",
        EBUSY => "EBUSY",
        ENODEV => "ENODEV",
        EINVAL => "EINVAL",
        ENOSYS => "ENOSYS",
        ENODATA => "ENODATA",
        EOPNOTSUPP => "EOPNOTSUPP",
        _ => return format!("error {number}"),
    };
    name.to_owned()
}

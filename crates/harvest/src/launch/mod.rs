//! Starts a primary with scavengers in its address space, watches them, gathers how they ended.
//!
//! ```no_run
//! use gleaner_harvest::launch::{Harvest, Program, Scavenger, launch};
//! let harvest = Harvest {
//!     scavengers: vec![Scavenger::new(Program::new("/cache/scan", ["scan", "64"]))],
//!     ..Harvest::new(Program::new("/cache/chase", ["chase", "256"]))
//! };
//! let outcome = launch(&harvest)?.wait(|snapshot| eprintln!("{} aboard", snapshot.aboard()))?;
//! # Ok::<(), gleaner_harvest::launch::LaunchError>(())
//! ```
//!
//! The thread that calls [`launch`] must live until everybody ended: scavengers die with it (unless told otherwise).
//! `page` is the control page as the launcher sees it, `running` the watching.

pub(crate) mod signals;

mod blob;
mod environment;
mod executed;
mod fixed;
mod forked;
mod host;
mod lives;
mod paces;
mod page;
mod ready;
mod running;
mod siblings;

pub use host::{check as check_host, check_home};
pub use lives::{Life, Processor};
pub use paces::{Pace, Paces, Visits};
pub use ready::Ready;
pub use running::{Outcome, Running, ScavengerNow, ScavengerOutcome, Snapshot};
pub use siblings::{SiblingsOutcome, ThreadNow};

use crate::find::libraries::{self, Libraries};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A rewritten executable and its arguments, of which the first is its name.
#[derive(Clone, Debug)]
pub struct Program {
    pub file: PathBuf,
    /// What it was rewritten from: where the program asks for its own file, this is the answer.
    pub original: Option<PathBuf>,
    pub argv: Vec<OsString>,
    /// Where its loader looks for libraries that it would not find there by itself.
    pub libraries: Option<Libraries>,
    /// Rewritten ones among them.
    pub modules: Vec<Module>,
}

/// A library that was rewritten.
#[derive(Clone, Debug)]
pub struct Module {
    /// What the program's loader finds it by.
    pub name: PathBuf,
    /// The rewritten file itself.
    pub file: PathBuf,
    /// What it was rewritten from: what it is called once it is there.
    pub original: PathBuf,
}

impl Program {
    pub fn new<A: Into<OsString>>(file: impl Into<PathBuf>, argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            file: file.into(),
            original: None,
            argv: argv.into_iter().map(Into::into).collect(),
            libraries: None,
            modules: Vec::new(),
        }
    }
}

/// Where a standard stream of a scavenger comes from or goes to.
#[derive(Clone, Debug, Default)]
pub enum Stream {
    /// `/dev/null`.
    #[default]
    Null,
    /// The primary's.
    Primarys,
    /// A file, made anew for output.
    File(PathBuf),
    /// A file that output is added to.
    Append(PathBuf),
}

#[derive(Clone, Debug)]
pub struct Scavenger {
    pub program: Program,
    /// All of its environment; none: that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
    pub directory: Option<PathBuf>,
    pub stdin: Stream,
    pub stdout: Stream,
    pub stderr: Stream,
}

impl Scavenger {
    pub fn new(program: Program) -> Self {
        Self {
            program,
            environment: None,
            directory: None,
            stdin: Stream::Null,
            stdout: Stream::Null,
            stderr: Stream::Null,
        }
    }
}

/// What becomes of scavengers when the primary ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// They are killed once they are at home.
    #[default]
    Kill,
    /// They run on at home, and the harvest ends with the last of them.
    Finish,
}

/// What guests may cost the primary: held by watching its pace, and sending them home.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// The share by which it may become slower.
    pub slowdown: f64,
    /// How long it may be away at once.
    pub absence: Duration,
    /// What takes no longer than this between two of its yields is no miss.
    pub soon: Duration,
}

/// What the primary begins with, though it is not so here any more, or is not handed on to what is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Signals (bit 0: signal 1) that are ignored.
    pub ignored: u64,
    /// Signals that are blocked.
    pub blocked: u64,
    /// Standard streams (bit 0: input) that are closed.
    pub closed: u32,
}

#[derive(Clone, Debug)]
pub struct Harvest {
    pub primary: Program,
    pub scavengers: Vec<Scavenger>,
    /// Most guests aboard one thread of the primary.
    pub ring: u32,
    /// What guests may cost the primary; none: whatever they do, and nobody looks.
    pub promise: Option<Promise>,
    /// CPUs (below 64) for scavengers at home and for the supervisor; none: those of the primary.
    pub home_cpus: Option<Vec<u32>>,
    pub after: After,
    /// How long a guest may be aboard before it goes home once, so that its signals are served.
    pub recall: Duration,
    /// How often the watcher given to [`Running::wait`] is called.
    pub watch_every: Duration,
    pub outlive_launcher: bool,
    pub inherited: Inherited,
    /// The threads of the primary, which must be rewritten for that, are each other's guests; there are no scavengers then.
    pub siblings: bool,
}

impl Harvest {
    pub fn new(primary: Program) -> Self {
        Self {
            primary,
            scavengers: Vec::new(),
            ring: 8,
            promise: None,
            home_cpus: None,
            after: After::Kill,
            recall: Duration::from_millis(100),
            watch_every: Duration::from_millis(200),
            outlive_launcher: false,
            inherited: Inherited::default(),
            siblings: false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("no memory file for the runtime (memfd_create): {0}")]
    Memfd(io::Error),
    #[error(
        "/proc is not mounted, or its links to open files are not to be had; the runtime is handed over by them"
    )]
    NoProc,
    #[error("{0}: {1}; harvesting takes it, and a container that allows it")]
    Forbidden(&'static str, io::Error),
    #[error("process descriptors (pidfd_open): {0}; they take Linux 5.3, and a container that allows them")]
    NoPidfd(io::Error),
    #[error("no descriptor is left for a process (pidfd_open): {0}")]
    NoDescriptor(io::Error),
    #[error("no process can be made for the primary (is there a limit on processes?): {0}")]
    NoProcess(io::Error),
    #[error("{0}: {1}")]
    Start(PathBuf, io::Error),
    #[error("{0}: arguments, environment and paths must not contain a zero byte")]
    ZeroByte(PathBuf),
    #[error("--home-cpus: {0}: not among the CPUs that scavengers may use here (of the first 64)")]
    NoSuchCpus(String),
    #[error("at most {max} scavengers can share one primary", max = runtime_abi::control::SCAVENGERS)]
    TooMany,
    #[error(
        "{first} and {second} are both linked to fixed addresses that overlap; one of them must be position-independent (-pie)"
    )]
    Overlap { first: PathBuf, second: PathBuf },
    #[error("waiting for the harvest: {0}")]
    Wait(io::Error),
}

/// Starts the primary, and with it its scavengers.
pub fn launch(harvest: &Harvest) -> Result<Running, LaunchError> {
    if harvest.scavengers.len() > runtime_abi::control::SCAVENGERS {
        return Err(LaunchError::TooMany);
    }
    fixed::check(harvest)?;
    host::check()?;
    let blob = blob::Blob::new()?;
    let page = page::Page::new(harvest, &blob)?;
    let mut command = Command::new(&harvest.primary.file);
    if let Some(name) = harvest.primary.argv.first() {
        command.arg0(name).args(&harvest.primary.argv[1..]);
    }
    let before = std::env::var_os("LD_PRELOAD").filter(|list| !list.is_empty());
    let mut replaced = vec!["LD_PRELOAD"];
    replaced.extend(harvest.primary.libraries.as_ref().map(|_| libraries::VARIABLE));
    command.envs(environment::aside(&replaced));
    command.env("LD_PRELOAD", with_preload(blob.path(), before));
    command.env(runtime_abi::control::VARIABLE, page.path());
    if let Some(libraries) = &harvest.primary.libraries {
        command.env(libraries::VARIABLE, libraries.with(std::env::var_os(libraries::VARIABLE).as_deref()));
    }
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => LaunchError::NoProcess(error),
        _ => LaunchError::Start(harvest.primary.file.clone(), error),
    })?;
    Ok(Running::new(harvest, page, blob, child))
}

/// The runtime's path in front of what the user preloads.
fn with_preload(runtime: &Path, before: Option<OsString>) -> OsString {
    let mut list = OsString::from(runtime);
    if let Some(before) = before {
        list.push(":");
        list.push(before);
    }
    list
}

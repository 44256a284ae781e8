//! What is to be launched: a primary, its scavengers, and what holds for them.

use image::libraries::Libraries;
use lab::inherited::Inherited;
use std::ffi::OsString;
use std::path::PathBuf;
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

impl Module {
    pub(super) fn is_libc(&self) -> bool {
        self.original.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libc.so"))
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
pub struct Contract {
    /// The share by which it may become slower.
    pub max_slowdown: f64,
    /// How long it may be away at once.
    pub max_absence: Duration,
    /// A load after which the next yield comes within this time hit a cache.
    pub hit_below: Duration,
}

/// Where scavengers are while they are not aboard, and whether they rather are aboard.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// CPUs (below 64), for the supervisor, too; `None`: those of the primary.
    pub cpus: Option<Vec<u32>>,
    /// Also where a CPU is idle and a guest would get on faster there.
    pub stay_aboard: bool,
}

#[derive(Clone, Debug)]
pub struct Harvest {
    pub primary: Program,
    pub scavengers: Vec<Scavenger>,
    /// Most guests aboard one thread of the primary.
    pub ring: u32,
    /// What guests may cost the primary; `None`: anything, and its pace is not watched.
    pub contract: Option<Contract>,
    pub homes: Homes,
    pub after: After,
    /// How long a guest may be aboard before it goes home once, so that its signals are served.
    pub recall: Duration,
    /// How often the watcher given to [`Running::wait`] is called.
    pub watch_every: Duration,
    pub outlive_launcher: bool,
    pub inherited: Inherited,
}

impl Harvest {
    pub fn new(primary: Program) -> Self {
        Self {
            primary,
            scavengers: Vec::new(),
            ring: 8,
            contract: None,
            homes: Homes::default(),
            after: After::Kill,
            recall: Duration::from_millis(100),
            watch_every: Duration::from_millis(200),
            outlive_launcher: false,
            inherited: Inherited::default(),
        }
    }
}

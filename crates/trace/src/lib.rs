//! Runs a program with all of its memory accesses written down, and puts them through a model of
//! the caches. Nothing of the program's source is needed.
//!
//! ```text
//!  files that took time ──► twin: mode trace ──► proof ──► a directory of files with twins
//!                                                              │ LD_LIBRARY_PATH
//!  libgleaner-trace.so (heap room) ── LD_PRELOAD ──►  the program, once more
//!                                                              │ chunks, in shared memory
//!  loads, bandwidth over time ◄── caches: L1 L2 L3 TLB ◄───────┘
//! ```
//!
//! ```text
//! settings     which caches: a machine's, and what is changed in them
//! rewritten    the program's files with twins
//! places       what accesses memory in a file
//! memory       chunks of accesses, as they are handed over
//! feed         accesses through the model, counted by instruction
//! slices       the run in slices of a number of accesses
//! over_time    when those were, by samples of another run
//! outcome      what becomes of the record
//! ```

mod feed;
mod memory;
mod outcome;
mod over_time;
mod places;
mod rewritten;
mod settings;
mod slices;

pub use settings::{If, Settings};

use caches::Hierarchy;
use feed::Feed;
use lab::stop::Stop;
use memory::Memory;
use records::profile::Profile;
use rewritten::Rewritten;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trials::Program;

static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgleaner_trace.so"));
const LIBRARY_NAME: &str = "libgleaner-trace.so";

/// What is traced.
#[derive(Debug)]
pub struct Request<'r> {
    pub command: Vec<OsString>,
    pub settings: &'r Settings,
    /// Only this stretch of the first run's time is shown.
    pub window: Option<(Duration, Duration)>,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{what}: {why}")]
    NotRun { what: String, why: String },
    #[error("none of the program's code can be traced: {0}")]
    NoCode(String),
    #[error("the program is linked statically, or has an environment of its own: no library comes into it")]
    NoLibrary,
    #[error("it was stopped")]
    Stopped,
}

/// Runs the program of a profile once more, traced, and adds what that tells to the profile.
/// `told` is called with what is being done.
pub fn run(
    request: &Request<'_>,
    profile: &mut Profile,
    stop: Stop,
    told: &dyn Fn(&str),
) -> Result<(), TraceError> {
    let program = Program::of(request.command.clone());
    let not_run = |e: &io::Error| TraceError::NotRun {
        what: records::text_of(Path::new(program.command.first().unwrap_or(&OsString::new()))),
        why: records::plain(e),
    };
    let files = outcome::files(profile);
    let rewritten = Rewritten::of(&program, &files, told).map_err(|e| not_run(&e))?;
    if rewritten.modules.is_empty() {
        let why = rewritten.left_out.iter().map(|(path, why)| format!("{}: {why}", path.display()));
        return Err(TraceError::NoCode(why.collect::<Vec<_>>().join("; ")));
    }
    let memory = Memory::new().map_err(|e| not_run(&e))?;
    let library = rewritten.libraries().join(LIBRARY_NAME);
    let write = || {
        fs::write(&library, LIBRARY)?;
        fs::set_permissions(&library, PermissionsExt::from_mode(0o755))
    };
    write().map_err(|e| not_run(&e))?;
    let caches = Hierarchy::new(&request.settings.geometry, request.settings.cores);
    let (traced, places) = split(rewritten);
    let mut feed = Feed::new(caches, places);
    told("running it with twins that write down each access");
    let began = Instant::now();
    let child = start(&program, &traced, &memory, &library).map_err(|e| not_run(&e))?;
    let ended = watch(child, &memory, &mut feed, stop).map_err(|e| not_run(&e))?;
    let traced_s = began.elapsed().as_secs_f64();
    if stop.asked() {
        return Err(TraceError::Stopped);
    }
    if memory.processes() == 0 {
        return Err(TraceError::NoLibrary);
    }
    outcome::add(
        profile,
        request,
        &traced,
        feed,
        &outcome::Run { traced_s, ended, gave_up: memory.gave_up() },
    );
    Ok(())
}

/// What is known of the traced files, beside what the feed has.
pub(crate) struct Traced {
    pub program: Option<PathBuf>,
    environment: (OsString, OsString),
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub left_out: Vec<(PathBuf, String)>,
    _directory: tempfile::TempDir,
}

fn split(rewritten: Rewritten) -> (Traced, Vec<places::Places>) {
    let environment = rewritten.environment();
    let (mut files, mut places) = (Vec::new(), Vec::new());
    for module in rewritten.modules {
        files.push((module.path, module.data));
        places.push(module.places);
    }
    let Rewritten { directory, program, left_out, .. } = Rewritten { modules: Vec::new(), ..rewritten };
    (Traced { program, environment, files, left_out, _directory: directory }, places)
}

fn start(program: &Program, traced: &Traced, memory: &Memory, library: &Path) -> io::Result<Child> {
    let first = program.command.first().cloned().unwrap_or_default();
    let file = traced.program.clone().unwrap_or_else(|| PathBuf::from(&first));
    let mut preload = library.as_os_str().to_owned();
    if let Some(before) = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        preload.push(":");
        preload.push(before);
    }
    Command::new(file)
        .arg0(&first)
        .args(program.command.iter().skip(1))
        .env(&traced.environment.0, &traced.environment.1)
        .env("LD_PRELOAD", preload)
        .env(heap::traces::layout::VARIABLE, memory.path())
        .stdin(trials::input())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Takes what the program tells until it ends.
fn watch(
    mut child: Child,
    memory: &Memory,
    feed: &mut Feed,
    stop: Stop,
) -> io::Result<std::process::ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut is_told = false;
    loop {
        let taken = memory.drain(&mut |writer, told| feed.told(writer, told));
        if let Some(status) = child.try_wait()? {
            memory.drain_rest(&mut |writer, told| feed.told(writer, told));
            return Ok(status);
        }
        if stop.asked() && !is_told {
            is_told = true;
            if let Some(pid) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        if taken == 0 {
            memory.wait(PAUSE);
        }
    }
}

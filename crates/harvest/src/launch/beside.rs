//! Runs programs as they are: the primary as its user would start it, and beside it scavengers
//! under `SCHED_IDLE`, which have the CPUs when nobody else wants them. Of a harvest these are the
//! scavengers that cannot be guests.

use super::error::LaunchError;
use super::executed::Executed;
use super::lives::LifeSamples;
use super::request::Stream;
use super::running::{GRACE, Outcome, ScavengerOutcome, reap};
use super::signals::Forwarding;
use super::snapshot::{ScavengerNow, Snapshot};
use crate::find::program::Program;
use crate::session::{Participants, WantedScavenger};
use lab::inherited::Inherited;
use lab::starter::{self, Terms};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Scavengers are looked at as often.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Until the primary ends; scavengers that run then are killed.
pub(crate) fn run(
    participants: &Participants,
    cpus: Option<&[u32]>,
    inherited: Inherited,
) -> Result<Outcome, LaunchError> {
    let forwarding = Forwarding::begin();
    let inherited = Inherited { ignored: inherited.ignored | forwarding.ignored(), ..inherited };
    let started = Instant::now();
    let alone = Terms { inherited, is_beside: false, cpus: None };
    let primary = start(&participants.primary, &alone, None)?;
    forwarding.to(primary.as_raw_nonzero().get() as u32);
    let mut scavengers: Vec<Beside> =
        participants.scavengers.iter().map(|wanted| Beside::start(wanted, cpus)).collect();
    let of_primary = executed(&participants.primary);
    let mut replaced = None;
    let look = || {
        replaced = replaced.take().or_else(|| of_primary.by(primary));
        scavengers.iter_mut().try_for_each(Beside::look)
    };
    let status = until_ended(primary, look).map_err(LaunchError::Wait)?;
    let elapsed = started.elapsed();
    let scavengers: Vec<ScavengerOutcome> =
        scavengers.into_iter().map(Beside::end).collect::<Result<_, _>>().map_err(LaunchError::Wait)?;
    let figures = scavengers.iter().map(|it| it.figures.clone()).collect();
    Ok(Outcome {
        primary_pid: primary.as_raw_nonzero().get() as u32,
        primary: status,
        refused: None,
        not_run: false,
        not_idle: None,
        not_switched: None,
        supervisor_lost: false,
        scavengers,
        elapsed,
        last: Snapshot { scavengers: figures, executed: replaced, ..Snapshot::default() },
        site_outcomes: Vec::new(),
    })
}

fn start(program: &Program, terms: &Terms<'_>, output: Option<[&Stream; 2]>) -> Result<Pid, LaunchError> {
    let cannot = |why| LaunchError::Start(program.file.clone(), why);
    let mut command = starter::command(&program.file, &program.arguments, terms);
    if let Some([stdout, stderr]) = output {
        command.stdin(Stdio::null());
        command.stdout(opened(stdout).map_err(cannot)?).stderr(opened(stderr).map_err(cannot)?);
    }
    let child = command.spawn().map_err(|why| match why.kind() {
        io::ErrorKind::WouldBlock => LaunchError::NoProcess(why),
        _ => cannot(why),
    })?;
    Ok(Pid::from_child(&child))
}

fn opened(stream: &Stream) -> io::Result<Stdio> {
    Ok(match stream {
        Stream::Null => Stdio::null(),
        Stream::Primarys => Stdio::inherit(),
        Stream::File(path) => std::fs::File::create(path)?.into(),
        Stream::Append(path) => std::fs::OpenOptions::new().append(true).open(path)?.into(),
    })
}

/// How it is noticed that a program executes another one in its place.
fn executed(program: &Program) -> Executed {
    Executed::new(&[&program.file, Path::new("/proc/self/exe")])
}

/// The primary's end; `look` looks at all others, and at it, meanwhile.
fn until_ended(primary: Pid, mut look: impl FnMut() -> io::Result<()>) -> io::Result<ExitStatus> {
    let handle = pidfd_open(primary, PidfdFlags::empty())?;
    loop {
        if let Some(status) = reap(primary)? {
            return Ok(status);
        }
        look()?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&LOOK_EVERY)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A scavenger in a process of its own.
pub(crate) struct Beside {
    pid: Result<Pid, String>,
    looks: LifeSamples,
    executed: Executed,
    /// What it executed in its place.
    replaced: Option<PathBuf>,
    /// The most threads that it was seen with.
    threads: u32,
    ended: Option<ExitStatus>,
}

impl Beside {
    pub(crate) fn start(wanted: &WantedScavenger, cpus: Option<&[u32]>) -> Self {
        let looks = LifeSamples::new(Instant::now());
        let terms = Terms { inherited: Inherited::default(), is_beside: true, cpus };
        let output = Some([&wanted.stdout, &wanted.stderr]);
        let pid = start(&wanted.program, &terms, output).map_err(|why| why.to_string());
        let executed = executed(&wanted.program);
        Self { pid, looks, executed, replaced: None, threads: 0, ended: None }
    }

    /// Takes note of how far it is.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        if let (Ok(pid), None) = (&self.pid, self.ended) {
            let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
            self.threads = self.threads.max(threads.map_or(0, |them| them.count() as u32));
            self.replaced = self.replaced.take().or_else(|| self.executed.by(*pid));
            self.looks.look(*pid);
            self.ended = reap(*pid)?;
        }
        Ok(())
    }

    /// What became of it, now that the primary has ended.
    pub(crate) fn end(mut self) -> io::Result<ScavengerOutcome> {
        self.look()?;
        let killed_at_end = self.pid.is_ok() && self.ended.is_none();
        let patience = Instant::now() + GRACE;
        if let (Ok(pid), true) = (&self.pid, killed_at_end) {
            kill_process(*pid, Signal::KILL)?;
        }
        while self.pid.is_ok() && self.ended.is_none() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
            self.look()?;
        }
        // It will be.
        let killed = std::os::unix::process::ExitStatusExt::from_raw(Signal::KILL.as_raw());
        let raw = self.pid.as_ref().map_or(0, |pid| pid.as_raw_nonzero().get());
        Ok(ScavengerOutcome {
            exit: self.pid.map(|_| self.ended.unwrap_or(killed)),
            lost: false,
            killed_at_end,
            executed: self.replaced,
            refused_threads: false,
            life: self.looks.life(),
            figures: ScavengerNow { pid: raw, threads: self.threads, ..ScavengerNow::default() },
            leaves: Vec::new(),
        })
    }
}

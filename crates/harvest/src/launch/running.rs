//! A harvest that runs: what it does now, and how its programs ended.

use super::blob::Blob;
use super::counts::{Paces, SiteOutcomes, ThreadPace};
use super::error::LaunchError;
use super::executed::Executed;
use super::forked::Forked;
use super::leaves::{Leaves, ProgramFiles};
use super::lives::{Life, LifeSamples};
use super::page::{Page, row};
use super::request::{After, Harvest};
use super::snapshot::{ScavengerNow, Snapshot};
use runtime_abi::control::{Control, ScavengerRow, life, refusal, stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long the launcher waits for scavengers that were killed, and for a supervisor that has
/// nothing left to do. A process under `SCHED_IDLE` may need minutes until it has the CPU time to
/// die, where others are busy; and a traced process is not gone before its tracer has seen it. The
/// primary's end is told without that.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// The time between two polls where no descriptor tells of a change.
const SOON: Duration = Duration::from_millis(10);
/// Scavengers that have not begun are polled as often, for this long.
const STARTS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct ScavengerOutcome {
    /// How its process ended; or, in words, why it was never started.
    pub exit: Result<ExitStatus, String>,
    /// It had to be killed, since the primary was killed while running it.
    pub lost: bool,
    /// It ended because the primary had ended and [`After::Kill`] was asked for.
    pub killed_at_end: bool,
    /// What it executed in its place: that stayed at home.
    pub executed: Option<PathBuf>,
    /// It has no dynamic loader, and asked for threads, of which it got none.
    pub refused_threads: bool,
    /// None where it was never started.
    pub life: Option<Life>,
    pub figures: ScavengerNow,
    /// Where it left its twins while it was aboard.
    pub leaves: Vec<Leaves>,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub primary_pid: u32,
    pub primary: ExitStatus,
    /// Why nothing was harvested: the primary ran without the runtime, or could not be run with it.
    pub refused: Option<String>,
    /// The primary was not run, and its process has said why on its standard error.
    pub not_run: bool,
    /// Why scavengers at home did not have the lowest priority.
    pub not_idle: Option<String>,
    /// Why the primary's yields could not be switched on.
    pub not_switched: Option<String>,
    /// The supervisor was killed while it was needed.
    pub supervisor_lost: bool,
    pub scavengers: Vec<ScavengerOutcome>,
    pub elapsed: Duration,
    pub last: Snapshot,
    /// Of each of the primary's modules, its own file first: what was seen of its yields; none
    /// where it was not loaded.
    pub site_outcomes: Vec<Option<Vec<SiteOutcomes>>>,
}

pub struct Running {
    page: Page,
    _blob: Blob,
    child: Child,
    after: After,
    watch_every: Duration,
    started: Instant,
    /// How many rewritten files the primary has.
    modules: usize,
    forked: Forked,
    executed: Executed,
    /// What the primary and its scavengers executed in their places.
    replaced: Option<PathBuf>,
    replaced_scavengers: Vec<Option<PathBuf>>,
    count: usize,
    ended: Vec<Option<ExitStatus>>,
    /// By which it is woken when a scavenger ends.
    handles: Vec<(usize, OwnedFd)>,
    looks: Vec<LifeSamples>,
    files: Vec<ProgramFiles>,
    supervisor: Supervisor,
}

/// What is known of the supervisor's process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Supervisor {
    Lives,
    Ended,
    /// It had not brought all guests home yet.
    Lost,
}

impl Running {
    pub(super) fn new(harvest: &Harvest, page: Page, blob: Blob, child: Child) -> Self {
        let started = Instant::now();
        Self {
            page,
            _blob: blob,
            child,
            after: harvest.after,
            watch_every: harvest.watch_every,
            started,
            modules: 1 + harvest.primary.modules.len(),
            forked: Forked::new(&harvest.primary),
            executed: Executed::new(&[&harvest.primary.file]),
            replaced: None,
            replaced_scavengers: vec![None; harvest.scavengers.len()],
            count: harvest.scavengers.len(),
            ended: vec![None; harvest.scavengers.len()],
            handles: Vec::new(),
            looks: vec![LifeSamples::new(started); harvest.scavengers.len()],
            files: harvest.scavengers.iter().map(|it| ProgramFiles::of(&it.program)).collect(),
            supervisor: Supervisor::Lives,
        }
    }

    /// The primary's process id.
    pub fn primary(&self) -> u32 {
        self.child.id()
    }

    /// Orders another ring length; 0 sends all guests home.
    pub fn set_ring(&self, ring: u32) -> io::Result<()> {
        self.page.order_u32(offset_of!(Control, ring), ring)
    }

    pub fn snapshot(&self) -> Snapshot {
        let page = &self.page;
        Snapshot {
            primary: self.child.id(),
            harvesting: page.u32(offset_of!(Control, stage)) == stage::RUNNING,
            threads: ThreadPace::all(page),
            paces: Paces::read(page),
            scavengers: (0..self.count).map(|index| self.scavenger(index)).collect(),
            executed: self.replaced.clone(),
            stolen: page.u64(offset_of!(Control, stolen)),
            supervisor_rounds: page.u64(offset_of!(Control, rounds)),
        }
    }

    fn scavenger(&self, index: usize) -> ScavengerNow {
        let at = |offset: usize| row(index) + offset;
        let u32 = |offset| self.page.u32(at(offset));
        let u64 = |offset| self.page.u64(at(offset));
        ScavengerNow {
            pid: u32(offset_of!(ScavengerRow, pid)) as i32,
            running: u32(offset_of!(ScavengerRow, life)) == life::RUNNING,
            threads: u32(offset_of!(ScavengerRow, threads)),
            aboard: u32(offset_of!(ScavengerRow, aboard)),
            boardings: u64(offset_of!(ScavengerRow, boardings)),
            trips: std::array::from_fn(|why| u64(offset_of!(ScavengerRow, trips) + 8 * why)),
            parked: Duration::from_nanos(u64(offset_of!(ScavengerRow, parked_ns))),
            aboard_time: Duration::from_nanos(u64(offset_of!(ScavengerRow, aboard_ns))),
            visits: u64(offset_of!(ScavengerRow, visits)),
            visited: Duration::from_nanos(u64(offset_of!(ScavengerRow, visited_ns))),
            turns: u64(offset_of!(ScavengerRow, turns)),
        }
    }

    /// Waits for the primary and, as [`After`] says, for the scavengers, and has `watch` look on
    /// meanwhile.
    pub fn wait(mut self, mut watch: impl FnMut(&Snapshot)) -> Result<Outcome, LaunchError> {
        let primary = pid_of(self.child.id() as i32);
        let status = self.until_ended(primary, &mut watch).map_err(LaunchError::Wait)?;
        let elapsed = self.started.elapsed();
        let last = self.snapshot();
        let killed = self.end_scavengers(&mut watch).map_err(LaunchError::Wait)?;
        Ok(Outcome {
            primary_pid: self.primary(),
            primary: status,
            refused: self.refused(),
            not_run: self.page.u32(offset_of!(Control, stage)) == stage::REFUSED,
            not_idle: self.not_idle(),
            not_switched: self.not_switched(),
            supervisor_lost: self.supervisor == Supervisor::Lost,
            scavengers: (0..self.count).map(|index| self.outcome(index, killed[index])).collect(),
            elapsed,
            last,
            site_outcomes: (0..self.modules).map(|module| SiteOutcomes::of(&self.page, module)).collect(),
        })
    }

    /// Waits for the primary, and takes note of scavengers that end meanwhile.
    fn until_ended(&mut self, pid: Option<Pid>, watch: &mut impl FnMut(&Snapshot)) -> io::Result<ExitStatus> {
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        loop {
            let ended = reap(pid)?;
            self.forked.look(&self.page);
            if let Some(status) = ended {
                // A daemon's.
                self.forked.look(&self.page);
                return Ok(status);
            }
            self.pause(handle.as_ref())?;
            self.reap_scavengers()?;
            self.look_for_others(pid);
            self.reap_supervisor()?;
            watch(&self.snapshot());
        }
    }

    /// Notes which processes executed another program.
    fn look_for_others(&mut self, primary: Pid) {
        let executed = &self.executed;
        self.replaced = self.replaced.take().or_else(|| executed.by(primary));
        for index in 0..self.count {
            if let (None, Some(pid)) = (self.ended[index], self.scavenger_pid(index)) {
                let replaced = &mut self.replaced_scavengers[index];
                *replaced = replaced.take().or_else(|| self.executed.by(pid));
            }
        }
    }

    /// With an end to patience: it was killed.
    fn until_scavenger_ended(
        &mut self,
        index: usize,
        pid: Pid,
        patience: Option<Instant>,
        watch: &mut impl FnMut(&Snapshot),
    ) -> io::Result<()> {
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        loop {
            self.reap_scavengers()?;
            if self.ended[index].is_some() {
                return Ok(());
            }
            if patience.is_some_and(|end| Instant::now() > end) {
                self.ended[index] = Some(ExitStatus::from_raw(Signal::KILL.as_raw())); // as it will
                return Ok(());
            }
            self.pause(handle.as_ref())?;
            watch(&self.snapshot());
        }
    }

    /// Waits until this process or a scavenger ends, or for a while: a short one where no
    /// descriptor is left to wait by, since a process that runs must be watched, and where
    /// scavengers are about to begin.
    fn pause(&mut self, handle: Option<&OwnedFd>) -> io::Result<()> {
        let begin = !self.looks.iter().all(LifeSamples::has_begun) && self.started.elapsed() < STARTS_WITHIN;
        let longest = if begin || handle.is_none() { SOON.min(self.watch_every) } else { self.watch_every };
        let Some(handle) = handle else {
            std::thread::sleep(longest);
            return Ok(());
        };
        let timeout = Timespec::try_from(longest).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let handles = std::iter::once(handle).chain(self.handles.iter().map(|(_, handle)| handle));
        let mut polled: Vec<PollFd> = handles.map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // It wakes once: one that is traced has ended long before it can be waited for.
        let live: Vec<bool> = polled[1..].iter().map(|polled| polled.revents().is_empty()).collect();
        let mut live = live.into_iter();
        self.handles.retain(|(index, _)| {
            let lives = live.next() == Some(true);
            if !lives {
                self.looks[*index].ends();
            }
            lives
        });
        Ok(())
    }

    fn scavenger_pid(&self, index: usize) -> Option<Pid> {
        pid_of(self.page.u32(row(index) + offset_of!(ScavengerRow, pid)) as i32)
    }

    fn reap_scavengers(&mut self) -> io::Result<()> {
        for index in 0..self.count {
            if let (None, Some(pid)) = (self.ended[index], self.scavenger_pid(index)) {
                if !self.looks[index].has_begun() {
                    let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
                    self.handles.extend(handle.map(|handle| (index, handle)));
                }
                self.looks[index].look(pid);
                self.ended[index] = reap(pid)?;
            }
        }
        Ok(())
    }

    /// Whose scavengers had to be killed.
    fn end_scavengers(&mut self, watch: &mut impl FnMut(&Snapshot)) -> io::Result<Vec<bool>> {
        self.until_home()?;
        let left: Vec<(usize, Pid)> = (0..self.count)
            .filter(|&index| self.ended[index].is_none())
            .filter_map(|index| Some((index, self.scavenger_pid(index)?)))
            .collect();
        let mut killed = vec![false; self.count];
        let mut patience = None;
        if self.after == After::Kill {
            for &(index, pid) in &left {
                killed[index] = true;
                kill_process(pid, Signal::KILL)?;
            }
            patience = Some(Instant::now() + GRACE);
        }
        for (index, pid) in left {
            self.until_scavenger_ended(index, pid, patience, watch)?;
        }
        self.end_supervisor()?;
        Ok(killed)
    }

    /// Notes a supervisor that ended. Its last act is to say that all guests are at home.
    fn reap_supervisor(&mut self) -> io::Result<()> {
        let Some(pid) = pid_of(self.page.u32(offset_of!(Control, supervisor)) as i32) else { return Ok(()) };
        if self.supervisor == Supervisor::Lives && reap(pid)?.is_some() {
            let needed = self.page.u32(offset_of!(Control, stage)) != stage::ALL_HOME;
            self.supervisor = if needed { Supervisor::Lost } else { Supervisor::Ended };
            self.page.order_u32(offset_of!(Control, supervisor_lost), u32::from(needed))?;
        }
        Ok(())
    }

    /// Guests of a primary that ended are brought home by the supervisor. Where there is none any
    /// more, they sleep for ever, and waiting for them is no use.
    fn until_home(&mut self) -> io::Result<()> {
        let patience = Instant::now() + GRACE;
        while self.page.u32(offset_of!(Control, stage)) == stage::RUNNING {
            self.reap_supervisor()?;
            if self.supervisor == Supervisor::Lost || Instant::now() > patience {
                self.after = After::Kill;
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.reap_scavengers()
    }

    fn end_supervisor(&mut self) -> io::Result<()> {
        let Some(pid) = pid_of(self.page.u32(offset_of!(Control, supervisor)) as i32) else { return Ok(()) };
        let patience = Instant::now() + GRACE;
        let mut killed = false;
        loop {
            self.reap_supervisor()?;
            if self.supervisor != Supervisor::Lives || killed && Instant::now() > patience + GRACE {
                break;
            }
            if Instant::now() > patience {
                kill_process(pid, Signal::KILL)?;
                killed = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if killed {
            self.supervisor = Supervisor::Ended; // stopped or frozen, not lost: that was us
        }
        Ok(())
    }

    fn refused(&self) -> Option<String> {
        let text = match self.page.u32(offset_of!(Control, refusal)) {
            refusal::VERSION => "launcher and runtime are from different builds",
            refusal::MEMORY => "no memory for the areas of its threads",
            refusal::GS_BASE => "the GS base is in use or cannot be set",
            refusal::SUPERVISOR => "the supervisor's process could not be created",
            refusal::XSAVE => "the processor's vector state cannot be saved (XSAVE)",
            _ if self.page.u32(offset_of!(Control, stage)) == stage::NONE => {
                "the runtime was not loaded into it (is it statically linked, or setuid?)"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// One for all: what is forbidden to one is to the others.
    fn not_switched(&self) -> Option<String> {
        let errno = self.page.u32(offset_of!(Control, switch_errno)) as i32;
        (errno != 0).then(|| io::Error::from_raw_os_error(errno).to_string())
    }

    fn not_idle(&self) -> Option<String> {
        let errno = |index| self.page.u32(row(index) + offset_of!(ScavengerRow, policy_errno)) as i32;
        let errno = (0..self.count).map(errno).find(|errno| *errno != 0)?;
        Some(format!("sched_setscheduler: {}", io::Error::from_raw_os_error(errno)))
    }

    fn outcome(&self, index: usize, killed_at_end: bool) -> ScavengerOutcome {
        let at = |offset: usize| self.page.u32(row(index) + offset);
        let exit = match (at(offset_of!(ScavengerRow, failure)), self.ended[index]) {
            (0, Some(status)) => Ok(status),
            (0, None) => Err("the primary ended before it was started".to_owned()),
            (why, _) => Err(failure_text(why, at(offset_of!(ScavengerRow, errno)) as i32)),
        };
        ScavengerOutcome {
            exit,
            lost: at(offset_of!(ScavengerRow, lost)) != 0,
            killed_at_end,
            executed: self.replaced_scavengers[index].clone(),
            refused_threads: at(offset_of!(ScavengerRow, refused_threads)) != 0,
            life: self.looks[index].life(),
            figures: self.scavenger(index),
            leaves: Leaves::of(&self.page, index, &self.files[index]),
        }
    }
}

fn failure_text(failure: u32, errno: i32) -> String {
    use runtime_abi::control::failure as f;
    let what = match failure {
        f::CLONE => "its process could not be created",
        f::STREAMS => "a file for its standard streams could not be opened",
        f::DIRECTORY => "its working directory does not exist",
        f::FILE => "its file could not be read",
        f::FORMAT => "its file is not an x86-64 ELF executable",
        f::INTERPRETER => "its dynamic loader could not be loaded",
        f::OCCUPIED => "it is linked to fixed addresses, which are in use (link it with -pie)",
        f::MEMORY => "no memory for it",
        f::SECCOMP => "system call filters (seccomp) are not available here",
        f::ARGUMENTS => "its arguments and environment are too large",
        _ => "it could not be started",
    };
    match errno {
        0 => what.to_owned(),
        errno => format!("{what}: {}", io::Error::from_raw_os_error(errno)),
    }
}

pub(super) fn reap(pid: Pid) -> io::Result<Option<ExitStatus>> {
    match waitpid(Some(pid), WaitOptions::NOHANG) {
        Ok(Some((_, status))) => Ok(Some(ExitStatus::from_raw(status.as_raw()))),
        Ok(None) | Err(rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn pid_of(raw: i32) -> Option<Pid> {
    Pid::from_raw(raw).filter(|_| raw > 0)
}

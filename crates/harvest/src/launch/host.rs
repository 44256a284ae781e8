//! System calls that launcher, supervisor and scavengers cannot do without, tried before any
//! process is started: a container may forbid them, and a process that was started cannot be left
//! alone any more.

use super::error::LaunchError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use rustix::thread::{
    ClockId, CpuSet, NanosleepRelativeResult, clock_nanosleep_relative, futex, nanosleep, sched_setaffinity,
};
use std::sync::atomic::AtomicU32;

/// Refuses CPUs for scavengers at home that this host does not have, or that this process may not
/// use.
pub fn check_home(cpus: &[u32]) -> Result<(), LaunchError> {
    let forbidden: Vec<String> = cpus.iter().filter(|&&cpu| !may_run_on(cpu)).map(u32::to_string).collect();
    match forbidden.as_slice() {
        [] => Ok(()),
        some => Err(LaunchError::NoSuchCpus(some.join(", "))),
    }
}

/// Tried, by a thread of its own: which CPUs a container leaves is told nowhere else. What cannot
/// be tried may be.
fn may_run_on(cpu: u32) -> bool {
    // What the control page has space for.
    if cpu >= u64::BITS {
        return false;
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    let tried = std::thread::Builder::new().spawn(move || sched_setaffinity(None, &set));
    !matches!(tried.map(std::thread::JoinHandle::join), Ok(Ok(Err(Errno::INVAL))))
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Refuses a host on which processes could not be watched, woken or waited for.
pub fn check() -> Result<(), LaunchError> {
    // By them the supervisor and the launcher know which processes have ended.
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|error| match error {
        Errno::MFILE | Errno::NFILE => LaunchError::NoDescriptor(error.into()),
        _ => LaunchError::NoPidfd(error.into()),
    })?;
    let allowed = |what, result: Result<(), Errno>| match result {
        Err(error @ (Errno::PERM | Errno::ACCESS | Errno::NOSYS)) => {
            Err(LaunchError::Forbidden(what, error.into()))
        }
        _ => Ok(()),
    };
    let slept = |result| match result {
        NanosleepRelativeResult::Err(error) => Err(error),
        _ => Ok(()),
    };
    allowed("poll", poll(&mut [PollFd::new(&own, PollFlags::IN)], Some(&AT_ONCE)).map(drop))?;
    // No process is its own child.
    allowed("wait4", waitpid(Some(getpid()), WaitOptions::NOHANG).map(drop))?;
    allowed("nanosleep", slept(nanosleep(&AT_ONCE)))?;
    allowed("clock_nanosleep", slept(clock_nanosleep_relative(ClockId::Realtime, &AT_ONCE)))?;
    allowed("futex", futex::wake(&AtomicU32::new(0), futex::Flags::empty(), 1).map(drop))
}

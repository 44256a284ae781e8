//! What launcher, butler and scavengers cannot do without, asked of the kernel before anybody is started or waits: a container may
//! forbid it, and whoever is started cannot be left alone any more.

use super::LaunchError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use rustix::thread::{ClockId, NanosleepRelativeResult, clock_nanosleep_relative, futex, nanosleep};
use std::sync::atomic::AtomicU32;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Refuses a host on which nobody could be watched, woken or waited for.
pub fn check() -> Result<(), LaunchError> {
    // Butler and launcher know by them who has ended.
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
    // Nobody is its own child.
    allowed("wait4", waitpid(Some(getpid()), WaitOptions::NOHANG).map(drop))?;
    allowed("nanosleep", slept(nanosleep(&AT_ONCE)))?;
    allowed("clock_nanosleep", slept(clock_nanosleep_relative(ClockId::Realtime, &AT_ONCE)))?;
    allowed("futex", futex::wake(&AtomicU32::new(0), futex::Flags::empty(), 1).map(drop))
}

//! The end of a program that was started, with the CPU time and the memory that it took.

use crate::sys;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use units::Bytes;

/// What a program used, and those of its children that it waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub status: ExitStatus,
    pub cpu: Duration,
    /// The most memory that one of them had at any time.
    pub peak: Bytes,
}

/// Runs a program to its end; one that takes longer than the limit is killed, and that is told by
/// `None`.
pub fn run(command: &mut Command, limit: Option<Duration>) -> io::Result<Option<Ended>> {
    let child = command.spawn()?;
    let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let in_time = limit.is_none_or(|limit| sys::ends_within(process, limit));
    if !in_time {
        sys::kill(process);
    }
    let (status, cpu, peak) = sys::wait_with_usage(process)?;
    Ok(in_time.then_some(Ended { status, cpu, peak }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_used_is_told() {
        let busy = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 3";
        let mut command = Command::new("sh");
        let ended = run(command.args(["-c", busy]), Some(Duration::from_secs(60))).unwrap().expect("in time");
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.cpu > Duration::ZERO && ended.peak > Bytes(100 << 10), "{ended:?}");
    }

    #[test]
    fn what_takes_too_long_is_killed() {
        let mut command = Command::new("sleep");
        assert_eq!(run(command.arg("60"), Some(Duration::from_millis(20))).unwrap(), None);
    }
}

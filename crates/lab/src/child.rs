//! The end of a program that was started, with the CPU time and the memory that it took.

use crate::stop::Stop;
use crate::sys;
use std::io;
use std::process::{Child, Command, ExitStatus};
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

/// Longer than any program that is waited for without a limit.
const FOR_EVER: Duration = Duration::from_secs(1 << 40);
/// How often it is looked whether the user wants to stop, and how long the program then has.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
const UNTIL_KILLED: Duration = Duration::from_secs(5);

/// Runs a program to its end; one that takes longer than the limit, or than the user wants to wait,
/// is ended, and that is told by `None`.
pub fn run(command: &mut Command, limit: Option<Duration>) -> io::Result<Option<Ended>> {
    let child = command.spawn()?;
    let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let (stop, mut left) = (Stop::of_process(), limit.unwrap_or(FOR_EVER));
    loop {
        let look = left.min(BETWEEN_LOOKS);
        if sys::ends_within(process, look) {
            let (status, cpu, peak) = sys::wait_with_usage(process)?;
            return Ok(Some(Ended { status, cpu, peak }));
        }
        left -= look;
        if left.is_zero() || stop.asked() {
            end(child, UNTIL_KILLED)?;
            return Ok(None);
        }
    }
}

/// Asks a program to end, and waits for that; one that takes longer than the limit is killed.
pub fn end(child: Child, limit: Duration) -> io::Result<Option<Ended>> {
    let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // Nothing else waits for it from here on.
    drop(child);
    sys::ask_to_end(process);
    if !sys::ends_within(process, limit) {
        sys::kill(process);
    }
    let (status, cpu, peak) = sys::wait_with_usage(process)?;
    Ok(Some(Ended { status, cpu, peak }))
}

/// The CPU time so far of a process and of the processes below it, with those of their children
/// that have ended and were waited for.
pub fn cpu_time_of_tree(process: u32) -> Duration {
    tree(process).into_iter().map(cpu_time_of).sum()
}

/// A process and those below it, itself first.
pub fn tree(process: u32) -> Vec<u32> {
    let mut below = vec![process];
    let mut at = 0;
    let parents = parents();
    while let Some(&one) = below.get(at) {
        below.extend(parents.iter().filter(|(_, parent)| *parent == one).map(|(child, _)| child));
        at += 1;
    }
    below
}

/// Each process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let of = |entry: std::fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before may hold anything.
        let parent = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((process, parent))
    };
    entries.flatten().filter_map(of).collect()
}

/// The CPU time so far of a process, with its threads, and with those of its children that it has
/// waited for: a server may have a process for each client.
pub fn cpu_time_of(process: u32) -> Duration {
    let own = libc::pid_t::try_from(process).map_or(0, sys::cpu_ns_of);
    Duration::from_nanos(own) + of_ended_children(process).unwrap_or_default()
}

fn of_ended_children(process: u32) -> Option<Duration> {
    /// Of the fields behind the name, which may hold anything.
    const TIME_OF_CHILDREN: usize = 13;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1.split_whitespace().skip(TIME_OF_CHILDREN).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / sys::ticks_a_second() as f64))
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
    fn a_tree_is_summed_up_and_ended() {
        let busy = "(while :; do :; done) & while :; do :; done";
        let child = Command::new("bash").args(["-c", busy]).spawn().unwrap();
        let process = child.id();
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while cpu_time_of_tree(process) < Duration::from_millis(50) && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(cpu_time_of_tree(process) >= Duration::from_millis(50));
        let below: Vec<u32> =
            parents().iter().filter(|(_, parent)| *parent == process).map(|(child, _)| *child).collect();
        let ended = end(child, Duration::from_secs(10)).unwrap().expect("it was there");
        assert!(!ended.status.success() && below.len() == 1, "{ended:?} {below:?}");
        for child in below {
            sys::kill(libc::pid_t::try_from(child).unwrap());
        }
    }

    #[test]
    fn children_that_have_ended_count() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let child = Command::new("sh").args(["-c", &format!("sh -c '{busy}'; sleep 60")]).spawn().unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(60);
        let ended = || of_ended_children(child.id()).unwrap_or_default();
        while ended() < Duration::from_millis(50) && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(ended() >= Duration::from_millis(50) && cpu_time_of_tree(child.id()) >= ended());
        end(child, Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn what_takes_too_long_is_killed() {
        let mut command = Command::new("sleep");
        assert_eq!(run(command.arg("60"), Some(Duration::from_millis(20))).unwrap(), None);
    }
}

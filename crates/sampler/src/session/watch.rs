//! A run while the program runs: its samples are counted until it ends.

use super::begin::Watched;
use crate::allocations::preload::Preload;
use crate::perf::ring::Ring;
use crate::probes::Probes;
use crate::recorder::Recorder;
use crate::request::Request;
use crate::target::End;
use lab::stop::Stop;
use records::profile::ProgramEnd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// While allocations come in bursts.
const QUICK_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// While threads have ended and their program has not.
const SHORT_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Counts until the program ends, or the user stops it.
pub(crate) fn watch(
    watched: &Watched,
    request: &Request,
    stop: Stop,
    rings: &mut [Ring],
    mut preload: Option<&mut Preload>,
    probes: &mut Option<Probes>,
    recorder: &mut Recorder,
) -> (ProgramEnd, Option<Duration>) {
    let began = Instant::now();
    let over = pid_descriptor(watched.pid());
    let mut told = false;
    let mut waited = None;
    let ended = loop {
        let is_busy = preload.as_ref().is_some_and(|preload| preload.region.is_busy()) || recorder.is_busy();
        let is_over = wait(over.as_ref(), rings, if is_busy { QUICK_POLL } else { POLL });
        recorder.round(rings, preload.as_mut().map(|preload| &mut preload.region));
        if let Some((probes, preload)) = probes.as_mut().zip(preload.as_ref()) {
            probes.round(&recorder.tally, &recorder.allocations, &preload.region);
        }
        // As long as it is not waited for, a program that has ended still tells.
        waited = waited_for_cpu(watched.pid()).or(waited);
        match watched {
            Watched::Started(running) => {
                if let Some(end) = running.ended() {
                    break match end {
                        End::Exited(code) => ProgramEnd::Exited { code },
                        End::Killed(signal) => ProgramEnd::Killed { signal },
                    };
                }
                // Ctrl-C reaches the program by itself; what was sent to the profiler alone goes on
                // to the program, whose end is waited for.
                if let Some(signal) = stop.signal().filter(|_| !std::mem::replace(&mut told, stop.asked())) {
                    if let (true, Some(pid), Some(signal)) =
                        (signal != libc::SIGINT, raw_pid(running.pid), Signal::from_named_raw(signal))
                    {
                        let _ = kill_process(pid, signal);
                    }
                }
            }
            Watched::Attached(_) => {
                let pid = watched.pid();
                if is_over || !Path::new(&format!("/proc/{pid}")).exists() {
                    break ProgramEnd::Unknown;
                }
                if stop.asked() {
                    break ProgramEnd::StillRunning;
                }
            }
        }
        if request.limit().is_some_and(|limit| began.elapsed() >= limit) {
            break ProgramEnd::StillRunning;
        }
    };
    (ended, waited)
}

/// For how long a process's first thread was ready to run and had no CPU.
fn waited_for_cpu(pid: u32) -> Option<Duration> {
    let told = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    told.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Waits until a ring is half full, the program has ended, or the time is over; whether
/// the program has ended.
fn wait(over: Option<&OwnedFd>, rings: &[Ring], longest: Timespec) -> bool {
    let mut waits: Vec<PollFd<'_>> =
        rings.iter().map(|ring| PollFd::from_borrowed_fd(ring.fd(), PollFlags::IN)).collect();
    if let Some(over) = over {
        waits.push(PollFd::new(over, PollFlags::IN));
    }
    // A signal ends it early, which is as good.
    let _ = poll(&mut waits, Some(&longest));
    // Rings whose threads have all ended are always ready: their reader must not spin, and not be
    // late for the program's end, which comes just behind theirs.
    let only_hung_up = waits.iter().all(|fd| !fd.revents().contains(PollFlags::IN))
        && waits.iter().any(|fd| fd.revents().contains(PollFlags::HUP));
    if only_hung_up {
        // Without a descriptor for it, this sleeps.
        let end = if over.is_some() { waits.len() - 1 } else { waits.len() };
        let _ = poll(&mut waits[end..], Some(&SHORT_POLL));
    }
    over.is_some() && waits.last().is_some_and(|fd| fd.revents().contains(PollFlags::IN))
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid as i32)
}

fn pid_descriptor(pid: u32) -> Option<OwnedFd> {
    pidfd_open(raw_pid(pid)?, PidfdFlags::empty()).ok()
}

//! How long a scavenger lived, and how much CPU time it had at home. There it runs under
//! `SCHED_IDLE`, and may wait for long where other processes are busy.
//!
//! The launcher looks at it from time to time, so its start and its end are each known to lie
//! between two looks.

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::time::{Duration, Instant};

/// A scavenger's life.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub least: Duration,
    pub most: Duration,
    /// Of its first thread; `None` where the kernel does not count it, or it has not ended.
    pub processor: Option<Processor>,
    /// CPU time of all its threads when it was seen last, to a tick of the kernel's clock.
    pub cpu: Option<Duration>,
}

impl Life {
    /// The part of this time that it lived.
    pub fn share_of(&self, all: Duration) -> f64 {
        let lived = f64::midpoint(self.least.as_secs_f64(), self.most.as_secs_f64());
        (lived / all.as_secs_f64().max(1e-9)).min(1.0)
    }
}

/// CPU time of a thread since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    pub ran: Duration,
    /// Ready to run, while other threads ran.
    pub waited: Duration,
}

impl Processor {
    /// As the kernel counts it; `None` where it was built or told not to.
    pub fn of(tid: i32) -> Option<Self> {
        parsed(&std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?)
    }
}

/// CPU time of a process, of all the threads that it has or had; also of one that has ended and is
/// not waited for.
fn cpu_time(pid: i32) -> Option<Duration> {
    cpu_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The kernel's clock ticks in a second, as it tells them to programs on x86-64.
const TICKS: u32 = 100;

/// Behind the name, which may hold anything: user and system time are the 12th and 13th word.
fn cpu_of(text: &str) -> Option<Duration> {
    let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((Duration::from_secs(1) / TICKS).saturating_mul(user.saturating_add(system)))
}

/// Nanoseconds on processors and waiting for one, and how often it ran: a thread that never ran is
/// not counted at all.
fn parsed(text: &str) -> Option<Processor> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let (ran, waited, times) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let duration = Duration::from_nanos;
    (0u64 < times).then(|| Processor { ran: duration(ran), waited: duration(waited) })
}

/// What the launcher's looks at one scavenger found.
#[derive(Clone, Copy)]
pub(super) struct LifeSamples {
    last: Instant,
    begun: Option<Between>,
    ended: Option<Between>,
    processor: Option<Processor>,
    cpu: Option<Duration>,
}

/// Two looks, between which something happened.
#[derive(Clone, Copy)]
struct Between(Instant, Instant);

impl LifeSamples {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, begun: None, ended: None, processor: None, cpu: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// It has lived up to now.
    pub(super) fn ends(&mut self) {
        self.last = Instant::now();
    }

    /// It has begun by now.
    pub(super) fn look(&mut self, pid: Pid) {
        let between = Between(self.last, Instant::now());
        self.begun.get_or_insert(between);
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.cpu = cpu_time(pid.as_raw_nonzero().get()).or(self.cpu);
        // The kernel tells it as long as the process is not waited for.
        if self.ended.is_none() && matches!(waitid(WaitId::Pid(pid), ended), Ok(Some(_))) {
            self.ended = Some(between);
            self.processor = Processor::of(pid.as_raw_nonzero().get());
        }
        self.last = between.1;
    }

    /// `None` of a scavenger that never began.
    pub(super) fn life(&self) -> Option<Life> {
        let begun = self.begun?;
        let ended = self.ended.unwrap_or(Between(self.last, self.last));
        Some(Life {
            least: ended.0 - begun.1,
            most: ended.1 - begun.0,
            processor: self.processor,
            cpu: self.cpu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts_is_read() {
        let counted = Processor { ran: Duration::from_nanos(5), waited: Duration::from_nanos(70) };
        assert_eq!(parsed("5 70 2\n"), Some(counted));
        for not_counted in ["0 0 0\n", "", "5 70", "5 70 x", "-5 70 2"] {
            assert_eq!(parsed(not_counted), None, "{not_counted}");
        }
    }

    #[test]
    fn the_cpu_time_of_a_process_is_found_behind_any_name() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 4194304 90 0 0 0 123 45 6 7 20 0 1 0 99 1 1";
        assert_eq!(cpu_of(line), Some(Duration::from_millis(1680)));
        for broken in ["", "7 (a", "7 (a) S 1", "7 (a) S 1 7 7 0 -1 4 9 0 0 0 x 45"] {
            assert_eq!(cpu_of(broken), None, "{broken}");
        }
    }

    /// A process that sleeps, and ends between two looks.
    #[test]
    fn a_life_is_between_its_looks() {
        let mut looks = LifeSamples::new(Instant::now());
        assert!(looks.life().is_none());
        let mut child = std::process::Command::new("sleep").arg("0.2").spawn().expect("a sleeper");
        let pid = Pid::from_child(&child);
        let began = Instant::now();
        while looks.ended.is_none() {
            looks.look(pid);
            std::thread::sleep(Duration::from_millis(10));
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        let took = began.elapsed();
        child.wait().expect("it ended");
        let life = looks.life().expect("it began");
        let slept = Duration::from_millis(200);
        assert!(life.most >= slept && life.least <= life.most && life.least <= took, "{life:?}");
        if let Some(processor) = life.processor {
            assert!(processor.ran + processor.waited + slept <= life.most, "{life:?}");
        }
    }
}

//! Probes while a program runs: the loads that the clock has found are stopped now and then, a few
//! times each, and the preloaded library tells what they read and how long that takes.
//!
//! ```text
//! calibrate    what a probe costs here, and what it sees
//! process      whether a process may be stopped, and its loads read
//! targets      the loads that are worth it, and the threads that execute them
//! steady       whether a thread had its CPU without a break before it was stopped
//! ```
//!
//! Breakpoints are the processor's own, so nothing of the program's code changes, and a thread that
//! does not come by notices nothing. A few loads are armed at a time, and in the next round others.

pub(crate) mod calibrate;
mod process;
mod steady;
mod targets;

use crate::allocations::recorded::Recorded;
use crate::allocations::region::Region;
use crate::perf::open::open_breakpoint;
use heap::layout::{NO_REGISTER, OWN_ADDRESS, PROBES};
use insight::probes::{Operand, Part};
use insight::samples::{Steady, Tally};
use process::Processes;
use records::run::Refused;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use targets::Targets;
use units::Avma;

/// How often a load is stopped each time that it is armed.
const BURST: u32 = 8;

/// What probing may take, and what it costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// The share of the program's CPU time.
    pub share: f64,
    /// CPU time that a probe takes from the program.
    pub cost_s: f64,
    /// The clock's samples a second.
    pub frequency_hz: f64,
}

pub(crate) struct Probes {
    allowance: Allowance,
    targets: Targets,
    processes: Processes,
    /// Those that are armed. Closed before others are.
    armed: Vec<OwnedFd>,
    /// How often loads were armed.
    bursts: u64,
    /// When threads kept their CPUs.
    steady: Vec<Steady>,
    why_not: Option<String>,
}

impl Probes {
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            targets: Targets::default(),
            processes: Processes::default(),
            armed: Vec::new(),
            bursts: 0,
            steady: Vec::new(),
            why_not: None,
        }
    }

    /// Disarms what was armed, and arms what comes next, if there is time for it.
    pub(crate) fn round(&mut self, tally: &Tally, recorded: &Recorded, region: &Region) {
        self.disarm(region);
        if self.why_not.is_some() || !self.has_time(tally) {
            return;
        }
        self.targets.choose(tally);
        let chosen = self.targets.next(tally, PROBES as usize);
        if chosen.is_empty() {
            return;
        }
        let threads: Vec<ThreadId> = chosen.iter().map(|target| target.of).collect();
        let turns = steady::settled(&threads);
        for (number, target) in (0..PROBES).zip(chosen) {
            let process = target.of.process;
            let told = tally.heaps.was_told_of(process) || recorded.not_interposed.contains(&process);
            let Some(may) = self.processes.may(process, tally).filter(|_| told) else { continue };
            let probe = region.probe(number);
            let registers = registers(&target.operand);
            probe.process.store(process, Relaxed);
            probe.thread.store(target.of.thread, Relaxed);
            probe.registers.store(u32::from_le_bytes(registers), Relaxed);
            probe.displacement.store(target.operand.displacement, Relaxed);
            probe.is_timed.store(u32::from(may.read), Relaxed);
            probe.ip.store(target.ip.0, Release);
            match open_breakpoint(target.of.thread, target.ip.0, BURST) {
                Ok(event) => {
                    self.armed.push(event);
                    self.bursts += 1;
                }
                // Threads end at any time.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => probe.ip.store(0, Release),
                // All breakpoints are in use, by a debugger or another profiler.
                Err(e) if e.raw_os_error() == Some(libc::ENOSPC) => probe.ip.store(0, Release),
                Err(e) => {
                    probe.ip.store(0, Release);
                    self.why_not = Some(format!("the kernel sets no breakpoints: {}", records::plain(&e)));
                    return;
                }
            }
        }
        self.steady.extend(steady::stretches(&turns));
    }

    fn disarm(&mut self, region: &Region) {
        self.armed.clear();
        // A thread that was stopped just before is told of if it comes to it soon.
        for number in 0..PROBES {
            if region.probe(number).ip.load(Acquire) != 0 {
                region.probe(number).ip.store(0, Release);
            }
        }
    }

    /// Whether the next burst stays within the allowance.
    fn has_time(&self, tally: &Tally) -> bool {
        let cpu_time_s = tally.samples as f64 / self.allowance.frequency_hz;
        let probes = (self.bursts + u64::from(PROBES)) * u64::from(BURST);
        probes as f64 * self.allowance.cost_s <= self.allowance.share * cpu_time_s
    }

    /// Nothing is armed any more. Why there are no probes, if there are none.
    pub(crate) fn end(mut self, region: &Region, tally: &mut Tally) -> Option<Refused> {
        self.disarm(region);
        tally.were_steady(&self.steady);
        let why = match self.why_not {
            Some(why) => why,
            None if tally.probes.is_empty() => self.processes.why_not()?.to_owned(),
            None => return None,
        };
        Some(refused(why))
    }

    /// Probes that were made, at most.
    pub(crate) fn done(&self) -> u64 {
        self.bursts * u64::from(BURST)
    }
}

/// What is not known without probes, for the record.
pub(crate) fn refused(why: String) -> Refused {
    Refused { what: "latencies".to_owned(), why, would_help: None }
}

/// As the library has them.
fn registers(operand: &Operand) -> [u8; 4] {
    let part = |part: Part| match part {
        Part::None => NO_REGISTER,
        Part::OwnAddress => OWN_ADDRESS,
        Part::General(number) => number,
    };
    [part(operand.base), part(operand.index), operand.scale, u8::from(operand.by_thread)]
}

/// A load, and a thread that executes it.
#[derive(Clone, Copy, Debug)]
struct Armed {
    of: ThreadId,
    ip: Avma,
    operand: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadId {
    process: u32,
    thread: u32,
}

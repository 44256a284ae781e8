//! A crew: several rigs at once, each on its own pinned thread, timed while *all* of them run.
//!
//! A [`Crew`] keeps one thread on each of its CPUs, asleep between blocks; the caller itself works
//! on its own CPU. A [`CrewRig`] is a rig like any other, so settings with crews are interleaved
//! with the rest of a campaign. In a block, every member warms its rig; the last one to be ready
//! sets the time (in ticks of the time stamp counter) at which the block begins and ends; from then
//! on all run their rigs in pieces that are short against the block. Only pieces count that began
//! after the beginning and ended before the end. So whatever counts ran while every other member
//! ran too.
//!
//! Each member reads its core clock before and after, and its own switches and faults.
//! [`Rig::elsewhere`] passes them on to the block's verdict. All this needs counters that agree
//! across CPUs, which [`Crew::new`] checks.

mod barrier;
mod member;
mod skew;

use crate::campaign::Block;
use crate::core_clock::CoreClock;
use crate::interference::{Interference, InterferenceReader};
use crate::pin::Pinned;
use crate::rigs::{RemoteReading, Rig};
use crate::sys::{self, SysError};
use crate::tsc;
use barrier::StartBarrier;
use member::{MemberResult, run_member};
use skew::{Exchange, Skew};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use units::WouldHelp;

/// A rig that a crew's thread may run.
pub type CrewMember = Box<dyn Rig + Send>;

#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    #[error(transparent)]
    Sys(#[from] SysError),
    #[error("the time stamp counters of CPU {home} and CPU {cpu} are {micros:.1} us apart")]
    CountersApart { home: usize, cpu: usize, micros: f64 },
    #[error("the thread of CPU {cpu} did not answer")]
    Silent { cpu: usize },
}

impl WouldHelp for CrewError {
    fn would_help(&self) -> Option<&str> {
        if let Self::Sys(error) = self { error.would_help() } else { None }
    }
}

/// Pinned threads, one for each CPU but the caller's.
pub struct Crew {
    home: usize,
    core_clock: CoreClock,
    workers: Vec<Worker>,
    witness: InterferenceReader,
    ticks_per_second: f64,
    widest_skew: Skew,
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew")
            .field("home", &self.home)
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

struct Worker {
    cpu: usize,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Run {
        index: usize,
        member: Member,
        barrier: Arc<StartBarrier>,
        done: Sender<(usize, Member, MemberResult)>,
    },
    Skew {
        exchange: Arc<Exchange>,
    },
}

/// A rig and how many of its loops make a piece; 0 until it has run once.
struct Member {
    rig: CrewMember,
    piece: u64,
}

/// Counters that differ by more than this, beyond the doubt of their comparison, are not one clock.
const TOLERATED_SKEW_SECONDS: f64 = 1e-6;
/// How long a crew waits for its last member before it calls the block off.
const PATIENCE_SECONDS: f64 = 0.25;
/// How long its threads take at most to fall asleep after a block; until then they would count as
/// other tasks.
const FALL_ASLEEP_SECONDS: f64 = 60e-6;

impl Crew {
    /// A crew on these CPUs. The caller must be pinned to `home`, and does `home`'s work itself.
    pub fn new(home: usize, cpus: &[usize], ticks_per_second: f64) -> Result<Self, CrewError> {
        let mut crew = Self {
            home,
            core_clock: CoreClock::new()?,
            workers: Vec::new(),
            witness: InterferenceReader::on_cpu(home),
            ticks_per_second,
            widest_skew: Skew::default(),
        };
        let patience = (PATIENCE_SECONDS * ticks_per_second) as u64;
        for &cpu in cpus.iter().filter(|&&cpu| cpu != home) {
            if crew.workers.iter().any(|h| h.cpu == cpu) {
                continue;
            }
            crew.workers.push(Worker::start(cpu)?);
            let skew = crew.workers.last().expect("one was pushed").skew(patience)?;
            let micros = skew.proven() / ticks_per_second * 1e6;
            if micros > TOLERATED_SKEW_SECONDS * 1e6 {
                return Err(CrewError::CountersApart { home, cpu, micros });
            }
            crew.widest_skew = crew.widest_skew.wider(skew);
        }
        crew.pause();
        Ok(crew)
    }

    pub fn home(&self) -> usize {
        self.home
    }

    /// How far apart the counters are at most, in ticks, all doubt included.
    pub fn skew_bound(&self) -> f64 {
        self.widest_skew.bound()
    }

    fn has(&self, cpu: usize) -> bool {
        cpu == self.home || self.workers.iter().any(|h| h.cpu == cpu)
    }

    /// Runs all members at once for `ticks`, and returns each with what it measured.
    fn run(&mut self, cpus: &[usize], members: Vec<Member>, ticks: u64) -> Vec<(Member, MemberResult)> {
        let n = members.len();
        let patience = (PATIENCE_SECONDS * self.ticks_per_second) as u64;
        let barrier = Arc::new(StartBarrier::new(n, ticks, patience));
        let (done, parts): (Sender<(usize, Member, MemberResult)>, Receiver<_>) = mpsc::channel();
        let mut mine = None;
        for (index, (member, &cpu)) in members.into_iter().zip(cpus).enumerate() {
            if cpu == self.home {
                mine = Some((index, member));
                continue;
            }
            let worker = self.workers.iter().find(|h| h.cpu == cpu).expect("checked by CrewRig::new");
            worker.send(Job::Run { index, member, barrier: barrier.clone(), done: done.clone() });
        }
        drop(done);
        let mut results: Vec<Option<(Member, MemberResult)>> = (0..n).map(|_| None).collect();
        if let Some((index, mut member)) = mine {
            let part = run_member(&mut member, &self.core_clock, &barrier);
            results[index] = Some((member, part));
        }
        for (index, member, part) in parts {
            results[index] = Some((member, part));
        }
        self.pause();
        results.into_iter().map(|r| r.expect("a member's thread panicked")).collect()
    }

    /// Lets the threads fall asleep.
    fn pause(&self) {
        let until = tsc::now() + (FALL_ASLEEP_SECONDS * self.ticks_per_second) as u64;
        while tsc::now() < until {
            std::hint::spin_loop();
        }
    }
}

impl Worker {
    fn start(cpu: usize) -> Result<Self, CrewError> {
        let (jobs, inbox) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("crew-{cpu}"))
            .spawn(move || {
                let place = Pinned::to(cpu).and_then(|pinned| Ok((pinned, CoreClock::new()?)));
                let (pinned, core_clock) = match place {
                    Ok(place) => place,
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                let _ = ready.send(Ok(()));
                serve(&inbox, &core_clock);
                drop(pinned);
            })
            .map_err(sys::no_thread)?;
        let worker = Self { cpu, jobs: Some(jobs), thread: Some(thread) };
        is_ready.recv().map_err(|_| CrewError::Silent { cpu })??;
        Ok(worker)
    }

    fn send(&self, job: Job) {
        // A worker lives until its crew is dropped; if it panicked, the caller will miss its part.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    fn skew(&self, patience: u64) -> Result<Skew, CrewError> {
        let exchange = Arc::new(Exchange::new(patience));
        self.send(Job::Skew { exchange: exchange.clone() });
        exchange.ask().ok_or(CrewError::Silent { cpu: self.cpu })
    }
}

/// Does one job after the other until the crew is gone.
fn serve(inbox: &Receiver<Job>, core_clock: &CoreClock) {
    for job in inbox {
        match job {
            Job::Run { index, mut member, barrier, done } => {
                let part = run_member(&mut member, core_clock, &barrier);
                // The caller may be gone.
                let _ = done.send((index, member, part));
            }
            Job::Skew { exchange } => exchange.answer(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Rigs that run at once. A block's values are ticks per operation of each member, then core cycles
/// per tick of each: [`CrewRig::ticks`] and [`CrewRig::cycles_per_tick`] tell them apart.
pub struct CrewRig<'a> {
    crew: &'a RefCell<Crew>,
    cpus: Vec<usize>,
    members: Vec<Member>,
    elsewhere: Option<RemoteReading>,
}

/// A loop of a crew is a stretch of time, since the loops of its members differ.
const TICKS_PER_LOOP: u64 = 256;

impl<'a> CrewRig<'a> {
    /// Each CPU must be one of the crew's, and none may come twice.
    pub fn new(crew: &'a RefCell<Crew>, members: Vec<(usize, CrewMember)>) -> Self {
        let cpus: Vec<usize> = members.iter().map(|m| m.0).collect();
        for (i, &cpu) in cpus.iter().enumerate() {
            assert!(crew.borrow().has(cpu), "CPU {cpu} is not the crew's");
            assert!(!cpus[..i].contains(&cpu), "two members on CPU {cpu}");
        }
        let members = members.into_iter().map(|(_, rig)| Member { rig, piece: 0 }).collect();
        Self { crew, cpus, members, elsewhere: None }
    }

    /// Ticks per operation of the `i`th member in a block of a crew.
    pub fn ticks(block: &Block, i: usize) -> f64 {
        block.values[i]
    }

    /// Core cycles per tick of the `i`th member in a block of a crew.
    pub fn cycles_per_tick(block: &Block, i: usize) -> f64 {
        block.values[block.values.len() / 2 + i]
    }
}

impl Rig for CrewRig<'_> {
    /// Members warm up as part of each run, on their own CPUs.
    fn warm(&mut self) {}

    fn run(&mut self, loops: u64) -> Vec<f64> {
        let mut crew = self.crew.borrow_mut();
        let steal_before = crew.witness.steal_on(&self.cpus);
        let results = crew.run(&self.cpus, std::mem::take(&mut self.members), loops * TICKS_PER_LOOP);
        let steal = crew.witness.steal_on(&self.cpus).saturating_sub(steal_before);
        let parts: Vec<MemberResult> = results
            .into_iter()
            .map(|(member, part)| {
                self.members.push(member);
                part
            })
            .collect();
        let mut interference = Interference { steal, ..Interference::default() };
        let mut cycles_per_tick = (1.0, 1.0);
        for part in &parts {
            interference.switches += part.switches;
            interference.faults += part.faults;
            let moved = |(before, after): (f64, f64)| (after / before - 1.0).abs();
            if moved(part.cycles_per_tick) >= moved(cycles_per_tick) {
                cycles_per_tick = part.cycles_per_tick;
            }
        }
        self.elsewhere = Some(RemoteReading { cycles_per_tick, interference });
        let ticks = parts.iter().map(|p| p.ticks);
        ticks.chain(parts.iter().map(|p| f64::midpoint(p.cycles_per_tick.0, p.cycles_per_tick.1))).collect()
    }

    fn ticks_per_loop(&mut self) -> f64 {
        TICKS_PER_LOOP as f64
    }

    fn elsewhere(&mut self) -> Option<RemoteReading> {
        self.elsewhere.take()
    }
}

#[cfg(test)]
mod tests;

//! Two threads that hand over to each other by way of the kernel.
//!
//! The partner lives as long as the rig and sleeps between blocks, so that it does not disturb
//! other rigs. In a block it takes part in as many round trips as it is told. On one CPU every
//! hand-over is a switch, and the kernel counts some of them as involuntary; there the clock shows
//! whether a third thread ran: it compares the time that passed with the CPU time of the two
//! threads.

use super::Rig;
use crate::pin::Pinned;
use crate::sys::{self, SysError, ThreadClock};
use crate::tsc;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;

/// What two threads hand over by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverMeans {
    /// A word that changes, and a sleep until it does.
    Futex,
    /// A byte through a pipe, there and back.
    Pipe,
    /// Giving up the CPU until it is one's turn.
    SchedYield,
}

/// Round trips before the clock starts, and when warming.
const PRELUDE: u64 = 16;
/// A share of the time that neither of the two threads used, beyond this, went to a third one.
/// Interrupts stay below it.
const THIRD_THREAD_SHARE: f64 = 0.02;

const SLEEP: u32 = 0;
const GO: u32 = 1;
const QUIT: u32 = 2;
const OURS: u32 = 0;
const THEIRS: u32 = 1;

#[repr(align(64))]
struct OnOwnLine<T>(T);

struct HandOverState {
    by: HandOverMeans,
    command: OnOwnLine<AtomicU32>,
    turn: OnOwnLine<AtomicU32>,
    rounds: AtomicU64,
    asleep: AtomicU32,
    there: (File, File),
    back: (File, File),
}

impl HandOverState {
    /// Hands over from one side to the other.
    fn pass(&self, to: u32) {
        match self.by {
            HandOverMeans::Pipe => {
                let mut pipe = if to == THEIRS { &self.there.1 } else { &self.back.1 };
                pipe.write_all(&[1]).expect("a pipe of our own takes a byte");
            }
            HandOverMeans::Futex => {
                self.turn.0.store(to, SeqCst);
                sys::futex_wake(&self.turn.0);
            }
            HandOverMeans::SchedYield => self.turn.0.store(to, SeqCst),
        }
    }

    /// Waits until it is our turn. Returns the number of system calls.
    fn wait(&self, me: u32) -> u64 {
        let mut calls = 0;
        match self.by {
            HandOverMeans::Pipe => {
                let mut pipe = if me == THEIRS { &self.there.0 } else { &self.back.0 };
                pipe.read_exact(&mut [0]).expect("a pipe of our own gives a byte");
                calls += 1;
            }
            HandOverMeans::Futex => {
                while self.turn.0.load(SeqCst) != me {
                    sys::futex_wait(&self.turn.0, 1 - me);
                    calls += 1;
                }
            }
            HandOverMeans::SchedYield => {
                while self.turn.0.load(SeqCst) != me {
                    std::thread::yield_now();
                    calls += 1;
                }
            }
        }
        calls
    }

    fn serve(&self) {
        loop {
            self.asleep.store(1, SeqCst);
            while self.command.0.load(SeqCst) == SLEEP {
                sys::futex_wait(&self.command.0, SLEEP);
            }
            self.asleep.store(0, SeqCst);
            if self.command.0.load(SeqCst) == QUIT {
                return;
            }
            self.command.0.store(SLEEP, SeqCst);
            for _ in 0..self.rounds.load(SeqCst) {
                self.wait(THEIRS);
                self.pass(OURS);
            }
        }
    }
}

pub struct HandOverRig {
    shared: Arc<HandOverState>,
    same_cpu: bool,
    partner: Option<JoinHandle<()>>,
    clock: ThreadClock,
    third_thread_ran: bool,
}

impl std::fmt::Debug for HandOverRig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandOverRig")
            .field("by", &self.shared.by)
            .field("same_cpu", &self.same_cpu)
            .finish_non_exhaustive()
    }
}

impl HandOverRig {
    /// For a calling thread that is pinned to `cpu`, with a partner pinned to `partner_cpu`.
    pub fn new(by: HandOverMeans, cpu: usize, partner_cpu: usize) -> Result<Self, SysError> {
        let shared = Arc::new(HandOverState {
            by,
            command: OnOwnLine(AtomicU32::new(SLEEP)),
            turn: OnOwnLine(AtomicU32::new(OURS)),
            rounds: AtomicU64::new(0),
            asleep: AtomicU32::new(0),
            there: sys::pipe()?,
            back: sys::pipe()?,
        });
        let (tell, told) = std::sync::mpsc::channel();
        let theirs = Arc::clone(&shared);
        let partner = std::thread::Builder::new().spawn(move || {
            let pinned = Pinned::to(partner_cpu);
            let ready = pinned.is_ok();
            if tell.send(pinned.as_ref().map(|_| ()).map_err(|e| e.why.raw_os_error())).is_ok() && ready {
                theirs.serve();
            }
        });
        let partner = partner.map_err(sys::no_thread)?;
        match told.recv() {
            Ok(Ok(())) => {}
            other => {
                let _ = partner.join();
                let why = match other {
                    Ok(Err(Some(errno))) => std::io::Error::from_raw_os_error(errno),
                    _ => std::io::Error::other("its thread ended"),
                };
                return Err(SysError { what: format!("putting a partner on CPU {partner_cpu}"), why });
            }
        }
        let clock = ThreadClock::of(&partner);
        let rig = Self {
            shared,
            same_cpu: cpu == partner_cpu,
            partner: Some(partner),
            clock,
            third_thread_ran: false,
        };
        rig.let_sleep();
        Ok(rig)
    }

    /// Ticks of `rounds` round trips, and the system calls of all waits.
    fn go(&mut self, rounds: u64) -> (u64, u64) {
        let shared = &self.shared;
        shared.rounds.store(rounds + PRELUDE, SeqCst);
        shared.asleep.store(0, SeqCst);
        shared.command.0.store(GO, SeqCst);
        sys::futex_wake(&shared.command.0);
        for _ in 0..PRELUDE {
            shared.pass(THEIRS);
            shared.wait(OURS);
        }
        let used = ThreadClock::mine_ns() + self.clock.ns();
        let began = sys::raw_monotonic_ns();
        let from = tsc::now();
        let mut calls = 0;
        for _ in 0..rounds {
            shared.pass(THEIRS);
            calls += shared.wait(OURS);
        }
        let ticks = tsc::end().0 - from;
        let passed = (sys::raw_monotonic_ns() - began) as f64;
        let used = (ThreadClock::mine_ns() + self.clock.ns()).saturating_sub(used) as f64;
        self.third_thread_ran = self.same_cpu && passed - used > passed * THIRD_THREAD_SHARE;
        self.let_sleep();
        (ticks, calls)
    }

    /// Waits until the partner sleeps, so that it does not disturb what runs next.
    fn let_sleep(&self) {
        while self.shared.asleep.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        // The partner has announced it and is about to sleep: on our CPU it needs a turn for that,
        // on another CPU a moment.
        for _ in 0..8 {
            std::thread::yield_now();
        }
    }
}

impl Rig for HandOverRig {
    fn warm(&mut self) {
        self.go(PRELUDE);
    }

    /// Ticks a hand-over, and calls of the kernel for each time that we waited.
    fn run(&mut self, loops: u64) -> Vec<f64> {
        let (ticks, calls) = self.go(loops);
        vec![ticks as f64 / (loops * 2) as f64, calls as f64 / loops as f64]
    }

    fn ticks_per_loop(&mut self) -> f64 {
        self.warm();
        self.go(64).0 as f64 / 64.0
    }

    fn sleeps(&self) -> bool {
        true
    }

    fn foreign_switches(&self, involuntary: u64) -> u64 {
        if self.same_cpu { u64::from(self.third_thread_ran) } else { involuntary }
    }
}

impl Drop for HandOverRig {
    fn drop(&mut self) {
        self.shared.command.0.store(QUIT, SeqCst);
        sys::futex_wake(&self.shared.command.0);
        if let Some(partner) = self.partner.take() {
            let _ = partner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_hands_over_on_one_cpu_and_between_two() {
        let cpus = crate::pin::allowed().unwrap();
        let (here, there) = (cpus[0], *cpus.last().unwrap());
        let _pinned = Pinned::to(here).unwrap();
        for by in [HandOverMeans::Futex, HandOverMeans::Pipe, HandOverMeans::SchedYield] {
            for partner in [here, there] {
                let mut rig = HandOverRig::new(by, here, partner).unwrap();
                assert!(rig.ticks_per_loop() > 0.0);
                let values = rig.run(50);
                assert!(values[0] > 0.0 && values.len() == 2, "{by:?} {values:?}");
            }
        }
    }

    #[test]
    fn a_sleeping_partner_does_not_keep_the_cpu() {
        let cpu = *crate::pin::allowed().unwrap().last().unwrap();
        let _pinned = Pinned::to(cpu).unwrap();
        let mut rig = HandOverRig::new(HandOverMeans::SchedYield, cpu, cpu).unwrap();
        rig.run(20);
        let (before, mine) = (rig.clock.ns(), ThreadClock::mine_ns());
        while ThreadClock::mine_ns() - mine < 5_000_000 {
            std::hint::spin_loop();
        }
        assert_eq!(rig.clock.ns(), before, "it ran without being told to");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        assert!(HandOverRig::new(HandOverMeans::Futex, 0, 100_000).is_err());
    }
}

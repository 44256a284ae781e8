//! A tenth of a second of a program that runs, in one way: what a run is for the search.

use super::switched::Switched;
use super::work::Work;
use crate::program::TrialError;
use crate::search::{Outcome, Runner, Way, pair};
use lab::stop::Stop;
use records::recipe::Setting;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A phase lasts as long at least, and until the program had the CPU for part of it.
const PHASE: Duration = Duration::from_millis(100);
const LEAST_CPU: Duration = Duration::from_millis(25);
/// Less is mostly the chance of which call is the last.
const LEAST_WORK: f64 = 20.0;
/// Until caches hold what this way needs.
const SETTLING: Duration = Duration::from_millis(5);
/// A server may have nothing to do for a while.
const PATIENCE: Duration = Duration::from_secs(10);
/// Two phases of one way differ by less than this once a program has begun; if not, it differs as
/// much from phase to phase, and pairs tell what can be told.
const STEADY: f64 = 0.1;
const MOST_UNTIL_SETTLED: usize = 20;
/// Pairs of phases by which it is looked again whether prefetches pay.
const PAIRS_AGAIN: usize = 10;
/// How often what pays may be switched off by chance.
const MISSED_AGAIN: f64 = 0.01;

pub(super) struct Phases {
    switched: Switched,
    pub work: Work,
    /// CPU seconds that one unit of work took at first.
    first: Option<f64>,
    began: Instant,
    number: usize,
    stop: Stop,
}

impl Phases {
    pub(super) fn new(switched: Switched, work: Work, stop: Stop) -> Self {
        Self { switched, work, first: None, began: Instant::now(), number: 0, stop }
    }

    /// These are on from now on, and all others off.
    pub(super) fn switch(&self, settings: &[Setting]) -> Result<(), String> {
        match self.switched.set(settings) {
            Ok(0) => Err("none of its processes has mapped the rewritten code".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("its code cannot be written to: {}", records::plain(&error))),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.switched.is_running()
    }

    fn is_over(&self) -> bool {
        self.stop.asked() || !self.switched.is_running()
    }

    /// Goes on until the program does not begin any more: its work costs what it did before.
    pub(super) fn settle(&mut self) -> Result<(), TrialError> {
        let mut before = None;
        for _ in 0..MOST_UNTIL_SETTLED {
            self.first = None;
            let outcome = self.run(&Way::default())?;
            let each = self.first.filter(|_| outcome.wrong.is_none());
            let is_steady = |before: f64, now: f64| (now / before).ln().abs() < STEADY;
            if self.is_over() || before.zip(each).is_some_and(|(before, now)| is_steady(before, now)) {
                break;
            }
            before = each;
        }
        (self.began, self.number) = (Instant::now(), 0);
        Ok(())
    }

    /// What was done, and the CPU time for it.
    fn phase(&self) -> Result<(f64, Duration, Duration), String> {
        sleep(SETTLING);
        let (done, cpu) = self.work.so_far()?;
        let began = Instant::now();
        loop {
            sleep(PHASE / 2);
            let took = began.elapsed();
            let (done_now, cpu_now) = self.work.so_far()?;
            let (done, cpu) = (done_now - done, cpu_now.saturating_sub(cpu));
            if took >= PHASE && cpu >= LEAST_CPU && done >= LEAST_WORK {
                return Ok((done, cpu, took));
            }
            if self.is_over() {
                return Err("it ended".to_owned());
            }
            if took > PATIENCE {
                return Err(if cpu < LEAST_CPU {
                    format!(
                        "it had the CPU for {:.0} ms of 10 s: there was nothing to do",
                        1e3 * cpu.as_secs_f64()
                    )
                } else {
                    self.work.too_little()
                });
            }
        }
    }
}

impl Runner for Phases {
    fn run(&mut self, way: &Way) -> Result<Outcome, TrialError> {
        let phase = self.switch(&way.settings).and_then(|()| self.phase());
        self.number += 1;
        Ok(match phase {
            Ok((done, cpu, took)) => {
                let each = cpu.as_secs_f64() / done;
                // As if each phase did what the first one would have done in its time.
                let seconds = PHASE.as_secs_f64() * each / *self.first.get_or_insert(each);
                let took = (took + SETTLING).as_secs_f64();
                Outcome { seconds, cpu_seconds: seconds, took, ..Outcome::default() }
            }
            Err(why) => Outcome { wrong: Some(why), ..Outcome::default() },
        })
    }

    fn cannot_be_repeated(&self) -> Option<String> {
        None
    }

    fn compared(&self) -> Vec<String> {
        Vec::new()
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn runs(&self) -> usize {
        self.number
    }

    fn is_stopped(&self) -> bool {
        self.is_over()
    }
}

/// Whether the program is not slower with these by more than chance.
pub(super) fn still_pays(phases: &mut dyn Runner, settings: &[Setting]) -> Result<bool, TrialError> {
    let mut pairs = crate::pairs::Pairs::default();
    while pairs.len() < PAIRS_AGAIN && !phases.is_stopped() {
        let [without, with] = pair(phases, &[], settings, None, pairs.len())?;
        // Nothing to do tells nothing.
        if without.wrong.is_some() || with.wrong.is_some() {
            return Ok(true);
        }
        pairs.push(without.seconds, with.seconds);
    }
    Ok(pairs.faster(MISSED_AGAIN).is_none_or(|faster| faster.hi >= 1.0))
}

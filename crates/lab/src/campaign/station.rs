//! The real executor: rigs on the calling, pinned thread, with its core clock and its interference
//! counters.

use super::steady_clock::{self, SteadyClockRun};
use super::{Executor, Reading};
use crate::core_clock::CoreClock;
use crate::core_width::CoreWidth;
use crate::interference::{Interference, InterferenceCounters, InterferenceReader};
use crate::pin::Pinned;
use crate::rigs::Rig;
use crate::sys::SysError;
use std::time::Duration;

/// How often a block is tried at once while the clock moves. Where it moves in every second block,
/// one block in thirty is left to a later round.
const TRIES_WHILE_CLOCK_MOVES: usize = 5;

/// A measuring place on one CPU.
#[derive(Debug)]
pub struct Station {
    pinned: Pinned,
    core_clock: CoreClock,
    core_width: CoreWidth,
    witness: InterferenceReader,
    /// Ticks a second, for choosing block lengths only.
    ticks_per_second: f64,
}

impl Station {
    pub fn new(cpu: usize, ticks_per_second: f64) -> Result<Self, SysError> {
        let pinned = Pinned::to(cpu)?;
        let witness = InterferenceReader::on_cpu(cpu);
        Ok(Self {
            pinned,
            core_clock: CoreClock::new()?,
            core_width: CoreWidth::new()?,
            witness,
            ticks_per_second,
        })
    }

    pub fn cpu(&self) -> usize {
        self.pinned.cpu()
    }

    pub fn core_clock(&self) -> &CoreClock {
        &self.core_clock
    }

    /// What may interfere and cannot be seen here.
    pub fn blind(&mut self) -> Option<String> {
        self.witness.blind()
    }

    pub fn look(&mut self) -> InterferenceCounters {
        self.witness.look()
    }

    /// An executor of these rigs, blocks lasting about `block` each.
    pub fn with<'a>(&'a mut self, rigs: Vec<Box<dyn Rig + 'a>>, block: Duration) -> StationExecutor<'a> {
        let loops = vec![0; rigs.len()];
        StationExecutor { ticks: block.as_secs_f64() * self.ticks_per_second, station: self, rigs, loops }
    }
}

/// Rigs set up at a station.
pub struct StationExecutor<'a> {
    station: &'a mut Station,
    rigs: Vec<Box<dyn Rig + 'a>>,
    /// Loops that make a block of each rig; 0 until its first block.
    loops: Vec<u64>,
    ticks: f64,
}

impl std::fmt::Debug for StationExecutor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StationExecutor")
            .field("rigs", &self.rigs.len())
            .field("loops", &self.loops)
            .finish_non_exhaustive()
    }
}

impl Executor for StationExecutor<'_> {
    fn settings(&self) -> usize {
        self.rigs.len()
    }

    fn block(&mut self, setting: usize) -> Reading {
        let rig = &mut self.rigs[setting];
        if self.loops[setting] == 0 {
            let per_loop = rig.ticks_per_loop().max(1e-3);
            self.loops[setting] = ((self.ticks / per_loop).ceil() as u64).max(1);
            rig.prepare(self.loops[setting]);
        }
        // Reading the counters is slow and disturbs the caches, so it comes first; warming up
        // repairs them.
        let before = self.station.witness.look();
        rig.warm();
        let Station { core_clock, core_width, witness, .. } = &mut *self.station;
        let first = core_clock.cycles_per_tick();
        let mut widths = (0.0, core_width.take(first));
        let tries = if rig.goes_on() { TRIES_WHILE_CLOCK_MOVES } else { 1 };
        let SteadyClockRun { result: values, mut cycles_per_tick, moved } =
            steady_clock::run_until_steady(first, tries, || {
                let values = rig.run(self.loops[setting]);
                let after = core_clock.cycles_per_tick();
                widths = (widths.1, core_width.take(after));
                (values, after)
            });
        let mut interference = witness.look().since(&before);
        interference.core_shared = core_width.is_shared(widths.0.min(widths.1));
        interference.switches =
            rig.foreign_switches(interference.switches) + if rig.sleeps() { 0 } else { interference.sleeps };
        if let Some(elsewhere) = rig.elsewhere() {
            // Rigs that work on other CPUs read the counters there, and only while it counted.
            // Other tasks are seen from any CPU.
            cycles_per_tick = elsewhere.cycles_per_tick;
            interference = Interference { other_tasks: interference.other_tasks, ..elsewhere.interference };
        }
        Reading { values, cycles_per_tick, interference, moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps for a moment in each run, as if another process had stopped this one.
    struct Away {
        by_itself: bool,
    }

    impl Rig for Away {
        fn warm(&mut self) {}

        fn run(&mut self, _loops: u64) -> Vec<f64> {
            std::thread::sleep(Duration::from_micros(100));
            vec![1.0]
        }

        fn ticks_per_loop(&mut self) -> f64 {
            1e9
        }

        fn sleeps(&self) -> bool {
            self.by_itself
        }

        fn foreign_switches(&self, _involuntary: u64) -> u64 {
            0
        }
    }

    #[test]
    fn a_block_in_which_we_were_stopped_is_void() {
        let mut station = Station::new(crate::pin::allowed().unwrap()[0], 1e9).unwrap();
        let rigs: Vec<Box<dyn Rig>> =
            vec![Box::new(Away { by_itself: false }), Box::new(Away { by_itself: true })];
        let mut bench = station.with(rigs, Duration::from_micros(10));
        assert!(bench.block(0).interference.switches > 0);
        assert_eq!(bench.block(1).interference.switches, 0);
    }
}

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
use std::time::{Duration, Instant};

/// How often a block is tried at once while the clock moves. Where it moves in every second block,
/// one block in thirty is left to a later round.
const TRIES_WHILE_CLOCK_MOVES: usize = 5;

/// How often caches are warmed where another task took the CPU meanwhile.
const TRIES_WHILE_WARMING_IS_CUT: usize = 3;
/// One that takes longer than the turns of tasks would be interrupted again.
const LONG_WARMING: Duration = Duration::from_millis(10);
/// A load while caches are warmed, as far as a campaign needs to know before the first one.
const WARMING_LOAD: Duration = Duration::from_nanos(100);
/// The rest of a block: counters are read, clocks are, and the block itself runs.
const WITHOUT_WARMING: Duration = Duration::from_millis(1);

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

    fn expected(&self, setting: usize) -> Duration {
        let loads = u32::try_from(self.rigs[setting].warming_loads()).unwrap_or(u32::MAX);
        WITHOUT_WARMING + WARMING_LOAD * loads
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
        let looked = self.station.witness.look();
        // On a busy host a warm-up is longer than the time until another task has its turn. What
        // happens then is no fault of the block: the counters begin behind it.
        let (mut before, mut warming_cut) = (looked, false);
        for _ in 0..TRIES_WHILE_WARMING_IS_CUT {
            let (began, since) = (before, Instant::now());
            rig.warm();
            warming_cut = !rig.sleeps() && self.station.witness.switched_since(&began);
            before = self.station.witness.switches_from_now(looked);
            let in_vain = since.elapsed() > LONG_WARMING;
            if !(warming_cut && rig.warming_matters()) || in_vain {
                break;
            }
        }
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
        interference.warming_cut = warming_cut && rig.warming_matters();
        interference.core_shared = core_width.is_shared(widths.0.min(widths.1));
        interference.switches =
            rig.foreign_switches(interference.switches) + if rig.sleeps() { 0 } else { interference.sleeps };
        if let Some(elsewhere) = rig.elsewhere() {
            // Rigs that work on other CPUs read the counters there, and only while it counted.
            // Other tasks are seen from any CPU.
            cycles_per_tick = elsewhere.cycles_per_tick;
            let Interference { other_tasks, warming_cut, .. } = interference;
            interference = Interference { other_tasks, warming_cut, ..elsewhere.interference };
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

    /// Is stopped in its first warm-ups, as by a task that takes its turn.
    struct CutWarming {
        cuts: usize,
        warmed: usize,
        matters: bool,
    }

    impl Rig for CutWarming {
        fn warm(&mut self) {
            self.warmed += 1;
            if self.warmed <= self.cuts {
                std::thread::sleep(Duration::from_micros(100));
            }
        }

        fn warming_matters(&self) -> bool {
            self.matters
        }

        fn run(&mut self, _loops: u64) -> Vec<f64> {
            vec![self.warmed as f64]
        }

        fn ticks_per_loop(&mut self) -> f64 {
            1e9
        }
    }

    #[test]
    fn a_warm_up_that_was_interrupted_is_repeated_and_no_fault_of_the_block() {
        let mut station = Station::new(crate::pin::allowed().unwrap()[0], 1e9).unwrap();
        let rig = |cuts, matters| Box::new(CutWarming { cuts, warmed: 0, matters }) as Box<dyn Rig>;
        let rigs = vec![rig(1, true), rig(9, true), rig(9, false)];
        let mut bench = station.with(rigs, Duration::from_micros(10));
        for (setting, warmed, cut) in [(0, 2.0, false), (1, 3.0, true), (2, 1.0, false)] {
            let reading = bench.block(setting);
            // Where another task really takes this CPU meanwhile, there are more.
            assert!(reading.values[0] >= warmed, "{reading:?}");
            assert!(reading.interference.warming_cut == cut || reading.values[0] > warmed, "{reading:?}");
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

//! The run's verdict on itself, from what was seen besides the measuring. Pure.

use crate::campaign::{CampaignResult, VoidCounts};
use crate::interference::Interference;
use crate::stats;

/// What speaks for or against the figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTally {
    pub valid: usize,
    pub beside_other_tasks: usize,
    /// Blocks during which another hyperthread of the core was at work.
    pub core_shared: usize,
    pub voids: VoidCounts,
    /// The core clocks of all blocks, in cycles per tick.
    pub cycles_per_tick: Vec<f64>,
    /// Settings, and those of them that were not resolved.
    pub settings: usize,
    pub unresolved: usize,
    /// Other tasks that were ready to run beside each block.
    pub other_tasks: Vec<f64>,
}

impl RunTally {
    pub fn add(&mut self, gathered: &CampaignResult) {
        for series in &gathered.series {
            self.valid += series.valid();
            self.voids.add(&series.voids());
            self.settings += 1;
            self.unresolved += usize::from(series.counted().len() < crate::campaign::LEAST_BLOCKS);
            self.other_tasks.extend(series.other_tasks().iter().map(|&tasks| f64::from(tasks)));
            for block in series.blocks() {
                self.beside_other_tasks += usize::from(block.beside_other_tasks);
                self.core_shared += usize::from(block.core_shared);
                self.cycles_per_tick.push(block.cycles_per_tick);
            }
        }
    }

    /// Other tasks beside most blocks: the median.
    pub fn usual_other_tasks(&self) -> u32 {
        if self.other_tasks.is_empty() { 0 } else { stats::median(&self.other_tasks) as u32 }
    }

    /// Counts readings of the core clock, which are not in blocks: all are valid but one for each
    /// interruption. An interrupted reading looks slow, whatever the clock did, so the slowest ones
    /// are left out.
    pub fn note_watch(&mut self, cycles_per_tick: &[f64], interference: &Interference) {
        let interrupted = (interference.switches as usize).min(cycles_per_tick.len());
        self.valid += cycles_per_tick.len() - interrupted;
        self.voids.switch += interrupted;
        self.cycles_per_tick.extend_from_slice(&stats::sorted(cycles_per_tick)[interrupted..]);
    }
}

/// Ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noise {
    Quiet,
    Fair,
    Noisy,
}

/// The verdict and every reason against a better one.
pub fn grade(tally: &RunTally) -> (Noise, Vec<String>) {
    let mut worst = Noise::Quiet;
    let mut reasons = Vec::new();
    let mut judge = |value: f64, fair: f64, noisy: f64, reason: String| {
        let noise = if value > noisy {
            Noise::Noisy
        } else if value > fair {
            Noise::Fair
        } else {
            return;
        };
        worst = worst.max(noise);
        reasons.push(reason);
    };
    let tried = tally.valid + tally.voids.total();
    if tried == 0 {
        return (Noise::Noisy, vec!["nothing was measured".to_owned()]);
    }
    let share = |n: usize, of: usize| n as f64 / of.max(1) as f64;
    // A clock that moves is the processor's own doing, and figures in cycles allow for it; so much
    // of it is forgiven.
    let interfered = VoidCounts { clock_moved: 0, ..tally.voids };
    let interference = share(interfered.total(), tried);
    judge(
        interference,
        0.05,
        0.25,
        format!("{:.0}% of the blocks were void: {}", interference * 100.0, interfered.describe()),
    );
    let moved = share(tally.voids.clock_moved, tried);
    judge(moved, 0.20, 0.50, format!("the core clock moved in {:.0}% of the blocks", moved * 100.0));
    let stolen = share(tally.voids.steal, tried);
    judge(stolen, 0.01, 0.10, format!("the hypervisor took the CPU in {:.1}% of the blocks", stolen * 100.0));
    let beside = share(tally.beside_other_tasks, tally.valid);
    judge(
        beside,
        0.05,
        0.30,
        format!("other tasks were running on this machine in {:.0}% of the blocks", beside * 100.0),
    );
    // Latencies hardly change by it, so it alone makes no run noisy; figures that do change are
    // marked one by one.
    let shared = share(tally.core_shared, tally.valid);
    judge(
        shared,
        0.20,
        f64::INFINITY,
        format!("another hyperthread of this core was at work in {:.0}% of the blocks", shared * 100.0),
    );
    if !tally.cycles_per_tick.is_empty() {
        // One reading in a hundred at each end is an interrupted one, not the clock.
        let cycles_per_tick = stats::sorted(&tally.cycles_per_tick);
        let wander = stats::quantile_sorted(&cycles_per_tick, 0.99)
            / stats::quantile_sorted(&cycles_per_tick, 0.01)
            - 1.0;
        judge(
            wander,
            0.05,
            0.30,
            format!(
                "the core clock wandered by {:.0}% over the run (figures in cycles allow for it)",
                wander * 100.0
            ),
        );
    }
    let unresolved = share(tally.unresolved, tally.settings);
    judge(
        unresolved,
        0.0,
        0.05,
        format!("{} of {} settings were not resolved", tally.unresolved, tally.settings),
    );
    (worst, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> RunTally {
        RunTally {
            valid: 1000,
            beside_other_tasks: 3,
            core_shared: 0,
            voids: VoidCounts { steal: 0, switch: 4, fault: 0, clock_moved: 6 },
            cycles_per_tick: vec![1.41, 1.42, 1.43],
            settings: 100,
            unresolved: 0,
            other_tasks: vec![0.0; 4],
        }
    }

    #[test]
    fn quiet_run_is_quiet() {
        assert_eq!(grade(&quiet()), (Noise::Quiet, vec![]));
    }

    #[test]
    fn an_interrupted_pulse_is_no_slow_clock() {
        let mut watched = quiet();
        let mut pulses = vec![1.42; 50];
        pulses[7] = 0.005;
        pulses[30] = 0.5;
        watched.note_watch(&pulses, &Interference { switches: 2, ..Interference::default() });
        assert_eq!(watched.valid, 1048);
        assert_eq!(grade(&watched), (Noise::Quiet, vec![]));
    }

    #[test]
    fn each_trouble_lowers_the_grade_and_is_named() {
        let cases = [
            (RunTally { beside_other_tasks: 900, ..quiet() }, Noise::Noisy, "other tasks"),
            (RunTally { beside_other_tasks: 100, ..quiet() }, Noise::Fair, "other tasks"),
            (
                RunTally { voids: VoidCounts { switch: 900, ..quiet().voids }, ..quiet() },
                Noise::Noisy,
                "switched away",
            ),
            (
                RunTally { voids: VoidCounts { steal: 30, ..quiet().voids }, ..quiet() },
                Noise::Fair,
                "hypervisor",
            ),
            (RunTally { cycles_per_tick: vec![1.0, 1.5], ..quiet() }, Noise::Noisy, "core clock"),
            (RunTally { core_shared: 900, ..quiet() }, Noise::Fair, "hyperthread"),
            (RunTally { unresolved: 1, ..quiet() }, Noise::Fair, "not resolved"),
            (RunTally::default(), Noise::Noisy, "nothing"),
        ];
        for (tally, noise, word) in cases {
            let (got, reasons) = grade(&tally);
            assert_eq!(got, noise, "{reasons:?}");
            assert!(reasons.iter().any(|r| r.contains(word)), "{reasons:?} lacks {word}");
        }
    }
}

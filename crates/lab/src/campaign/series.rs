//! The blocks of one setting: which count, which are void and why, and what they amount to.

use super::{CLOCK_TOLERANCE, LEAST_BLOCKS, Reading};
use crate::rng::Rng;
use crate::stats;
use units::Estimate;

/// A block that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub values: Vec<f64>,
    /// Core cycles per tick while the block ran.
    pub cycles_per_tick: f64,
    /// Why it counts only where there are too few others.
    pub marred: Option<VoidReason>,
    /// Other tasks were ready to run when the block began or ended.
    pub beside_other_tasks: bool,
    /// Another hyperthread worked on the core just before or just after.
    pub core_shared: bool,
}

/// Why a block does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    Steal,
    Switch,
    Fault,
    ClockMoved,
    /// Another task took the CPU while caches were warmed.
    WarmingCut,
}

impl VoidReason {
    /// What the block says is not lost: a moving clock hardly changes what memory takes in ticks,
    /// and neither a cut warm-up nor a hypervisor's visit, of which only the 10 ms are known in
    /// which it was, need have touched what was timed. A switch within the block, or a page fault,
    /// is in its time.
    fn leaves_something(self) -> bool {
        matches!(self, Self::Steal | Self::ClockMoved | Self::WarmingCut)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoidCounts {
    pub steal: usize,
    pub switch: usize,
    pub fault: usize,
    pub clock_moved: usize,
}

impl VoidCounts {
    pub fn total(&self) -> usize {
        self.steal + self.switch + self.fault + self.clock_moved
    }

    pub fn add(&mut self, other: &Self) {
        self.steal += other.steal;
        self.switch += other.switch;
        self.fault += other.fault;
        self.clock_moved += other.clock_moved;
    }

    /// The reasons in words, the most frequent first.
    pub fn describe(&self) -> String {
        let mut parts = [
            (self.switch, "switched away from the CPU"),
            (self.steal, "the hypervisor took the CPU"),
            (self.clock_moved, "the core clock moved"),
            (self.fault, "page faults"),
        ];
        parts.sort_by_key(|p| std::cmp::Reverse(p.0));
        let parts: Vec<String> =
            parts.iter().filter(|p| p.0 > 0).map(|(n, what)| format!("{what} ({n})")).collect();
        parts.join(", ")
    }
}

/// All blocks of one setting.
#[derive(Clone, Debug, Default)]
pub struct Series {
    blocks: Vec<Block>,
    /// Void ones that say something all the same: a wide interval is better than none.
    marred: Vec<Block>,
    /// Other tasks that were ready to run beside each block, void or not.
    other_tasks: Vec<u32>,
    voids: VoidCounts,
    /// What this setting measures changes where another hyperthread works on the core, so blocks
    /// beside one count only where others are too few.
    whole_core: bool,
}

impl Series {
    pub fn wanting(whole_core: bool) -> Self {
        Self { whole_core, ..Self::default() }
    }

    pub fn add(&mut self, reading: Reading) {
        self.voids.clock_moved += reading.moved;
        self.other_tasks.push(reading.interference.other_tasks);
        let marred = verdict(&reading);
        match marred {
            Some(VoidReason::Steal) => self.voids.steal += 1,
            Some(VoidReason::Switch | VoidReason::WarmingCut) => self.voids.switch += 1,
            Some(VoidReason::Fault) => self.voids.fault += 1,
            Some(VoidReason::ClockMoved) => self.voids.clock_moved += 1,
            None => {}
        }
        let block = Block {
            values: reading.values,
            cycles_per_tick: f64::midpoint(reading.cycles_per_tick.0, reading.cycles_per_tick.1),
            marred,
            beside_other_tasks: reading.interference.other_tasks > 0,
            core_shared: reading.interference.core_shared,
        };
        match marred {
            None => self.blocks.push(block),
            Some(why) if why.leaves_something() => self.marred.push(block),
            Some(_) => {}
        }
    }

    pub fn valid(&self) -> usize {
        self.blocks.len()
    }

    pub fn voids(&self) -> VoidCounts {
        self.voids
    }

    /// Valid blocks of the kind that the campaign wants.
    pub fn wanted(&self) -> usize {
        self.blocks.iter().filter(|b| !(self.whole_core && b.core_shared)).count()
    }

    /// The blocks that figures rest on: the undisturbed ones where they are enough, else all that
    /// are valid, and where these are too few also those void ones that still say something.
    pub fn counted(&self) -> Vec<&Block> {
        if self.blocks.len() < LEAST_BLOCKS {
            return self.blocks.iter().chain(&self.marred).collect();
        }
        if self.whole_core {
            let alone: Vec<&Block> =
                self.blocks.iter().filter(|b| !b.beside_other_tasks && !b.core_shared).collect();
            if alone.len() >= LEAST_BLOCKS {
                return alone;
            }
        }
        let quiet: Vec<&Block> = self.blocks.iter().filter(|b| !b.beside_other_tasks).collect();
        if quiet.len() >= LEAST_BLOCKS { quiet } else { self.blocks.iter().collect() }
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The clocks of all blocks, void ones among them whose clock moved.
    pub fn clocks(&self) -> impl Iterator<Item = f64> {
        self.blocks.iter().chain(&self.marred).map(|block| block.cycles_per_tick)
    }

    pub fn other_tasks(&self) -> &[u32] {
        &self.other_tasks
    }

    /// Share of blocks that ran beside other tasks.
    pub fn other_tasks_share(&self) -> f64 {
        let n = self.blocks.iter().filter(|b| b.beside_other_tasks).count();
        if self.blocks.is_empty() { 0.0 } else { n as f64 / self.blocks.len() as f64 }
    }

    /// A whole core was wanted, and the figures rest on blocks beside another hyperthread.
    pub fn lacks_whole_core(&self) -> bool {
        self.whole_core && self.counted().iter().any(|b| b.core_shared)
    }

    /// Why the figures are disturbed, if they rest on blocks that ran beside other work.
    pub fn disturbed(&self) -> Option<String> {
        let interrupted = |b: &&Block| matches!(b.marred, Some(VoidReason::Steal | VoidReason::WarmingCut));
        let counted = self.counted();
        let cut = counted.iter().copied().filter(interrupted).count();
        if cut > 0 {
            return Some(format!(
                "{cut} of the {} blocks were interrupted, and too few others are left",
                counted.len()
            ));
        }
        if self.lacks_whole_core() {
            let shared = self.blocks.iter().filter(|b| b.core_shared).count();
            return Some(format!(
                "another hyperthread of this core was at work in {:.0}% of the blocks",
                shared as f64 / self.blocks.len() as f64 * 100.0
            ));
        }
        self.counted().iter().any(|b| b.beside_other_tasks).then(|| {
            format!("other tasks were running in {:.0}% of the blocks", self.other_tasks_share() * 100.0)
        })
    }

    /// The first channel in ticks: median and interval.
    pub fn estimate(&self, rng: &mut Rng) -> Result<Estimate, String> {
        self.estimate_of(rng, |b| b.values[0])
    }

    /// The first channel in core cycles, each block by its own clock.
    pub fn cycles(&self, rng: &mut Rng) -> Result<Estimate, String> {
        self.estimate_of(rng, |b| b.values[0] * b.cycles_per_tick)
    }

    /// Median and interval of any value computed from a block.
    pub fn estimate_of(&self, rng: &mut Rng, f: impl Fn(&Block) -> f64) -> Result<Estimate, String> {
        let counted = self.counted();
        if counted.len() < LEAST_BLOCKS {
            return Err(self.why_unresolved());
        }
        let values: Vec<f64> = counted.iter().map(|b| f(b)).collect();
        let e = stats::median_interval(&values, rng);
        let marred = counted.iter().any(|block| block.marred.is_some());
        if !marred && self.disturbed().is_none() {
            return Ok(e);
        }
        // The interval of the median says how well the *disturbed* value is known. A reader wants
        // the quiet value, so give the range in which the blocks fell.
        let v = stats::sorted(&values);
        Ok(Estimate::new(e.value, stats::quantile_sorted(&v, 0.025), stats::quantile_sorted(&v, 0.975)))
    }

    fn why_unresolved(&self) -> String {
        let tried = self.blocks.len() + self.voids.total();
        if tried == 0 {
            return "not measured".to_owned();
        }
        if self.voids.total() == 0 {
            return format!("only {tried} blocks were measured");
        }
        format!("{} of {tried} blocks were void: {}", self.voids.total(), self.voids.describe())
    }
}

fn verdict(reading: &Reading) -> Option<VoidReason> {
    let (before, after) = reading.cycles_per_tick;
    if reading.interference.switches > 0 {
        Some(VoidReason::Switch)
    } else if reading.interference.steal > 0 {
        Some(VoidReason::Steal)
    } else if reading.interference.faults > 0 {
        Some(VoidReason::Fault)
    } else if reading.interference.warming_cut {
        Some(VoidReason::WarmingCut)
    } else if clock_moved(before, after) {
        Some(VoidReason::ClockMoved)
    } else {
        None
    }
}

/// Two readings of the clock between which nothing counts.
pub(super) fn clock_moved(before: f64, after: f64) -> bool {
    (after / before - 1.0).abs() > CLOCK_TOLERANCE || !(before > 0.0 && after > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::Interference;

    fn reading(value: f64, cycles_per_tick: (f64, f64), interference: Interference) -> Reading {
        Reading { values: vec![value], cycles_per_tick, interference, moved: 0 }
    }

    #[test]
    fn each_interference_voids() {
        let mut s = Series::default();
        let quiet = Interference::default();
        s.add(reading(1.0, (1.4, 1.4), Interference { steal: 1, ..quiet }));
        s.add(reading(1.0, (1.4, 1.4), Interference { switches: 1, ..quiet }));
        s.add(reading(1.0, (1.4, 1.4), Interference { faults: 1, ..quiet }));
        s.add(reading(1.0, (1.4, 1.42), quiet));
        assert_eq!(s.voids(), VoidCounts { steal: 1, switch: 1, fault: 1, clock_moved: 1 });
        assert_eq!(s.valid(), 0);
        s.add(reading(1.0, (1.4, 1.401), quiet));
        assert_eq!(s.valid(), 1);
        // What was tried on the spot before it is void too.
        s.add(Reading { moved: 2, ..reading(1.0, (1.4, 1.401), quiet) });
        assert_eq!((s.valid(), s.voids().clock_moved), (2, 3));
    }

    /// Of memory in ticks a moving clock takes nothing; a switch within the block leaves no figure.
    #[test]
    fn a_wide_interval_is_better_than_none() {
        let quiet = Interference::default();
        let cut = Interference { warming_cut: true, ..quiet };
        for (interference, after, disturbed) in [(quiet, 1.6, false), (cut, 1.4, true)] {
            let mut s = Series::default();
            for i in 0..10 {
                s.add(reading(150.0 + f64::from(i), (1.4, after), interference));
            }
            assert_eq!((s.valid(), s.voids().total()), (0, 10));
            let e = s.estimate(&mut Rng::new(1)).unwrap();
            assert!(e.lo < 151.0 && e.hi > 158.0, "the range of the blocks: {e:?}");
            assert_eq!(s.disturbed().is_some(), disturbed);
            assert!(s.cycles(&mut Rng::new(1)).is_ok());
            // Valid blocks are better, where they are enough.
            for _ in 0..LEAST_BLOCKS {
                s.add(reading(140.0, (1.4, 1.4), quiet));
            }
            assert_eq!(s.estimate(&mut Rng::new(1)).unwrap(), Estimate::exact(140.0));
            assert_eq!(s.disturbed(), None);
        }
        let mut s = Series::default();
        for _ in 0..10 {
            s.add(reading(900.0, (1.4, 1.4), Interference { switches: 1, ..quiet }));
        }
        assert!(s.estimate(&mut Rng::new(1)).unwrap_err().contains("switched away"));
    }

    #[test]
    fn other_tasks_widen_it_and_are_named() {
        let mut s = Series::default();
        let busy = Interference { other_tasks: 1, ..Interference::default() };
        for i in 0..20 {
            s.add(reading(10.0 + f64::from(i % 10), (1.0, 1.0), busy));
        }
        let e = s.estimate(&mut Rng::new(1)).unwrap();
        assert!(e.lo < 10.5 && e.hi > 18.5, "{e:?}");
        assert!(s.disturbed().unwrap().contains("100%"));
        // Enough quiet blocks: only they count.
        for _ in 0..5 {
            s.add(reading(9.0, (1.0, 1.0), Interference::default()));
        }
        assert_eq!(s.estimate(&mut Rng::new(1)).unwrap().value, 9.0);
        assert_eq!(s.disturbed(), None);
    }

    #[test]
    fn a_whole_core_is_preferred_where_it_is_wanted() {
        let beside = Interference { core_shared: true, ..Interference::default() };
        for wanted in [false, true] {
            let mut s = Series::wanting(wanted);
            for i in 0..20 {
                s.add(reading(10.0 + f64::from(i % 10), (1.0, 1.0), beside));
            }
            assert_eq!(s.lacks_whole_core(), wanted);
            assert_eq!((s.valid(), s.wanted()), (20, if wanted { 0 } else { 20 }));
            let e = s.estimate(&mut Rng::new(1)).unwrap();
            if wanted {
                assert!(
                    s.disturbed().unwrap().contains("hyperthread") && e.lo < 10.5 && e.hi > 18.5,
                    "{e:?}"
                );
            } else {
                assert_eq!(s.disturbed(), None);
            }
            for _ in 0..5 {
                s.add(reading(9.0, (1.0, 1.0), Interference::default()));
            }
            assert_eq!(s.estimate(&mut Rng::new(1)).unwrap().value == 9.0, wanted);
            assert_eq!(s.disturbed(), None);
        }
    }

    #[test]
    fn cycles_follow_each_block_s_clock() {
        let mut s = Series::default();
        for (ticks, cycles_per_tick) in [(4.0, 1.0), (2.0, 2.0), (8.0, 0.5)] {
            s.add(reading(ticks, (cycles_per_tick, cycles_per_tick), Interference::default()));
        }
        let e = s.cycles(&mut Rng::new(1)).unwrap();
        assert_eq!((e.value, e.lo, e.hi), (4.0, 4.0, 4.0));
    }
}

//! A campaign: blocks of many settings, interleaved at random, voided if something interfered, and
//! repeated.
//!
//! What a block *is* depends on the [`Executor`]: the real one runs rigs on a pinned thread
//! ([`Station`]), tests use a scripted one. Every round takes all settings in a fresh random order,
//! from a recorded seed. So a drift of the machine adds to the noise of all settings alike, and a
//! campaign that is stopped early has measured all of them equally. Where a busy host leaves too
//! little time for all, as many as possible get enough blocks for a figure, the cheap ones first,
//! rather than each of them too few.

mod affordable;
mod series;
mod station;
mod steady_clock;

pub use series::{Block, Series, VoidCounts, VoidReason};
pub use station::Station;

use crate::interference::Interference;
use crate::rng::Rng;
use crate::stop::Stop;
use affordable::{Costs, Need};
use std::time::{Duration, Instant};
use units::Progress;

/// What one block measured.
#[derive(Clone, Debug)]
pub struct Reading {
    /// One value per channel; most rigs have one channel, in ticks per operation.
    pub values: Vec<f64>,
    /// Core cycles per tick just before and just after the block.
    pub cycles_per_tick: (f64, f64),
    pub interference: Interference,
    /// Tries just before it that were void because the clock moved.
    pub moved: usize,
}

/// Runs blocks.
pub trait Executor {
    fn settings(&self) -> usize;

    /// Roughly how long a block of a setting takes with its warm-up, before the first one is run.
    fn expected(&self, setting: usize) -> Duration {
        let _ = setting;
        Duration::ZERO
    }

    /// Runs one block of a setting, including its warm-up.
    fn block(&mut self, setting: usize) -> Reading;
}

/// How many blocks a campaign measures, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct CampaignGoal {
    /// Valid blocks wanted of each setting.
    pub blocks: usize,
    /// After this time the campaign goes on only with settings that lack the least number of blocks
    /// for an interval.
    pub time: Duration,
    /// No block begins after this time.
    pub most: Duration,
    /// Blocks during which another hyperthread worked on the core are repeated, as void ones are,
    /// and count only where there are too few others.
    pub whole_core: bool,
}

/// Fewer valid blocks than this give no figure.
pub const LEAST_BLOCKS: usize = 3;
/// How many times as often as others a setting is tried that has fewer.
const LONGER: usize = 4;
/// Two readings of the core clock that differ by more than this share void the block between them.
pub const CLOCK_TOLERANCE: f64 = 0.005;

/// What a campaign measured, a series for each setting.
#[derive(Clone, Debug)]
pub struct CampaignResult {
    pub series: Vec<Series>,
    /// It was stopped before it was done.
    pub interrupted: bool,
    /// It ran out of time before every setting had its blocks.
    pub out_of_time: bool,
}

pub fn run(
    executor: &mut dyn Executor,
    effort: &CampaignGoal,
    rng: &mut Rng,
    stop: Stop,
    progress: &mut dyn Progress,
) -> CampaignResult {
    let n = executor.settings();
    let mut series: Vec<Series> = vec![Series::wanting(effort.whole_core); n];
    let began = Instant::now();
    let mut costs = Costs::expected((0..n).map(|setting| executor.expected(setting)));
    // A voided block is repeated in later rounds. A machine that voids two of three blocks does not
    // get better by trying, so only settings without any figure go on then.
    let rounds = effort.blocks * 3;
    let total = n * effort.blocks;
    let (mut interrupted, mut out_of_time) = (false, false);
    'rounds: for round in 0..rounds * LONGER {
        let late = began.elapsed() > effort.time;
        let goal = if late { effort.blocks.min(LEAST_BLOCKS) } else { effort.blocks };
        let lacks = |s: &Series| if round < rounds { s.wanted() < goal } else { s.valid() < LEAST_BLOCKS };
        let mut order: Vec<usize> = (0..n).filter(|&s| lacks(&series[s])).collect();
        if order.is_empty() {
            out_of_time = series.iter().any(|s| s.wanted() < effort.blocks);
            break;
        }
        let affordable = |series: &[Series], costs: &Costs, settings: &[usize]| {
            let lack = |s: usize| LEAST_BLOCKS.saturating_sub(series[s].counted().len());
            let need = |&s: &usize| Need { setting: s, seconds: costs.of(s) * lack(s) as f64 };
            let left = effort.most.saturating_sub(began.elapsed()).as_secs_f64();
            affordable::chosen(&settings.iter().map(need).collect::<Vec<_>>(), left)
        };
        let lacking = order.clone();
        let chosen = affordable(&series, &costs, &lacking);
        let is_short = chosen.is_some();
        match chosen {
            Some(cheapest) => order = cheapest,
            None => rng.shuffle(&mut order),
        }
        for (place, setting) in order.into_iter().enumerate() {
            // Each block tells more of what blocks cost: there may be too little time for all, and
            // for this setting.
            match affordable(&series, &costs, &lacking) {
                Some(_) if !is_short && place > 0 => break,
                Some(cheapest) if place > 0 && !cheapest.contains(&setting) => continue,
                _ => {}
            }
            if stop.asked() {
                interrupted = true;
                break 'rounds;
            }
            if began.elapsed() > effort.most {
                out_of_time = true;
                break 'rounds;
            }
            let block_began = Instant::now();
            let reading = executor.block(setting);
            costs.took(setting, block_began.elapsed());
            series[setting].add(reading);
            let done: usize = series.iter().map(|s| s.wanted().min(effort.blocks)).sum();
            progress.at("blocks", done as f64 / total as f64);
        }
    }
    CampaignResult { series, interrupted, out_of_time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use units::Silent;

    /// Settings whose true value is their index + 1; every `void_every`th block sees a switch.
    struct Scripted {
        settings: usize,
        void_every: usize,
        run: usize,
        order: Vec<usize>,
        stop_after: Option<(usize, &'static AtomicBool)>,
        interference: Interference,
    }

    impl Scripted {
        fn new(settings: usize, void_every: usize) -> Self {
            Self {
                settings,
                void_every,
                run: 0,
                order: Vec::new(),
                stop_after: None,
                interference: Interference::default(),
            }
        }
    }

    impl Executor for Scripted {
        fn settings(&self) -> usize {
            self.settings
        }

        fn block(&mut self, setting: usize) -> Reading {
            self.run += 1;
            self.order.push(setting);
            if let Some((after, flag)) = self.stop_after {
                flag.store(self.run >= after, Ordering::Relaxed);
            }
            let voided = self.void_every != 0 && self.run % self.void_every == 0;
            let interference = Interference { switches: u64::from(voided), ..self.interference };
            let value = if voided { 1e9 } else { (setting + 1) as f64 };
            Reading { values: vec![value], cycles_per_tick: (1.5, 1.5), interference, moved: 0 }
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);
    const EFFORT: CampaignGoal = CampaignGoal { blocks: 6, time: HOUR, most: HOUR, whole_core: false };

    #[test]
    fn every_setting_gets_its_valid_blocks() {
        let mut executor = Scripted::new(10, 4);
        let got = run(&mut executor, &EFFORT, &mut Rng::new(1), Stop::never(), &mut Silent);
        for (i, s) in got.series.iter().enumerate() {
            assert_eq!(s.valid(), 6);
            assert_eq!(s.estimate(&mut Rng::new(2)).unwrap().value, (i + 1) as f64);
        }
        let voided: usize = got.series.iter().map(|s| s.voids().total()).sum();
        assert_eq!(voided, executor.run - 60);
        assert!(!got.interrupted && !got.out_of_time);
    }

    #[test]
    fn blocks_on_a_shared_core_are_repeated_where_a_whole_one_is_wanted() {
        let shared = Interference { core_shared: true, ..Interference::default() };
        for (whole_core, blocks) in [(false, 6), (true, 18)] {
            let mut executor = Scripted { interference: shared, ..Scripted::new(4, 0) };
            let effort = CampaignGoal { whole_core, ..EFFORT };
            let got = run(&mut executor, &effort, &mut Rng::new(1), Stop::never(), &mut Silent);
            assert!(got.series.iter().all(|s| s.valid() == blocks && s.lacks_whole_core() == whole_core));
        }
    }

    #[test]
    fn order_is_random_and_repeatable() {
        let order = |seed| {
            let mut executor = Scripted::new(8, 0);
            run(&mut executor, &EFFORT, &mut Rng::new(seed), Stop::never(), &mut Silent);
            executor.order
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        let (first, second) = (order(3)[..8].to_vec(), order(3)[8..16].to_vec());
        assert_ne!(first, second, "rounds must differ");
    }

    #[test]
    fn a_hopeless_machine_ends_and_resolves_nothing() {
        let mut executor = Scripted::new(3, 1);
        let got = run(&mut executor, &EFFORT, &mut Rng::new(1), Stop::never(), &mut Silent);
        assert_eq!(executor.run, 3 * 6 * 3 * LONGER);
        assert!(got.series.iter().all(|s| s.estimate(&mut Rng::new(1)).is_err()));
        let why = got.series[0].estimate(&mut Rng::new(1)).unwrap_err();
        assert!(why.contains("switched away"), "{why}");
    }

    #[test]
    fn settings_without_a_figure_are_tried_longer() {
        // One block in eleven is valid.
        struct Busy(usize);
        impl Executor for Busy {
            fn settings(&self) -> usize {
                1
            }

            fn block(&mut self, _setting: usize) -> Reading {
                self.0 += 1;
                let switches = u64::from(self.0 % 11 != 0);
                let interference = Interference { switches, ..Interference::default() };
                Reading { values: vec![1.0], cycles_per_tick: (1.5, 1.5), interference, moved: 0 }
            }
        }
        let mut executor = Busy(0);
        let got = run(&mut executor, &EFFORT, &mut Rng::new(1), Stop::never(), &mut Silent);
        assert_eq!((got.series[0].valid(), executor.0), (LEAST_BLOCKS, 33));
        assert!(got.out_of_time);
    }

    /// Half of the settings take long: there is time for the others.
    #[test]
    fn where_time_is_short_some_settings_get_a_figure_rather_than_none() {
        struct Dear;
        impl Executor for Dear {
            fn settings(&self) -> usize {
                20
            }

            fn expected(&self, setting: usize) -> Duration {
                Duration::from_millis(if setting % 2 == 0 { 20 } else { 0 })
            }

            fn block(&mut self, setting: usize) -> Reading {
                std::thread::sleep(self.expected(setting));
                let interference = Interference::default();
                Reading { values: vec![1.0], cycles_per_tick: (1.5, 1.5), interference, moved: 0 }
            }
        }
        let effort =
            CampaignGoal { time: Duration::from_millis(100), most: Duration::from_millis(200), ..EFFORT };
        let got = run(&mut Dear, &effort, &mut Rng::new(1), Stop::never(), &mut Silent);
        assert!(got.out_of_time);
        let figures = |dear: bool| {
            let series = got.series.iter().enumerate().filter(|(s, _)| (s % 2 == 0) == dear);
            series.filter(|(_, series)| series.valid() >= LEAST_BLOCKS).count()
        };
        assert_eq!(figures(false), 10);
        assert!(figures(true) < 10, "there is no time for all");
    }

    #[test]
    fn stops_when_asked_and_keeps_what_it_has() {
        static FLAG: AtomicBool = AtomicBool::new(false);
        let mut executor = Scripted::new(4, 0);
        executor.stop_after = Some((13, &FLAG));
        let got = run(&mut executor, &EFFORT, &mut Rng::new(1), Stop::from_flag(&FLAG), &mut Silent);
        assert!(got.interrupted);
        assert_eq!(executor.run, 13);
        assert!(got.series.iter().all(|s| s.valid() >= 3));
    }

    #[test]
    fn out_of_time_still_measures_the_least() {
        let mut executor = Scripted::new(4, 0);
        let effort = CampaignGoal { blocks: 50, time: Duration::ZERO, ..EFFORT };
        let got = run(&mut executor, &effort, &mut Rng::new(1), Stop::never(), &mut Silent);
        assert!(got.out_of_time);
        assert!(got.series.iter().all(|s| s.valid() == LEAST_BLOCKS));
    }

    #[test]
    fn no_block_begins_after_the_end_whatever_is_missing() {
        let mut executor = Scripted::new(4, 0);
        let effort = CampaignGoal { most: Duration::ZERO, ..EFFORT };
        let got = run(&mut executor, &effort, &mut Rng::new(1), Stop::never(), &mut Silent);
        assert!(got.out_of_time && executor.run == 0);
    }
}

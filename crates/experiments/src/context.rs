//! What an experiment is given: the machine's facts, a station to measure at, how much time it has,
//! and a way to turn series of blocks into quantities.

use crate::line;
use crate::stride_choice::StrideChoice;
use crate::time_budget::{Allotment, TimeBudget};
use lab::campaign::{self, CampaignResult, Series, Station};
use lab::grade::RunTally;
use lab::rigs::Rig;
use lab::rng::Rng;
use lab::stop::Stop;
use records::host::Host;
use records::machine::Effort;
use std::time::{Duration, Instant};
use units::{Bytes, Estimate, Latency, Progress, Quantity, Unit, WouldHelp};

/// Why an experiment gave nothing.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The host does not allow it; `false` if it went wrong.
    pub not_possible: bool,
    pub why: String,
    pub would_help: Option<String>,
}

impl Refused {
    pub fn failed(why: impl Into<String>) -> Self {
        Self { not_possible: false, why: why.into(), would_help: None }
    }

    pub fn not_possible(why: impl Into<String>, would_help: impl Into<String>) -> Self {
        Self { not_possible: true, why: why.into(), would_help: Some(would_help.into()) }
    }
}

impl WouldHelp for Refused {
    fn would_help(&self) -> Option<&str> {
        self.would_help.as_deref()
    }
}

impl<E: std::error::Error + WouldHelp> From<E> for Refused {
    /// A system call that this host does not allow makes the experiment impossible; any other error
    /// is a failure.
    fn from(error: E) -> Self {
        let would_help = error.would_help().map(str::to_owned);
        Self { not_possible: would_help.is_some(), why: error.to_string(), would_help }
    }
}

pub struct Context<'a> {
    pub host: &'a Host,
    pub station: Station,
    /// Ticks per second of the time stamp counter.
    pub tsc: Estimate,
    pub effort: Effort,
    /// The time that this experiment may take.
    pub budget: Duration,
    pub(crate) time_budget: TimeBudget,
    pub max_memory: Bytes,
    pub(crate) strides: &'a StrideChoice,
    /// A generator seeded for this experiment alone.
    pub rng: Rng,
    pub stop: Stop,
    pub tally: RunTally,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) name: &'static str,
    /// This experiment's part of the whole run, and the current stage's part of the experiment;
    /// both from 0 to 1.
    pub(crate) part_of_run: (f64, f64),
    pub(crate) stage: (f64, f64),
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name)
            .field("effort", &self.effort)
            .finish_non_exhaustive()
    }
}

/// A campaign's progress, as that of its part of the whole run.
struct PartOfRun<'a> {
    whole: &'a mut dyn Progress,
    name: &'a str,
    from: f64,
    to: f64,
}

impl Progress for PartOfRun<'_> {
    fn at(&mut self, _what: &str, fraction: f64) {
        self.whole.at(self.name, self.from + (self.to - self.from) * fraction);
    }

    fn line(&mut self, text: &str) {
        self.whole.line(text);
    }

    fn finish(&mut self) {}
}

impl Context<'_> {
    pub fn cpu(&self) -> usize {
        self.station.cpu()
    }

    pub fn is_quick(&self) -> bool {
        self.effort == Effort::Quick
    }

    /// Picks by effort.
    pub fn pick<T>(&self, quick: T, normal: T, thorough: T) -> T {
        match self.effort {
            Effort::Quick => quick,
            Effort::Normal => normal,
            Effort::Thorough => thorough,
        }
    }

    /// From here on progress moves over this part (0 to 1) of the experiment.
    pub fn stage(&mut self, from: f64, to: f64) {
        self.stage = (from, to);
        let at = self.overall(from);
        self.progress.at(self.name, at);
    }

    pub fn remark(&mut self, text: &str) {
        self.progress.line(text);
    }

    fn overall(&self, fraction: f64) -> f64 {
        self.part_of_run.0 + (self.part_of_run.1 - self.part_of_run.0) * fraction
    }

    /// Runs blocks of these rigs, interleaved. It takes at most `share` of the experiment's budget,
    /// and beyond that what the [`TimeBudget`] allows where settings lack the least number of
    /// blocks.
    pub fn measure(
        &mut self,
        rigs: Vec<Box<dyn Rig + '_>>,
        block: Duration,
        blocks: usize,
        share: f64,
    ) -> CampaignResult {
        self.campaign(rigs, block, blocks, share, false)
    }

    /// The same, for what another hyperthread of the core would change: see
    /// [`campaign::CampaignGoal::whole_core`].
    pub fn measure_on_whole_core(
        &mut self,
        rigs: Vec<Box<dyn Rig + '_>>,
        block: Duration,
        blocks: usize,
        share: f64,
    ) -> CampaignResult {
        self.campaign(rigs, block, blocks, share, true)
    }

    fn campaign(
        &mut self,
        rigs: Vec<Box<dyn Rig + '_>>,
        block: Duration,
        blocks: usize,
        share: f64,
        whole_core: bool,
    ) -> CampaignResult {
        let Allotment { time, most } = self.time_budget.allotment(share);
        let effort = campaign::CampaignGoal { blocks, time, most, whole_core };
        let began = Instant::now();
        let (from, to) = (self.overall(self.stage.0), self.overall(self.stage.1));
        let mut part = PartOfRun { whole: &mut *self.progress, name: self.name, from, to };
        let mut executor = self.station.with(rigs, block);
        let gathered = campaign::run(&mut executor, &effort, &mut self.rng, self.stop, &mut part);
        drop(executor);
        self.tally.add(&gathered);
        self.time_budget.spend(share, began.elapsed());
        gathered
    }

    /// A series in ticks per access, as a latency.
    pub fn latency(&mut self, series: &Series) -> Latency {
        let ns_per_tick = 1e9 / self.tsc.value;
        let disturbed = series.disturbed();
        let quantity = |e: Result<Estimate, String>, unit| match e {
            Ok(e) => Quantity::measured(e, unit).disturbed_by(disturbed.clone()),
            Err(why) => Quantity::unresolved(why),
        };
        let ticks = series.estimate(&mut self.rng);
        Latency {
            ns: quantity(ticks.clone().map(|e| e.scaled(ns_per_tick)), Unit::Nanos),
            cycles: quantity(series.cycles(&mut self.rng), Unit::Cycles),
            ticks: quantity(ticks, Unit::Ticks),
        }
    }

    /// Any figure that can be computed block by block.
    pub fn quantity(&mut self, series: &Series, unit: Unit, f: impl Fn(&campaign::Block) -> f64) -> Quantity {
        match series.estimate_of(&mut self.rng, f) {
            Ok(e) => Quantity::measured(e, unit).disturbed_by(series.disturbed()),
            Err(why) => Quantity::unresolved(why),
        }
    }

    pub fn ns_per_tick(&self) -> f64 {
        1e9 / self.tsc.value
    }

    /// The size of a cache line as the host claims it; 64 where it claims nothing.
    pub fn line(&self) -> u64 {
        line::claimed(self.host, self.cpu())
    }

    /// The size of the last cache as the host claims it, for choosing what to measure.
    pub fn last_cache(&self) -> Bytes {
        self.host.data_cache_sizes_of(self.cpu() as u32).last().and_then(|c| c.size).unwrap_or(Bytes::mib(32))
    }
}

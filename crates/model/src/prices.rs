//! What misses and yields cost on this machine: from a machine record, or, where there is none or a
//! figure is missing, those of a common machine with wide intervals, each of which the plan names
//! as assumed.
//!
//! To add a price: a field of [`records::plan::Prices`], how it is read from a machine record, and
//! its default here.

use records::Document;
use records::machine::{Level, Machine, Outcome, ShortCosts, UserSwitch};
use records::plan::{LevelPrice, Prices, Source, YieldPrice};
use std::path::Path;
use units::{Estimate, Quantity, Unit};

/// The level beyond all caches, as machine records name it.
const MEMORY: &str = "DRAM";

/// Prices by this machine record.
pub fn from_machine(path: &Path, document: &Document<Machine>) -> Prices {
    let source =
        Source::Machine { path: path.display().to_string(), created: document.header.created.clone() };
    let machine = &document.body;
    let costs = machine.experiments.costs.as_ref().and_then(|outcome| outcome.result.as_ref());
    let prices = defaults(source);
    match costs {
        Some(costs) => found(prices, &of_costs(costs)),
        None => found(prices, &of_experiments(machine)),
    }
}

/// What a record has for plans.
#[derive(Default)]
struct Found<'r> {
    levels: &'r [Level],
    yields: Vec<YieldPrice>,
    overlap: Option<&'r Quantity>,
    reach: Option<&'r Quantity>,
    clock: Option<&'r Quantity>,
}

fn of_costs(costs: &ShortCosts) -> Found<'_> {
    Found {
        levels: &costs.levels,
        yields: yields(&costs.yields),
        overlap: Some(&costs.overlap),
        reach: Some(&costs.reach),
        clock: Some(&costs.clock),
    }
}

fn of_experiments(machine: &Machine) -> Found<'_> {
    fn result<T>(outcome: Option<&Outcome<T>>) -> Option<&T> {
        outcome?.result.as_ref()
    }
    let all = &machine.experiments;
    Found {
        levels: &machine.levels,
        yields: result(all.yields.as_ref()).map(|measured| yields(&measured.user)).unwrap_or_default(),
        overlap: result(all.mlp.as_ref()).and_then(|mlp| mlp.kinds.first()).map(|kind| &kind.sustained),
        reach: result(all.rob.as_ref()).map(|rob| &rob.entries),
        clock: result(all.clock.as_ref()).map(|clock| &clock.core),
    }
}

/// These prices, with what was found in place of the defaults.
fn found(mut prices: Prices, found: &Found<'_>) -> Prices {
    prices.assumed.clear();
    let levels: Vec<LevelPrice> = found
        .levels
        .iter()
        .filter(|level| level.latency.cycles.estimate().is_some())
        .map(|level| LevelPrice { name: level.name.clone(), cycles: level.latency.cycles.clone() })
        .collect();
    // Without memory, the last cache would count as what a miss comes from.
    if levels.len() >= 2 && levels.iter().any(|level| level.name == MEMORY) {
        prices.levels = levels;
    } else {
        prices.assumed.push(missing(Prices::LATENCIES, "latency", prices.levels.last().map(|l| &l.cycles)));
    }
    if found.yields.is_empty() {
        let taken = prices.yields.first().map(|y| &y.cycles);
        prices.assumed.push(missing("the cost of a yield", "yield", taken));
    } else {
        prices.yields.clone_from(&found.yields);
    }
    let resolved = |quantity: Option<&Quantity>| quantity.filter(|q| q.estimate().is_some()).cloned();
    match resolved(found.overlap) {
        Some(overlap) => prices.overlap = overlap,
        None => prices.assumed.push(missing("misses that overlap", "mlp", Some(&prices.overlap))),
    }
    match resolved(found.reach) {
        Some(reach) => prices.reach = reach,
        None => prices.assumed.push(missing("how far ahead the core looks", "rob", Some(&prices.reach))),
    }
    match resolved(found.clock) {
        Some(clock) => prices.clock = clock,
        None => match clock_by_levels(found.levels) {
            Some(clock) => prices.clock = clock,
            None => prices.assumed.push(missing("the core clock", "clock", Some(&prices.clock))),
        },
    }
    price_pollution(&mut prices);
    prices
}

/// Prices of a common machine.
pub fn assumed(why: impl Into<String>) -> Prices {
    let mut prices = defaults(Source::Defaults { why: why.into() });
    prices.assumed = vec![
        missing(Prices::LATENCIES, "latency", prices.levels.last().map(|l| &l.cycles)),
        missing("the cost of a yield", "yield", prices.yields.first().map(|y| &y.cycles)),
        missing("misses that overlap", "mlp", Some(&prices.overlap)),
        missing("how far ahead the core looks", "rob", Some(&prices.reach)),
        missing("the core clock", "clock", Some(&prices.clock)),
    ];
    price_pollution(&mut prices);
    prices
}

/// What a yield costs that saves half of the registers.
pub fn typical_yield(prices: &Prices) -> Estimate {
    prices.yield_cost(8, false, 0)
}

fn missing(what: &str, experiment: &str, taken: Option<&Quantity>) -> String {
    let taken = taken.map_or(String::new(), |q| format!(": {q}"));
    format!("{what} (gleaner measure {experiment}){taken}")
}

/// A figure that is a guess about machines like this one, with all that is plausible in its
/// interval.
fn guess(value: f64, lo: f64, hi: f64, unit: Unit) -> Quantity {
    let mut quantity = Quantity::claimed(value, unit);
    if let Quantity::Resolved { lo: low, hi: high, .. } = &mut quantity {
        (*low, *high) = (lo, hi);
    }
    quantity
}

fn defaults(source: Source) -> Prices {
    let level = |name: &str, value, lo, hi| LevelPrice {
        name: name.to_owned(),
        cycles: guess(value, lo, hi, Unit::Cycles),
    };
    let switch = |live, flags, vectors, value, lo, hi| YieldPrice {
        live,
        flags,
        vectors,
        cycles: guess(value, lo, hi, Unit::Cycles),
    };
    Prices {
        source,
        levels: vec![
            level("L1", 4.0, 3.0, 6.0),
            level("L2", 14.0, 10.0, 20.0),
            level("L3", 55.0, 35.0, 120.0),
            level(MEMORY, 350.0, 200.0, 700.0),
        ],
        yields: vec![
            switch(2, false, 0, 11.0, 7.0, 20.0),
            switch(14, false, 0, 18.0, 12.0, 30.0),
            switch(14, true, 16, 30.0, 20.0, 60.0),
        ],
        overlap: guess(12.0, 8.0, 24.0, Unit::Count),
        reach: guess(224.0, 128.0, 512.0, Unit::Count),
        clock: guess(3.0e9, 2.0e9, 5.0e9, Unit::Hertz),
        pollution: Quantity::unresolved("not yet priced"),
        assumed: Vec::new(),
    }
}

fn yields(measured: &[UserSwitch]) -> Vec<YieldPrice> {
    // With one place alone jumps predict better than they do in programs; with two they do as
    // there.
    let most = measured.iter().map(|row| row.sites.min(2)).max().unwrap_or(1);
    let mut rows: Vec<YieldPrice> = measured
        .iter()
        .filter(|row| row.sites == most && row.cost.cycles.estimate().is_some())
        .map(|row| YieldPrice {
            live: row.live,
            flags: row.flags,
            vectors: row.vectors,
            cycles: row.cost.cycles.clone(),
        })
        .collect();
    rows.sort_by_key(|row| (row.flags, row.vectors, row.live));
    rows
}

/// Where the clock was not measured by itself, the same latencies in two units tell it.
fn clock_by_levels(levels: &[Level]) -> Option<Quantity> {
    levels.iter().find_map(|level| {
        let rate = level.latency.cycles.estimate()?.over(level.latency.ns.estimate()?);
        Some(Quantity::modelled(rate.scaled(1e9), Unit::Hertz))
    })
}

/// A guest displaces cache lines of its host. How many is not measured: two lines of L1 are
/// assumed, none to eight, which come back from L2. Where a record has no L2, or hardly knows it
/// (others used the machine), that of a common machine is taken: memory in its place would make
/// each turn of a guest as dear as a miss.
fn price_pollution(prices: &mut Prices) {
    const LINES: (f64, f64, f64) = (2.0, 0.0, 8.0);
    /// What is less certain is hardly known.
    const MOST_SPREAD: f64 = 3.0;
    let usual = defaults(prices.source.clone()).levels;
    let cycles = |name: &str| {
        let found = prices.levels.iter().chain(&usual).filter(|level| level.name == name);
        found.filter_map(|level| level.cycles.estimate()).find(|it| it.hi <= MOST_SPREAD * it.lo)
    };
    let Some((first, second)) = cycles("L1").zip(cycles("L2")) else {
        prices.pollution = Quantity::unresolved("the plan has no cost for L2");
        return;
    };
    let line = (second.value - first.value).max(0.0);
    let estimate = Estimate::new(LINES.0 * line, LINES.1 * line, LINES.2 * line);
    prices.pollution = Quantity::modelled(estimate, Unit::Cycles);
    prices.assumed.push(format!("pollution: {} lines a guest's turn, {} to {}", LINES.0, LINES.1, LINES.2));
}

/// The arithmetic on prices. A price that is not resolved counts as nothing; the plan names it.
pub trait Pricing {
    /// What a load costs that no cache holds, and the name of the level that serves it.
    fn miss(&self) -> (String, Estimate);

    /// The cheapest switch that was priced and saves at least so much; where none does, the
    /// dearest.
    fn yield_cost(&self, live: u32, flags: bool, vectors: u32) -> Estimate;

    /// What a load costs that the first cache holds.
    fn hit(&self) -> Estimate;

    /// How many misses are served at once in a loop whose iterations are independent and have this
    /// many instructions: one for each iteration that fits into the reorder buffer, up to the
    /// misses that the core can have in flight.
    fn at_once(&self, round: u32) -> Estimate;

    /// Cycles of the core's clock.
    fn cycles_in(&self, seconds: f64) -> f64;
}

impl Pricing for Prices {
    fn miss(&self) -> (String, Estimate) {
        let last =
            self.levels.iter().rev().find_map(|level| Some((level.name.clone(), level.cycles.estimate()?)));
        last.unwrap_or_else(|| (String::new(), Estimate::exact(0.0)))
    }

    fn yield_cost(&self, live: u32, flags: bool, vectors: u32) -> Estimate {
        let priced = || self.yields.iter().filter_map(|row| Some((row, row.cycles.estimate()?)));
        let by_value = |a: &Estimate, b: &Estimate| a.value.total_cmp(&b.value);
        priced()
            .filter(|(row, _)| row.live >= live && row.vectors >= vectors && (row.flags || !flags))
            .map(|(_, cost)| cost)
            .min_by(by_value)
            .or_else(|| priced().map(|(_, cost)| cost).max_by(by_value))
            .unwrap_or(Estimate::exact(0.0))
    }

    fn hit(&self) -> Estimate {
        self.levels.iter().find_map(|level| level.cycles.estimate()).unwrap_or(Estimate::exact(0.0))
    }

    fn at_once(&self, round: u32) -> Estimate {
        let known = self.overlap.estimate().zip(self.reach.estimate());
        known.map_or(Estimate::exact(1.0), |(most, reach)| {
            let rounds = reach.scaled(1.0 / f64::from(round.max(1)));
            let least = |a: f64, b: f64| a.min(b).max(1.0);
            Estimate::new(
                least(most.value, rounds.value),
                least(most.lo, rounds.lo),
                least(most.hi, rounds.hi),
            )
        })
    }

    fn cycles_in(&self, seconds: f64) -> f64 {
        seconds * self.clock.value().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yield_is_priced_by_what_saves_at_least_as_much() {
        let prices = assumed("a test");
        assert_eq!(prices.yield_cost(0, false, 0).value, 11.0);
        assert_eq!(prices.yield_cost(3, false, 0).value, 18.0);
        assert_eq!(prices.yield_cost(2, true, 0).value, 30.0);
        assert_eq!(prices.yield_cost(20, true, 32).value, 30.0, "the dearest, where none saves as much");
        assert_eq!(prices.miss().0, "DRAM");
        assert!(prices.miss().1.contains(350.0));
    }

    #[test]
    fn whatever_was_not_measured_is_named() {
        let text = r#"{"kind":"machine","version":1,"gleaner":"0.1.0","created":"2026-01-31T12:00:00Z","host":{},
            "run":{"cpu":0,"seed":1,"effort":"quick","seconds":1,"tsc":{"unresolved":"x"},"blocks":{},
            "grade":{"verdict":"quiet","reasons":[]}},
            "levels":[
              {"name":"L1","size":{"unresolved":"x"},"size_claimed":{"unresolved":"x"},"latency":{
                "ns":{"value":1,"lo":1,"hi":1,"unit":"ns","basis":"measured"},
                "cycles":{"value":4,"lo":4,"hi":4,"unit":"cycles","basis":"measured"},"ticks":{"unresolved":"x"}}},
              {"name":"DRAM","size":{"unresolved":"x"},"size_claimed":{"unresolved":"x"},"latency":{
                "ns":{"value":100,"lo":90,"hi":110,"unit":"ns","basis":"measured"},
                "cycles":{"value":400,"lo":360,"hi":440,"unit":"cycles","basis":"measured"},"ticks":{"unresolved":"x"}}}
            ]}"#;
        let document = records::parse::<Machine>(text.as_bytes()).unwrap();
        let prices = from_machine(Path::new("m.json"), &document);
        assert_eq!(prices.miss(), ("DRAM".to_owned(), Estimate::new(400.0, 360.0, 440.0)));
        assert_eq!(prices.clock.value(), Some(4e9), "by the levels, in two units");
        let assumed = prices.assumed.join("; ");
        assert!(
            assumed.contains("gleaner measure yield") && assumed.contains("gleaner measure mlp"),
            "{assumed}"
        );
        assert!(!assumed.contains("measure latency") && !assumed.contains("measure clock"), "{assumed}");
        assert!(assumed.contains("pollution"), "{assumed}");
        // No L2 was found, or hardly: its lines do not come back from memory.
        let l2 = text.replace("DRAM", "L2").replace("\"lo\":360", "\"lo\":90");
        let l2 = from_machine(Path::new("m.json"), &records::parse::<Machine>(l2.as_bytes()).unwrap());
        assert!(l2.pollution.value().is_some_and(|cycles| cycles < 40.0), "{:?}", l2.pollution);
        assert!(prices.pollution.value().is_some_and(|cycles| cycles < 40.0), "{:?}", prices.pollution);
        // A record of caches alone says nothing of misses.
        let caches = text.replace("DRAM", "L2");
        let document = records::parse::<Machine>(caches.as_bytes()).unwrap();
        let prices = from_machine(Path::new("m.json"), &document);
        assert_eq!(prices.miss().0, "DRAM");
        assert!(prices.assumed.join("; ").contains("measure latency"));
    }
}

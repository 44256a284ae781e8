//! Fits to machines that were made up, whose levels are known: how often intervals hold the truth,
//! and how often the number of levels is right.

use crate::fit::{Of, fit};
use crate::sample::Sample;
use crate::walks::Tables;
use units::{Quantity, Rng};

struct Known {
    /// Where the levels behind the first one begin.
    breaks: Vec<f64>,
    costs: Vec<f64>,
    samples: Vec<Sample>,
}

fn uniform(random: &mut Rng, from: f64, to: f64) -> f64 {
    from + (to - from) * random.below(1 << 20) as f64 / f64::from(1 << 20)
}

/// Twelve uniform numbers add up to nearly a normal one.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| uniform(random, 0.0, 1.0)).sum::<f64>() - 6.0
}

/// Two to five levels, each at least six times the size and twice the cost of the one before; areas
/// from 4 KiB to sixteen times where memory begins, with noise of 0.5% to 2%.
fn made_up(seed: u64) -> Known {
    let mut random = Rng::new(seed);
    let levels = 2 + random.below(4) as usize;
    let mut breaks = vec![uniform(&mut random, 14.5, 16.0).exp2()];
    let mut costs = vec![uniform(&mut random, 1.0, 2.0)];
    for _ in 1..levels {
        let last = costs[costs.len() - 1];
        costs.push(last * uniform(&mut random, 2.0, 5.0));
    }
    while breaks.len() + 1 < levels {
        let last = breaks[breaks.len() - 1];
        breaks.push(last * uniform(&mut random, 2.6, 5.0).exp2());
    }
    let noise = uniform(&mut random, 0.005, 0.02);
    let end = breaks[breaks.len() - 1].log2() + 4.0;
    let areas = (0..).map(|i| 12.0 + f64::from(i) / 4.0).take_while(|&octave| octave <= end);
    let samples = areas.map(f64::exp2).map(|area| {
        let steps = costs.windows(2).zip(&breaks);
        let behind = steps.map(|(pair, from)| (pair[1] - pair[0]) * (1.0 - from / area).max(0.0));
        let time = costs[0] + behind.sum::<f64>();
        Sample { area, lines: 1.0, time: time * (1.0 + noise * normal(&mut random)) }
    });
    let samples = samples.collect();
    Known { breaks, costs, samples }
}

#[test]
fn intervals_hold_the_truth_and_levels_are_counted() {
    let machines = 200;
    let (mut wrong, mut held, mut asked) = (Vec::new(), [0, 0], [0, 0]);
    for seed in 0..machines {
        let known = made_up(seed);
        let fit = fit(Of::Latency, "4K", false, &known.samples, &[], Some(Tables::GuestAndHost))
            .expect("enough areas")
            .fit;
        if fit.levels.len() != known.costs.len() {
            wrong.push((seed, known.costs.len(), fit.levels.len()));
            continue;
        }
        let mut look = |of: usize, quantity: &Quantity, truth: f64| {
            if let Some(found) = quantity.estimate() {
                asked[of] += 1;
                held[of] += u32::from(found.contains(truth));
            }
        };
        for (level, &cost) in fit.levels.iter().zip(&known.costs) {
            look(0, &level.cost, cost);
        }
        for (level, &size) in fit.levels.iter().zip(&known.breaks) {
            look(1, &level.size, size);
        }
    }
    let share = |of: usize| f64::from(held[of]) / f64::from(asked[of]);
    println!(
        "costs {:.3} of {}, sizes {:.3} of {}; wrong counts {wrong:?}",
        share(0),
        asked[0],
        share(1),
        asked[1]
    );
    for of in [0, 1] {
        assert!(share(of) >= 0.93, "{} of {} intervals hold the truth", held[of], asked[of]);
    }
    assert!(wrong.len() < 10, "of {machines} machines: {wrong:?} (seed, levels, found)");
}

/// Four levels as processors have them, areas from 4 KiB to 8 GiB, and the number of entries of
/// page tables that an access loads.
fn with_tables(seed: u64, loads: f64) -> Known {
    let mut random = Rng::new(1000 + seed);
    let breaks: Vec<f64> = [(14.9, 15.6), (19.5, 21.0), (24.0, 25.5)]
        .map(|(from, to)| uniform(&mut random, from, to).exp2())
        .to_vec();
    let costs: Vec<f64> = [(1.0, 2.0), (4.0, 7.0), (18.0, 35.0), (80.0, 130.0)]
        .map(|(from, to)| uniform(&mut random, from, to))
        .to_vec();
    let noise = uniform(&mut random, 0.005, 0.02);
    let samples = (0..=84).map(|i| (12.0 + f64::from(i) / 4.0).exp2()).map(|area| {
        let behind = |from: f64| (1.0 - from / area).max(0.0);
        let steps = || costs.windows(2).map(|pair| pair[1] - pair[0]).zip(&breaks);
        let data: f64 = costs[0] + steps().map(|(step, &from)| step * behind(from)).sum::<f64>();
        let entries: f64 = steps().map(|(step, &from)| step * behind(512.0 * from)).sum();
        Sample { area, lines: 1.0, time: (data + loads * entries) * (1.0 + noise * normal(&mut random)) }
    });
    let samples = samples.collect();
    Known { breaks, costs, samples }
}

/// Where walks cost something, they are found, and intervals hold how many entries and what levels
/// cost; where they cost nothing, none are found.
#[test]
fn walks_are_found_where_there_are_any() {
    let machines = 100;
    let (mut found, mut held, mut costs, mut asked, mut wrong) = (0, 0, 0, 0, 0);
    for seed in 0..machines {
        let loads = 0.5 + 1.5 * seed as f64 / machines as f64;
        let known = with_tables(seed, loads);
        let tables = Some(Tables::GuestAndHost);
        let of = fit(Of::Latency, "4K", false, &known.samples, &[], tables).expect("enough areas").fit;
        let Some(walks) = &of.walks else { continue };
        found += 1;
        held += u32::from(walks.loads.estimate().expect("a number").contains(loads));
        if of.levels.len() != known.costs.len() {
            wrong += 1;
            continue;
        }
        for (level, &cost) in of.levels.iter().zip(&known.costs) {
            asked += 1;
            costs += u32::from(level.cost.estimate().expect("a number").contains(cost));
        }
    }
    let (mut imagined, none) = (0, 100);
    for seed in 0..none {
        let known = with_tables(machines + seed, 0.0);
        let of =
            fit(Of::Latency, "4K", false, &known.samples, &[], Some(Tables::Own)).expect("enough areas").fit;
        imagined += u64::from(of.walks.is_some());
    }
    println!(
        "found {found} of {machines}, {held} of these held; costs {costs} of {asked}; wrong counts {wrong}; imagined {imagined} of {none}"
    );
    assert!(found * 100 >= 95 * machines, "{found} of {machines} found");
    assert!(f64::from(held) >= 0.93 * found as f64, "{held} of {found} intervals hold the truth");
    assert!(f64::from(costs) >= 0.93 * f64::from(asked), "{costs} of {asked} intervals hold the truth");
    assert!(wrong * 100 < 5 * machines, "{wrong} of {machines} with another number of levels");
    assert!(imagined * 100 < 5 * none, "{imagined} of {none} imagined");
}

/// Areas that end before entries spill tell nothing of walks, and nothing is said.
#[test]
fn small_areas_say_nothing_of_walks() {
    let mut known = with_tables(7, 2.0);
    known.samples.retain(|sample| sample.area < known.breaks[0] * 512.0);
    let tables = Some(Tables::GuestAndHost);
    let of = fit(Of::Latency, "4K", false, &known.samples, &[], tables).expect("enough areas").fit;
    assert!(of.walks.is_none(), "{:?}", of.walks);
    assert_eq!(Tables::of("2M", false), None, "their entries spill behind 8 GiB");
    assert_eq!(Tables::of("2M", true), Some(Tables::Host));
}

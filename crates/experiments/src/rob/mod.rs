//! **rob**: how far the core looks ahead.
//!
//! Two chains whose every step misses all caches: a step of one, fillers, a step of the other,
//! fillers. As long as the core holds both steps at once, their misses overlap, and a pair takes
//! one memory latency; with one filler too many it takes two:
//!
//! ```text
//! time ^          ____________  two latencies
//!      |         |
//!      |_________|              one latency
//!      +------------------------> fillers between the steps
//!                cliff: some part of the core is full
//! ```
//!
//! Which part of the core is full depends on the filler, so there are many fillers, and each cliff
//! is named for what it shows (`meaning.rs`).
//!
//! Gaps are measured coarsely first and then more and more finely around each cliff
//! (`crate::cliff`); those of all fillers are interleaved. A whole core is wanted: while another
//! hyperthread works, some buffers are halved.
//!
//! To add a filler: a line in [`FILLERS`], and what it uses up in `meaning.rs`.

pub(crate) mod meaning;

use crate::cliff;
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{main_pages, supply_of};
use crate::resample::{self, SettingBlocks};
use crate::uncached::uncached_nodes;
use kernels::{Filler, Spec};
use lab::arena::PageKind;
use lab::campaign::Series;
use lab::code::Loaded;
use lab::rigs::{NodeSupply, Rig, SideBySideRig};
use records::machine::{Cliff, GapPoint, Machine, Rob, RunsOut};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Estimate, Quantity, Unit};

/// The largest gap, in fillers.
const FURTHEST_GAP: f64 = 2000.0;

/// A filler, and whether a quick run measures it.
struct NamedFiller {
    filler: Filler,
    name: &'static str,
    in_quick_runs: bool,
}

const fn always(filler: Filler, name: &'static str) -> NamedFiller {
    NamedFiller { filler, name, in_quick_runs: true }
}

const fn not_when_quick(filler: Filler, name: &'static str) -> NamedFiller {
    NamedFiller { filler, name, in_quick_runs: false }
}

const FILLERS: [NamedFiller; 18] = [
    always(Filler::Mixed, "mixed"),
    always(Filler::Nop { bytes: 1 }, "nop1"),
    not_when_quick(Filler::Nop { bytes: 2 }, "nop2"),
    not_when_quick(Filler::Nop { bytes: 3 }, "nop3"),
    always(Filler::Nop { bytes: 4 }, "nop4"),
    not_when_quick(Filler::Nop { bytes: 5 }, "nop5"),
    not_when_quick(Filler::Nop { bytes: 6 }, "nop6"),
    not_when_quick(Filler::Nop { bytes: 7 }, "nop7"),
    always(Filler::Nop { bytes: 8 }, "nop8"),
    not_when_quick(Filler::Nop { bytes: 9 }, "nop9"),
    always(Filler::IntAdd, "int_add"),
    always(Filler::VectorAdd, "vector_add"),
    always(Filler::Alternating, "alternating"),
    always(Filler::Load, "load"),
    always(Filler::Store, "store"),
    always(Filler::Branch, "branch"),
    always(Filler::TakenBranch, "taken_branch"),
    always(Filler::Cmp, "cmp"),
];

/// The search for one filler's cliff.
struct CliffSearch {
    filler: Filler,
    name: &'static str,
    /// Series by gap; a gap that is measured twice has two.
    gaps: BTreeMap<u32, Vec<Series>>,
}

pub(crate) const ENTRY: Entry = Entry {
    name: "rob",
    about: "how far the core looks ahead: re-order buffer, registers, queues",
    needs: None,
    seconds: ByEffort { quick: 6.0, normal: 40.0, thorough: 150.0 },
    run: |ctx, machine| machine.experiments.rob = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.rob.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Rob, Refused> {
    let pages = main_pages(ctx);
    let nodes = uncached_nodes(ctx, pages)?;
    let quick = ctx.is_quick();
    let mut searches: Vec<CliffSearch> = FILLERS
        .iter()
        .filter(|f| f.in_quick_runs || !quick)
        .map(|f| CliffSearch { filler: f.filler, name: f.name, gaps: BTreeMap::new() })
        .collect();

    let first = coarse(ctx.pick(3.0, 4.0, 6.0));
    let wanted: Vec<Vec<u32>> = searches.iter().map(|_| first.clone()).collect();
    ctx.stage(0.0, 0.4);
    gather(ctx, &nodes, &mut searches, &wanted, 0.35)?;
    let rounds = ctx.pick(3, 4, 4);
    for round in 0..rounds {
        if ctx.stop.asked() {
            break;
        }
        let part = 0.6 / f64::from(rounds);
        ctx.stage(0.4 + part * f64::from(round), 0.4 + part * f64::from(round + 1));
        let wanted: Vec<Vec<u32>> = searches.iter().map(|s| cliff::between(&medians(s), 7)).collect();
        gather(ctx, &nodes, &mut searches, &wanted, part * 0.9)?;
    }
    Ok(conclude(ctx, &nodes, pages, &searches))
}

/// Gaps that grow by equal factors, `per_octave` for each doubling.
pub(crate) fn coarse(per_octave: f64) -> Vec<u32> {
    let mut gaps: Vec<u32> = (0..100)
        .map(|i| 8.0 * 2f64.powf(f64::from(i) / per_octave))
        .take_while(|&g| g < FURTHEST_GAP * 0.97)
        .map(|g| g.round() as u32)
        .collect();
    gaps.insert(0, 1);
    gaps.insert(1, 4);
    gaps.push(FURTHEST_GAP as u32);
    gaps.dedup();
    gaps
}

fn gather(
    ctx: &mut Context<'_>,
    nodes: &NodeSupply,
    searches: &mut [CliffSearch],
    wanted: &[Vec<u32>],
    share: f64,
) -> Result<(), Refused> {
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    let mut whose = Vec::new();
    for (i, gaps) in wanted.iter().enumerate() {
        for &gap in gaps {
            let kernel = Loaded::of(&Spec::Rob { filler: searches[i].filler, gap })?;
            rigs.push(Box::new(SideBySideRig::new(kernel, nodes.clone())));
            whose.push((i, gap));
        }
    }
    if rigs.is_empty() {
        return Ok(());
    }
    let (block, blocks) = ctx.pick((250, 5), (400, 11), (500, 25));
    let gathered = ctx.measure_on_whole_core(rigs, Duration::from_micros(block), blocks, share);
    for ((i, gap), series) in whose.into_iter().zip(gathered.series) {
        searches[i].gaps.entry(gap).or_default().push(series);
    }
    Ok(())
}

fn samples(search: &CliffSearch) -> Vec<SettingBlocks> {
    let series = search.gaps.iter().flat_map(|(&gap, all)| all.iter().map(move |s| (f64::from(gap), s)));
    let mut samples: Vec<SettingBlocks> = Vec::new();
    for sample in resample::curve(series, |b| b.values[0] * b.cycles_per_tick) {
        match samples.last_mut().filter(|s| s.at == sample.at) {
            Some(same) => same.values.extend(sample.values),
            None => samples.push(sample),
        }
    }
    samples
}

/// Why this search can have found nothing, if so. A hyperthread that comes and goes makes cliffs of
/// its own, and one that stays leaves half of some buffers: neither is a figure of the core.
fn core_shared(search: &CliffSearch) -> Option<String> {
    let series: Vec<&Series> = search.gaps.values().flatten().collect();
    (!resample::mostly_whole(series.iter().copied())).then(|| {
        let lacking = series.iter().filter(|s| s.lacks_whole_core()).count();
        format!("another hyperthread of this core was at work during {lacking} of {} gaps", series.len())
    })
}

fn medians(search: &CliffSearch) -> Vec<(f64, f64)> {
    resample::medians(&samples(search))
}

fn cliff_of(ctx: &mut Context<'_>, search: &CliffSearch) -> Option<Estimate> {
    if core_shared(search).is_some() { None } else { cliff::find(&samples(search), &mut ctx.rng) }
}

fn conclude(ctx: &mut Context<'_>, nodes: &NodeSupply, pages: PageKind, searches: &[CliffSearch]) -> Rob {
    let found: Vec<Option<Estimate>> = searches.iter().map(|s| cliff_of(ctx, s)).collect();
    let of = |name: &str| searches.iter().position(|s| s.name == name).and_then(|i| found[i]);
    let mixed = of("mixed");
    let single: Vec<Estimate> = ["int_add", "vector_add"].into_iter().filter_map(of).collect();
    let cliffs: Vec<Cliff> = searches
        .iter()
        .zip(&found)
        .map(|(search, &cliff)| describe(ctx, search, cliff, mixed, &single))
        .collect();
    let entries = cliffs
        .iter()
        .find(|c| c.filler == "mixed")
        .map_or_else(|| Quantity::unresolved("the mixed filler was not measured"), |c| c.capacity.clone());
    let nops_per_entry = match (of("nop1"), mixed) {
        (Some(nop), Some(mixed)) => {
            let ratio = meaning::instructions(nop).over(meaning::instructions(mixed));
            Quantity::measured(ratio, Unit::Ratio)
        }
        _ => Quantity::unresolved("the cliff of nop1 or of the mixed filler was not found"),
    };
    Rob {
        pages: supply_of(std::slice::from_ref(nodes.chain()), pages),
        area: nodes.chain().layout.span,
        entries,
        nops_per_entry,
        cliffs,
    }
}

fn describe(
    ctx: &mut Context<'_>,
    search: &CliffSearch,
    cliff: Option<Estimate>,
    mixed: Option<Estimate>,
    single: &[Estimate],
) -> Cliff {
    let points: Vec<GapPoint> = search
        .gaps
        .iter()
        .filter_map(|(&gap, series)| {
            let best = series.iter().max_by_key(|s| s.valid())?;
            Some(GapPoint {
                gap,
                cycles: ctx.quantity(best, Unit::Cycles, |b| b.values[0] * b.cycles_per_tick),
            })
        })
        .collect();
    let disturbed = resample::disturbed(search.gaps.values().flatten());
    let filler = search.name.to_owned();
    let Some(cliff) = cliff else {
        let why =
            core_shared(search).unwrap_or_else(|| format!("no cliff up to a gap of {FURTHEST_GAP} fillers"));
        return Cliff {
            filler,
            gap: Quantity::unresolved(why.clone()),
            runs_out: RunsOut::Unknown,
            capacity: Quantity::unresolved(why.clone()),
            meaning: why,
            points,
        };
    };
    let meaning = meaning::of(search.filler, cliff, mixed, single);
    let count = |e| Quantity::measured(e, Unit::Count).disturbed_by(disturbed.clone());
    Cliff {
        filler,
        gap: count(cliff),
        runs_out: meaning.runs_out,
        capacity: meaning.capacity.map_or_else(|| Quantity::unresolved(meaning.words.clone()), count),
        meaning: meaning.words,
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_gaps_ascend_to_the_furthest() {
        for per_octave in [3.0, 4.0, 6.0] {
            let gaps = coarse(per_octave);
            assert!(gaps.windows(2).all(|w| w[0] < w[1]), "{gaps:?}");
            assert_eq!((gaps[0], *gaps.last().unwrap()), (1, 2000));
        }
    }

    #[test]
    fn fillers_have_names_of_their_own() {
        let mut names: Vec<&str> = FILLERS.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FILLERS.len());
        assert!(FILLERS.iter().any(|f| f.filler == Filler::Mixed && f.in_quick_runs));
    }
}

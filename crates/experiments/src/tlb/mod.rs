//! **tlb**: how many pages each translation buffer holds, and what missing it costs.
//!
//! Chains come in pairs: n lines, each on a page of its own, and n lines side by side, read in
//! the same order. Both take the same space in the caches (the spread lines are dealt out evenly
//! over the cache's sets), so what the spread chain costs more is translation. Each line is read
//! several times a lap in random order. Then a TLB of C entries finds C of n pages, whichever entry
//! it replaces, and the knee of the cost over n stands at its size (`fit.rs`). In a plain cycle a
//! set with one page too many would miss all of its pages, and the knee would come early.
//!
//! Small pages are measured twice: cut from huge ones, so that their memory lies together in few
//! blocks, and as the kernel gives them, scattered over the memory. The first shows what the TLB
//! holds. In the second, where walks themselves need many translations (in a guest: those of the
//! hypervisor, for every block in which a page lies), these take entries of the same TLB, and fewer
//! pages find theirs: this is what programs with small pages really get. One page of four is left
//! out in both, since some processors keep one translation for several neighbours and would seem to
//! hold more.
//!
//! Each pass has its own memory and order. The second half of the passes checks the first half:
//! where they disagree, the figure is not resolved.

mod fit;

use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, supply_of};
use crate::resample::{self, SettingBlocks};
use fit::Knee;
use lab::arena::{PageKind, Placement};
use lab::campaign::Series;
use lab::chain::{self, Layout, Order};
use lab::rigs::{ChaseRig, Rig};
use lab::stats;
use records::host::{CacheKind, ThpMode};
use records::machine::{AfterMiss, Machine, PageSupply, PagesRefused, Tlb, TlbLevel, TlbOfPages, TlbPoint};
use std::time::Duration;
use units::{Bytes, Estimate, Latency, Quantity, Unit};

const FEWEST_PAGES: u64 = 16;
/// The first level is looked for among this share of the first cache's lines, so that no cache miss
/// mixes in.
const OF_FIRST_CACHE: f64 = 0.9;
/// All levels are looked for among this share of the second cache's lines.
const OF_SECOND_CACHE: f64 = 0.5;
/// Passes agree when they differ by no more than this, or their intervals overlap.
const AGREEMENT_TOLERANCE: f64 = 0.10;

/// The least share of memory, to be cut into small pages, that must have come in huge pages.
const LEAST_CUT: f64 = 0.5;

/// The numbers of pages that are tried.
struct PageRange {
    first: f64,
    most: u64,
}

pub(crate) const ENTRY: Entry = Entry {
    name: "tlb",
    about: "entries of each translation buffer, cost of missing it",
    needs: None,
    seconds: ByEffort { quick: 5.0, normal: 30.0, thorough: 120.0 },
    run: |ctx, machine| machine.experiments.tlb = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.tlb.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Tlb, Refused> {
    let mut tlb = Tlb { kinds: Vec::new(), pages_refused: Vec::new() };
    let thp = ctx.host.pages.thp.enabled.value() != Some(ThpMode::Never);
    let kinds: &[(PageKind, f64, f64)] = if thp {
        &[(PageKind::Cut, 0.0, 0.5), (PageKind::Small, 0.5, 0.75), (PageKind::Transparent, 0.75, 1.0)]
    } else {
        &[(PageKind::Small, 0.0, 1.0)]
    };
    for &(kind, from, to) in kinds {
        if ctx.stop.asked() {
            break;
        }
        match of_pages(ctx, kind, from, to) {
            Ok(found) => tlb.kinds.push(found),
            Err(refused) if kind == PageKind::Small => return Err(refused),
            Err(refused) => tlb.pages_refused.push(PagesRefused {
                pages: kind.name().to_owned(),
                why: refused.why,
                would_help: "more free memory, unfragmented".to_owned(),
            }),
        }
    }
    Ok(tlb)
}

fn of_pages(ctx: &mut Context<'_>, kind: PageKind, from: f64, to: f64) -> Result<TlbOfPages, Refused> {
    let range = range(ctx, kind);
    let passes =
        if kind == PageKind::Cut || to - from > 0.5 { ctx.pick(2, 6, 12) } else { ctx.pick(2, 4, 8) };
    let (mut points, mut found) = (Vec::new(), Vec::new());
    let mut supply: Option<PageSupply> = None;
    let (mut cycles_per_tick, mut all) = (Vec::new(), Vec::new());
    for pass in 0..passes {
        if ctx.stop.asked() {
            break;
        }
        let share = (to - from) / f64::from(passes);
        ctx.stage(from + share * f64::from(pass), from + share * f64::from(pass + 1));
        let measured = measure(ctx, kind, &range, share)?;
        supply = Some(match supply {
            Some(s) => PageSupply { share: s.share.min(measured.supply.share), ..s },
            None => measured.supply,
        });
        for (pages, spread, packed) in &measured.pairs {
            let mut cycles = |s: &Series| ctx.quantity(s, Unit::Cycles, |b| b.values[0] * b.cycles_per_tick);
            points.push(TlbPoint { pass, pages: *pages, spread: cycles(spread), packed: cycles(packed) });
            for s in [spread, packed] {
                cycles_per_tick.extend(s.counted().iter().map(|b| b.cycles_per_tick));
                all.push(s.clone());
            }
        }
        found.push(knees(ctx, &measured.pairs, &range));
    }
    let Some(supply) = supply else {
        return Err(Refused::failed("stopped before the first pass"));
    };
    let cycles_per_tick = if cycles_per_tick.is_empty() { 1.0 } else { stats::median(&cycles_per_tick) };
    let disturbed = resample::disturbed(&all);
    Ok(TlbOfPages {
        levels: levels(ctx, kind, &found, cycles_per_tick, disturbed.as_ref()),
        pages: supply,
        points,
    })
}

fn range(ctx: &Context<'_>, kind: PageKind) -> PageRange {
    let line = ctx.line();
    let caches = ctx.host.data_cache_sizes_of(ctx.cpu() as u32);
    let lines = |i: usize, otherwise: u64| {
        caches.get(i).and_then(|c| c.size).map_or(otherwise, |size| size.0) as f64 / line as f64
    };
    let first = lines(0, 32 << 10) * OF_FIRST_CACHE;
    let most = match kind {
        PageKind::Small | PageKind::Cut => {
            ((lines(1, 256 << 10) * OF_SECOND_CACHE) as u64).clamp(4096, 16384)
        }
        _ => ctx.pick(160, 256, 512),
    };
    PageRange { first, most: most.min(ctx.max_memory.0 / kind.page_size()).max(FEWEST_PAGES * 2) }
}

struct TlbPass {
    /// Pages, spread, packed.
    pairs: Vec<(u64, Series, Series)>,
    supply: PageSupply,
}

fn measure(ctx: &mut Context<'_>, kind: PageKind, range: &PageRange, share: f64) -> Result<TlbPass, Refused> {
    let line = ctx.line();
    let counts = counts(range.most, ctx.pick(7.0, 9.0, 12.0));
    let spread: Vec<Layout> = counts.iter().map(|&n| apart(n, kind)).collect();
    let packed: Vec<Layout> = counts.iter().map(|&n| together(n, line)).collect();
    let spread = chain::build(&spread, kind, &Placement::FirstTouch, &mut ctx.rng)?;
    let packed = chain::build(&packed, kind, &Placement::FirstTouch, &mut ctx.rng)?;
    let supply = supply_of(&spread, kind);
    if kind == PageKind::Cut && supply.share < LEAST_CUT {
        return Err(Refused::failed(format!(
            "only {:.0}% of the memory came in huge pages, from which small pages are cut",
            supply.share * 100.0
        )));
    }
    let chase = load_chase(kernels::Access::Read)?;
    let warm_ticks = (ctx.tsc.value * 0.005) as u64;
    let rigs: Vec<Box<dyn Rig>> = spread
        .iter()
        .chain(&packed)
        .map(|c| Box::new(ChaseRig::new(chase.clone(), c.clone(), c.nodes(), warm_ticks)) as Box<dyn Rig>)
        .collect();
    let (block, blocks) = ctx.pick((300, 7), (500, 9), (600, 11));
    let mut series = ctx.measure(rigs, Duration::from_micros(block), blocks, share).series;
    let packed = series.split_off(counts.len());
    let pairs = counts.into_iter().zip(series).zip(packed).map(|((n, s), p)| (n, s, p)).collect();
    Ok(TlbPass { pairs, supply })
}

fn apart(lines: u64, kind: PageKind) -> Layout {
    let pitch = kind.page_size();
    let apart = matches!(kind, PageKind::Small | PageKind::Cut);
    Layout { span: Bytes(lines * pitch), pitch, scatter: true, apart, order: Order::Rereading }
}

fn together(lines: u64, line: u64) -> Layout {
    Layout { span: Bytes(lines * line), pitch: line, scatter: false, apart: false, order: Order::Rereading }
}

/// Numbers of pages, `per_octave` for each doubling.
fn counts(most: u64, per_octave: f64) -> Vec<u64> {
    let mut counts: Vec<u64> = (0..1000)
        .map(|i| (FEWEST_PAGES as f64 * 2f64.powf(f64::from(i) / per_octave)).round() as u64)
        .take_while(|&n| n < most)
        .collect();
    counts.push(most);
    counts.dedup();
    counts
}

/// One pass's knees, each with the intervals of its entries and of its cost.
type ChasePass = Vec<(Estimate, Estimate)>;

fn knees(ctx: &mut Context<'_>, pairs: &[(u64, Series, Series)], range: &PageRange) -> ChasePass {
    let samples: Vec<SettingBlocks> = pairs
        .iter()
        .filter_map(|(n, spread, packed)| {
            let beside = resample::sample(*n as f64, packed, |b| b.values[0] * b.cycles_per_tick)?.median();
            resample::sample(*n as f64, spread, |b| b.values[0] * b.cycles_per_tick - beside)
        })
        .collect();
    let mut found = Vec::new();
    for level in 0..2 {
        let figure = |pick: fn(&Knee) -> f64, rng: &mut lab::rng::Rng| {
            resample::figure(&samples, rng, |points| find(points, range).get(level).map(pick))
        };
        match (figure(|k| k.entries, &mut ctx.rng), figure(|k| k.miss, &mut ctx.rng)) {
            (Some(entries), Some(miss)) => found.push((entries, miss)),
            _ => break,
        }
    }
    found
}

/// The knee within the first cache, and the one beyond.
fn find(points: &[(f64, f64)], range: &PageRange) -> Vec<Knee> {
    let near: Vec<(f64, f64)> = points.iter().copied().filter(|p| p.0 <= range.first).collect();
    let Some(first) = fit::knee(&near) else { return Vec::new() };
    let rest: Vec<(f64, f64)> =
        points.iter().filter(|p| p.0 >= first.entries * 2.0).map(|p| (p.0, p.1 - first.cost(p.0))).collect();
    std::iter::once(first).chain(fit::knee(&rest)).collect()
}

fn levels(
    ctx: &Context<'_>,
    kind: PageKind,
    passes: &[ChasePass],
    cycles_per_tick: f64,
    disturbed: Option<&String>,
) -> Vec<TlbLevel> {
    let deepest = passes.iter().map(Vec::len).max().unwrap_or(0);
    (0..deepest)
        .map(|i| {
            let of = |pick: fn(&(Estimate, Estimate)) -> Estimate| -> Vec<Option<Estimate>> {
                passes.iter().map(|p| p.get(i).map(pick)).collect()
            };
            let (entries, misses) = (of(|k| k.0), of(|k| k.1));
            let mark = |q: Quantity| q.disturbed_by(disturbed.cloned());
            TlbLevel {
                level: i as u32 + 1,
                entries: mark(agreed(&entries, Unit::Count)),
                claimed: claimed(ctx, kind, i as u32 + 1),
                miss: latency(&typical(&misses), cycles_per_tick, ctx.ns_per_tick(), disturbed),
                then: if i + 1 < deepest {
                    AfterMiss::NextLevel
                } else if i > 0 {
                    AfterMiss::Walk
                } else {
                    AfterMiss::Unknown
                },
                passes: entries.iter().map(|e| pass_quantity(*e)).collect(),
            }
        })
        .collect()
}

fn pass_quantity(e: Option<Estimate>) -> Quantity {
    e.map_or_else(
        || Quantity::unresolved("the cost shows no knee in this pass"),
        |e| Quantity::measured(e, Unit::Count),
    )
}

/// What the first half of the passes found, if the second half confirms it: the middle of all, and
/// their range.
fn agreed(passes: &[Option<Estimate>], unit: Unit) -> Quantity {
    let (first, second) = passes.split_at(passes.len().div_ceil(2));
    match (typical(first), typical(second)) {
        (Ok(a), Ok(b)) if (a.value / b.value - 1.0).abs() <= AGREEMENT_TOLERANCE || a.overlaps(&b) => {
            match typical(passes) {
                Ok(e) => Quantity::measured(e, unit),
                Err(why) => Quantity::unresolved(why),
            }
        }
        (Ok(a), Ok(b)) => Quantity::unresolved(format!(
            "half of the passes found {:.0} entries, the other half {:.0}",
            a.value, b.value
        )),
        (Err(why), _) | (_, Err(why)) => Quantity::unresolved(why),
    }
}

/// The middle of the passes; the interval holds the middle half's own intervals, so that one bad
/// pass does not widen it.
fn typical(passes: &[Option<Estimate>]) -> Result<Estimate, String> {
    let found: Vec<Estimate> = passes.iter().copied().flatten().collect();
    if found.is_empty() || found.len() * 2 <= passes.len() {
        return Err(format!("the cost shows a knee in only {} of {} passes", found.len(), passes.len()));
    }
    let part = |f: fn(&Estimate) -> f64| stats::sorted(&found.iter().map(f).collect::<Vec<f64>>());
    let (values, los, his) = (part(|e| e.value), part(|e| e.lo), part(|e| e.hi));
    Ok(Estimate::new(
        stats::quantile_sorted(&values, 0.5),
        stats::quantile_sorted(&los, 0.25),
        stats::quantile_sorted(&his, 0.75),
    ))
}

fn latency(
    cycles: &Result<Estimate, String>,
    cycles_per_tick: f64,
    ns_per_tick: f64,
    disturbed: Option<&String>,
) -> Latency {
    match cycles {
        Err(why) => Latency::unresolved(why.clone()),
        Ok(e) => {
            let mark = |e, unit| Quantity::measured(e, unit).disturbed_by(disturbed.cloned());
            let ticks = e.scaled(1.0 / cycles_per_tick);
            Latency {
                ns: mark(ticks.scaled(ns_per_tick), Unit::Nanos),
                cycles: mark(*e, Unit::Cycles),
                ticks: mark(ticks, Unit::Ticks),
            }
        }
    }
}

fn claimed(ctx: &Context<'_>, kind: PageKind, level: u32) -> Quantity {
    let size = if matches!(kind, PageKind::Small | PageKind::Cut) { "4K" } else { "2M" };
    let claim =
        ctx.host.tlb_claims.iter().find(|c| {
            c.level == level && c.kind != CacheKind::Instruction && c.pages.iter().any(|p| p == size)
        });
    match claim {
        Some(c) => Quantity::claimed(f64::from(c.entries), Unit::Count),
        None => Quantity::unresolved("CPUID does not state it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: fn(f64) -> Option<Estimate> = |v| Some(Estimate::new(v, v * 0.99, v * 1.01));

    #[test]
    fn halves_must_agree() {
        let q = agreed(&[SAID(72.0), SAID(73.0), SAID(71.0), SAID(72.0)], Unit::Count);
        let e = q.estimate().unwrap();
        assert!(e.contains(72.0) && e.relative_half_width() < 0.05, "{e:?}");
        let q = agreed(&[SAID(72.0), SAID(72.0), SAID(96.0), SAID(96.0)], Unit::Count);
        assert!(q.to_string().contains("half of the passes found 72 entries, the other half 96"), "{q}");
        let q = agreed(&[SAID(72.0), None, None, None], Unit::Count);
        assert!(q.estimate().is_none());
        assert!(agreed(&[], Unit::Count).estimate().is_none());
    }

    #[test]
    fn both_knees_are_found_in_one_curve() {
        let first = Knee { entries: 72.0, miss: 7.0, offset: 0.0 };
        let second = Knee { entries: 3072.0, miss: 50.0, offset: 0.0 };
        let range = PageRange { first: 460.0, most: 8192 };
        let points: Vec<(f64, f64)> = counts(8192, 9.0)
            .into_iter()
            // Beyond the first cache a hit in the next level costs a little more.
            .map(|n| n as f64)
            .map(|n| (n, first.cost(n) + second.cost(n) + if n > 512.0 { 1.0 } else { 0.0 }))
            .collect();
        let found = find(&points, &range);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].entries - 72.0).abs() < 2.0 && (found[0].miss - 7.0).abs() < 0.2, "{found:?}");
        assert!((found[1].entries - 3072.0).abs() < 60.0 && (found[1].miss - 50.0).abs() < 3.0, "{found:?}");
        let only_first: Vec<(f64, f64)> = points.iter().map(|p| (p.0, first.cost(p.0))).collect();
        assert_eq!(find(&only_first, &range).len(), 1);
    }

    #[test]
    fn counts_ascend_to_the_end() {
        let counts = counts(8192, 9.0);
        assert_eq!((counts[0], *counts.last().unwrap()), (16, 8192));
        assert!(counts.windows(2).all(|w| w[0] < w[1]));
    }
}

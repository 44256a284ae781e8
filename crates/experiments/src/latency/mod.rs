//! **latency**: what a load costs, by the size of the memory that it reads.
//!
//! A random pointer chain runs through all lines of an area, so each load waits for the one before
//! it:
//!
//! ```text
//! cycles ^                      ____ DRAM
//!        |              ____/
//!        |        ___/  L3          a flat stretch is a level,
//!        |  ____/ L2                a step its size
//!        |_/ L1
//!        +---------------------------> size of the area
//! ```
//!
//! The main curve uses an order that no prefetcher follows, and huge pages where they can be had,
//! so that no TLB miss mixes in. It is measured coarsely first, and then finely where it bends.
//! Beside it: orders that prefetchers do follow, base pages, reserved huge pages, and chains whose
//! lines are written, so that their eviction costs too.

mod plan;
mod reserve;
mod single;
mod summary;

pub(crate) use plan::{largest, main_pages};
pub(crate) use summary::levels_of;

use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use lab::arena::{PageKind, Placement};
use lab::campaign::Series;
use lab::chain::{self, Chain};
use lab::code::Loaded;
use lab::rigs::{ChaseRig, Rig};
use lab::stats;
use records::machine::{Access, Curve, LatencyCurves, PageSupply, PagesRefused, Pattern, Point};
use std::time::Duration;
use units::Bytes;

/// One setting: a chain's shape and how it is walked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChaseSetting {
    pub pattern: Pattern,
    pub access: Access,
    pub layout: chain::Layout,
}

pub(crate) const ENTRY: Entry = Entry {
    name: "latency",
    about: "latency over size: caches and memory, their sizes and costs",
    needs: None,
    seconds: ByEffort { quick: 7.5, normal: 70.0, thorough: 300.0 },
    run: |ctx, machine| {
        let mut levels = Vec::new();
        let outcome = outcome_of(ctx, machine, |ctx, known| {
            let mut curves = run(ctx)?;
            levels = levels_of(&curves, &known.host, known.run.cpu);
            if !ctx.stop.asked() {
                ctx.stage(0.95, 1.0);
                let (pages, largest) = (plan::main_pages(ctx), plan::largest(ctx));
                match single::measured(ctx, &levels, pages, largest, 0.05) {
                    Ok(single) => curves.single = single,
                    Err(refused) => ctx.remark(&format!("single loads: {}", refused.why)),
                }
            }
            Ok(curves)
        });
        machine.levels = levels;
        machine.experiments.latency = Some(outcome);
    },
    part: |all, name| Some(all.latency.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>) -> Result<LatencyCurves, Refused> {
    let line = ctx.line();
    let largest = plan::largest(ctx);
    // A quick run should end in time, but not without any figure on a busy host.
    if ctx.is_quick() {
        ctx.time_budget.limit_overdraft(0.5);
    }
    let mut curves = Vec::new();
    let mut pages_refused = Vec::new();

    // The main curve, coarse, with the prefetchable patterns interleaved.
    let main_pages = plan::main_pages(ctx);
    ctx.stage(0.0, 0.40);
    let mut settings = plan::coarse(ctx, line, largest);
    settings.extend(plan::followed(ctx, line, Bytes(largest.0 / 2)));
    let mut points = gather(ctx, settings, main_pages, 0.30)?;

    // The same, fine, where it bends.
    ctx.stage(0.40, 0.65);
    if !ctx.stop.asked() {
        let known: Vec<(u64, f64)> = points
            .iter()
            .filter(|(s, _, _)| s.pattern == Pattern::Random)
            .filter_map(|(s, p, _)| Some((s.layout.span.0, p.latency.cycles.value()?)))
            .collect();
        let fine = plan::refine(ctx, line, &known);
        if !fine.is_empty() {
            points.extend(gather(ctx, fine, main_pages, 0.30)?);
        }
    }
    add_curves(&mut curves, points);

    ctx.stage(0.65, 0.80);
    if !ctx.stop.asked() {
        let settings = plan::written(ctx, line, Bytes(largest.0 / 2));
        add_curves(&mut curves, gather(ctx, settings, main_pages, 0.12)?);
    }

    let others = plan::other_pages(ctx, main_pages);
    let steps = others.len().max(1) as f64;
    for (i, kind) in others.into_iter().enumerate() {
        ctx.stage(0.80 + 0.15 * i as f64 / steps, 0.80 + 0.15 * (i as f64 + 1.0) / steps);
        if ctx.stop.asked() {
            break;
        }
        // The pages are given back when this goes, after the chains made of them.
        let measured = reserve::supply(ctx, kind, largest).and_then(|supply| {
            let settings = plan::sparse(ctx, line, supply.largest);
            let points = gather(ctx, settings, kind, 0.15 / steps).map_err(|refused| refused.why);
            drop(supply);
            points
        });
        match measured {
            Ok(points) => add_curves(&mut curves, points),
            Err(why) => pages_refused.push(PagesRefused {
                pages: kind.name().to_owned(),
                why,
                would_help: plan::would_help(kind),
            }),
        }
    }
    Ok(LatencyCurves { line: Bytes(line), curves, single: Vec::new(), pages_refused })
}

type MeasuredPoint = (ChaseSetting, Point, PageSupply);

/// Builds the chains of all settings in one arena and measures them, interleaved.
fn gather(
    ctx: &mut Context<'_>,
    settings: Vec<ChaseSetting>,
    pages: PageKind,
    share: f64,
) -> Result<Vec<MeasuredPoint>, Refused> {
    let layouts: Vec<chain::Layout> = settings.iter().map(|s| s.layout.clone()).collect();
    let chains = chain::build(&layouts, pages, &Placement::FirstTouch, &mut ctx.rng)?;
    let read = load_chase(kernels::Access::Read)?;
    let write = load_chase(kernels::Access::ReadModifyWrite)?;
    let warm_ticks = (ctx.tsc.value * ctx.pick(0.02, 0.1, 0.4)) as u64;
    let warm_below = ctx.last_cache().0 * ctx.pick(1, 2, 3);
    let rigs: Vec<Box<dyn Rig>> = settings
        .iter()
        .zip(&chains)
        .map(|(setting, chain)| {
            let kernel = match setting.access {
                Access::Read => read.clone(),
                Access::ReadModifyWrite => write.clone(),
            };
            Box::new(ChaseRig::new(kernel, chain.clone(), warm_limit(chain, warm_below), warm_ticks))
                as Box<dyn Rig>
        })
        .collect();
    let supply = supply_of(&chains, pages);
    let blocks = ctx.pick(7, 13, 25);
    // Much shorter than the time between two timer interrupts, of which there are 100 to 1000 a
    // second and each takes 1% of a millisecond or more in a guest: most blocks then see none.
    let gathered = ctx.measure(rigs, Duration::from_micros(ctx.pick(500, 600, 800)), blocks, share);
    let measured = settings
        .into_iter()
        .zip(&gathered.series)
        .map(|(setting, series)| {
            let point = point_of(ctx, &setting, series);
            (setting, point, supply.clone())
        })
        .collect();
    Ok(measured)
}

pub(crate) fn load_chase(access: kernels::Access) -> Result<Loaded, Refused> {
    Ok(Loaded::of(&kernels::Spec::Chase { unroll: 64, access })?)
}

/// Up to how many nodes a chain is walked whole, again and again, before a block is timed. One that
/// no cache holds finds almost nothing of itself there, whatever was walked before, so a short walk
/// will do.
pub(crate) fn warm_limit(chain: &Chain, warm_below: u64) -> u64 {
    if chain.layout.span.0 <= warm_below { chain.nodes() } else { 1 << 14 }
}

pub(crate) fn supply_of(chains: &[Chain], asked: PageKind) -> PageSupply {
    let share = chains.first().map_or(0.0, |c| c.pages().share());
    PageSupply { asked: asked.name().to_owned(), share }
}

fn point_of(ctx: &mut Context<'_>, setting: &ChaseSetting, series: &Series) -> Point {
    let ns_per_tick = ctx.ns_per_tick();
    let ns = stats::sorted(&series.counted().iter().map(|b| b.values[0] * ns_per_tick).collect::<Vec<f64>>());
    let at = |q| if ns.is_empty() { 0.0 } else { stats::quantile_sorted(&ns, q) };
    let cycles = stats::sorted(
        &series.counted().iter().map(|b| b.values[0] * b.cycles_per_tick).collect::<Vec<f64>>(),
    );
    Point {
        size: setting.layout.span,
        pitch: Bytes(setting.layout.pitch),
        latency: ctx.latency(series),
        min_ns: at(0.0),
        p05_ns: at(0.05),
        p95_ns: at(0.95),
        p05_cycles: (!cycles.is_empty()).then(|| stats::quantile_sorted(&cycles, 0.05)),
        blocks: series.valid(),
        voided: series.voids().total(),
    }
}

/// Sorts points into curves, joining what was measured in several passes.
fn add_curves(curves: &mut Vec<Curve>, points: Vec<MeasuredPoint>) {
    for (setting, point, pages) in points {
        let same = curves.iter_mut().find(|c| {
            c.pattern == setting.pattern && c.access == setting.access && c.pages.asked == pages.asked
        });
        match same {
            Some(curve) => {
                curve.pages.share = curve.pages.share.min(pages.share);
                curve.points.push(point);
            }
            None => curves.push(Curve {
                pattern: setting.pattern,
                access: setting.access,
                pages,
                points: vec![point],
            }),
        }
    }
    for curve in curves {
        curve.points.sort_by_key(|p| p.size);
    }
}

//! **windows**: windows drawn at random from areas of all sizes.
//!
//! What `model` is fitted to. Every double in a window is read, sign-changed and written back. The
//! windows of one area are drawn at random, so its lines are spread over the levels of the
//! hierarchy as their sizes dictate. The areas grow by the square root of two from 16 KiB, cut to
//! whole windows, as in the experiment this is taken from. Read a curve as time per window over
//! area: each level that is exhausted bends it upwards.

use crate::chase_batches::ChaseResult;
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency;
use kernels::Spec;
use lab::arena::PageKind;
use lab::code::Loaded;
use lab::rigs::{Doubles, Rig, Warming, WindowsRig};
use records::machine::{Machine, PageSupply, WindowCurve, WindowPoint, Windows};
use std::rc::Rc;
use std::time::Duration;
use units::Bytes;

/// One curve: windows of a size, scalar or vectorised, over all areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WindowShape {
    window: u32,
    vectorised: bool,
}

const fn scalar(window: u32) -> WindowShape {
    WindowShape { window, vectorised: false }
}

const fn vector(window: u32) -> WindowShape {
    WindowShape { window, vectorised: true }
}

const QUICK: &[WindowShape] = &[scalar(1 << 10), scalar(2 << 10), scalar(4 << 10)];
const NORMAL: &[WindowShape] =
    &[scalar(1 << 10), scalar(2 << 10), scalar(4 << 10), scalar(16 << 10), scalar(64 << 10)];
const THOROUGH: &[WindowShape] = &[
    scalar(1 << 10),
    scalar(2 << 10),
    scalar(4 << 10),
    scalar(8 << 10),
    scalar(16 << 10),
    scalar(32 << 10),
    scalar(64 << 10),
    vector(1 << 10),
    vector(4 << 10),
];
/// The largest area as published.
const PUBLISHED_END: Bytes = Bytes::gib(8);
/// On base pages, where TLBs end sooner.
const SMALL_PAGES: &[WindowShape] = &[scalar(1 << 10), scalar(4 << 10)];

pub(crate) const ENTRY: Entry = Entry {
    name: "windows",
    about: "short sequential runs at random places in areas of all sizes: the input of a model",
    needs: None,
    seconds: ByEffort { quick: 5.0, normal: 35.0, thorough: 150.0 },
    run: |ctx, machine| machine.experiments.windows = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.windows.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Windows, Refused> {
    let largest = largest(ctx);
    let main = latency::main_pages(ctx);
    let mut passes = vec![(main, ctx.pick(QUICK, NORMAL, THOROUGH))];
    if main != PageKind::Small && !ctx.is_quick() {
        passes.push((PageKind::Small, SMALL_PAGES));
    }
    let all: usize = passes.iter().map(|p| p.1.len()).sum();
    let (mut done, mut curves) = (0, Vec::new());
    for (pages, shapes) in passes {
        if ctx.stop.asked() {
            break;
        }
        let part = |n: usize| n as f64 / all as f64;
        ctx.stage(part(done), part(done + shapes.len()));
        done += shapes.len();
        curves.extend(gather(ctx, shapes, pages, largest, 0.9 * part(shapes.len()))?);
    }
    Ok(Windows { line: Bytes(ctx.line()), curves })
}

/// What no cache holds; thorough runs go on to the published end, if half of the memory for areas
/// is as much.
fn largest(ctx: &Context<'_>) -> Bytes {
    let beyond_caches = latency::largest(ctx);
    ctx.pick(beyond_caches, beyond_caches, beyond_caches.max(PUBLISHED_END.min(Bytes(ctx.max_memory.0 / 2))))
}

fn gather(
    ctx: &mut Context<'_>,
    shapes: &[WindowShape],
    pages: PageKind,
    largest: Bytes,
    share: f64,
) -> Result<Vec<WindowCurve>, Refused> {
    let memory = Doubles::new(largest, pages)?;
    let given = memory.pages();
    let every = ctx.pick(2, 1, 1);
    let mut curves = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for &WindowShape { window, vectorised } in shapes {
        let kernel = Loaded::of(&Spec::Windows { bytes: window, vectorised })?;
        if !kernel.runs_here() {
            continue;
        }
        let areas = areas(u64::from(window), largest.0, every);
        for &area in &areas {
            let warming = Warming {
                whole_below: Bytes(ctx.last_cache().0 * ctx.pick(1, 2, 2)),
                bytes: Bytes(ctx.last_cache().0 / ctx.pick(4, 2, 1)),
            };
            let rng = ctx.rng.fork(&format!("{window} {vectorised} {area}"));
            rigs.push(Box::new(WindowsRig::new(
                kernel.clone(),
                Rc::clone(&memory),
                Bytes(area),
                warming,
                rng,
            )));
        }
        curves.push((window, vectorised, areas));
    }
    let block = Duration::from_micros(ctx.pick(300, 1000, 1500));
    let gathered = ctx.measure(rigs, block, ctx.pick(9, 25, 51), share);
    let mut series = gathered.series.iter();
    Ok(curves
        .into_iter()
        .map(|(window, vectorised, areas)| WindowCurve {
            window: Bytes(window.into()),
            vectorised,
            pages: PageSupply { asked: pages.name().to_owned(), share: given.share() },
            points: areas
                .into_iter()
                .zip(series.by_ref())
                .map(|(area, series)| {
                    let ChaseResult { latency, blocks, voided } = ChaseResult::of(ctx, series);
                    WindowPoint { area: Bytes(area), cost: latency, blocks, voided }
                })
                .collect(),
        })
        .collect())
}

/// 4 KiB times the square root of two to the 4th, 5th, …, cut to whole windows, while they fit.
fn areas(window: u64, largest: u64, every: usize) -> Vec<u64> {
    let mut areas: Vec<u64> = (4..80)
        .step_by(every)
        .map(|i| (4096.0 * 2_f64.powf(f64::from(i) / 2.0) + 1.5) as u64)
        .take_while(|&area| area <= largest + 1)
        .map(|area| area - area % window)
        .filter(|&area| area >= window)
        .collect();
    areas.dedup();
    areas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_the_published_ones() {
        assert_eq!(super::areas(1024, PUBLISHED_END.0, 1).last(), Some(&PUBLISHED_END.0));
        let areas = areas(1024, 256 << 20, 1);
        assert_eq!(areas[..4], [16384, 22 << 10, 32768, 45 << 10]);
        assert_eq!(areas.last(), Some(&(256 << 20)));
        assert_eq!(areas.len(), 29);
        for window in [1024, 4096, 65536] {
            let areas = super::areas(window, 256 << 20, 1);
            assert!(areas.iter().all(|a| a % window == 0 && *a >= window && *a <= 256 << 20));
            assert!(areas.windows(2).all(|w| w[0] < w[1]));
        }
    }
}

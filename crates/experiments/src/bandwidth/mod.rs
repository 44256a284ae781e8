//! **bandwidth**: bandwidth of caches and memory, and loaded latency.
//!
//! Passes over arrays with the widest loads and stores of the processor, on 1, 2, 4 … CPUs. A rate
//! counts the bytes that the program loads and stores. Most processors read a line before they
//! overwrite it, unless the stores bypass the caches: the record names that traffic, but the rate
//! does not count it.
//!
//! Latency under load: one CPU chases a chain in memory while the others stream, at several rates.

mod plan;

use crate::context::{Context, Refused};
use crate::crews;
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, main_pages};
use kernels::{Spec, Width};
use lab::arena::{Arena, Placement};
use lab::campaign::{Block, Series};
use lab::chain::{self, Chain, Layout};
use lab::code::Loaded;
use lab::crew::{Crew, CrewMember, CrewRig};
use lab::rigs::{ChaseRig, Region, Rig, StreamRig, widest};
use plan::{MEMORY, PlannedStream};
use records::machine::{Bandwidth, LoadedCurve, LoadedPoint, Machine, StreamKind, StreamRate};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::{Bytes, Quantity, Unit};

/// Bytes that streams in memory are warmed with; caches are filled whole.
const MEMORY_WARM_BYTES: usize = 256 << 10;
const MOST_WARM_BYTES: usize = 64 << 20;
/// Bytes that a chaser moves with each step.
const LINE_BYTES: f64 = 64.0;

pub(crate) const ENTRY: Entry = Entry {
    name: "bandwidth",
    about: "what caches and memory move, and what a load costs meanwhile",
    needs: Some("time stamp counters that agree across CPUs"),
    seconds: ByEffort { quick: 6.0, normal: 40.0, thorough: 150.0 },
    run: |ctx, machine| machine.experiments.bandwidth = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.bandwidth.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Bandwidth, Refused> {
    let order = crews::joining_order(ctx.host, ctx.cpu() as u32);
    let crew = crews::crew(ctx, &order)?;
    let width = widest();
    let areas = StreamAreas::new(ctx, &order, ctx.pick(4, 5, 8), ctx.max_memory)?;

    ctx.stage(0.0, 0.6);
    let plan = plan::streams(ctx.host, &order);
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for planned in &plan {
        let kernel = load_stream(planned.kind, width, 0)?;
        let cpus = &order[..planned.threads];
        rigs.push(Box::new(CrewRig::new(&crew, areas.members(cpus, &kernel, planned.size))));
    }
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(21, 41, 81), 0.6);
    let (mut streams, mut notes) = (Vec::new(), Vec::new());
    for (planned, series) in plan.iter().zip(&gathered.series) {
        let size = planned.size.unwrap_or_else(|| areas.share(&order[..planned.threads], order[0]).1);
        let (rate, modes) = rate_of(ctx, planned, size, series);
        if let Some((low, high)) = modes.filter(|_| planned.threads > 1) {
            let what = format!("{} in {} on {} threads", rate.operation.word(), rate.within, rate.threads);
            notes.push(crews::moved(&what, (low / 1e9, high / 1e9), "GB/s"));
        }
        streams.push(rate);
    }

    ctx.stage(0.6, 1.0);
    let mut loaded = Vec::new();
    if order.len() > 1 && !ctx.stop.asked() {
        loaded = loaded_curves(ctx, &crew, &areas, &order, width)?;
    }
    let (platform_maximum, platform_maximum_by) = most(&streams, |_| true);
    let (single_maximum, single_maximum_by) = most(&streams, |s| s.threads == 1);
    Ok(Bandwidth {
        platform_maximum,
        platform_maximum_by,
        single_maximum,
        single_maximum_by,
        vector_bytes: width.bytes(),
        order,
        counting: plan::KINDS.into_iter().map(plan::counting).collect(),
        streams,
        loaded,
        notes,
    })
}

fn block(ctx: &Context<'_>) -> Duration {
    Duration::from_micros(ctx.pick(1500, 2500, 4000))
}

pub(crate) fn load_stream(kind: StreamKind, width: Width, delay: u32) -> Result<Loaded, Refused> {
    Ok(Loaded::of(&Spec::Stream { op: plan::operation(kind), width, delay })?)
}

/// The memory in which streams run: one area on each node that has CPUs of ours, shared out among
/// those of its CPUs that take part.
pub(crate) struct StreamAreas {
    by_node: BTreeMap<Option<u32>, Arc<Arena>>,
    node_of: BTreeMap<u32, Option<u32>>,
}

impl StreamAreas {
    /// On each node `times` as much as its last caches hold, and no more than `most` in all.
    pub(crate) fn new(ctx: &Context<'_>, order: &[u32], times: u64, most: Bytes) -> Result<Self, Refused> {
        let node_of: BTreeMap<u32, Option<u32>> =
            order.iter().map(|&c| (c, crews::node_to_bind(ctx.host, c))).collect();
        let mut cpus_on: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for &cpu in order {
            cpus_on.entry(node_of[&cpu]).or_default().push(cpu);
        }
        // A chain for latency under load comes on top.
        let most_each = Bytes(most.0.min(ctx.max_memory.0) / (cpus_on.len() as u64 + 1));
        let mut by_node = BTreeMap::new();
        for (node, cpus) in cpus_on {
            let size = plan::memory_on_node(ctx.host, &cpus, times, most_each);
            let placement = node.map_or(Placement::FirstTouch, |n| Placement::Bind(vec![n]));
            let mut arena = Arena::placed(size, main_pages(ctx), &placement)?;
            // Ordinary numbers, and none that a processor might treat as special, as it may zeros.
            arena.words_mut().fill(1f64.to_bits());
            by_node.insert(node, Arc::new(arena));
        }
        Ok(Self { by_node, node_of })
    }

    /// Where a CPU's part begins and how long it is, if these CPUs take part.
    fn share(&self, cpus: &[u32], cpu: u32) -> (Bytes, Bytes) {
        let node = self.node_of[&cpu];
        let here: Vec<u32> = cpus.iter().copied().filter(|c| self.node_of[c] == node).collect();
        let part = self.by_node[&node].len() as u64 / here.len().max(1) as u64;
        let nth = here.iter().position(|&c| c == cpu).unwrap_or(0) as u64;
        (Bytes(nth * part), Bytes(part))
    }

    pub(crate) fn members(
        &self,
        cpus: &[u32],
        kernel: &Loaded,
        size: Option<Bytes>,
    ) -> Vec<(usize, CrewMember)> {
        cpus.iter()
            .map(|&cpu| {
                let (from, part) = self.share(cpus, cpu);
                let arena = &self.by_node[&self.node_of[&cpu]];
                let len = size.map_or(part.0, |s| s.0.min(part.0));
                let warm = if size.is_some() { MOST_WARM_BYTES } else { MEMORY_WARM_BYTES };
                let region = Region::new(arena, from.0 as usize, len as usize);
                (cpu as usize, Box::new(StreamRig::new(kernel.clone(), region, warm)) as CrewMember)
            })
            .collect()
    }
}

/// The rate, and the two groups that its blocks fell into, if they did.
fn rate_of(
    ctx: &mut Context<'_>,
    planned: &PlannedStream,
    size: Bytes,
    series: &Series,
) -> (StreamRate, Option<(f64, f64)>) {
    let n = planned.threads;
    // Bytes per second of a member, from its ticks for a line of each array.
    let scale = f64::from(plan::counting(planned.kind).moved) * ctx.tsc.value;
    let each = move |b: &Block| (0..n).map(|i| scale / CrewRig::ticks(b, i)).collect::<Vec<f64>>();
    let (rate, modes) = crews::wherever(ctx, series, Unit::BytesPerSecond, |b| each(b).iter().sum());
    let rate = StreamRate {
        operation: planned.kind,
        within: planned.within.clone(),
        size,
        threads: n as u32,
        rate,
        slowest_thread: ctx
            .quantity(series, Unit::BytesPerSecond, |b| each(b).into_iter().fold(f64::INFINITY, f64::min)),
        fastest_thread: ctx
            .quantity(series, Unit::BytesPerSecond, |b| each(b).into_iter().fold(0.0, f64::max)),
    };
    (rate, modes)
}

/// The highest rate in memory, and what it was reached by.
fn most(streams: &[StreamRate], which: impl Fn(&StreamRate) -> bool) -> (Quantity, String) {
    let best = streams
        .iter()
        .filter(|s| s.within == MEMORY && which(s))
        .filter_map(|s| Some((s.rate.value()?, s)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((_, s)) => {
            let threads = if s.threads == 1 { "thread" } else { "threads" };
            (s.rate.clone(), format!("{} on {} {threads}", s.operation.word(), s.threads))
        }
        None => (Quantity::unresolved("no stream in memory was resolved"), String::new()),
    }
}

/// The measuring CPU chases, all others of its node stream.
fn loaded_curves(
    ctx: &mut Context<'_>,
    crew: &RefCell<Crew>,
    areas: &StreamAreas,
    order: &[u32],
    width: Width,
) -> Result<Vec<LoadedCurve>, Refused> {
    let home = order[0];
    let mut streaming: Vec<u32> =
        order[1..].iter().copied().filter(|c| areas.node_of[c] == areas.node_of[&home]).collect();
    if streaming.is_empty() {
        streaming = order[1..].to_vec();
    }
    let chain = chase_chain(ctx, home)?;
    let chase = load_chase(kernels::Access::Read)?;
    let chaser = |ctx: &mut Context<'_>| -> (usize, CrewMember) {
        let rig = ChaseRig::new(chase.clone(), chain.clone(), 1 << 13, 0);
        (home as usize, Box::new(rig.beginning_at(ctx.rng.below(chain.nodes()))))
    };
    let pauses: &[u32] = ctx.pick(
        &[0, 64, 256, 1024][..],
        &[0, 16, 32, 64, 128, 256, 512, 1024, 2048],
        &[0, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096],
    );
    let kinds: &[StreamKind] = ctx.pick(
        &[StreamKind::Read][..],
        &[StreamKind::Read, StreamKind::Copy],
        &[StreamKind::Read, StreamKind::Copy],
    );
    let mut settings = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for &kind in kinds {
        settings.push((kind, None));
        rigs.push(Box::new(CrewRig::new(crew, vec![chaser(ctx)])));
        for &pause in pauses.iter().rev() {
            let kernel = load_stream(kind, width, pause)?;
            let mut members = vec![chaser(ctx)];
            members.extend(areas.members(&streaming, &kernel, None));
            settings.push((kind, Some(pause)));
            rigs.push(Box::new(CrewRig::new(crew, members)));
        }
    }
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(41, 61, 101), 0.4);
    let mut curves: Vec<LoadedCurve> = Vec::new();
    for ((kind, pause), series) in settings.into_iter().zip(&gathered.series) {
        let point = loaded_point(ctx, kind, pause, streaming.len(), series);
        match curves.iter_mut().find(|c| c.traffic == kind) {
            Some(curve) => curve.points.push(point),
            None => curves.push(LoadedCurve {
                traffic: kind,
                cpu: home,
                streams: streaming.len() as u32,
                points: vec![point],
            }),
        }
    }
    Ok(curves)
}

fn loaded_point(
    ctx: &mut Context<'_>,
    kind: StreamKind,
    pause: Option<u32>,
    streaming: usize,
    series: &Series,
) -> LoadedPoint {
    let streaming = if pause.is_some() { streaming } else { 0 };
    let moved = f64::from(plan::counting(kind).moved);
    let hertz = ctx.tsc.value;
    let rate = ctx.quantity(series, Unit::BytesPerSecond, |b| {
        let streams: f64 = (1..=streaming).map(|i| moved / CrewRig::ticks(b, i)).sum();
        (streams + LINE_BYTES / CrewRig::ticks(b, 0)) * hertz
    });
    LoadedPoint { pause, rate, latency: crews::latency_of(ctx, series, 0) }
}

fn chase_chain(ctx: &mut Context<'_>, cpu: u32) -> Result<Chain, Refused> {
    let line = ctx.line();
    let wanted = (ctx.last_cache().0 * ctx.pick(2, 3, 4)).clamp(64 << 20, 1 << 30);
    let size = Bytes(wanted.min(ctx.max_memory.0 / 2).max(1 << 20));
    let placement =
        crews::node_to_bind(ctx.host, cpu).map_or(Placement::FirstTouch, |n| Placement::Bind(vec![n]));
    Ok(chain::build(&[Layout::random(size, line)], main_pages(ctx), &placement, &mut ctx.rng)?.remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Estimate;

    fn rate(operation: StreamKind, within: &str, threads: u32, value: f64) -> StreamRate {
        let q = Quantity::measured(Estimate::exact(value), Unit::BytesPerSecond);
        StreamRate {
            operation,
            within: within.to_owned(),
            size: Bytes(1),
            threads,
            rate: if value > 0.0 { q.clone() } else { Quantity::unresolved("void") },
            slowest_thread: q.clone(),
            fastest_thread: q,
        }
    }

    #[test]
    fn the_maximum_is_of_memory_and_says_how() {
        let streams = [
            rate(StreamKind::Read, "L1", 1, 900.0),
            rate(StreamKind::Read, MEMORY, 1, 20.0),
            rate(StreamKind::NtWrite, MEMORY, 2, 35.0),
            rate(StreamKind::Copy, MEMORY, 2, 0.0),
        ];
        let (all, by) = most(&streams, |_| true);
        assert_eq!((all.value(), by.as_str()), (Some(35.0), "nt-write on 2 threads"));
        let (one, by) = most(&streams, |s| s.threads == 1);
        assert_eq!((one.value(), by.as_str()), (Some(20.0), "read on 1 thread"));
        assert!(most(&streams[..1], |_| true).0.value().is_none());
    }
}

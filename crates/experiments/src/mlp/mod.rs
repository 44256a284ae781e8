//! **mlp**: how many misses are served at once.
//!
//! Three views of it, each with huge pages and with small ones, where page walks come to the misses:
//!
//! - bursts: N independent accesses between two readings of the clock. The effective parallelism is the largest N whose
//!   time stays below that of two accesses in sequence. Those two are two independent ones with so many fillers between
//!   them that the core cannot hold both: the far side of the cliff over the gap;
//! - k chains side by side, without a stop: throughput, and the k from which on it no longer grows;
//! - n dependent accesses, `T(n) = n·M + C`: what one costs, and what comes to every shot (`line.rs`).
//!
//! Bursts come once more with the translations of all accesses at hand. Huge pages should see to that, but in a guest whose
//! host backs them with small pages each access walks all the same, and walkers, of which there are few, limit what overlaps.
//!
//! Shots are fenced by LFENCE; CPUID, which the experiment was first published with, is measured beside it where no
//! hypervisor intercepts it.

mod effective;
mod line;

use crate::context::{Context, Refused};
use crate::latency::supply_of;
use crate::resample::{self, Sample};
use crate::rob::cliff;
use kernels::{Fence, Filler, Spec, assemble};
use lab::arena::{PageKind, Placement};
use lab::campaign::Series;
use lab::chain::{self, Layout};
use lab::code::Loaded;
use lab::rigs::{Rig, ShotRig, SideBySideRig, Trail};
use line::Strip;
use records::host::ThpMode;
use records::machine::{
    ChainsPoint, GapShot, Machine, Mlp, MlpOfPages, PagesRefused, SequenceLine, Shot, Translated,
};
use std::time::Duration;
use units::{Bytes, Estimate, Latency, Quantity, Unit};

const MOST_ACCESSES: u32 = 64;
const LONGEST_SEQUENCE: u32 = 12;
const FURTHEST_GAP: u32 = 2000;
const NOP: Filler = Filler::Nop { bytes: 1 };

pub(crate) fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Mlp, Refused> {
    let mut mlp = Mlp { kinds: Vec::new(), pages_refused: Vec::new() };
    let kinds: &[PageKind] = match ctx.host.pages.thp.enabled.value() {
        Some(ThpMode::Never) => &[PageKind::Small],
        _ => &[PageKind::Transparent, PageKind::Small],
    };
    let share = 1.0 / kinds.len() as f64;
    for (i, &kind) in kinds.iter().enumerate() {
        if ctx.stop.asked() {
            break;
        }
        match of_pages(ctx, kind, i as f64 * share, share) {
            Ok(found) => mlp.kinds.push(found),
            Err(refused) if kind == PageKind::Small => return Err(refused),
            Err(refused) => mlp.pages_refused.push(PagesRefused {
                pages: kind.name().to_owned(),
                why: refused.why,
                would_help: "more free memory, unfragmented".to_owned(),
            }),
        }
    }
    Ok(mlp)
}

/// An area no cache holds, one chain through all of its lines.
pub(crate) fn trail(ctx: &mut Context<'_>, pages: PageKind) -> Result<Trail, Refused> {
    let wanted = (ctx.last_cache().0 * ctx.pick(4, 6, 8)).clamp(64 << 20, 1 << 30);
    let span = wanted.min(ctx.max_memory.0).max(4 << 20);
    let layout = Layout::random(Bytes(span), ctx.line());
    let chain = chain::build(&[layout], pages, &Placement::FirstTouch, &mut ctx.rng)?.remove(0);
    Ok(Trail::along(chain))
}

/// What is measured, in one campaign.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    Burst(u32, Fence),
    Gap(u32, Fence),
    /// The same two with translations at hand.
    ReadyBurst(u32),
    ReadyGap(u32),
    Sequence(u32),
    Chains(u32),
}

impl Setting {
    fn spec(self) -> Spec {
        match self {
            // One filler before the last access, as published.
            Self::Burst(accesses, fence) => Spec::Burst { accesses, gap: 1, filler: NOP, fence },
            Self::Gap(gap, fence) => Spec::Burst { accesses: 2, gap, filler: NOP, fence },
            Self::ReadyBurst(accesses) => Spec::Burst { accesses, gap: 1, filler: NOP, fence: Fence::Lfence },
            Self::ReadyGap(gap) => Spec::Burst { accesses: 2, gap, filler: NOP, fence: Fence::Lfence },
            Self::Sequence(accesses) => Spec::Sequence { accesses, fence: Fence::Lfence },
            Self::Chains(chains) => Spec::ParallelChains { chains },
        }
    }
}

/// Settings and their blocks.
struct Found(Vec<(Setting, Series)>);

impl Found {
    fn samples(&self, which: impl Fn(Setting) -> Option<u32>) -> Vec<Sample> {
        let mut samples: Vec<Sample> = self
            .0
            .iter()
            .filter_map(|(setting, series)| {
                resample::sample(f64::from(which(*setting)?), series, |b| b.values[0])
            })
            .collect();
        samples.sort_by(|a, b| a.at.total_cmp(&b.at));
        samples
    }

    /// Number and time of each, ascending.
    fn times(&self, ctx: &mut Context<'_>, which: impl Fn(Setting) -> Option<u32>) -> Vec<(u32, Latency)> {
        let mut times: Vec<(u32, Latency)> = self
            .0
            .iter()
            .filter_map(|(setting, series)| Some((which(*setting)?, ctx.latency(series))))
            .collect();
        times.sort_by_key(|t| t.0);
        times
    }
}

fn gaps(fence: Fence) -> impl Fn(Setting) -> Option<u32> {
    move |s| match s {
        Setting::Gap(gap, f) if f == fence => Some(gap),
        _ => None,
    }
}

fn bursts(fence: Fence) -> impl Fn(Setting) -> Option<u32> {
    move |s| match s {
        Setting::Burst(n, f) if f == fence => Some(n),
        _ => None,
    }
}

fn ready_gaps(s: Setting) -> Option<u32> {
    if let Setting::ReadyGap(gap) = s { Some(gap) } else { None }
}

fn ready_bursts(s: Setting) -> Option<u32> {
    if let Setting::ReadyBurst(n) = s { Some(n) } else { None }
}

fn sequences(s: Setting) -> Option<u32> {
    if let Setting::Sequence(n) = s { Some(n) } else { None }
}

fn chains(s: Setting) -> Option<u32> {
    if let Setting::Chains(k) = s { Some(k) } else { None }
}

fn of_pages(ctx: &mut Context<'_>, kind: PageKind, from: f64, share: f64) -> Result<MlpOfPages, Refused> {
    ctx.stage(from, from + share * 0.6);
    let trail = trail(ctx, kind)?;
    let mut found = Found(Vec::new());
    let bare = ctx.host.virtualization.hypervisor.get().is_some_and(|h| h == "none");
    gather(ctx, &trail, &mut found, settings(ctx, bare), share * 0.5)?;
    let rounds = ctx.pick(1, 3, 3);
    for round in 0..rounds {
        let part = 0.25 * share / f64::from(rounds);
        let begin = from + share * 0.6 + part * f64::from(round);
        ctx.stage(begin, begin + part);
        if ctx.stop.asked() {
            break;
        }
        let points = resample::medians(&found.samples(gaps(Fence::Lfence)));
        let more = cliff::between(&points, 7).into_iter().map(|g| Setting::Gap(g, Fence::Lfence)).collect();
        gather(ctx, &trail, &mut found, more, part)?;
    }
    ctx.stage(from + share * 0.85, from + share);
    if kind != PageKind::Small && !ctx.stop.asked() {
        let more = ready(ctx, &found);
        gather(ctx, &trail, &mut found, more, share * 0.15)?;
    }
    Ok(conclude(ctx, &trail, kind, bare, &found))
}

fn settings(ctx: &Context<'_>, bare: bool) -> Vec<Setting> {
    let counts: Vec<u32> =
        (1..=MOST_ACCESSES).filter(|n| ctx.pick(*n <= 32 || n % 4 == 0, true, true)).collect();
    let coarse: Vec<u32> = (0..100)
        .map(|i| (8.0 * 2f64.powf(f64::from(i) / ctx.pick(2.0, 3.0, 4.0))).round() as u32)
        .take_while(|&g| g < FURTHEST_GAP)
        .chain([1, 4, FURTHEST_GAP])
        .collect();
    let mut settings: Vec<Setting> = (0..=LONGEST_SEQUENCE).map(Setting::Sequence).collect();
    settings.extend(counts.iter().map(|&k| Setting::Chains(k)));
    // A hypervisor intercepts CPUID: tens of microseconds a shot, and caches swept on the way.
    let fences: &[Fence] = if bare { &[Fence::Lfence, Fence::Cpuid] } else { &[Fence::Lfence] };
    for &fence in fences {
        settings.extend(counts.iter().map(|&n| Setting::Burst(n, fence)));
        settings.extend(coarse.iter().map(|&g| Setting::Gap(g, fence)));
    }
    settings
}

/// Bursts, and the gaps just beyond the cliff, where that was found.
fn ready(ctx: &Context<'_>, found: &Found) -> Vec<Setting> {
    let gaps = found.samples(gaps(Fence::Lfence));
    let Some(beyond) = beyond_cliff(&gaps) else { return Vec::new() };
    let most = ctx.pick(32, 40, MOST_ACCESSES);
    let from = ctx.pick(9, 1, 1);
    let bursts = (1..=most).filter(|n| *n >= from || n % 4 == 1).map(Setting::ReadyBurst);
    bursts.chain(beyond.iter().map(|s| Setting::ReadyGap(s.at as u32))).collect()
}

fn gather(
    ctx: &mut Context<'_>,
    trail: &Trail,
    found: &mut Found,
    settings: Vec<Setting>,
    share: f64,
) -> Result<(), Refused> {
    if settings.is_empty() {
        return Ok(());
    }
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for setting in &settings {
        let kernel = Loaded::new(assemble(&setting.spec())?)?;
        rigs.push(match setting {
            Setting::Chains(_) => Box::new(SideBySideRig::new(kernel, trail.clone())),
            Setting::ReadyBurst(_) | Setting::ReadyGap(_) => {
                Box::new(ShotRig::new(kernel, trail.clone()).translated())
            }
            _ => Box::new(ShotRig::new(kernel, trail.clone())),
        });
    }
    let (block, blocks) = ctx.pick((300, 11), (400, 31), (500, 75));
    let gathered = ctx.measure(rigs, Duration::from_micros(block), blocks, share);
    found.0.extend(settings.into_iter().zip(gathered.series));
    Ok(())
}

fn conclude(ctx: &mut Context<'_>, trail: &Trail, kind: PageKind, bare: bool, found: &Found) -> MlpOfPages {
    let disturbed = resample::disturbed(found.0.iter().map(|f| &f.1));
    let marked = |q: Quantity| q.disturbed_by(disturbed.clone());
    let count = |e: Result<Estimate, String>| match e {
        Ok(e) => marked(Quantity::measured(e, Unit::Count)),
        Err(why) => Quantity::unresolved(why),
    };
    let gap_samples = found.samples(gaps(Fence::Lfence));
    let two = beyond_cliff(&gap_samples).map(|beyond| pooled(&beyond));
    let burst_samples = found.samples(bursts(Fence::Lfence));
    let effective = count(by(&burst_samples, two.as_ref(), ctx));
    let dependent = found.samples(sequences).into_iter().find(|s| s.at == 2.0);
    let effective_by_dependent = count(by(&burst_samples, dependent.as_ref(), ctx));
    let effective_by_cpuid = bare.then(|| {
        let two = beyond_cliff(&found.samples(gaps(Fence::Cpuid))).map(|beyond| pooled(&beyond));
        count(by(&found.samples(bursts(Fence::Cpuid)), two.as_ref(), ctx))
    });
    let cliff = count(
        cliff::find(&gap_samples, &mut ctx.rng)
            .ok_or_else(|| format!("no cliff up to a gap of {FURTHEST_GAP}")),
    );
    let throughput = effective::throughput(&found.samples(chains), &mut ctx.rng);
    let too_few = || "too few chains were measured".to_owned();
    let pace = Pace::of(found, ctx.ns_per_tick());
    let sequence = found.times(ctx, sequences);
    let line = sequence_line(&sequence, &pace);
    let shots = |times: Vec<(u32, Latency)>| -> Vec<Shot> {
        times.into_iter().map(|(accesses, time)| Shot { accesses, time }).collect()
    };
    let gap_times = found.times(ctx, gaps(Fence::Lfence));
    let ready_gaps = found.samples(ready_gaps);
    let translated = (!ready_gaps.is_empty()).then(|| {
        let two = pooled(&ready_gaps);
        Translated {
            effective: count(by(&found.samples(ready_bursts), Some(&two), ctx)),
            in_sequence: pace
                .latency(lab::stats::median_interval(&two.values, &mut ctx.rng), Quantity::measured),
            bursts: shots(found.times(ctx, ready_bursts)),
        }
    });
    MlpOfPages {
        pages: supply_of(std::slice::from_ref(trail.chain()), kind),
        combination: combination(bare, kind),
        area: trail.chain().layout.span,
        effective,
        in_sequence: match two {
            Some(two) => {
                pace.latency(lab::stats::median_interval(&two.values, &mut ctx.rng), Quantity::measured)
            }
            None => Latency::unresolved("no cliff was found over the gap"),
        },
        effective_by_dependent,
        bursts: shots(found.times(ctx, bursts(Fence::Lfence))),
        gaps: gap_times.into_iter().map(|(gap, time)| GapShot { gap, time }).collect(),
        cliff,
        effective_by_cpuid,
        translated,
        empty: sequence.first().map_or_else(|| Latency::unresolved("not measured"), |(_, t)| t.clone()),
        sequence: shots(sequence.into_iter().filter(|(n, _)| *n > 0).collect()),
        line,
        chains: found
            .times(ctx, chains)
            .into_iter()
            .map(|(chains, round)| ChainsPoint { chains, round })
            .collect(),
        saturation: count(throughput.map(|t| t.saturation).ok_or_else(too_few)),
        sustained: count(throughput.map(|t| t.sustained).ok_or_else(too_few)),
        per_access: match throughput {
            Some(t) => pace.latency(t.per_access, Quantity::measured),
            None => Latency::unresolved(too_few()),
        },
    }
}

fn by(bursts: &[Sample], two: Option<&Sample>, ctx: &mut Context<'_>) -> Result<Estimate, String> {
    let two = two.ok_or_else(|| "two accesses in sequence were not resolved".to_owned())?;
    effective::effective(bursts, two, &mut ctx.rng)
}

/// Two accesses in sequence: blocks of the gaps just beyond the cliff, where fillers cost least.
fn beyond_cliff(gaps: &[Sample]) -> Option<Vec<Sample>> {
    let (_, high) = cliff::bracket(&resample::medians(gaps))?;
    Some(gaps[high..(high + 4).min(gaps.len())].to_vec())
}

fn pooled(beyond: &[Sample]) -> Sample {
    Sample { at: 2.0, values: beyond.iter().flat_map(|s| s.values.iter().copied()).collect() }
}

/// Turns ticks into the other units, for figures that rest on many settings.
struct Pace {
    cycles_per_tick: f64,
    ns_per_tick: f64,
}

impl Pace {
    fn of(found: &Found, ns_per_tick: f64) -> Self {
        let paces: Vec<f64> = found.0.iter().flat_map(|f| f.1.blocks().iter().map(|b| b.pace)).collect();
        let cycles_per_tick = if paces.is_empty() { 1.0 } else { lab::stats::median(&paces) };
        Self { cycles_per_tick, ns_per_tick }
    }

    fn latency(&self, ticks: Estimate, make: fn(Estimate, Unit) -> Quantity) -> Latency {
        Latency {
            ns: make(ticks.scaled(self.ns_per_tick), Unit::Nanos),
            cycles: make(ticks.scaled(self.cycles_per_tick), Unit::Cycles),
            ticks: make(ticks, Unit::Ticks),
        }
    }
}

fn sequence_line(sequence: &[(u32, Latency)], pace: &Pace) -> SequenceLine {
    let strips: Vec<Strip> = sequence
        .iter()
        .filter(|(n, _)| *n > 0)
        .filter_map(|(n, time)| Some(Strip { n: f64::from(*n), time: time.ticks.estimate()? }))
        .collect();
    match line::fit(&strips) {
        Some(line) => SequenceLine {
            per_access: pace.latency(line.per_access, Quantity::modelled),
            constant: pace.latency(line.constant, Quantity::modelled),
            widened: Quantity::modelled(Estimate::exact(line.widened), Unit::Ticks),
            conflict: line.conflict,
        },
        None => SequenceLine {
            per_access: Latency::unresolved("too few sequences were resolved"),
            constant: Latency::unresolved("too few sequences were resolved"),
            widened: Quantity::unresolved("too few sequences were resolved"),
            conflict: Vec::new(),
        },
    }
}

/// Huge pages on host and guest, 0 for enabled and 1 for disabled.
fn combination(bare: bool, kind: PageKind) -> String {
    let digit = u8::from(kind == PageKind::Small);
    if bare { format!("H{digit}") } else { format!("H?G{digit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_named_as_published() {
        assert_eq!(combination(false, PageKind::Transparent), "H?G0");
        assert_eq!(combination(false, PageKind::Small), "H?G1");
        assert_eq!(combination(true, PageKind::Small), "H1");
    }

    #[test]
    fn two_in_sequence_are_taken_from_beyond_the_cliff() {
        let gaps: Vec<Sample> = [1, 4, 8, 16, 32, 64, 128, 256, 512]
            .into_iter()
            .map(|g| {
                let t = if g > 100 { 820.0 } else { 430.0 } + f64::from(g) * 0.01;
                Sample { at: f64::from(g), values: vec![t - 1.0, t, t + 1.0] }
            })
            .collect();
        let two = pooled(&beyond_cliff(&gaps).unwrap());
        assert_eq!(two.values.len(), 9);
        assert!(two.values.iter().all(|v| (815.0..830.0).contains(v)));
        assert_eq!(beyond_cliff(&gaps[..6]), None);
    }
}

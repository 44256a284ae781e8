//! **mlp**: how many misses are served at once.
//!
//! Three views of it, each with huge pages and with small ones, where page walks add to the misses:
//!
//! - bursts: N independent accesses between two readings of the clock. The effective parallelism is
//!   the largest N whose time stays below that of two accesses in sequence, the second of which
//!   depends on the first. As published, the two in sequence are independent ones with enough
//!   fillers between them that the core cannot hold both; that is measured beside it, for while
//!   another hyperthread of the core is at work fillers cost more and the core holds fewer of them;
//! - k chains side by side, without a stop: throughput, and the k from which on it no longer grows;
//! - n dependent accesses, `T(n) = n·M + C`: what one costs, and what comes to every shot
//!   (`line.rs`).
//!
//! Two families of curves are measured beside them, as published: bursts of each N over the number
//! of fillers before the last access, and bursts of each N over the size of the area (`areas.rs`).
//!
//! Bursts are measured once more with all translations in the TLB. Huge pages should ensure that,
//! but in a guest whose host backs them with small pages each access walks all the same, and
//! walkers, of which there are few, limit what overlaps.
//!
//! Shots are fenced by LFENCE. CPUID, with which the experiment was first published, is measured
//! beside it where no hypervisor intercepts it.

mod areas;
pub(crate) mod effective;
mod line;
mod shots;

use crate::cliff;
use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::supply_of;
use crate::resample::{self, SettingBlocks};
use crate::uncached::uncached_nodes;
use kernels::Fence;
use lab::arena::PageKind;
use lab::rigs::NodeSupply;
use line::TimeStrip;
use records::host::ThpMode;
use records::machine::{
    BurstCurve, ChainsPoint, Effort, GapShot, Machine, Mlp, MlpOfPages, PagesRefused, SequenceLine, Shot,
    Translated,
};
use shots::{
    BurstAccess, MeasuredSettings, ShotSetting, apart, bursts, chains, curve, dependent, far_apart, gaps,
    gather, sequences,
};
use units::{Estimate, Latency, Quantity, Unit};

const MOST_ACCESSES: u32 = 64;
const LONGEST_SEQUENCE: u32 = 12;
const FURTHEST_GAP: u32 = 2000;
/// Of the experiment's time, for bursts over areas.
const AREAS_SHARE: f64 = 0.1;
/// The N of the curves over fillers, and those of quick runs.
const CURVES: std::ops::RangeInclusive<u32> = 2..=11;
const QUICK_CURVES: [u32; 3] = [2, 6, 11];
/// Where no cliff was found, fillers go up to this number, as published.
const PUBLISHED_GAP: f64 = 210.0;
/// Two accesses beyond the cliff and two dependent ones should take equally long, but for this
/// share.
const COMPARISON_TOLERANCE: f64 = 0.08;

pub(crate) const ENTRY: Entry = Entry {
    name: "mlp",
    about: "memory-level parallelism: how many misses overlap",
    needs: None,
    seconds: ByEffort { quick: 7.5, normal: 50.0, thorough: 185.0 },
    run: |ctx, machine| machine.experiments.mlp = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.mlp.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Mlp, Refused> {
    let mut mlp = Mlp { kinds: Vec::new(), pages_refused: Vec::new() };
    let kinds: &[PageKind] = match ctx.host.pages.thp.enabled.value() {
        Some(ThpMode::Never) => &[PageKind::Small],
        _ => &[PageKind::Transparent, PageKind::Small],
    };
    let share = (1.0 - AREAS_SHARE) / kinds.len() as f64;
    for (i, &kind) in kinds.iter().enumerate() {
        if ctx.stop.asked() {
            break;
        }
        match of_pages(ctx, kind, i as f64 * share, share) {
            Ok(mut found) => {
                // One family over areas will do: with small pages the TLB ends before most caches.
                if mlp.kinds.is_empty() && !ctx.stop.asked() {
                    ctx.stage((i as f64 + 0.9) * share, (i as f64 + 1.0) * share);
                    match areas::measured(ctx, kind, found.area, AREAS_SHARE) {
                        Ok(areas) => found.areas = areas,
                        Err(refused) => ctx.remark(&format!("bursts over areas: {}", refused.why)),
                    }
                }
                mlp.kinds.push(found);
            }
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

fn of_pages(ctx: &mut Context<'_>, kind: PageKind, from: f64, share: f64) -> Result<MlpOfPages, Refused> {
    ctx.stage(from, from + share * 0.30);
    let nodes = uncached_nodes(ctx, kind)?;
    let mut found = MeasuredSettings(Vec::new());
    let bare = ctx.host.virtualization.hypervisor.get().is_some_and(|h| h == "none");
    gather(ctx, &nodes, &mut found, settings(ctx), share * 0.26)?;
    let rounds = ctx.pick(2, 3, 3);
    for round in 0..rounds {
        let part = 0.22 * share / f64::from(rounds);
        let begin = from + share * 0.30 + part * f64::from(round);
        ctx.stage(begin, begin + part);
        if ctx.stop.asked() {
            break;
        }
        let points = resample::medians(&found.samples(gaps));
        let more = cliff::between(&points, 7).into_iter().map(ShotSetting::Gap).collect();
        gather(ctx, &nodes, &mut found, more, part)?;
    }
    ctx.stage(from + share * 0.52, from + share * 0.84);
    let mut ways = vec![BurstAccess::Walking(Fence::Lfence)];
    // A hypervisor intercepts CPUID: tens of microseconds a shot, and caches swept on the way.
    ways.extend(bare.then_some(BurstAccess::Walking(Fence::Cpuid)));
    ways.extend((kind != PageKind::Small).then_some(BurstAccess::AtHand));
    let together = compared(ctx, &found, &ways);
    gather(ctx, &nodes, &mut found, together, share * 0.34)?;
    ctx.stage(from + share * 0.84, from + share * 0.9);
    if !ctx.stop.asked() {
        let points = resample::medians(&found.samples(gaps));
        let more = curves(ctx.effort, &points);
        gather(ctx, &nodes, &mut found, more, share * 0.06)?;
    }
    Ok(conclude(ctx, &nodes, kind, bare, &found))
}

/// Settings that are compared with no other: sequences, chains side by side, and the curve over the
/// gap.
fn settings(ctx: &Context<'_>) -> Vec<ShotSetting> {
    let coarse: Vec<u32> = (0..100)
        .map(|i| (8.0 * 2f64.powf(f64::from(i) / ctx.pick(2.0, 3.0, 4.0))).round() as u32)
        .take_while(|&g| g < FURTHEST_GAP)
        .chain([1, 4, FURTHEST_GAP])
        .collect();
    let mut settings: Vec<ShotSetting> = (0..=LONGEST_SEQUENCE).map(ShotSetting::Sequence).collect();
    settings.extend(counts(ctx).map(ShotSetting::Chains));
    settings.extend(coarse.into_iter().map(ShotSetting::Gap));
    settings
}

fn counts(ctx: &Context<'_>) -> impl Iterator<Item = u32> + use<> {
    let all = ctx.pick(32, MOST_ACCESSES, MOST_ACCESSES);
    (1..=MOST_ACCESSES).filter(move |n| *n <= all || n % 4 == 0)
}

/// Bursts, interleaved with what they are compared with: if memory gets slower or faster meanwhile,
/// it must affect both.
fn compared(ctx: &Context<'_>, found: &MeasuredSettings, ways: &[BurstAccess]) -> Vec<ShotSetting> {
    let mut settings = Vec::new();
    for &way in ways {
        settings.extend(counts(ctx).map(|n| ShotSetting::Burst(n, way)));
        // Four times: every number of accesses is compared with these.
        settings.extend([ShotSetting::Dependent(way); 4]);
    }
    let gaps = resample::medians(&found.samples(gaps));
    settings.extend(beyond_cliff(&gaps).into_iter().flatten().map(ShotSetting::Apart));
    settings.extend([ShotSetting::Apart(FURTHEST_GAP); 2]);
    settings
}

/// Curves of all N over the fillers before the last access: on either side of the cliff, and near
/// it.
fn curves(effort: Effort, gaps: &[(f64, f64)]) -> Vec<ShotSetting> {
    let shares: &[f64] = match effort {
        Effort::Quick => &[0.5, 0.95, 1.1],
        Effort::Normal => &[0.25, 0.5, 0.75, 0.9, 0.97, 1.03, 1.1, 1.2],
        Effort::Thorough => {
            &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.2, 1.3]
        }
    };
    let cliff = cliff::bracket(gaps).map(|(low, high)| f64::midpoint(gaps[low].0, gaps[high].0));
    let end = cliff.unwrap_or(PUBLISHED_GAP);
    let mut fillers: Vec<u32> = shares.iter().map(|share| (end * share).round() as u32).collect();
    fillers.insert(0, 1);
    fillers.dedup();
    let accesses: Vec<u32> = if effort == Effort::Quick { QUICK_CURVES.to_vec() } else { CURVES.collect() };
    let of = |&n: &u32| fillers.iter().map(move |&gap| ShotSetting::Curve(n, gap)).collect::<Vec<_>>();
    accesses.iter().flat_map(of).collect()
}

fn conclude(
    ctx: &mut Context<'_>,
    nodes: &NodeSupply,
    kind: PageKind,
    bare: bool,
    found: &MeasuredSettings,
) -> MlpOfPages {
    let disturbed = resample::disturbed(found.0.iter().map(|f| &f.1));
    let marked = |q: Quantity| q.disturbed_by(disturbed.clone());
    let count = |e: Result<Estimate, String>| match e {
        Ok(e) => marked(Quantity::measured(e, Unit::Count)),
        Err(why) => Quantity::unresolved(why),
    };
    let against = |way: BurstAccess, two: &[SettingBlocks], ctx: &mut Context<'_>| {
        count(by(&found.samples(bursts(way)), pooled(two).as_ref(), ctx))
    };
    let walking = BurstAccess::Walking(Fence::Lfence);
    let effective = against(walking, &found.samples(dependent(walking)), ctx);
    let company = hyperthreads(found);
    let effective_by_gap = match &company {
        Some(why) => Quantity::unresolved(why),
        None => against(walking, &found.samples(apart), ctx),
    };
    let effective_by_far_gap = against(walking, &found.samples(far_apart), ctx);
    let by_cpuid = BurstAccess::Walking(Fence::Cpuid);
    let effective_by_cpuid = bare.then(|| against(by_cpuid, &found.samples(dependent(by_cpuid)), ctx));
    let cliff = match (cliff::find(&found.samples(gaps), &mut ctx.rng), company) {
        (Some(_), Some(why)) => Quantity::unresolved(why),
        (found, _) => count(found.ok_or_else(|| format!("no cliff up to a gap of {FURTHEST_GAP} fillers"))),
    };
    let throughput = effective::throughput(&found.samples(chains), &mut ctx.rng);
    let too_few = || "too few chains were measured".to_owned();
    let scale = TickScale::of(found, ctx.ns_per_tick());
    let sequence = found.times(ctx, sequences);
    let line = sequence_line(&sequence, &scale);
    let shots = |times: Vec<(u32, Latency)>| -> Vec<Shot> {
        times.into_iter().map(|(accesses, time)| Shot { accesses, time }).collect()
    };
    let gap_times = found.times(ctx, gaps);
    let curves = CURVES
        .map(|n| BurstCurve { accesses: n, points: gap_shots(found.times(ctx, curve(n))) })
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let in_sequence = |way: BurstAccess, ctx: &mut Context<'_>| match pooled(&found.samples(dependent(way))) {
        Some(two) => {
            scale.latency(lab::stats::median_interval(&two.values, &mut ctx.rng), Quantity::measured)
        }
        None => Latency::unresolved("not measured"),
    };
    let translated = (kind != PageKind::Small).then(|| Translated {
        effective: against(BurstAccess::AtHand, &found.samples(dependent(BurstAccess::AtHand)), ctx),
        in_sequence: in_sequence(BurstAccess::AtHand, ctx),
        bursts: shots(found.times(ctx, bursts(BurstAccess::AtHand))),
    });
    MlpOfPages {
        pages: supply_of(std::slice::from_ref(nodes.chain()), kind),
        combination: combination(bare, kind),
        area: nodes.chain().layout.span,
        effective,
        in_sequence: in_sequence(walking, ctx),
        effective_by_gap: Some(effective_by_gap),
        effective_by_far_gap: Some(effective_by_far_gap),
        bursts: shots(found.times(ctx, bursts(walking))),
        gaps: gap_shots(gap_times),
        cliff,
        curves,
        areas: Vec::new(),
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
            Some(t) => scale.latency(t.per_access, Quantity::measured),
            None => Latency::unresolved(too_few()),
        },
    }
}

/// Bursts on memory that lies elsewhere, each N compared with two dependent accesses there.
pub(crate) fn bursts_on(
    ctx: &mut Context<'_>,
    nodes: &NodeSupply,
    share: f64,
) -> Result<(Vec<Shot>, Quantity), Refused> {
    let way = BurstAccess::Walking(Fence::Lfence);
    let mut settings: Vec<ShotSetting> = counts(ctx).map(|n| ShotSetting::Burst(n, way)).collect();
    settings.extend([ShotSetting::Dependent(way); 4]);
    let mut found = MeasuredSettings(Vec::new());
    gather(ctx, nodes, &mut found, settings, share)?;
    let disturbed = resample::disturbed(found.0.iter().map(|f| &f.1));
    let effective =
        match by(&found.samples(bursts(way)), pooled(&found.samples(dependent(way))).as_ref(), ctx) {
            Ok(e) => Quantity::measured(e, Unit::Count).disturbed_by(disturbed),
            Err(why) => Quantity::unresolved(why),
        };
    let times = found.times(ctx, bursts(way)).into_iter();
    Ok((times.map(|(accesses, time)| Shot { accesses, time }).collect(), effective))
}

fn gap_shots(times: Vec<(u32, Latency)>) -> Vec<GapShot> {
    times.into_iter().map(|(gap, time)| GapShot { gap, time }).collect()
}

fn by(
    bursts: &[SettingBlocks],
    two: Option<&SettingBlocks>,
    ctx: &mut Context<'_>,
) -> Result<Estimate, String> {
    let two = two.ok_or_else(|| "two accesses in sequence were not resolved".to_owned())?;
    effective::effective(bursts, two, &mut ctx.rng)
}

/// Two accesses kept apart by fillers stand for two in sequence only where the fillers neither fail
/// to keep them apart nor take time of their own. Both happens while another hyperthread of the
/// core is at work: its buffers are then shared out, so that a cliff found in company is not there
/// without, and the other way round. What speaks for that, if anything does.
fn hyperthreads(found: &MeasuredSettings) -> Option<String> {
    let dependent = pooled(&found.samples(dependent(BurstAccess::Walking(Fence::Lfence))))?.median();
    let apart = pooled(&found.samples(apart))?.median();
    ((apart / dependent - 1.0).abs() > COMPARISON_TOLERANCE).then(|| {
        format!(
            "two accesses beyond the cliff take {apart:.0} ticks, two dependent ones {dependent:.0}: how much the core can \
             hold changed meanwhile, or fillers took time of their own; another hyperthread does both"
        )
    })
}

/// Gaps a little beyond the cliff, however closely it was looked at. Further out the fillers would
/// cost time of their own.
fn beyond_cliff(gaps: &[(f64, f64)]) -> Option<[u32; 4]> {
    let (_, high) = cliff::bracket(gaps)?;
    Some([1, 2, 3, 4].map(|part| (gaps[high].0 * (1.0 + f64::from(part) / 100.0)).round() as u32 + part))
}

/// Two in sequence, by all that stands for it.
fn pooled(two: &[SettingBlocks]) -> Option<SettingBlocks> {
    let values: Vec<f64> = two.iter().flat_map(|s| s.values.iter().copied()).collect();
    (!values.is_empty()).then_some(SettingBlocks { at: 2.0, values })
}

/// Turns ticks into the other units, for figures that rest on many settings.
struct TickScale {
    cycles_per_tick: f64,
    ns_per_tick: f64,
}

impl TickScale {
    fn of(found: &MeasuredSettings, ns_per_tick: f64) -> Self {
        let cycles_per_tick: Vec<f64> =
            found.0.iter().flat_map(|f| f.1.blocks().iter().map(|b| b.cycles_per_tick)).collect();
        let cycles_per_tick =
            if cycles_per_tick.is_empty() { 1.0 } else { lab::stats::median(&cycles_per_tick) };
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

fn sequence_line(sequence: &[(u32, Latency)], scale: &TickScale) -> SequenceLine {
    let strips: Vec<TimeStrip> = sequence
        .iter()
        .filter(|(n, _)| *n > 0)
        .filter_map(|(n, time)| Some(TimeStrip { n: f64::from(*n), time: time.ticks.estimate()? }))
        .collect();
    match line::fit(&strips) {
        Some(line) => SequenceLine {
            per_access: scale.latency(line.per_access, Quantity::modelled),
            constant: scale.latency(line.constant, Quantity::modelled),
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
    fn curves_reach_over_the_cliff() {
        let time = |g: f64| if g > 100.0 { 820.0 } else { 430.0 };
        let gaps: Vec<(f64, f64)> =
            (0..12).chain(95..106).chain([300, 800]).map(|g| (f64::from(g), time(f64::from(g)))).collect();
        for (effort, number) in [(Effort::Quick, 3), (Effort::Normal, 10), (Effort::Thorough, 10)] {
            let settings = curves(effort, &gaps);
            for n in [2, 11] {
                let of: Vec<u32> = settings.iter().filter_map(|&s| curve(n)(s)).collect();
                assert!(of[0] == 1 && of.windows(2).all(|w| w[0] < w[1]), "{of:?}");
                assert!(of.iter().any(|&g| g > 103) && of.iter().any(|&g| g > 1 && g < 98), "{of:?}");
                assert_eq!(settings.len(), number * of.len());
            }
            assert!(curves(effort, &[]).contains(&ShotSetting::Curve(11, 1)), "no cliff");
        }
    }

    #[test]
    fn two_in_sequence_are_taken_from_a_little_beyond_the_cliff() {
        let time = |g: f64| if g > 100.0 { 820.0 } else { 430.0 } + g * 0.01;
        let coarse = [1.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0].map(|g| (g, time(g)));
        let fine: Vec<(f64, f64)> =
            (0..12).chain(95..106).chain([300, 800]).map(|g| (f64::from(g), time(f64::from(g)))).collect();
        for (points, least) in [(&coarse[..], 128), (&fine, 101)] {
            let gaps = beyond_cliff(points).unwrap();
            assert!(gaps.iter().all(|&g| g > least && g < least + least / 10), "{gaps:?}");
            assert!(gaps.windows(2).all(|g| g[0] < g[1]), "{gaps:?}");
        }
        assert_eq!(beyond_cliff(&coarse[..6]), None);
        assert_eq!(pooled(&[]), None);
    }
}

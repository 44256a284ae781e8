//! What the experiment measures, setting by setting, and the blocks measured.
//!
//! A new kind of shot is a new [`ShotSetting`] with its kernel in `spec`, and a function beside
//! `gaps` that picks it out.

use super::FURTHEST_GAP;
use crate::context::{Context, Refused};
use crate::resample::{self, SettingBlocks};
use kernels::{Fence, Filler, Spec};
use lab::campaign::Series;
use lab::code::Loaded;
use lab::rigs::{NodeSupply, Rig, ShotRig, SideBySideRig};
use std::time::Duration;
use units::Latency;

pub(super) const NOP: Filler = Filler::Nop { bytes: 1 };

/// How the accesses of a burst find their translations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BurstAccess {
    /// As they are, with page walks.
    Walking(Fence),
    /// With their translations in the TLB.
    AtHand,
}

impl BurstAccess {
    fn fence(self) -> Fence {
        match self {
            Self::Walking(fence) => fence,
            Self::AtHand => Fence::Lfence,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ShotSetting {
    /// Two accesses with this many fillers between them, for the curve over the gap.
    Gap(u32),
    /// This many independent accesses.
    Burst(u32, BurstAccess),
    /// Two accesses with this many fillers between them, enough that the core should not hold
    /// both; among the bursts that are compared with them.
    Apart(u32),
    /// This many accesses with this many fillers before the last one, for the curves of all N.
    Curve(u32, u32),
    /// Two dependent accesses, among the bursts that are compared with them.
    Dependent(BurstAccess),
    Sequence(u32),
    Chains(u32),
}

impl ShotSetting {
    fn spec(self) -> Spec {
        match self {
            // One filler before the last access, as published.
            Self::Burst(accesses, way) => Spec::Burst { accesses, gap: 1, filler: NOP, fence: way.fence() },
            Self::Gap(gap) | Self::Apart(gap) => {
                Spec::Burst { accesses: 2, gap, filler: NOP, fence: Fence::Lfence }
            }
            Self::Curve(accesses, gap) => Spec::Burst { accesses, gap, filler: NOP, fence: Fence::Lfence },
            Self::Dependent(way) => Spec::Sequence { accesses: 2, fence: way.fence() },
            Self::Sequence(accesses) => Spec::Sequence { accesses, fence: Fence::Lfence },
            Self::Chains(chains) => Spec::ParallelChains { chains },
        }
    }
}

/// Settings and their blocks.
pub(super) struct MeasuredSettings(pub(super) Vec<(ShotSetting, Series)>);

impl MeasuredSettings {
    pub(super) fn samples(&self, which: impl Fn(ShotSetting) -> Option<u32>) -> Vec<SettingBlocks> {
        let series =
            self.0.iter().filter_map(|(setting, series)| Some((f64::from(which(*setting)?), series)));
        let mut samples = resample::curve(series, |b| b.values[0]);
        samples.sort_by(|a, b| a.at.total_cmp(&b.at));
        samples
    }

    /// Number and time of each, ascending.
    pub(super) fn times(
        &self,
        ctx: &mut Context<'_>,
        which: impl Fn(ShotSetting) -> Option<u32>,
    ) -> Vec<(u32, Latency)> {
        let mut times: Vec<(u32, Latency)> = self
            .0
            .iter()
            .filter_map(|(setting, series)| Some((which(*setting)?, ctx.latency(series))))
            .collect();
        times.sort_by_key(|t| t.0);
        times
    }
}

pub(super) fn gaps(s: ShotSetting) -> Option<u32> {
    if let ShotSetting::Gap(gap) = s { Some(gap) } else { None }
}

pub(super) fn curve(n: u32) -> impl Fn(ShotSetting) -> Option<u32> {
    move |s| match s {
        ShotSetting::Curve(accesses, gap) if accesses == n => Some(gap),
        _ => None,
    }
}

pub(super) fn apart(s: ShotSetting) -> Option<u32> {
    if let ShotSetting::Apart(gap) = s { Some(gap).filter(|&gap| gap < FURTHEST_GAP) } else { None }
}

pub(super) fn far_apart(s: ShotSetting) -> Option<u32> {
    (s == ShotSetting::Apart(FURTHEST_GAP)).then_some(FURTHEST_GAP)
}

pub(super) fn bursts(way: BurstAccess) -> impl Fn(ShotSetting) -> Option<u32> {
    move |s| match s {
        ShotSetting::Burst(n, w) if w == way => Some(n),
        _ => None,
    }
}

pub(super) fn dependent(way: BurstAccess) -> impl Fn(ShotSetting) -> Option<u32> {
    move |s| (s == ShotSetting::Dependent(way)).then_some(2)
}

pub(super) fn sequences(s: ShotSetting) -> Option<u32> {
    if let ShotSetting::Sequence(n) = s { Some(n) } else { None }
}

pub(super) fn chains(s: ShotSetting) -> Option<u32> {
    if let ShotSetting::Chains(k) = s { Some(k) } else { None }
}

/// Measures all of these in one campaign.
pub(super) fn gather(
    ctx: &mut Context<'_>,
    nodes: &NodeSupply,
    found: &mut MeasuredSettings,
    settings: Vec<ShotSetting>,
    share: f64,
) -> Result<(), Refused> {
    if settings.is_empty() {
        return Ok(());
    }
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for setting in &settings {
        let kernel = Loaded::of(&setting.spec())?;
        rigs.push(match setting {
            ShotSetting::Chains(_) => Box::new(SideBySideRig::new(kernel, nodes.clone())),
            ShotSetting::Burst(_, BurstAccess::AtHand) | ShotSetting::Dependent(BurstAccess::AtHand) => {
                Box::new(ShotRig::new(kernel, nodes.clone()).translated())
            }
            _ => Box::new(ShotRig::new(kernel, nodes.clone())),
        });
    }
    let (block, blocks) = ctx.pick((300, 11), (400, 31), (500, 75));
    let gathered = ctx.measure_on_whole_core(rigs, Duration::from_micros(block), blocks, share);
    found.0.extend(settings.into_iter().zip(gathered.series));
    Ok(())
}

//! Figures of shots: bursts, gaps and sequences.

use crate::evidence::{Evidence, Found, combined, not_identifiable, ratio, resolved, result};
use crate::missing::Missing;
use records::machine::{Mlp, MlpOfPages, Shot};
use units::{Estimate, Quantity, Unit, middle_sorted};

/// Gaps up to this factor beyond the cliff: further out, fillers take time of their own.
const NEAR: f64 = 1.05;

pub(super) fn of_machine<'a>(evidence: &Evidence<'a>) -> Result<&'a Mlp, Missing> {
    result("mlp", evidence.machine()?.experiments.mlp.as_ref())
}

/// With huge pages, where these were had.
pub(super) fn huge<'a>(evidence: &Evidence<'a>) -> Result<&'a MlpOfPages, Missing> {
    match of_machine(evidence)?.kinds.iter().find(|kind| kind.pages.asked != "4K") {
        Some(kind) if kind.pages.share >= 0.9 => Ok(kind),
        Some(kind) => {
            not_identifiable(format!("only {:.0}% of the area had huge pages", 100.0 * kind.pages.share))
        }
        None => not_identifiable("no huge pages were had"),
    }
}

pub(super) fn small<'a>(evidence: &Evidence<'a>) -> Result<&'a MlpOfPages, Missing> {
    of_machine(evidence)?
        .kinds
        .iter()
        .find(|kind| kind.pages.asked == "4K")
        .ok_or_else(|| Missing::NotRun("small pages were not measured".to_owned()))
}

/// The time of a burst, in ticks: both sides of a ratio have them.
pub(super) fn burst(kind: &MlpOfPages, accesses: u32) -> Result<&Quantity, Missing> {
    match kind.bursts.iter().find(|shot| shot.accesses == accesses) {
        Some(shot) => Ok(&shot.time.ticks),
        None => not_identifiable(format!("no burst of {accesses} was measured")),
    }
}

/// The time of a burst in core cycles, as the document gives it.
pub(super) fn burst_cycles(bursts: &[Shot], accesses: u32) -> Option<&Quantity> {
    bursts.iter().find(|shot| shot.accesses == accesses).map(|shot| &shot.time.cycles)
}

pub(super) fn cliff_height(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    let (cliff, _) = resolved(&kind.cliff)?;
    let beyond = kind.gaps.iter().filter(|shot| {
        let gap = f64::from(shot.gap);
        cliff.hi < gap && gap <= cliff.hi * NEAR
    });
    let (Some(apart), Some(near)) = (middle(beyond.map(|shot| &shot.time.ticks)), kind.gaps.first()) else {
        return not_identifiable("no gap right beyond the cliff was measured");
    };
    ratio(&apart, &near.time.ticks)
}

/// The median of several figures, with an interval that holds all of their values.
fn middle<'a>(figures: impl Iterator<Item = &'a Quantity>) -> Option<Quantity> {
    let mut values: Vec<f64> = figures.filter_map(Quantity::value).collect();
    values.sort_by(f64::total_cmp);
    let (&lo, &hi) = (values.first()?, values.last()?);
    Some(Quantity::measured(Estimate::new(middle_sorted(&values)?, lo, hi), Unit::Ticks))
}

pub(super) fn cliff_over_rob(evidence: &Evidence<'_>) -> Found {
    let rob = result("rob", evidence.machine()?.experiments.rob.as_ref())?;
    ratio(&huge(evidence)?.cliff, &rob.entries)
}

pub(super) fn two_in_sequence(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    ratio(&kind.in_sequence.ticks, burst(kind, 1)?)
}

pub(super) fn effective(evidence: &Evidence<'_>) -> Found {
    Ok(huge(evidence)?.effective.clone())
}

pub(super) fn ten_over_one(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    ratio(burst(kind, 10)?, burst(kind, 1)?)
}

pub(super) fn step_beyond(evidence: &Evidence<'_>) -> Found {
    let kind = huge(evidence)?;
    let most = resolved(&kind.effective)?.0.value as u32;
    if most < 2 {
        return not_identifiable("two accesses do not overlap");
    }
    let added = |from, to| combined(burst(kind, to)?, burst(kind, from)?, Estimate::minus);
    let (step, disturbed) = resolved(&added(most, most + 1)?)?;
    let before = resolved(&added(1, most)?)?.0.scaled(1.0 / f64::from(most - 1));
    if before.lo <= 0.0 {
        return not_identifiable("bursts do not become slower up to there");
    }
    let found = Estimate::new(step.value / before.value, step.lo / before.hi, step.hi / before.lo);
    Ok(Quantity::modelled(found, Unit::Ratio).disturbed_by(disturbed))
}

pub(super) fn small_over_huge(evidence: &Evidence<'_>) -> Found {
    ratio(burst(small(evidence)?, 1)?, burst(huge(evidence)?, 1)?)
}

pub(super) fn small_pages_mlp(evidence: &Evidence<'_>) -> Found {
    ratio(&small(evidence)?.effective, &huge(evidence)?.effective)
}

/// From the lone access to the tenth: what small pages add to each of nine, over what they add to
/// the first.
pub(super) fn walks_in_sequence(evidence: &Evidence<'_>) -> Found {
    let (small, huge) = (small(evidence)?, huge(evidence)?);
    let added = |accesses| combined(burst(small, accesses)?, burst(huge, accesses)?, Estimate::minus);
    let (lone, ten) = (added(1)?, added(10)?);
    let (one, _) = resolved(&lone)?;
    if one.lo <= 0.0 {
        return not_identifiable("small pages do not slow a lone access down here");
    }
    let further = combined(&ten, &lone, |ten, one| ten.minus(one).scaled(1.0 / 9.0))?;
    let (further, disturbed) = resolved(&further)?;
    // `over` takes positive figures, and this one may be none.
    let least = (further.lo / one.lo).min(further.lo / one.hi);
    let most = (further.hi / one.lo).max(further.hi / one.hi);
    let found = Estimate::new(further.value / one.value, least, most);
    Ok(Quantity::modelled(found, Unit::Ratio).disturbed_by(disturbed))
}

pub(super) fn constant_over_access(evidence: &Evidence<'_>) -> Found {
    let line = &huge(evidence)?.line;
    let (constant, _) = resolved(&line.constant.ticks)?;
    if constant.lo <= 0.0 {
        let (access, disturbed) = resolved(&line.per_access.ticks)?;
        let found = constant.scaled(1.0 / access.value);
        return Ok(Quantity::modelled(found, Unit::Ratio).disturbed_by(disturbed));
    }
    ratio(&line.constant.ticks, &line.per_access.ticks)
}

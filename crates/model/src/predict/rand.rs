//! `rand(AREA)`: independent loads, each of a line drawn at random.
//!
//! A line drawn at random is in a cache with the probability `size/area`, whatever the cache
//! replaces. That is what tells it from a chase, whose fixed order defeats a cache that replaces
//! the oldest line. What an access from the outermost level costs grows with the area, as TLBs are
//! missed more often: the latency curve tells it.
//!
//! With `instructions`, the core looks ahead over a few accesses only. The first load of each such
//! group waits in full, for the group before it must leave the re-order buffer; the others follow
//! at the rate of independent loads. The slowest level of a group tells how long its first waits.

use super::figure::{Figure, Served, Source, largest, product, quotient, sum};
use super::known::{Known, MEMORY, lacks};
use super::{chase, split};
use crate::pattern::Access;
use records::run::Refused;
use units::Estimate;

pub(crate) fn figure(known: &Known<'_>, access: &Access) -> Result<Figure, Refused> {
    let area = access.area.0 as f64;
    let chased = chase::figure(known, access)?;
    let (alone, source, why) = match drawn(known, area, chased.time) {
        Some(levels) => {
            let why = "sizes and latencies of the record's levels; the outermost by the latency curve";
            (levels, Source::Levels, why.to_owned())
        }
        None => (chased.levels.clone(), chased.source, format!("as a chase, by {}", chased.why)),
    };
    let mut remarks = chased.remarks;
    let at_once = known.at_once(access, &chased.pages)?;
    let faster = if at_once > 1.0 {
        let faster = known.speedup(at_once, &chased.pages);
        faster.ok_or_else(|| lacks(access, "figures of loads at once", "mlp"))?
    } else {
        Estimate::exact(1.0)
    };
    let sizes = known.levels.iter();
    let floor = |name: &str| {
        let level = sizes.clone().find(|level| level.name == name)?;
        known.line_time(level.size.min(area))
    };
    let ahead = known.ahead(access, &chased.pages);
    if access.options.instructions.is_some() && ahead.is_none() {
        remarks.push(NOT_AHEAD.to_owned());
    }
    let first = ahead.map_or(Estimate::exact(0.0), first_of_group);
    // The slowest level first: groups begin with its loads while there are any.
    let mut left = first;
    let mut levels: Vec<Served> = Vec::new();
    for served in alone.into_iter().rev() {
        let overlapped = quotient(served.time, faster);
        let least = floor(&served.level).filter(|_| at_once > 1.0);
        let least = product(served.share, least.unwrap_or(Estimate::exact(0.0)));
        let own = smallest(left, served.share);
        left = Estimate::new(left.value - own.value, left.lo - own.lo, left.hi - own.hi);
        // A level without a share has no time either.
        let part = smallest(quotient(own, served.share), Estimate::exact(1.0));
        levels.push(Served { time: waiting(part, served.time, largest([overlapped, least])), ..served });
    }
    levels.reverse();
    let time = if levels.is_empty() {
        waiting(first, chased.time, quotient(chased.time, faster))
    } else {
        sum(levels.iter().map(|served| served.time))
    };
    let memory = levels.iter().find(|served| served.level == MEMORY);
    let from_memory = memory.map_or(chased.from_memory, |served| known.line() as f64 * served.share.value);
    let waits = memory.map_or(0.0, |served| served.time.value);
    Ok(Figure { time, levels, source, why, pages: chased.pages, from_memory, waits, remarks })
}

pub(crate) const NOT_AHEAD: &str =
    "how far the core looks ahead is not in the record: taken as far enough for all loads at once";

/// The share of accesses that are the first of as many as the core looks ahead over.
pub(crate) fn first_of_group(ahead: Estimate) -> Estimate {
    smallest(quotient(Estimate::exact(1.0), ahead), Estimate::exact(1.0))
}

/// The time if this part of the loads waits in full and the others overlap.
pub(crate) fn waiting(part: Estimate, alone: Estimate, overlapped: Estimate) -> Estimate {
    let mix = |part: f64, alone: f64, overlapped: f64| overlapped + part * (alone - overlapped).max(0.0);
    Estimate::new(
        mix(part.value, alone.value, overlapped.value),
        mix(part.lo, alone.lo, overlapped.lo),
        mix(part.hi, alone.hi, overlapped.hi),
    )
}

fn smallest(a: Estimate, b: Estimate) -> Estimate {
    Estimate::new(a.value.min(b.value), a.lo.min(b.lo), a.hi.min(b.hi))
}

/// What levels serve of lines drawn at random, one at a time.
fn drawn(known: &Known<'_>, area: f64, chased: Estimate) -> Option<Vec<Served>> {
    let outermost = known.level_of(area)?;
    let mut from = 0.0;
    let served = known.levels[..=outermost].iter().enumerate().map(|(place, level)| {
        let to = level.size.min(area);
        let share = Estimate::exact((to - from) / area);
        from = to;
        let cost = if place == outermost { largest([level.latency, chased]) } else { level.latency };
        Served { level: level.name.clone(), share, time: product(share, cost) }
    });
    Some(split::joined(served))
}

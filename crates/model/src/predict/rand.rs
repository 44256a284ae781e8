//! Loads of lines drawn at random: `rand(AREA)` and `rmw(AREA)`, whose accesses do not wait for
//! each other, and the walks `tree(AREA, FANOUT, NODE)` and `search(AREA)`, whose steps do.
//!
//! A line drawn at random is in a cache with the probability that `held.rs` tells: `size/area`
//! where all lines are alike, whatever the cache replaces. That is what tells it from a chase,
//! whose fixed order defeats a cache that replaces the oldest line. What an access from the
//! outermost level costs grows with the area, as TLBs are missed more often: the latency curve
//! tells it.
//!
//! The lines of a node are loaded at once. Walks are one after the other unless `mlp` says
//! otherwise.
//!
//! With `instructions`, the core looks ahead over a few accesses only. The first load of each such
//! group waits in full, for the group before it must leave the re-order buffer; the others follow
//! at the rate of independent loads. The slowest level of a group tells how long its first waits.
//!
//! Where lines are written, each that comes from memory also drives one out that was written. A
//! write-back delays no load of its own, so it costs what the latency curve of written lines says,
//! and what passes that write take longer than those that read. Where all slots for misses are
//! taken, write-backs may take as many: the interval reaches to that.

use super::figure::{Figure, Served, Source, largest, product, quotient, sum};
use super::known::{Known, MEMORY, lacks};
use super::lines::{self, Lines};
use super::neighbours::Filled;
use super::{chase, held, split};
use crate::pattern::{Access, Kind};
use records::machine::StreamKind;
use records::run::Refused;
use units::Estimate;

pub(crate) fn figure(
    known: &Known<'_>,
    access: &Access,
    others: &[Lines],
    filled: Option<Filled>,
) -> Result<Figure, Refused> {
    let own = lines::of(access, known.line());
    let all: Vec<Lines> = own.iter().chain(others).copied().collect();
    let larger = Access { area: held::between_loads(access, others, known.line()), ..access.clone() };
    let area = larger.area.0 as f64;
    let chased = chase::figure(known, &larger)?;
    let written = access.kind == Kind::Rmw;
    let (alone, source, why) = match drawn(known, &own, &all, chased.time, filled) {
        Some(levels) => {
            let why = "sizes and latencies of the record's levels; the outermost by the latency curve";
            (levels, Source::Levels, why.to_owned())
        }
        None => (chased.levels.clone(), chased.source, format!("as a chase, by {}", chased.why)),
    };
    let mut remarks = chased.remarks;
    if written && known.written(area).is_none() {
        remarks
            .push("lines that are written were not measured apart: taken to come as those read".to_owned());
    }
    let longer = |area: f64| known.written(area).filter(|_| written).unwrap_or(Estimate::exact(1.0));
    let at_once = known.at_once(access, &chased.pages)?;
    let faster = if at_once > 1.0 {
        let faster = known.speedup(at_once, &chased.pages);
        faster.ok_or_else(|| lacks(access, "figures of loads at once", "mlp"))?
    } else {
        Estimate::exact(1.0)
    };
    let size =
        |name: &str| known.levels.iter().find(|level| level.name == name).map(|level| level.size.min(area));
    let pass = if written { StreamKind::Write } else { StreamKind::Read };
    let floor = |name: &str| known.line_time_of(pass, size(name)?).or_else(|| known.line_time(size(name)?));
    let ahead = known.ahead(access, &chased.pages);
    if access.options.instructions.is_some() && ahead.is_none() {
        remarks.push(NOT_AHEAD.to_owned());
    }
    let nodes = access.lines(known.line());
    let first = ahead.map_or(Estimate::exact(0.0), |ahead| first_of_group(ahead.scaled(nodes)));
    // The slowest level first: groups begin with its loads while there are any.
    let mut left = first;
    let mut levels: Vec<Served> = Vec::new();
    for served in alone.into_iter().rev() {
        let alone = product(served.time, longer(size(&served.level).unwrap_or(area)));
        let mut overlapped = quotient(alone, faster);
        if written && served.level == MEMORY && access.options.mlp.is_none() {
            overlapped.hi *= TRANSFERS_OF_WRITTEN;
        }
        let least = floor(&served.level).filter(|_| at_once > 1.0);
        let least = product(served.share, least.unwrap_or(Estimate::exact(0.0)));
        let own = smallest(left, served.share);
        left = Estimate::new(left.value - own.value, left.lo - own.lo, left.hi - own.hi);
        // The larger a level's share, the smaller is the part of it that waits: the bounds belong
        // together, and are not in order. A level without a share has no time.
        let part = [own.value / served.share.value, own.lo / served.share.lo, own.hi / served.share.hi];
        let [value, lo, hi] = part.map(|part| part.min(1.0));
        let part = Estimate { value, lo, hi };
        levels.push(Served { time: waiting(part, alone, largest([overlapped, least])), ..served });
    }
    levels.reverse();
    let time = if levels.is_empty() {
        let alone = product(chased.time, longer(area));
        waiting(first, alone, quotient(alone, faster))
    } else {
        sum(levels.iter().map(|served| served.time))
    };
    let loads = lines::loads(&own);
    for served in &mut levels {
        served.time = served.time.scaled(loads);
    }
    let memory = levels.iter().find(|served| served.level == MEMORY);
    let from_memory = memory.map_or(chased.from_memory, |served| known.line() as f64 * served.share.value);
    let transfers = if written { TRANSFERS_OF_WRITTEN } else { 1.0 };
    let waits = memory.map_or(0.0, |served| served.time.value);
    Ok(Figure {
        time: time.scaled(loads),
        levels,
        source,
        why,
        pages: chased.pages,
        from_memory: from_memory * loads * transfers,
        waits,
        remarks,
    })
}

/// A line that is written comes from memory and goes back.
const TRANSFERS_OF_WRITTEN: f64 = 2.0;

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

/// What levels serve of an access's own lines, one load at a time, while caches hold those of all.
fn drawn(
    known: &Known<'_>,
    own: &[Lines],
    all: &[Lines],
    chased: Estimate,
    filled: Option<Filled>,
) -> Option<Vec<Served>> {
    let shares = held::mean(own, &held::served(known, all, filled)?[..own.len()]);
    let outermost = shares.len() - 1;
    let served = known.levels.iter().zip(shares).enumerate().map(|(place, (level, share))| {
        let cost = if place == outermost { largest([level.latency, chased]) } else { level.latency };
        Served { level: level.name.clone(), share, time: product(share, cost) }
    });
    Some(split::joined(served))
}

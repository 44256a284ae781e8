//! `remote=SHARE`: accesses to memory of another node take longer, by the ratio that the numa
//! experiment measured of loads one after the other.

use super::figure::{Figure, product, quotient, sum};
use super::known::{Known, MEMORY, cannot, lacks};
use crate::pattern::Access;
use records::machine::PlacementKind;
use records::run::Refused;
use units::Estimate;

pub(crate) fn applied(known: &Known<'_>, access: &Access, mut figure: Figure) -> Result<Figure, Refused> {
    let Some(share) = access.options.remote.filter(|share| *share > 0.0) else { return Ok(figure) };
    let numa = known.numa().ok_or_else(|| lacks(access, "figures of other nodes", "numa"))?;
    let latency = |kind: PlacementKind| {
        let placed = numa.placements.iter().find(|placement| placement.kind == kind && placement.as_asked)?;
        placed.latency.ns.estimate().filter(|latency| latency.lo > 0.0)
    };
    let (Some(local), Some(remote)) = (latency(PlacementKind::Local), latency(PlacementKind::Remote)) else {
        return Err(cannot(access, "no memory of another node was measured on this machine"));
    };
    let longer = quotient(remote, local);
    let factor = sum([Estimate::exact(1.0 - share), longer.scaled(share)]);
    let Some(memory) = figure.levels.iter_mut().find(|served| served.level == MEMORY) else {
        figure.remarks.push("no level of this access is memory: its remote share changes nothing".to_owned());
        return Ok(figure);
    };
    memory.time = product(memory.time, factor);
    if figure.waits > 0.0 {
        figure.waits = memory.time.value;
    }
    figure.time = sum(figure.levels.iter().map(|served| served.time));
    Ok(figure)
}

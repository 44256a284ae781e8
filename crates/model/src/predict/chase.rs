//! `chase(AREA)`: each load takes its address from the one before. Where nodes have several lines,
//! all of a node's are loaded at once.

use super::figure::{Figure, Served, Source, largest, product, quotient, widened};
use super::known::{Known, MEMORY, lacks};
use super::split;
use crate::latency;
use crate::pattern::Access;
use records::machine::Pattern;
use records::run::Refused;
use units::{Bytes, Estimate};

/// The fit must be this near to the measured curve at the area that is asked for.
const NEAR: f64 = 0.05;

/// Of whole nodes.
pub(crate) fn of_nodes(known: &Known<'_>, access: &Access) -> Result<Figure, Refused> {
    let mut figure = figure(known, access)?;
    let lines = access.lines(known.line());
    if lines > 1.0 {
        let faster = known.speedup(lines, &figure.pages);
        let faster = faster.ok_or_else(|| lacks(access, "figures of loads at once", "mlp"))?;
        let one = Estimate::exact(1.0);
        let longer = largest([quotient(one.scaled(lines), faster), one]);
        figure.time = product(figure.time, longer);
        for served in &mut figure.levels {
            served.time = product(served.time, longer);
        }
        figure.waits *= longer.value;
        figure.from_memory *= lines;
    }
    Ok(figure)
}

/// Of one line.
pub(crate) fn figure(known: &Known<'_>, access: &Access) -> Result<Figure, Refused> {
    let area = access.area.0 as f64;
    let (curve, points, remark) = known.curve(access, Pattern::Random)?;
    let mut remarks: Vec<String> = remark.into_iter().collect();
    let measured = points.beyond(area);
    if area > points.largest() {
        let last = Bytes(points.largest() as u64);
        remarks.push(format!(
            "the largest area measured is {last}: {} is what follows if all behind it is served as its last half",
            access.area
        ));
    }
    let pages = curve.pages.asked.clone();
    let line = known.line() as f64;
    let from_curve = |why: String| {
        let levels = split::by_time(&known.levels, measured);
        let from_memory = line * memory_share(&levels, known, area);
        (measured, levels, Source::Curve, why, from_memory)
    };
    let guest = known.machine.host.virtualization.is_guest();
    let (time, levels, source, why, from_memory) = match latency::fitted(curve, None, guest) {
        None => from_curve("the measured curve: too few points for a fit of levels".to_owned()),
        Some(fitted) if !fitted.fit.is_good() => {
            let off = 100.0 * fitted.fit.held_back.median;
            let p90 = 100.0 * fitted.fit.held_back.p90;
            from_curve(format!(
                "the measured curve: fitted levels are off by {off:.0}% in the median and {p90:.0}% at p90 in \
                 areas held back"
            ))
        }
        Some(fitted) => {
            let found = fitted.time(area, 1.0);
            let off = (found.value / measured.value - 1.0).abs();
            if off > NEAR && area <= points.largest() {
                from_curve(format!(
                    "the measured curve: the fitted levels are off by {:.0}% at this area",
                    100.0 * off
                ))
            } else {
                let time = widened(found, fitted.fit.held_back.p90);
                let levels = fitted.levels(area, 1.0);
                let served = levels.iter().enumerate().map(|(place, &(share, cost))| {
                    let number = || format!("level {}", place + 1);
                    Served {
                        level: split::name_of(&known.levels, cost).map_or_else(number, str::to_owned),
                        share: Estimate::exact(share),
                        time: widened(Estimate::exact(share * cost), fitted.fit.held_back.p90),
                    }
                });
                let levels = split::joined(served);
                let from_memory = line * memory_share(&levels, known, area);
                (time, levels, Source::Fit, "the fitted levels".to_owned(), from_memory)
            }
        }
    };
    let waits = levels.iter().find(|served| served.level == MEMORY).map_or(0.0, |memory| memory.time.value);
    Ok(Figure { time, levels, source, why, pages, from_memory, waits, remarks })
}

/// The share that memory serves; where levels are not known by name, all or nothing.
fn memory_share(levels: &[Served], known: &Known<'_>, area: f64) -> f64 {
    match levels.iter().find(|served| served.level == MEMORY) {
        Some(memory) => memory.share.value,
        None => f64::from(u8::from(levels.is_empty() && known.is_in_memory(area))),
    }
}

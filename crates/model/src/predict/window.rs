//! `window(SIZE, AREA)`: runs of consecutive reads and writes, each at a random place.

use super::curve::MeasuredCurve;
use super::figure::{Figure, Served, Source, widened};
use super::known::{Known, lacks};
use super::split;
use crate::pattern::Access;
use crate::windows;
use records::machine::WindowCurve;
use records::run::Refused;
use units::{Bytes, Estimate};

pub(crate) fn figure(known: &Known<'_>, access: &Access, size: Bytes) -> Result<Figure, Refused> {
    let lacks = || lacks(access, "windows", "windows");
    let windows = known.windows().ok_or_else(lacks)?;
    let plain: Vec<&WindowCurve> = windows.curves.iter().filter(|curve| !curve.vectorised).collect();
    if plain.is_empty() {
        return Err(lacks());
    }
    let (kind, remark) = known.with_pages(access, "windows", plain.clone(), |curve| &curve.pages.asked)?;
    let pages = kind.pages.asked.clone();
    let (area, line) = (access.area.0 as f64, known.line() as f64);
    let lines = size.0 as f64 / line;
    let own = plain.into_iter().filter(|curve| curve.pages.asked == pages);
    let measured = surface(own.clone(), area, size.0 as f64).ok_or_else(lacks)?;
    let mut remarks: Vec<String> = remark.into_iter().collect();
    let largest = own.flat_map(|curve| &curve.points).map(|point| point.area.0).max().unwrap_or(0);
    if access.area.0 > largest {
        remarks.push(format!("the largest area measured is {}", Bytes(largest)));
    }
    let guest = known.machine.host.virtualization.is_guest();
    let fitted = windows::fitted(windows, &pages, false, None, guest);
    let good = fitted.as_ref().filter(|fitted| fitted.fit.is_good());
    let (time, levels, source, why) = if let Some(fitted) = good {
        let off = fitted.fit.held_back.p90;
        let served = fitted.levels(area, lines).into_iter().enumerate().map(|(place, (share, cost))| {
            let number = || format!("level {}", place + 1);
            // Lines of a window are fetched side by side, so costs do not name a level.
            Served {
                level: number(),
                share: Estimate::exact(share),
                time: widened(Estimate::exact(share * cost), off),
            }
        });
        let levels = split::joined(served);
        (widened(fitted.time(area, lines), off), levels, Source::Fit, "the fitted levels".to_owned())
    } else {
        let why = fitted.as_ref().map_or_else(
            || "too few points for a fit of levels".to_owned(),
            |fitted| {
                format!(
                    "fitted levels are off by {:.0}% at p90 in areas held back",
                    100.0 * fitted.fit.held_back.p90
                )
            },
        );
        (measured, Vec::new(), Source::Curve, format!("the measured windows: {why}"))
    };
    let from_memory = if known.is_in_memory(area) { size.0 as f64 } else { 0.0 };
    Ok(Figure { time, levels, source, why, pages, from_memory, waits: 0.0, remarks })
}

/// Between the windows and the areas that were measured.
fn surface<'a>(curves: impl Iterator<Item = &'a WindowCurve>, area: f64, size: f64) -> Option<Estimate> {
    let mut all: Vec<(f64, Estimate)> = curves
        .filter_map(|curve| {
            let points = curve.points.iter();
            let points = points.filter_map(|p| Some((p.area.0 as f64, p.cost.ns.estimate()?)));
            Some((curve.window.0 as f64, MeasuredCurve::new(points)?.beyond(area)))
        })
        .collect();
    if let &[(only, time)] = &all[..] {
        all.push((2.0 * only, time.scaled(2.0)));
    }
    Some(MeasuredCurve::new(all)?.in_proportion(size))
}

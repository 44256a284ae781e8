//! A fit as it is shown and written: quantities with intervals.

use crate::identify::{Identifiable, identify};
use crate::points::Points;
use crate::profile;
use crate::sample::Sample;
use crate::staircase::{self, Chosen, Fixed};
use crate::walks::Tables;
use serde::Serialize;
use units::{Estimate, Quantity, Unit, quantile_sorted};

/// The most that areas held back may be off by for a fit that describes its points.
const GOOD: Residual = Residual { median: 0.05, p90: 0.10 };

/// Of a load or of a window.
const SANE_NS: std::ops::Range<f64> = 1e-3..1e12;

/// The experiment whose points were fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    Windows,
    Latency,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    pub of: Of,
    /// The pages that the memory had, as they were asked for.
    pub pages: String,
    pub vectorised: bool,
    /// From the fastest on.
    pub levels: Vec<Level>,
    /// Relative, of the points that the fit was made to.
    pub residual: Residual,
    /// Relative, of each half of the areas under a fit to the other half.
    pub held_back: Residual,
    /// Entries of page tables that spill as the area grows; none where the points do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walks: Option<WalksOf>,
    /// By how much the information criterion is worse with one level less, and with one more.
    pub one_level_less: Option<f64>,
    pub one_level_more: Option<f64>,
    /// Whether the points tell costs and sizes apart.
    pub identifiable: Identifiable,
}

#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// Where the next level begins: this level's size and that of all before it.
    pub size: Quantity,
    /// The TLB level whose measured reach is this size: then it is this TLB's misses that cost, or
    /// a cache of the same size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb: Option<u32>,
    /// Of a load, or of a line of a window, in this level.
    pub cost: Quantity,
    /// Of a window, however many lines it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_window: Option<Quantity>,
}

/// What an access pays for page tables that no longer fit the caches.
#[derive(Clone, Debug, Serialize)]
pub struct WalksOf {
    pub tables: Tables,
    /// Entries of theirs that an access loads, in the mean.
    pub loads: Quantity,
    /// What they add to an access of the largest area.
    pub cost: Quantity,
    /// By how much the information criterion is worse without this term.
    pub without: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Residual {
    pub median: f64,
    pub p90: f64,
}

impl Fit {
    /// Whether areas may be predicted by it.
    pub fn is_good(&self) -> bool {
        self.held_back.median <= GOOD.median && self.held_back.p90 <= GOOD.p90
    }
}

impl Residual {
    pub(crate) fn of(mut relative: Vec<f64>) -> Self {
        relative.sort_by(f64::total_cmp);
        Self { median: quantile_sorted(&relative, 0.5), p90: quantile_sorted(&relative, 0.9) }
    }
}

/// How much memory a level of the TLB translates, as the tlb experiment found it, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) level: u32,
    pub(crate) bytes: Estimate,
}

/// A fit that can be asked for areas.
pub(crate) struct Fitted {
    pub(crate) fit: Fit,
    chosen: Chosen,
}

impl Fitted {
    /// The time of an access in the mean over this area.
    pub(crate) fn time(&self, area: f64, lines: f64) -> Estimate {
        let all = self.chosen.resampled.iter().map(|fit| fit.time(area, lines)).collect();
        interval(self.chosen.best.time(area, lines), all)
    }

    /// For each level that has a part of this area: its share and what an access to it costs.
    pub(crate) fn levels(&self, area: f64, lines: f64) -> Vec<(f64, f64)> {
        let best = &self.chosen.best;
        let ends = best.breaks.iter().copied().chain([f64::INFINITY]);
        let mut from = 0.0;
        let levels = ends.zip(best.costs()).map(|(end, (fixed, each_line))| {
            let share = ((end.min(area) - from) / area).max(0.0);
            from = end;
            // Walks are a part of every access, whatever serves its data.
            (share, fixed + each_line * lines + best.walks_time(area))
        });
        levels.filter(|(share, _)| *share > 0.0).collect()
    }
}

fn interval(value: f64, mut all: Vec<f64>) -> Estimate {
    all.sort_by(f64::total_cmp);
    Estimate::new(value, quantile_sorted(&all, 0.025), quantile_sorted(&all, 0.975))
}

/// The fit to these points, with walks of these tables if they may be seen; `None` if the points
/// are too few.
pub(crate) fn fit(
    of: Of,
    pages: &str,
    vectorised: bool,
    samples: &[Sample],
    reaches: &[Reach],
    tables: Option<Tables>,
) -> Option<Fitted> {
    if !samples.iter().all(is_sane) {
        return None;
    }
    let chosen = staircase::choose(samples, tables)?;
    let points = Points::new(samples);
    let level = |level| describe(of, &points, &chosen, level, reaches);
    let levels: Vec<Level> = (0..chosen.best.steps.len()).map(level).collect();
    let mut remarks = Vec::new();
    let tlb = levels.iter().filter_map(|level| level.tlb).map(|level| level.to_string()).collect::<Vec<_>>();
    if !tlb.is_empty() {
        remarks.push(format!(
            "a size is the reach of TLB level {}: what costs behind it are its misses, or those of a cache of this size",
            tlb.join(" and of level ")
        ));
    } else if of == Of::Latency && reaches.is_empty() {
        remarks.push(
            "a cache and a TLB add terms of the same form; a curve of one kind of page does not tell them apart"
                .to_owned(),
        );
    }
    let fit = Fit {
        of,
        pages: pages.to_owned(),
        vectorised,
        levels,
        residual: Residual::of(chosen.best.relative_residuals(samples)),
        held_back: Residual::of(chosen.held_back.clone()),
        walks: walks(&points, &chosen, tables),
        one_level_less: chosen.one_less,
        one_level_more: chosen.one_more,
        identifiable: identify(samples, &chosen.best, remarks),
    };
    Some(Fitted { fit, chosen })
}

/// Of memory: damaged records may hold any number.
fn is_sane(sample: &Sample) -> bool {
    sample.area >= 1.0 && SANE_NS.contains(&sample.time)
}

fn walks(points: &Points, chosen: &Chosen, tables: Option<Tables>) -> Option<WalksOf> {
    let (tables, without) = (tables?, chosen.no_walks?);
    let best = &chosen.best;
    let loads = best.walks.loads;
    let (lo, hi) = profile::interval(points, best, loads, |at| Fixed::Loads { at });
    let largest = points.range().1;
    let all = chosen.resampled.iter().map(|fit| fit.walks_time(largest)).collect();
    Some(WalksOf {
        tables,
        loads: Quantity::modelled(Estimate::new(loads, lo, hi), Unit::Count),
        cost: Quantity::modelled(interval(best.walks_time(largest), all), Unit::Nanos),
        without,
    })
}

fn describe(of: Of, points: &Points, chosen: &Chosen, level: usize, reaches: &[Reach]) -> Level {
    let cost = |of_lines: bool| {
        let part = |cost: (f64, f64)| if of_lines { cost.1 } else { cost.0 };
        let value = part(chosen.best.costs()[level]);
        let all = chosen.resampled.iter().map(|fit| part(fit.costs()[level])).collect();
        let mut found = interval(value, all);
        if value > found.hi / 2.0 {
            // Where it is not near zero, the likelihood tells more than the resampled residuals.
            let fixed = |at: f64| Fixed::Cost { level, of_lines, at };
            let (lo, hi) = profile::interval(points, &chosen.best, value, fixed);
            found = Estimate::new(value, lo, hi);
        }
        Quantity::modelled(found, Unit::Nanos)
    };
    let size = match (chosen.best.breaks.get(level), chosen.confirmed.get(level)) {
        (Some(&at), Some(true)) => {
            let (lo, hi) = profile::interval(points, &chosen.best, at, |at| Fixed::Break { k: level, at });
            Quantity::modelled(Estimate::new(at, lo, hi), Unit::Bytes)
        }
        (Some(_), _) => Quantity::unresolved("not detected: the halves of the areas do not agree on it"),
        (None, _) => Quantity::unresolved("no end within the areas measured"),
    };
    let tlb = size.estimate().and_then(|size| reaches.iter().find(|reach| reach.bytes.overlaps(&size)));
    let tlb = tlb.map(|reach| reach.level);
    match of {
        Of::Windows => Level { size, tlb, cost: cost(true), per_window: Some(cost(false)) },
        Of::Latency => Level { size, tlb, cost: cost(false), per_window: None },
    }
}

//! What a record knows of its machine, as predictions ask for it.

use super::curve::MeasuredCurve;
use super::figure::{product, quotient};
use crate::bends;
use crate::fit::Residual;
use crate::hinge;
use crate::pattern::{Access, Kind, USUAL_LINE};
use records::host::ThpMode;
use records::machine::{self as record, Curve, Machine, MlpOfPages, Pattern, StreamKind, Windows};
use records::run::Refused;
use units::Estimate;

/// Why there is no prediction of an access.
pub(crate) fn cannot(access: &Access, why: impl Into<String>) -> Refused {
    Refused { what: access.text.clone(), why: why.into(), would_help: None }
}

/// The same, since the record lacks an experiment.
pub(crate) fn lacks(access: &Access, what: &str, experiment: &str) -> Refused {
    let would_help = Some(format!("'gleaner measure {experiment}' measures it"));
    Refused { would_help, ..cannot(access, format!("the record has no {what}")) }
}

/// How many times as large as the largest area that was measured one may be, where a curve on other
/// pages reaches farther.
const MOST_BEYOND: f64 = 16.0;
/// At p90, the lines through latency beside traffic; else they are not used.
const MOST_OFF: f64 = 0.10;

/// The name of the level that is memory.
pub(crate) const MEMORY: &str = "DRAM";

/// A level of the record whose latency is resolved.
#[derive(Clone, Debug)]
pub(crate) struct KnownLevel {
    pub(crate) name: String,
    /// In bytes; memory has no end.
    pub(crate) size: f64,
    /// In bytes, as the processor says.
    pub(crate) claimed: Option<f64>,
    /// In nanoseconds.
    pub(crate) latency: Estimate,
}

pub(crate) struct Known<'a> {
    pub(crate) machine: &'a Machine,
    /// Nearest first.
    pub(crate) levels: Vec<KnownLevel>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Self {
        let mut levels: Vec<KnownLevel> = Vec::new();
        for level in &machine.levels {
            let Some(latency) = level.latency.ns.estimate().filter(|e| e.lo > 0.0) else { continue };
            let is_memory = level.name == MEMORY;
            let claimed = level.size_claimed.value();
            let Some(size) = (if is_memory { Some(f64::INFINITY) } else { level.size.value().or(claimed) })
            else {
                continue;
            };
            if levels.last().is_none_or(|l| l.size < size && l.latency.value < latency.value) {
                levels.push(KnownLevel { name: level.name.clone(), size, claimed, latency });
            }
        }
        Self { machine, levels }
    }

    pub(crate) fn latencies(&self) -> Option<&'a record::LatencyCurves> {
        self.machine.experiments.latency.as_ref()?.result.as_ref()
    }

    pub(crate) fn windows(&self) -> Option<&'a Windows> {
        self.machine.experiments.windows.as_ref()?.result.as_ref()
    }

    pub(crate) fn stride(&self) -> Option<&'a record::Stride> {
        self.machine.experiments.stride.as_ref()?.result.as_ref()
    }

    pub(crate) fn bandwidth(&self) -> Option<&'a record::Bandwidth> {
        self.machine.experiments.bandwidth.as_ref()?.result.as_ref()
    }

    pub(crate) fn numa(&self) -> Option<&'a record::Numa> {
        self.machine.experiments.numa.as_ref()?.result.as_ref()
    }

    pub(crate) fn line(&self) -> u64 {
        let of_latency = self.latencies().map(|l| l.line.0);
        of_latency.or_else(|| self.windows().map(|w| w.line.0)).filter(|&line| line > 0).unwrap_or(USUAL_LINE)
    }

    /// The pages that an ordinary program of this host gets.
    fn usual_pages(&self) -> &'static str {
        match self.machine.host.pages.thp.effective().value() {
            Some(ThpMode::Always) => "thp",
            _ => "4K",
        }
    }

    /// Of those that there are, the one with the wanted pages: the access's own, which must be
    /// there, or those of ordinary programs, or as a last resort the first. A remark says so where
    /// it is the last.
    pub(crate) fn with_pages<T>(
        &self,
        access: &Access,
        what: &str,
        all: Vec<T>,
        pages: impl Fn(&T) -> &str,
    ) -> Result<(T, Option<String>), Refused> {
        let wanted = access.options.pages.as_deref().unwrap_or_else(|| self.usual_pages());
        let mut kinds: Vec<String> = Vec::new();
        for kind in all.iter().map(&pages) {
            if !kinds.iter().any(|known| known == kind) {
                kinds.push(kind.to_owned());
            }
        }
        let place = all.iter().position(|one| pages(one) == wanted);
        if place.is_none() && access.options.pages.is_some() {
            let why = format!(
                "the record has {what} with {} pages only, not with {wanted} pages",
                kinds.join(", ")
            );
            return Err(cannot(access, why));
        }
        let chosen = all.into_iter().nth(place.unwrap_or(0));
        let chosen = chosen.ok_or_else(|| cannot(access, format!("the record has no {what}")))?;
        let remark = place.is_none().then(|| {
            format!(
                "ordinary programs have {wanted} pages on this host; {what} is on {} pages",
                pages(&chosen)
            )
        });
        Ok((chosen, remark))
    }

    /// The latency curve of reads in this order.
    pub(crate) fn curve(
        &self,
        access: &Access,
        pattern: Pattern,
    ) -> Result<(&'a Curve, MeasuredCurve, Option<String>), Refused> {
        let fits = |c: &&Curve| c.pattern == pattern && c.access == record::Access::Read;
        let all = self.latencies().into_iter().flat_map(|l| &l.curves).filter(fits);
        let mut usable: Vec<_> = all.filter_map(|curve| Some((curve, over_size(curve)?))).collect();
        if usable.is_empty() {
            return Err(lacks(access, "latencies over size", "latency"));
        }
        // On a busy host the large areas of one kind of pages may all be void: what is left of that
        // curve says less of a large area than another kind's.
        let farthest = usable.iter().map(|(_, points)| points.largest()).fold(0.0, f64::max);
        let far_enough = (access.area.0 as f64).min(farthest) / MOST_BEYOND;
        if access.options.pages.is_none() {
            usable.retain(|(_, points)| points.largest() >= far_enough);
        }
        let ((curve, points), remark) =
            self.with_pages(access, "the latency over size", usable, |(curve, _)| &curve.pages.asked)?;
        Ok((curve, points, remark))
    }

    /// How many times as long as reads of lines at random those take that write the lines, too.
    pub(crate) fn written(&self, area: f64) -> Option<Estimate> {
        let curves = &self.latencies()?.curves;
        let random =
            |access| curves.iter().filter(move |c| c.pattern == Pattern::Random && c.access == access);
        random(record::Access::ReadModifyWrite).find_map(|written| {
            let mut reads = random(record::Access::Read);
            let read = reads.find(|read| read.pages.asked == written.pages.asked)?;
            let (written, read) = (over_size(written)?, over_size(read)?);
            let area = area.min(written.largest()).min(read.largest());
            Some(quotient(written.at(area), read.at(area)))
        })
    }

    /// The level that a whole area fits into: its place.
    pub(crate) fn level_of(&self, area: f64) -> Option<usize> {
        self.levels.iter().position(|level| area <= level.size)
    }

    /// Whether memory serves an area that is read again and again in the same order.
    pub(crate) fn is_in_memory(&self, area: f64) -> bool {
        self.levels.iter().all(|level| level.size < area || level.size == f64::INFINITY)
    }

    /// Nanoseconds for a line that one CPU reads in order from an area of this size.
    pub(crate) fn line_time(&self, area: f64) -> Option<Estimate> {
        self.line_time_of(StreamKind::Read, area)
    }

    /// The same for any operation.
    pub(crate) fn line_time_of(&self, operation: StreamKind, area: f64) -> Option<Estimate> {
        let own = |s: &&record::StreamRate| s.operation == operation && s.threads == 1;
        let streams = self.bandwidth()?.streams.iter().filter(own);
        let line = self.line() as f64;
        let times = streams.filter_map(|s| {
            let rate = s.rate.estimate().filter(|rate| rate.lo > 0.0)?;
            Some((s.size.0 as f64, quotient(Estimate::exact(line * 1e9), rate)))
        });
        Some(MeasuredCurve::new(times)?.at(area))
    }

    /// How many times longer a load from memory takes beside traffic of this many bytes a second in
    /// all, by the lines fitted to latency beside traffic; `None` where they do not describe it.
    pub(crate) fn loaded(&self, rate: f64) -> Option<f64> {
        let curves = &self.bandwidth()?.loaded;
        let curve = curves.iter().find(|c| c.traffic == StreamKind::Read).or_else(|| curves.first())?;
        let points = bends::loaded(curve);
        let hinge = hinge::fit(&points)?.hinge;
        if Residual::of(hinge.relative_residuals(&points)).p90 > MOST_OFF {
            return None;
        }
        let alone = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
        let rate = (rate / bends::GIGA).clamp(alone, most);
        Some((hinge.y(rate) / hinge.y(alone)).max(1.0))
    }

    fn mlp(&self, pages: &str) -> Option<&'a MlpOfPages> {
        let kinds = &self.machine.experiments.mlp.as_ref()?.result.as_ref()?.kinds;
        kinds.iter().find(|kind| kind.pages.asked == pages).or_else(|| kinds.first())
    }

    /// How many of an access's independent loads are under way at once: as it says itself, or as
    /// many as this core can have. Walks are one after the other if they do not say otherwise, with
    /// the lines of a node at once. One at a time, in place of a number that is not known, would be
    /// many times too slow.
    pub(crate) fn at_once(&self, access: &Access, pages: &str) -> Result<f64, Refused> {
        let most = || self.mlp(pages)?.saturation.value();
        let walks = matches!(access.kind, Kind::Tree { .. } | Kind::Search);
        let nodes = access.options.mlp.or(walks.then_some(1.0));
        let at_once = nodes.map(|nodes| nodes * access.lines(self.line())).or_else(most);
        at_once.ok_or_else(|| {
            let lacks = lacks(access, "figure of how many loads run at once", "mlp");
            let would_help = lacks.would_help.map(|help| format!("{help}, or state it: mlp=COUNT"));
            Refused { would_help, ..lacks }
        })
    }

    /// How many accesses with this many instructions each the core looks ahead over; `None` where
    /// an access does not say its instructions or the record does not say how far it looks.
    pub(crate) fn ahead(&self, access: &Access, pages: &str) -> Option<Estimate> {
        let instructions = access.options.instructions?;
        let window = self.mlp(pages)?.cliff.estimate().filter(|window| window.lo > 0.0)?;
        Some(window.scaled(1.0 / instructions))
    }

    /// How many times faster loads are when this many are under way at once.
    pub(crate) fn speedup(&self, at_once: f64, pages: &str) -> Option<Estimate> {
        let of = self.mlp(pages)?;
        let one = of.chains.iter().find(|c| c.chains == 1)?.round.ns.estimate()?;
        let points = of.chains.iter().filter_map(|c| {
            let round = c.round.ns.estimate().filter(|e| e.lo > 0.0)?;
            let faster = product(quotient(one, round), Estimate::exact(f64::from(c.chains)));
            // Both rounds are disturbed alike: one chain is exactly as fast as one.
            let faster = if c.chains == 1 { Estimate::exact(1.0) } else { faster };
            Some((f64::from(c.chains), faster))
        });
        Some(MeasuredCurve::new(points)?.at(at_once))
    }
}

fn over_size(curve: &Curve) -> Option<MeasuredCurve> {
    let points = curve.points.iter();
    MeasuredCurve::new(points.filter_map(|p| Some((p.size.0 as f64, p.latency.ns.estimate()?))))
}

//! Accesses one after the other, beside each other, and again and again.

use super::figure::{Figure, Served, largest, sum};
use super::known::{Cannot, Known};
use super::split;
use crate::pattern::{Access, Pattern};
use units::Estimate;

/// A pattern that was carried out.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) accesses: f64,
    /// Nanoseconds in all.
    pub(crate) time: Estimate,
    /// Shares count accesses here, and times are sums over threads.
    pub(crate) levels: Vec<Served>,
    /// Bytes in all.
    from_memory: f64,
    pub(crate) remarks: Vec<String>,
}

/// The count and the time of an access.
type Ask<'a> = dyn FnMut(&Access) -> Result<(f64, Figure), Cannot> + 'a;

/// Runs a pattern.
pub(crate) fn run(known: &Known<'_>, pattern: &Pattern, figure: &mut Ask<'_>) -> Result<Run, Cannot> {
    match pattern {
        Pattern::Access(access) => figure(access).map(|(accesses, figure)| one(accesses, &figure)),
        Pattern::Times(times, inner) => Ok(repeated(run(known, inner, figure)?, *times as f64)),
        Pattern::InTurn(all) => {
            let runs = all.iter().map(|inner| run(known, inner, figure)).collect::<Result<Vec<_>, _>>()?;
            let time = sum(runs.iter().map(|run| run.time));
            Ok(together(runs, time))
        }
        Pattern::Beside(all) => {
            let runs = all.iter().map(|inner| run(known, inner, figure)).collect::<Result<Vec<_>, _>>()?;
            Ok(beside(known, runs))
        }
    }
}

fn one(accesses: f64, figure: &Figure) -> Run {
    let levels = figure.levels.iter().map(|served| Served {
        level: served.level.clone(),
        share: served.share.scaled(accesses),
        time: served.time.scaled(accesses),
    });
    Run {
        accesses,
        time: figure.time.scaled(accesses),
        levels: levels.collect(),
        from_memory: figure.from_memory * accesses,
        remarks: figure.remarks.clone(),
    }
}

fn repeated(run: Run, times: f64) -> Run {
    let levels = run.levels.into_iter().map(|served| Served {
        share: served.share.scaled(times),
        time: served.time.scaled(times),
        ..served
    });
    Run {
        accesses: run.accesses * times,
        time: run.time.scaled(times),
        levels: levels.collect(),
        from_memory: run.from_memory * times,
        remarks: run.remarks,
    }
}

fn together(runs: Vec<Run>, time: Estimate) -> Run {
    let mut remarks: Vec<String> = Vec::new();
    for remark in runs.iter().flat_map(|run| &run.remarks) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    Run {
        accesses: runs.iter().map(|run| run.accesses).sum(),
        time,
        from_memory: runs.iter().map(|run| run.from_memory).sum(),
        levels: split::joined(runs.into_iter().flat_map(|run| run.levels)),
        remarks,
    }
}

/// As long as the longest of them, and as what all of them draw from memory takes at the highest
/// rate that was measured.
fn beside(known: &Known<'_>, runs: Vec<Run>) -> Run {
    let longest = largest(runs.iter().map(|run| run.time));
    let bytes: f64 = runs.iter().map(|run| run.from_memory).sum();
    let rate = known.bandwidth().and_then(|bandwidth| bandwidth.platform_maximum.estimate());
    let mut run = together(runs, longest);
    let unknown = "threads are taken not to slow each other down in caches";
    run.remarks.push(unknown.to_owned());
    match rate.filter(|rate| rate.lo > 0.0) {
        Some(rate) if bytes > 0.0 => {
            let least = |rate: f64| bytes / rate * 1e9;
            let least = Estimate::new(least(rate.value), least(rate.hi), least(rate.lo));
            if least.value > longest.value {
                run.remarks
                    .push("memory's highest measured rate bounds what runs beside each other".to_owned());
            }
            run.time = largest([longest, least]);
        }
        _ => {}
    }
    run
}

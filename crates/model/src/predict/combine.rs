//! Accesses one after the other, beside each other, and again and again.

use super::figure::{Figure, Served, largest, sum};
use super::known::Known;
use super::split;
use crate::pattern::{Access, Pattern};
use records::run::Refused;
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
    /// Nanoseconds in all that are latency of memory.
    waits: f64,
    pub(crate) remarks: Vec<String>,
}

/// The count and the time of an access.
type Ask<'a> = dyn FnMut(&Access) -> Result<(f64, Figure), Refused> + 'a;

/// Runs a pattern.
pub(crate) fn run(known: &Known<'_>, pattern: &Pattern, figure: &mut Ask<'_>) -> Result<Run, Refused> {
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
        waits: figure.waits * accesses,
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
        waits: run.waits * times,
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
        waits: runs.iter().map(|run| run.waits).sum(),
        levels: split::joined(runs.into_iter().flat_map(|run| run.levels)),
        remarks,
    }
}

/// As long as the longest of them, each with memory's latency beside the traffic of the others, and
/// as long as what all of them draw from memory takes at the highest rate that was measured.
fn beside(known: &Known<'_>, runs: Vec<Run>) -> Run {
    let slower: Vec<Estimate> = (0..runs.len()).map(|i| slowed(known, &runs, i)).collect();
    let longest = largest(slower.iter().copied());
    let bytes: f64 = runs.iter().map(|run| run.from_memory).sum();
    let rate = known.bandwidth().and_then(|bandwidth| bandwidth.platform_maximum.estimate());
    let mut run = together(runs, longest);
    run.remarks.push("threads are taken not to slow each other down in caches".to_owned());
    if run.waits > 0.0 && known.loaded(0.0).is_none() {
        run.remarks
            .push("what traffic does to latency is not resolved in this record, and left out".to_owned());
    }
    if let Some(rate) = rate.filter(|rate| rate.lo > 0.0 && bytes > 0.0) {
        let nanos = |rate: f64| bytes / rate * 1e9;
        let least = Estimate::new(nanos(rate.value), nanos(rate.hi), nanos(rate.lo));
        if least.value > longest.value {
            run.remarks.push("memory's highest measured rate bounds what runs beside each other".to_owned());
        }
        run.time = largest([longest, least]);
    }
    run
}

/// The time of one of these runs, while the others draw from memory for as long as they take.
fn slowed(known: &Known<'_>, runs: &[Run], i: usize) -> Estimate {
    let own = runs[i].time.value;
    let others = || runs.iter().enumerate().filter(|(k, run)| *k != i && run.from_memory > 0.0);
    let rate: f64 = runs.iter().map(|run| run.from_memory / run.time.value * 1e9).sum();
    let overlap = others().map(|(_, run)| (run.time.value / own).min(1.0)).fold(0.0, f64::max);
    let longer = if overlap > 0.0 { known.loaded(rate).unwrap_or(1.0) - 1.0 } else { 0.0 };
    runs[i].time.scaled(1.0 + runs[i].waits * longer * overlap / own)
}

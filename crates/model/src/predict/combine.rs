//! Accesses one after the other, beside each other, interleaved, and again and again.

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

/// What is predicted of an access.
pub(crate) struct Asked {
    pub(crate) accesses: f64,
    pub(crate) figure: Figure,
    /// Nanoseconds of an access if no load waited for another.
    pub(crate) unbound: Estimate,
    /// Nanoseconds of an access, with its computing, in the nearest cache.
    pub(crate) work: f64,
}

/// Predicts an access among those of others on the same thread.
type Ask<'a> = dyn FnMut(&Access, &[Access]) -> Result<Asked, Refused> + 'a;

/// Runs a pattern.
pub(crate) fn run(known: &Known<'_>, pattern: &Pattern, figure: &mut Ask<'_>) -> Result<Run, Refused> {
    match pattern {
        Pattern::Access(access) => figure(access, &[]).map(|asked| one(&asked)),
        Pattern::Mixed(all) => {
            let asked = all.iter().enumerate().map(|(own, access)| {
                let others = all.iter().enumerate().filter(|(place, _)| *place != own);
                figure(access, &others.map(|(_, other)| other.clone()).collect::<Vec<_>>())
            });
            Ok(mixed(&asked.collect::<Result<Vec<_>, _>>()?))
        }
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

fn one(Asked { accesses, figure, .. }: &Asked) -> Run {
    let accesses = *accesses;
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

/// Accesses of one thread overlap unless they wait for each other. It takes as long as the longest
/// of them, as all their loads in the queues that they share, and as all that is computed; at the
/// most, nothing overlaps.
fn mixed(asked: &[Asked]) -> Run {
    let runs: Vec<Run> = asked.iter().map(one).collect();
    let longest = largest(runs.iter().map(|run| run.time));
    let queued = sum(asked.iter().map(|asked| asked.unbound.scaled(asked.accesses)));
    let computed = Estimate::exact(asked.iter().map(|asked| asked.work * asked.accesses).sum());
    let least = largest([longest, queued, computed]);
    let all = sum(runs.iter().map(|run| run.time));
    let time = Estimate::new(least.value.min(all.value), least.lo, all.hi);
    let mut run = together(runs, time);
    let part = time.value / all.value;
    for served in &mut run.levels {
        served.time = served.time.scaled(part);
    }
    run.waits *= part;
    run.remarks.push(
        "interleaved accesses are taken to overlap as far as the core can: the interval reaches to no overlap"
            .to_owned(),
    );
    run
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

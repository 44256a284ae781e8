//! What else runs on the machine, as far as a process inside can tell.

use crate::source::{Source, garbled};
use records::host::{Company, Fact};

pub(crate) fn company(source: &Source) -> Company {
    let (steal_ppm, steal_seen) = steal(source);
    let load = load(source);
    Company {
        steal_ppm,
        steal_seen,
        load_milli: load.clone().map(|l| l.0),
        runnable: load.clone().map(|l| l.1),
        threads: load.map(|l| l.2),
        uptime_seconds: first_number(source, "proc/uptime"),
    }
}

/// The eighth number of the line `cpu`, over all of them.
fn steal(source: &Source) -> (Fact<u64>, Fact<bool>) {
    const PATH: &str = "proc/stat";
    let text = match source.text(PATH) {
        Fact::Known(text) => text,
        Fact::Unknown { unknown } => return (Fact::unknown(unknown.clone()), Fact::unknown(unknown)),
    };
    let line = text.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Option<Vec<u64>> = line.split_whitespace().map(|n| n.parse().ok()).collect();
    let Some(ticks) = ticks.filter(|t| t.len() >= 8) else {
        return (garbled(PATH, line), garbled(PATH, line));
    };
    // Guest time (the last two) is counted in user time already.
    let all: u128 = ticks[..8].iter().map(|t| u128::from(*t)).sum();
    let ppm = (u128::from(ticks[7]) * 1_000_000).checked_div(all).unwrap_or(0);
    (Fact::Known(ppm as u64), Fact::Known(ticks[7] > 0))
}

/// `0.26 0.33 0.16 2/94 5442`.
fn load(source: &Source) -> Fact<([u64; 3], u64, u64)> {
    const PATH: &str = "proc/loadavg";
    let text = match source.text(PATH) {
        Fact::Known(text) => text,
        Fact::Unknown { unknown } => return Fact::Unknown { unknown },
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let milli = |w: &str| {
        w.parse::<f64>().ok().filter(|l| (0.0..1e9).contains(l)).map(|l| (l * 1000.0).round() as u64)
    };
    let all = || {
        let (runnable, threads) = words.get(3)?.split_once('/')?;
        let loads = [milli(words.first()?)?, milli(words.get(1)?)?, milli(words.get(2)?)?];
        Some((loads, runnable.parse().ok()?, threads.parse().ok()?))
    };
    all().map_or_else(|| garbled(PATH, &text), Fact::Known)
}

fn first_number(source: &Source, path: &str) -> Fact<u64> {
    match source.text(path) {
        Fact::Known(text) => text
            .split(['.', ' '])
            .next()
            .and_then(|n| n.parse().ok())
            .map_or_else(|| garbled(path, &text), Fact::Known),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

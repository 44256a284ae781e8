//! The summary of a profile of loads that the hardware sampled: by latency, since these samples
//! tell no time.

use super::summary::{callers, findings, head, pattern, refusals, size, source};
use super::words::{file_name, short};
use crate::figures::table::{draw, row};
use crate::figures::{figure, percent};
use records::profile::{Backend, Level, Profile, StallingLoad};
use std::fmt::Write;
use std::path::Path;
use units::Quantity;

/// Rows of a share below this are left out of the first table.
const WORTH_A_ROW: f64 = 0.0005;
/// One load with less than this is no place to begin.
const WORTH_NAMING: f64 = 0.05;

pub(super) fn text(profile: &Profile, top: usize, record: Option<&Path>, width: usize) -> String {
    let mut text = head(profile);
    text.push_str(&sampling(profile));
    text.push_str(&levels(profile, width));
    text.push_str(&loads(profile, top, width));
    text.push_str(&callers(profile, top));
    text.push_str(&functions(profile, top, width));
    text.push_str(&objects(profile, top, width));
    text.push_str(&findings(profile));
    text.push_str(&refusals(profile));
    let _ = writeln!(text, "  next: {}", next(profile, record));
    text
}

fn sampling(profile: &Profile) -> String {
    let sampling = &profile.sampling;
    let hardware = match sampling.backend {
        Backend::Clock | Backend::Signal => "a clock",
        Backend::Pebs => "Intel PEBS",
        Backend::Ibs => "AMD IBS",
        Backend::Spe => "Arm SPE",
    };
    let mut text = format!("  {} samples of loads and stores by {hardware}", sampling.samples);
    if let Some(cycles) = sampling.least_latency.value() {
        let _ = write!(text, "; loads quicker than {cycles:.0} cycles were not sampled");
    }
    text.push('\n');
    let average = &profile.summary.average_latency;
    match (average.estimate(), sampling.latency) {
        (Some(_), Some(kind)) => {
            let _ = writeln!(text, "  a load took {} cycles on average: {}", figure(average), kind.says());
        }
        _ => {
            let _ = writeln!(text, "  how long a load took: {average}");
        }
    }
    text
}

fn levels(profile: &Profile, width: usize) -> String {
    let levels = &profile.summary.by_level;
    let all: [(&str, &Quantity); 8] = [
        ("L1", &levels.l1),
        ("L2", &levels.l2),
        ("L3", &levels.l3),
        ("DRAM", &levels.dram),
        ("another node or group of cores", &levels.remote),
        ("another core's cache, modified", &levels.dirty),
        ("a miss under way already", &levels.in_flight),
        ("not told", &levels.unresolved),
    ];
    let is_seen = |share: &Quantity| share.value().is_none_or(|value| value >= WORTH_A_ROW);
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter(|(_, share)| is_seen(share))
        .map(|(what, share)| row([*what, &percent(share)]))
        .collect();
    let by = if profile.summary.average_latency.value().is_some() { "latency" } else { "number" };
    format!("\n  what served the loads, by {by}\n{}", draw(&rows, width))
}

fn loads(profile: &Profile, top: usize, width: usize) -> String {
    if profile.loads.is_empty() {
        return "\n  no load stands out\n".to_owned();
    }
    let mut rows = vec![row([
        "latency",
        "cycles each",
        "level",
        "walks",
        "pattern",
        "function",
        "load",
        "source",
        "data",
    ])];
    for load in profile.loads.iter().take(top) {
        rows.push(vec![
            share(&load.latency_share, load.samples),
            each(&load.latency),
            level(load),
            load.translation.value().map_or("-".to_owned(), |share| format!("{:.0}%", 100.0 * share)),
            pattern(load).to_owned(),
            short(load.function.as_deref().unwrap_or("?"), 40),
            format!("{:#x} {}", load.address, load.instruction),
            source(load),
            load.object.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    format!("\n  loads, by their share of all latency\n{}", draw(&rows, width))
}

/// A share of the latency; where there is none, the number of samples.
fn share(share: &Quantity, samples: u64) -> String {
    if share.value().is_some() { percent(share) } else { format!("{samples} samples") }
}

fn each(latency: &Quantity) -> String {
    if latency.value().is_some() { figure(latency) } else { "-".to_owned() }
}

fn level(load: &StallingLoad) -> String {
    match load.by_level.first() {
        Some(most) if most.level != Level::Unresolved => {
            let share = most.share.value().unwrap_or(0.0);
            if share >= 0.995 {
                most.level.word().to_owned()
            } else {
                format!("{} {:.0}%", most.level.word(), 100.0 * share)
            }
        }
        _ => "-".to_owned(),
    }
}

fn functions(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["latency", "samples", "function", "module"])];
    for function in profile.functions.iter().take(top) {
        rows.push(vec![
            share(&function.latency_share, function.samples),
            function.samples.to_string(),
            function.function.as_deref().map_or(format!("{:#x}", function.address), |name| short(name, 60)),
            file_name(&function.module),
        ]);
    }
    if rows.len() == 1 { String::new() } else { format!("\n  functions\n{}", draw(&rows, width)) }
}

fn objects(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["latency", "size", "threads", "data"])];
    for object in profile.objects.iter().take(top) {
        rows.push(vec![
            if object.latency_share.value().is_some() {
                percent(&object.latency_share)
            } else {
                "-".to_owned()
            },
            size(object),
            object.threads.to_string(),
            object.name.clone(),
        ]);
    }
    if rows.len() == 1 { String::new() } else { format!("\n  data\n{}\n", draw(&rows, width)) }
}

fn next(profile: &Profile, record: Option<&Path>) -> String {
    let Some(first) = profile.loads.first() else {
        return "no load has samples enough: record for longer, or more often (perf record -F)".to_owned();
    };
    if first.latency_share.value().is_some_and(|share| share < WORTH_NAMING) {
        return "latency is spread over many loads: look at the functions and the data above".to_owned();
    }
    let place = format!("{} ({})", first.function.as_deref().unwrap_or("?"), source(first));
    match record.map(Path::display) {
        None => format!(
            "begin with {place}; whether the core waits for it, samples of time show: gleaner profile -- CMD"
        ),
        Some(path) => format!("begin with {place}; 'gleaner show {path} .loads' has all of them"),
    }
}

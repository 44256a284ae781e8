//! The summary of a profile: where the time went, which loads, which data, what to do next.

use crate::figures::percent;
use crate::figures::table::{draw, row};
use records::profile::{Level, LinePart, Pattern, Profile, ProgramEnd, Sharing, StallingLoad};
use std::fmt::Write;
use std::path::Path;
use units::Quantity;

/// From this share on the program counts as memory bound: work on its loads pays first.
const HIGH: f64 = 0.2;
/// One load with less than this is no place to begin.
const WORTH_NAMING: f64 = 0.05;
/// Rows of a share below this are left out of the first table.
const WORTH_A_ROW: f64 = 0.0005;

pub(super) fn text(profile: &Profile, top: usize, record: Option<&Path>, width: usize) -> String {
    let mut text = head(profile);
    if profile.sampling.samples == 0 {
        text.push_str("  no samples: the program used hardly any CPU time\n");
        return text;
    }
    text.push_str(&where_time_went(profile, width));
    text.push_str(&loads(profile, top, width));
    text.push_str(&callers(profile, top));
    text.push_str(&functions(profile, top, width));
    text.push_str(&objects(profile, top, width));
    text.push_str(&lines(profile, width));
    text.push_str(&findings(profile));
    for refused in &profile.refusals {
        let help = refused.would_help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let _ = writeln!(text, "  {}: {}{help}", refused.what, refused.why);
    }
    let _ = writeln!(text, "  next: {}", next(profile, record));
    text
}

fn head(profile: &Profile) -> String {
    let program = &profile.program;
    let what = match program.pid {
        Some(pid) => format!("process {pid}"),
        None => program.command.join(" "),
    };
    let ended = match program.ended {
        ProgramEnd::Exited { code: 0 } => String::new(),
        ProgramEnd::Exited { code } => format!(", exit code {code}"),
        ProgramEnd::Killed { signal } => format!(", killed by signal {signal}"),
        ProgramEnd::StillRunning => ", still running".to_owned(),
        ProgramEnd::Unknown => ", ended".to_owned(),
    };
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let processes = match program.processes {
        0 | 1 => String::new(),
        several => format!(" of {several} processes"),
    };
    let mut text = format!(
        "profile of {}: {} elapsed, {} of CPU time in {}{processes}{ended}\n",
        short(&crate::failure::one_line(&what), 60),
        profile.summary.elapsed.brief(),
        profile.summary.cpu_time.brief(),
        plural(program.threads, "thread"),
    );
    let sampling = &profile.sampling;
    let behind = match sampling.calibration.one_behind.value() {
        Some(share) => format!("{:.1}% of a known load's samples land right behind it", 100.0 * share),
        None => "where samples land is not resolved".to_owned(),
    };
    let _ = writeln!(
        text,
        "  {} samples of the CPU clock, {} a second of CPU time; {behind}",
        sampling.samples,
        sampling.frequency.value().unwrap_or_default(),
    );
    text
}

/// Beside figures that are not measured.
const MODELLED: &str = "modelled";

fn where_time_went(profile: &Profile, width: usize) -> String {
    let summary = &profile.summary;
    let levels = &summary.by_level;
    let high = summary.memory_bound.value().is_some_and(|share| share >= HIGH);
    let all: [(&str, &Quantity, &str); 13] = [
        ("waiting for loads", &summary.memory_bound, if high { "high" } else { "" }),
        ("  served by L1", &levels.l1, MODELLED),
        ("  served by L2", &levels.l2, MODELLED),
        ("  served beyond L2", &levels.beyond_l2, MODELLED),
        ("    by L3", &levels.l3, MODELLED),
        ("    by DRAM", &levels.dram, MODELLED),
        ("    in lines that other threads write", &levels.dirty, MODELLED),
        ("waiting for stores", &summary.stores, ""),
        ("computing", &summary.computing, ""),
        ("in the kernel", &summary.in_kernel, ""),
        ("  in system calls", &summary.system_calls, ""),
        ("  in page faults", &summary.page_faults, ""),
        ("not attributed", &summary.not_attributed, ""),
    ];
    let mut rows = Vec::new();
    for (what, share, mark) in all {
        if share.value().is_none_or(|value| value >= WORTH_A_ROW) {
            rows.push(row([what, &percent(share), mark]));
        }
    }
    for part in &summary.not_attributed_because {
        if part.time.value().is_some_and(|value| value >= 10.0 * WORTH_A_ROW) {
            rows.push(row([&format!("  {}", part.why), &percent(&part.time), ""]));
        }
    }
    format!("\n  where the CPU time went\n{}", draw(&rows, width))
}

fn loads(profile: &Profile, top: usize, width: usize) -> String {
    if profile.loads.is_empty() {
        return "\n  no load stands out\n".to_owned();
    }
    let mut rows = vec![row(["stall", "level", "pattern", "function", "load", "source", "data"])];
    for load in profile.loads.iter().take(top) {
        rows.push(vec![
            percent(&load.stall),
            level(load),
            if load.pattern == Pattern::Unresolved { "-" } else { load.pattern.word() }.to_owned(),
            short(load.function.as_deref().unwrap_or("?"), 40),
            format!("{:#x} {}", load.address, load.instruction),
            source(load),
            load.object.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    format!("\n  loads that the core waited for\n{}", draw(&rows, width))
}

fn level(load: &StallingLoad) -> String {
    match load.level {
        Level::Unresolved if load.beyond_l2 => "beyond L2".to_owned(),
        Level::Unresolved => "-".to_owned(),
        level => level.word().to_owned(),
    }
}

fn source(load: &StallingLoad) -> String {
    match (&load.file, load.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => file_name(&load.module),
    }
}

/// Callers of one load that are shown.
const CALLERS_SHOWN: usize = 5;

fn callers(profile: &Profile, top: usize) -> String {
    let mut lines = String::new();
    let mut shown = Vec::new();
    for load in profile.loads.iter().take(top).filter(|load| !load.callers.is_empty()) {
        // Loads of one function are called alike.
        let called = (&load.function, &load.callers);
        if shown.contains(&called) {
            continue;
        }
        shown.push(called);
        let names: Vec<String> =
            load.callers.iter().take(CALLERS_SHOWN).map(|name| short(name, 40)).collect();
        let more = if load.callers.len() > CALLERS_SHOWN { " < …" } else { "" };
        let share = percent(&load.callers_share);
        let function = short(load.function.as_deref().unwrap_or("?"), 40);
        let _ = writeln!(lines, "  {function} < {}{more}  {share}", names.join(" < "));
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n  who calls these loads most often (share of the load's stacks)\n{lines}")
}

fn functions(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["time", "stall", "function", "module"])];
    for function in profile.functions.iter().take(top) {
        rows.push(vec![
            percent(&function.time),
            percent(&function.stall),
            function.function.as_deref().map_or(format!("{:#x}", function.address), |name| short(name, 60)),
            file_name(&function.module),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  functions by CPU time\n{}", draw(&rows, width))
}

fn objects(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["stall", "size", "threads", "data"])];
    for object in profile.objects.iter().take(top) {
        let size = object.bytes.value().map_or("-".to_owned(), |b| units::Bytes(b as u64).to_string());
        rows.push(vec![percent(&object.stall), size, object.threads.to_string(), object.name.clone()]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  data that the core waited for\n{}\n", draw(&rows, width))
}

/// Lines that are shown, and offsets with threads of each.
const LINES_SHOWN: usize = 3;
const PARTS_SHOWN: usize = 4;

fn lines(profile: &Profile, width: usize) -> String {
    let mut rows = vec![row(["stall", "sharing", "byte", "thread", "reads", "writes", "source", "data"])];
    let shown = profile.lines.iter().filter(|line| line.sharing != Sharing::Latent).take(LINES_SHOWN);
    for line in shown {
        let mut parts: Vec<&LinePart> = line.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.reads + part.writes));
        parts.truncate(PARTS_SHOWN);
        parts.sort_by_key(|part| (part.offset, part.thread));
        for part in parts {
            rows.push(vec![
                percent(&part.stall),
                part.sharing.map_or("-", Sharing::word).to_owned(),
                format!("{:#x}+{}", line.address, part.offset),
                part.thread.to_string(),
                part.reads.to_string(),
                part.writes.to_string(),
                match (&part.file, part.line) {
                    (Some(file), Some(number)) => format!("{}:{number}", file_name(file)),
                    _ => part.function.clone().unwrap_or_else(|| "-".to_owned()),
                },
                part.object.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  cache lines that threads share (samples by offset)\n{}\n", draw(&rows, width))
}

fn findings(profile: &Profile) -> String {
    let mut lines = String::new();
    for finding in &profile.findings {
        let line = finding.line.map_or(String::new(), |line| format!(":{line}"));
        let file =
            finding.file.as_ref().map_or(String::new(), |file| format!(" ({}{line})", file_name(file)));
        let place =
            finding.function.as_ref().map_or(String::new(), |name| format!("{}{file}: ", short(name, 40)));
        let _ = writeln!(lines, "  {place}{}; gain {}", finding.says, gain(&finding.gain));
    }
    if lines.is_empty() { lines } else { format!("  findings\n{lines}\n") }
}

/// Where a change may gain nothing, its end says more than an interval.
fn gain(gain: &Quantity) -> String {
    match gain.estimate() {
        Some(share) if share.lo <= 0.0 => format!("at most {:.0}%", 100.0 * share.hi),
        _ => percent(gain),
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Names of templates fill pages.
fn short(name: &str, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    name.chars().take(longest - 1).chain(['…']).collect()
}

fn next(profile: &Profile, record: Option<&Path>) -> String {
    let summary = &profile.summary;
    let share = |quantity: &Quantity| quantity.value().unwrap_or(0.0);
    if share(&summary.page_faults) >= HIGH {
        return "page faults cost most here: reuse memory, touch it once, or ask for huge pages".to_owned();
    }
    let Some(first) = profile.loads.first().filter(|_| share(&summary.memory_bound) >= HIGH) else {
        return "little time is lost to loads here: look at the functions above".to_owned();
    };
    let place = format!("{} ({})", first.function.as_deref().unwrap_or("?"), source(first));
    if share(&first.stall) < WORTH_NAMING {
        return "the waiting is spread over many loads: look at the functions and the data above".to_owned();
    }
    let harvestable: f64 = profile.loads.iter().filter_map(|load| load.harvestable.value()).sum();
    match record.map(Path::display) {
        None => format!("begin with {place}; -o profile.json keeps all loads and data"),
        Some(path) if harvestable >= HIGH => format!(
            "begin with {place}; or run other work in these stalls: gleaner harvest --profile {path} --scavenger CMD -- PROGRAM"
        ),
        Some(path) => format!("begin with {place}; 'gleaner show {path} .loads' has all of them"),
    }
}

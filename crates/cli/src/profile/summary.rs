//! The summary of a profile: where the time went, which loads, which data, what to do next.

use super::words::{file_name, short};
use crate::figures::percent;
use crate::figures::table::{draw, row};
use records::profile::{
    Backend, Level, LinePart, MemoryObject, Pattern, Profile, ProgramEnd, Selected, Sharing, StallingLoad,
    Trial, TrialOutcome,
};
use std::fmt::Write;
use std::path::Path;
use units::Quantity;

/// From this share on the program counts as memory bound: work on its loads pays first.
const HIGH: f64 = 0.2;
/// From this share on, what is not attributed hides the rest.
const MOST: f64 = 0.5;
/// One load with less than this is no place to begin.
const WORTH_NAMING: f64 = 0.05;
/// With fewer samples the intervals are too wide to choose by.
const FEW: u64 = 200;
/// Nearly all programs are sampled in this much CPU time.
const ENOUGH_FOR_SAMPLES_S: f64 = 0.1;
/// Rows of a share below this are left out of the first table.
const WORTH_A_ROW: f64 = 0.0005;

pub(super) fn text(profile: &Profile, top: usize, record: Option<&Path>, width: usize) -> String {
    let mut text = head(profile);
    text.push_str(&sampling(profile));
    if profile.sampling.samples == 0 {
        let ran = profile.summary.cpu_time.value().is_some_and(|seconds| seconds >= ENOUGH_FOR_SAMPLES_S);
        text.push_str(if profile.sampling.selected.is_some() {
            "  no samples: none fell into the part of the run that was asked for (--from, --to)\n"
        } else if ran {
            "  no samples: none arrived, though the program ran\n"
        } else {
            "  no samples: the program used hardly any CPU time\n"
        });
        text.push_str(&refusals(profile));
        return text;
    }
    text.push_str(&asked(profile));
    if let Some(system) = &profile.system {
        text.push_str(&super::system::text(system, top, width));
    }
    text.push_str(&where_time_went(profile, width));
    text.push_str(&loads(profile, top, width));
    text.push_str(&callers(profile, top));
    text.push_str(&scripts(profile, top, width));
    text.push_str(&functions(profile, top, width));
    text.push_str(&objects(profile, top, width));
    text.push_str(&lines(profile, width));
    text.push_str(&super::traced::text(profile, top, width));
    text.push_str(&findings(profile));
    text.push_str(&trials(profile, width));
    text.push_str(&refusals(profile));
    let _ = writeln!(text, "  next: {}", next(profile, record));
    text
}

pub(super) fn refusals(profile: &Profile) -> String {
    let mut text = String::new();
    for refused in &profile.refusals {
        let help = refused.would_help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let _ = writeln!(text, "  {}: {}{help}", refused.what, refused.why);
    }
    text
}

pub(super) fn head(profile: &Profile) -> String {
    if let Some(system) = &profile.system {
        return super::system::head(profile, system);
    }
    let program = &profile.program;
    let what = match (program.pid, &program.perf_data) {
        (_, Some(file)) => file.path.clone(),
        (Some(pid), None) => format!("process {pid}"),
        (None, None) => program.command.join(" "),
    };
    let ended = match program.ended {
        ProgramEnd::Exited { code: 0 } => String::new(),
        ProgramEnd::Exited { code } => format!(", exit code {code}"),
        ProgramEnd::Killed { signal } => format!(", killed by signal {signal}"),
        ProgramEnd::StillRunning => ", still running".to_owned(),
        ProgramEnd::Unknown if program.perf_data.is_some() => String::new(),
        ProgramEnd::Unknown => ", ended".to_owned(),
    };
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let processes = match program.processes {
        0 | 1 => String::new(),
        several => format!(" of {several} processes"),
    };
    // Stored samples do not tell their threads.
    let threads = match program.threads {
        0 if program.perf_data.is_some() => "all threads together".to_owned(),
        threads => plural(threads, "sampled thread"),
    };
    let what = short(&crate::failure::one_line(&what), 60);
    if profile.sampling.backend.samples_accesses() {
        return format!(
            "profile of {what}: {} elapsed, {threads}{processes}{ended}\n{}",
            profile.summary.elapsed.brief(),
            selected(profile)
        );
    }
    // A file of samples may tell neither.
    let is_file = program.perf_data.is_some();
    let told = |time: &Quantity, words: &str| {
        let is_left_out = is_file && time.value().is_none();
        if is_left_out { String::new() } else { format!("{} {words}", time.brief()) }
    };
    let elapsed = told(&profile.summary.elapsed, "elapsed, ");
    let cpu_time = told(&profile.summary.cpu_time, "of CPU time in ");
    let selected = selected(profile);
    format!("profile of {what}: {elapsed}{cpu_time}{threads}{processes}{ended}\n{selected}")
}

/// What a runtime was asked for, so that its code has names.
fn asked(profile: &Profile) -> String {
    let asked = &profile.program.asked;
    // Of a path, what it leads to.
    let word = |word: &String| match word.split_once(":/") {
        Some((option, path)) => format!("{option}:{}", file_name(path.split('=').next().unwrap_or(path))),
        None => word.clone(),
    };
    let words: Vec<String> = asked.iter().map(word).collect();
    if words.is_empty() {
        return String::new();
    }
    format!("  started with {}, to name its code (--no-code-names leaves it out)\n", words.join(" "))
}

/// Which part of the run is shown, if it is not all of it.
fn selected(profile: &Profile) -> String {
    let Some(Selected { from_s, to_s }) = profile.sampling.selected else { return String::new() };
    let until = to_s.map_or("the end".to_owned(), |to_s| seconds(to_s).brief());
    let of = if profile.program.pid.is_some() { "since the profiler attached" } else { "of the run" };
    format!("  shown: only what was sampled from {} to {until} {of}\n", seconds(from_s).brief())
}

fn seconds(seconds: f64) -> Quantity {
    Quantity::claimed(seconds, units::Unit::Seconds)
}

fn sampling(profile: &Profile) -> String {
    let sampling = &profile.sampling;
    let behind = match sampling.calibration.one_behind.value() {
        Some(share) => format!("{:.1}% of a known load's samples land right behind it", 100.0 * share),
        None => format!("where samples land: {}", crate::figures::why(&sampling.calibration.one_behind)),
    };
    let frequency = match sampling.frequency.value() {
        Some(frequency) => format!(", {frequency:.0} a second of CPU time"),
        None => String::new(),
    };
    let events = profile.program.perf_data.as_ref().map(|file| file.events.join(", "));
    let events = events.filter(|events| !events.is_empty());
    let what = match (sampling.backend, events) {
        (_, Some(events)) => format!("of {events}"),
        (Backend::Signal, None) => "by signals of CPU-time timers".to_owned(),
        _ => "of the CPU clock".to_owned(),
    };
    let mut text = format!("  {} samples {what}{frequency}; {behind}\n", sampling.samples);
    if let Some(cost) = profile.summary.overhead.estimate() {
        let range = percent(&Quantity::modelled(cost, units::Unit::Ratio));
        text.push_str(&match &profile.system {
            Some(system) => super::system::cost(system, &range),
            None => format!("  profiling took {range} of the program's CPU time\n"),
        });
    }
    text
}

/// Beside figures that are not measured.
const MODELLED: &str = "modelled";

fn where_time_went(profile: &Profile, width: usize) -> String {
    let summary = &profile.summary;
    let levels = &summary.by_level;
    let high = summary.memory_bound.value().is_some_and(|share| share >= HIGH);
    let mut all: Vec<(&str, &Quantity, &str)> =
        vec![("waiting for loads", &summary.memory_bound, if high { "high" } else { "" })];
    let by_level = [
        ("  served by L1", &levels.l1, MODELLED),
        ("  served by L2", &levels.l2, MODELLED),
        ("  served beyond L2", &levels.beyond_l2, MODELLED),
        ("    by L3", &levels.l3, MODELLED),
        ("    by DRAM", &levels.dram, MODELLED),
        ("    in lines that other threads write", &levels.dirty, MODELLED),
    ];
    // One reason is enough for all.
    if by_level.iter().all(|(_, share, _)| share.value().is_none()) {
        all.push(("  by level", &levels.l1, ""));
    } else {
        all.extend(by_level);
    }
    all.extend([
        ("waiting for stores", &summary.stores, ""),
        ("computing", &summary.computing, ""),
        ("in the kernel", &summary.in_kernel, ""),
        ("  in system calls", &summary.system_calls, ""),
        ("  in page faults", &summary.page_faults, ""),
        ("not attributed", &summary.not_attributed, ""),
    ]);
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
    let mut rows = vec![row(["stall", "latency", "level", "pattern", "function", "load", "source", "data"])];
    for load in profile.loads.iter().take(top) {
        rows.push(vec![
            percent(&load.stall),
            latency(&load.latency),
            level(load),
            pattern(load).to_owned(),
            of_program(load.program.as_deref(), function(load)),
            format!("{:#x} {}", load.address, load.instruction),
            source(load),
            load.object.as_ref().map_or_else(|| "-".to_owned(), |name| data(profile, name)),
        ]);
    }
    format!("\n  loads that the core waited for\n{}", draw(&rows, width))
}

/// A function, with the program that runs it where there are several.
fn of_program(program: Option<&str>, function: String) -> String {
    match program {
        Some(program) => format!("{program}: {function}"),
        None => function,
    }
}

fn latency(latency: &Quantity) -> String {
    if latency.value().is_some() { latency.brief() } else { "-".to_owned() }
}

fn or_dash(share: &Quantity) -> String {
    if share.value().is_some() { percent(share) } else { "-".to_owned() }
}

fn level(load: &StallingLoad) -> String {
    match load.level {
        Level::Unresolved if load.beyond_l2 => "beyond L2".to_owned(),
        Level::Unresolved => "-".to_owned(),
        level => level.word().to_owned(),
    }
}

pub(super) fn pattern(load: &StallingLoad) -> &'static str {
    if load.pattern == Pattern::Unresolved { "-" } else { load.pattern.word() }
}

pub(super) fn source(load: &StallingLoad) -> String {
    match (&load.file, load.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => file_name(&load.module),
    }
}

/// The function that a load stands in; of an inlined one, where that is, too.
fn function(load: &StallingLoad) -> String {
    let own = load.function.as_deref().unwrap_or("?");
    match load.inlined.first() {
        Some(inlined) if inlined != own => format!("{} in {}", short(inlined, 40), short(own, 20)),
        _ => short(own, 40),
    }
}

/// Callers of one load that are shown.
const CALLERS_SHOWN: usize = 5;

pub(super) fn callers(profile: &Profile, top: usize) -> String {
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
    format!("\n  the most frequent callers of these loads (share of the load's stacks)\n{lines}")
}

/// Lines of scripts, by what their interpreter waits for them.
fn scripts(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["stall", "time", "line", "function", "waits for", "in"])];
    for line in profile.scripts.iter().take(top) {
        rows.push(vec![
            percent(&line.stall),
            percent(&line.time),
            format!("{}:{}", file_name(&line.file), line.line),
            short(&line.function, 40),
            line.data.clone().unwrap_or_else(|| "-".to_owned()),
            line.waits_in.as_deref().map_or_else(|| "-".to_owned(), |name| short(name, 40)),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  lines of scripts, by the samples that have a stack\n{}\n", draw(&rows, width))
}

fn functions(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["time", "stall", "function", "module"])];
    // A function that only entered the kernel has no time of its own.
    for function in profile.functions.iter().filter(|function| function.samples > 0).take(top) {
        rows.push(vec![
            percent(&function.time),
            or_dash(&function.stall),
            of_program(
                function.program.as_deref(),
                function
                    .function
                    .as_deref()
                    .map_or(format!("{:#x}", function.address), |name| short(name, 60)),
            ),
            file_name(&function.module),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  functions by CPU time\n{}", draw(&rows, width))
}

pub(super) fn size(object: &MemoryObject) -> String {
    object.size_in_words().unwrap_or_else(|| "-".to_owned())
}

/// An object's name, and the size of what is allocated there: whether it fits a cache.
fn data(profile: &Profile, name: &str) -> String {
    let allocated = profile.objects.iter().find(|object| object.name == name && object.site.is_some());
    match allocated.and_then(MemoryObject::size_in_words) {
        Some(size) => format!("{name}, {size}"),
        None => name.to_owned(),
    }
}

fn objects(profile: &Profile, top: usize, width: usize) -> String {
    let mut rows = vec![row(["stall", "size", "threads", "data"])];
    for object in profile.objects.iter().take(top) {
        rows.push(vec![
            percent(&object.stall),
            size(object),
            object.threads.to_string(),
            object.name.clone(),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  data that the core waited for\n{}\n", draw(&rows, width))
}

/// Lines that are shown, and offsets with threads of each.
const LINES_SHOWN: usize = 6;
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

pub(super) fn findings(profile: &Profile) -> String {
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

fn trials(profile: &Profile, width: usize) -> String {
    if profile.trials.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(["times as fast", "without", "with", "by chance", "change"])];
    let mut notes = String::new();
    for trial in &profile.trials {
        let is_run = trial.rounds > 0;
        let or_none = |quantity: &Quantity| if is_run { quantity.brief() } else { "-".to_owned() };
        let form = if trial.form.is_empty() { String::new() } else { format!(": {}", trial.form) };
        let p = if is_run { format!("{:.1}%", 100.0 * trial.by_chance) } else { "-".to_owned() };
        rows.push(vec![
            or_none(&trial.faster),
            or_none(&trial.without),
            or_none(&trial.with),
            p,
            format!("{}{form}", trial.says),
        ]);
        let _ = match &trial.outcome {
            TrialOutcome::Failed { why } => writeln!(notes, "  not usable: {}: {why}", trial.says),
            TrialOutcome::NotTried { why } => writeln!(notes, "  not tried: {}: {why}", trial.says),
            _ if trial.same_output.is_none() => {
                writeln!(notes, "  what it prints differs from run to run; so it was not compared")
            }
            _ => Ok(()),
        };
    }
    format!("  tried, by whole runs in pairs\n{}{notes}\n", draw(&rows, width))
}

/// Where a change may gain nothing, its end says more than an interval.
fn gain(gain: &Quantity) -> String {
    match gain.estimate() {
        Some(share) if share.lo <= 0.0 => format!("at most {:.0}%", 100.0 * share.hi),
        _ => percent(gain),
    }
}

fn next(profile: &Profile, record: Option<&Path>) -> String {
    let summary = &profile.summary;
    let share = |quantity: &Quantity| quantity.value().unwrap_or(0.0);
    if profile.sampling.samples < FEW {
        return "few samples: profile a longer run, or allow more of its time (--budget 10)".to_owned();
    }
    if let Some(system) = &profile.system {
        return super::system::next(system);
    }
    let gained = profile.trials.iter().filter(|trial| trial.outcome == TrialOutcome::Faster);
    let faster = |trial: &&Trial| trial.faster.estimate().map_or(0.0, |times| times.lo);
    if let Some(best) = gained.max_by(|a, b| faster(a).total_cmp(&faster(b))) {
        let form = if best.form.is_empty() { String::new() } else { format!(": {}", best.form) };
        return format!(
            "'gleaner speed -- CMD' keeps what made it {} times as fast: {}{form}",
            best.faster.brief(),
            best.says
        );
    }
    let (waits, stores) = (share(&summary.memory_bound), share(&summary.stores));
    let unknown = share(&summary.not_attributed);
    if share(&summary.page_faults) >= HIGH.max(waits) {
        return "page faults cost most here: reuse memory, touch it once, or ask for huge pages".to_owned();
    }
    if unknown >= MOST || unknown > waits.max(HIGH) {
        return "most of what waits may be in code that is not attributed, for the reasons above: look at the \
                functions"
            .to_owned();
    }
    if stores >= HIGH.max(waits) {
        return "most of the waiting is for stores: the finding above names where".to_owned();
    }
    let Some(first) = profile.loads.first().filter(|_| waits >= HIGH) else {
        return "little time is lost to loads here: look at the functions above".to_owned();
    };
    let place = match &first.function {
        Some(function) => format!("{function} ({})", source(first)),
        None => format!("the load at {:#x} ({})", first.address, source(first)),
    };
    if share(&first.stall) < WORTH_NAMING {
        return "the waiting is spread over many loads: look at the functions and the data above".to_owned();
    }
    // Where threads wait for one another's writes, others in the stalls would make it worse.
    let harvestable: f64 = profile
        .loads
        .iter()
        .filter(|load| load.level != Level::Dirty)
        .filter_map(|load| load.harvestable.value())
        .sum();
    let tried = if profile.trials.is_empty() {
        "; gleaner speed tries what needs no source, and keeps it"
    } else {
        ""
    };
    match record.map(Path::display) {
        None => format!("begin with {place}{tried}; -o profile.json keeps all loads and data"),
        Some(path) if harvestable >= HIGH => format!(
            "begin with {place}{tried}; or run other programs in these stalls: gleaner harvest --profile {path} \
             --scavenger CMD -- PROGRAM"
        ),
        Some(path) => format!("begin with {place}{tried}; 'gleaner show {path} .loads' has all of them"),
    }
}

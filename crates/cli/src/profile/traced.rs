//! `--trace`: the program once more, with all of its accesses through a model of the caches; and
//! what the summary says of it.

use super::words::{file_name, short};
use crate::console::Console;
use crate::failure::Refusal;
use crate::figures::percent;
use crate::figures::table::{draw, row};
use clap::Args;
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::machine::Machine;
use records::profile::{BandwidthSlice, Profile, Trace, TracedInstruction};
use records::run::Refused;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use store::machine_record;
use trace::{If, Request, Settings};
use units::Quantity;

/// What is traced, and by which machine's caches.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// Then run the program again with all of its loads and stores through a model of the caches:
    /// which level serves each, and what memory moves over time
    ///
    /// The program's files are rewritten for that run, so that they tell each access; it took 19
    /// to 190 times as long where that was tried. Each run begins anew with the same arguments;
    /// standard input must be a file, or is empty. What the run prints is not shown.
    #[arg(long, requires = "command")]
    trace: bool,

    /// Model the caches of this machine record [default: the one that 'gleaner measure' left, if it
    /// is of this machine; sizes that it lacks are as the host claims them]
    #[arg(long, value_name = "FILE", requires = "trace", conflicts_with = "on")]
    machine: Option<PathBuf>,

    /// Model the caches of another machine, by its record
    #[arg(long, value_name = "FILE", requires = "trace")]
    on: Option<PathBuf>,

    /// Change the modelled machine: l1=SIZE, l2=SIZE, l3=SIZE, or pages=2M; may be given several
    /// times
    #[arg(long = "if", value_name = "CHANGE", requires = "trace", value_delimiter = ',')]
    changes: Vec<If>,
}

impl TraceArgs {
    /// What is modelled, if there is to be a trace.
    pub(super) fn settings(&self, host: &Host) -> Result<Option<Settings>, Refusal> {
        if !self.trace {
            return Ok(None);
        }
        let read = |path: &PathBuf| {
            let document: Document<Machine> =
                records::read(path).map_err(|e| Refusal::wrong_use("machine record", e.to_string()))?;
            Ok(document.body)
        };
        if let Some(path) = self.machine.as_ref().or(self.on.as_ref()) {
            let machine = read(path)?;
            return Ok(Some(Settings::of(&machine.host, Some(&machine), &self.changes)));
        }
        let usual = machine_record::of_host(host);
        Ok(Some(Settings::of(host, usual.as_ref().map(|(_, record)| &record.body), &self.changes)))
    }
}

/// Traces the program. If that cannot be, the profile is there all the same.
pub(super) fn add(
    command: &[OsString],
    settings: &Settings,
    window: Option<(Duration, Duration)>,
    profile: &mut Profile,
    stop: Stop,
    console: &Console,
) {
    let request = Request { command: command.to_vec(), settings, window };
    let told = |says: &str| console.remark(&format!("tracing: {says}"));
    if let Err(e) = trace::run(&request, profile, stop, &told) {
        profile.refusals.push(Refused { what: "trace".to_owned(), why: e.to_string(), would_help: None });
    }
}

/// Rows of the table of bandwidth over time.
const STRETCHES_SHOWN: usize = 12;
/// A share of accesses below this is not worth a row.
const WORTH_A_ROW: f64 = 0.000_05;

pub(super) fn text(profile: &Profile, top: usize, width: usize) -> String {
    let Some(trace) = &profile.trace else { return String::new() };
    let mut text = head(trace);
    text.push_str(&levels(trace, width));
    text.push_str(&instructions(trace, top, width));
    text.push_str(&over_time(&profile.bandwidth, width));
    text.push('\n');
    text
}

fn head(trace: &Trace) -> String {
    let model = &trace.model;
    let mut text = format!(
        "\n  all accesses of a second run, {} times as long, through a model of the caches\n",
        trace.slowdown.brief()
    );
    let victim = if model.l3_is_victim { ", which takes what L2 replaces" } else { "" };
    let _ = writeln!(
        text,
        "  L1 {}, L2 {} of {}, L3 {}{victim}; pages of {}; {}",
        model.l1,
        model.l2,
        if model.cores == 1 { "1 core".to_owned() } else { format!("{} cores", model.cores) },
        model.l3,
        model.page,
        model.because,
    );
    let _ = writeln!(
        text,
        "  the traced code takes {} of the CPU time outside the kernel",
        percent(&trace.covered)
    );
    for module in &trace.left_out {
        let _ = writeln!(
            text,
            "  not traced: {} ({} of the CPU time): {}",
            file_name(&module.module),
            percent(&module.time),
            module.why
        );
    }
    text
}

fn levels(trace: &Trace, width: usize) -> String {
    let levels = &trace.by_level;
    let all: [(&str, &Quantity); 6] = [
        ("served by L1", &levels.l1),
        ("  by L2", &levels.l2),
        ("  by L3", &levels.l3),
        ("  by DRAM", &levels.dram),
        ("beyond L2, and foreseen by a prefetcher", &levels.expected),
        ("with a walk of the page tables", &levels.walks),
    ];
    let mut rows = vec![row(["accesses", &count(trace.accesses)])];
    for (what, share) in all {
        if share.value().is_some_and(|share| share >= WORTH_A_ROW) {
            rows.push(row([what, &figure(share)]));
        }
    }
    rows.push(row(["memory reads", &trace.read.brief()]));
    rows.push(row(["memory writes", &trace.written.brief()]));
    draw(&rows, width)
}

/// A modelled share, exact as far as the model goes.
fn figure(share: &Quantity) -> String {
    share.value().map_or("-".to_owned(), |share| format!("{:.2}%", 100.0 * share))
}

fn count(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=9_999_999 => format!("{:.1} thousand", count as f64 / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.1} million", count as f64 / 1e6),
        _ => format!("{:.1} billion", count as f64 / 1e9),
    }
}

fn instructions(trace: &Trace, top: usize, width: usize) -> String {
    let mut rows =
        vec![row(["lines from DRAM", "accesses", "L2", "L3", "DRAM", "function", "instruction", "source"])];
    for instruction in trace.instructions.iter().take(top) {
        let levels = &instruction.by_level;
        rows.push(vec![
            count(instruction.lines_from_memory),
            count(instruction.accesses),
            figure(&levels.l2),
            figure(&levels.l3),
            figure(&levels.dram),
            short(instruction.function.as_deref().unwrap_or("?"), 40),
            format!("{:#x} {}", instruction.address, instruction.instruction),
            source(instruction),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n  instructions that memory serves most lines for\n{}", draw(&rows, width))
}

fn source(instruction: &TracedInstruction) -> String {
    match (&instruction.file, instruction.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => file_name(&instruction.module),
    }
}

fn over_time(slices: &[BandwidthSlice], width: usize) -> String {
    if slices.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(["from", "to", "read", "write", "of maximum", "mostly for"])];
    for joined in slices.chunks(slices.len().div_ceil(STRETCHES_SHOWN)) {
        // The busiest of those that one row stands for.
        let busiest = joined.iter().max_by(|one, other| total(one).total_cmp(&total(other)));
        let (Some(busiest), Some(first), Some(last)) = (busiest, joined.first(), joined.last()) else {
            continue;
        };
        rows.push(vec![
            seconds(&first.from),
            seconds(&last.to),
            rate(&busiest.read),
            rate(&busiest.write),
            busiest.of_maximum.value().map_or("-".to_owned(), |_| percent(&busiest.of_maximum)),
            short(busiest.function.as_deref().unwrap_or("-"), 40),
        ]);
    }
    let mut text =
        format!("\n  what memory moves over time (the busiest part of each stretch)\n{}", draw(&rows, width));
    if let Some(Quantity::Unresolved { unresolved }) = slices.first().map(|slice| &slice.of_maximum) {
        let _ = writeln!(text, "  of maximum: {unresolved}");
    }
    text
}

fn total(slice: &BandwidthSlice) -> f64 {
    slice.read.value().unwrap_or(0.0) + slice.write.value().unwrap_or(0.0)
}

fn seconds(time: &Quantity) -> String {
    time.value().map_or("-".to_owned(), |time| format!("{time:.2} s"))
}

/// A rate with its interval, as `3.2 [2.9, 3.4] GB/s`.
fn rate(rate: &Quantity) -> String {
    match rate.estimate() {
        Some(rate) => {
            let gb = |bytes: f64| bytes / 1e9;
            format!("{:.2} [{:.2}, {:.2}] GB/s", gb(rate.value), gb(rate.lo), gb(rate.hi))
        }
        None => "-".to_owned(),
    }
}

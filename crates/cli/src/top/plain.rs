//! The same without a terminal: text, or a line of JSON for each screen.

use super::names::Names;
use super::rows::{Function, Key, Row, Rows, Scope, Sum, Worth, percent};
use super::{Sort, TopArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::figures::table::{draw, row};
use insight::PlaceTold;
use insight::samples::{Place, Runs};
use lab::stop::Stop;
use sampler::system::{Machine, Moment, SystemRequest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{Estimate, Quantity, Unit};

const INTERVAL: Duration = Duration::from_secs(5);
/// Functions of a program, and lines of a function, that are printed.
const FUNCTIONS: usize = 5;
const LINES: usize = 5;
/// Where this part of the samples has no name, names are found out again.
const MOST_UNKNOWN: f64 = 0.05;

pub(super) fn run(
    args: &TopArgs,
    machine: &mut Machine,
    request: &SystemRequest,
    stop: Stop,
    console: &Console,
) -> anyhow::Result<Exit> {
    let mut names = Names::new(request);
    let interval = args.interval.unwrap_or(INTERVAL);
    let mut next = Instant::now() + interval;
    let none = HashMap::new();
    for _ in 0..args.number.unwrap_or(u32::MAX) {
        while !stop.asked() && Instant::now() < next {
            machine.round(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(250)));
        }
        next = (next + interval).max(Instant::now());
        machine.read();
        // Names may take a while: what is shown is of now.
        let (window, recent) = machine.recent();
        let recent = recent.to_vec();
        let at = At { window, elapsed: machine.elapsed(), worth: Worth::of(machine, window) };
        let told = |names: &Names| names.latest().map(Arc::clone);
        let before = told(&names);
        let places = before.as_ref().map_or(&none, |named| &named.places);
        let rows = Rows::of(machine, &recent, &Scope::default(), places);
        if before.is_none() || rows.unknown as f64 > MOST_UNKNOWN * rows.samples as f64 {
            names.now(machine);
        }
        let named = told(&names);
        let places = named.as_ref().map_or(&none, |named| &named.places);
        let screen = Screen::of(machine, &recent, at, args, places);
        if console.json() {
            console.stdout(&format!("{}\n", crate::plain::escaped_json(&screen.json().to_string())))?;
        } else {
            console.text(&screen.text(console.width()))?;
        }
        if stop.asked() {
            break;
        }
    }
    Ok(Exit::Done)
}

/// Functions with their lines.
type Functions = Vec<(Row, Vec<Row>)>;

/// When a screen is of.
#[derive(Clone, Copy)]
struct At {
    window: Duration,
    elapsed: Duration,
    worth: Worth,
}

/// One screen.
struct Screen {
    programs: Vec<(Row, Functions)>,
    at: At,
    samples: u64,
    unknown: u64,
    cpus: usize,
    own: f64,
}

impl Screen {
    fn of(
        machine: &Machine,
        recent: &[Moment],
        at: At,
        args: &TopArgs,
        places: &HashMap<Place, PlaceTold>,
    ) -> Self {
        let all = Rows::of(machine, recent, &Scope::default(), places);
        let (samples, unknown) = (all.samples, all.unknown);
        let sorted = |scope: &Scope, most: usize| -> Vec<Row> {
            let mut rows = Rows::of(machine, recent, scope, places).sorted(args.sort, true);
            rows.retain(|row| row.now.samples > 0);
            rows.truncate(most);
            rows
        };
        let functions = |runs: &Arc<Runs>| -> Functions {
            let scope = Scope { program: Some(Arc::clone(runs)), function: None };
            let rows = sorted(&scope, FUNCTIONS);
            let lines = |function: &Function| {
                let scope = Scope { function: Some(function.clone()), ..scope.clone() };
                sorted(&scope, LINES)
            };
            let with_lines = |row: Row| {
                let lines = if let Key::Function(function) = &row.key { lines(function) } else { Vec::new() };
                (row, lines)
            };
            rows.into_iter().map(with_lines).collect()
        };
        let mut programs = all.sorted(args.sort, true);
        programs.retain(|row| row.now.samples > 0);
        programs.truncate(args.top);
        let with_functions = |row: Row| {
            let below = if let Key::Program(runs) = &row.key { functions(runs) } else { Vec::new() };
            (row, below)
        };
        let programs = programs.into_iter().map(with_functions).collect();
        Self { programs, at, samples, unknown, cpus: machine.cpus(), own: machine.own_share() }
    }

    fn text(&self, width: usize) -> String {
        let mut table =
            vec![row(["waits %", "CPU %", "kernel %", "since: waits %", "CPU %", "", "pid", "of"])];
        let cells = |row: &Row, indent: &str| {
            let (now, all) = (row.now, row.all);
            vec![
                percent(now.waits, self.at.worth.now),
                percent(now.samples, self.at.worth.now),
                percent(now.kernel, self.at.worth.now),
                percent(all.waits, self.at.worth.all),
                percent(all.samples, self.at.worth.all),
                format!("{indent}{}", row.key.name()),
                pid(row),
                row.key.detail(),
            ]
        };
        for (program, functions) in &self.programs {
            table.push(cells(program, ""));
            for (function, lines) in functions {
                if !is_worth_a_line(function.now.samples, program) {
                    continue;
                }
                table.push(cells(function, "  "));
                let lines = lines.iter().filter(|line| is_worth_a_line(line.now.waits, program));
                table.extend(lines.map(|line| cells(line, "    ")));
            }
        }
        format!(
            "the last {:.0} s: {} samples, {:.1}% of them in code without a name yet; {:.0} s in all; shares of what \
             {} had to give; gleaner itself {:.2}%\n{}\n",
            self.at.window.as_secs_f64(),
            self.samples,
            100.0 * self.unknown as f64 / self.samples.max(1) as f64,
            self.at.elapsed.as_secs_f64(),
            crate::profile::cpus(self.cpus),
            100.0 * self.own,
            draw(&table, width)
        )
    }

    fn json(&self) -> Value {
        let sum = |sum: Sum, worth: f64| {
            let share = |samples: u64| share(samples, worth);
            json!({ "samples": sum.samples, "time": share(sum.samples), "waits": share(sum.waits), "in_kernel": share(sum.kernel) })
        };
        let base = |row: &Row| json!({ "name": row.key.name(), "now": sum(row.now, self.at.worth.now), "since": sum(row.all, self.at.worth.all) });
        let line = |row: &Row| {
            let mut value = base(row);
            if let Key::Line(file, line) = &row.key {
                value["file"] = json!(file);
                value["line"] = json!(line);
            }
            value
        };
        let function = |(row, lines): &(Row, Vec<Row>)| {
            let mut value = base(row);
            if let Key::Function(function) = &row.key {
                value["module"] = json!(function.module);
                value["address"] = json!(function.start);
            }
            value["lines"] = lines.iter().map(line).collect();
            value
        };
        let program = |(row, functions): &(Row, Functions)| {
            let mut value = base(row);
            if let Key::Program(runs) = &row.key {
                value["is_kernel_thread"] = json!(runs.is_kernel_thread);
                value["group"] = json!(&*runs.group);
            }
            value["processes"] = json!(row.processes);
            if let Some(process) = row.process {
                value["pid"] = json!(process);
            }
            value["functions"] = functions.iter().map(function).collect();
            value
        };
        json!({
            "window_s": self.at.window.as_secs_f64(),
            "elapsed_s": self.at.elapsed.as_secs_f64(),
            "cpus": self.cpus,
            "samples": self.samples,
            "without_name": self.unknown,
            "own": Quantity::measured(Estimate::exact(self.own), Unit::Ratio),
            "programs": self.programs.iter().map(program).collect::<Vec<_>>(),
        })
    }
}

/// Whether this is enough of a program to be told.
fn is_worth_a_line(samples: u64, program: &Row) -> bool {
    const LEAST: f64 = 0.02;
    samples > 0 && samples as f64 >= LEAST * program.now.samples as f64
}

/// A share of what all CPUs had to give.
fn share(samples: u64, worth: f64) -> Quantity {
    let off = 1.96 * (samples as f64).sqrt().max(1.0);
    let share = |samples: f64| samples.max(0.0) * worth;
    let samples = samples as f64;
    Quantity::measured(Estimate::new(share(samples), share(samples - off), share(samples + off)), Unit::Ratio)
}

/// The process, or how many there are.
pub(super) fn pid(row: &Row) -> String {
    match (&row.key, row.process) {
        (Key::Program(_), Some(process)) => process.to_string(),
        (Key::Program(_), None) if row.processes > 0 => format!("{} processes", row.processes),
        _ => String::new(),
    }
}

impl Sort {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Waits => "waiting for memory",
            Self::Time => "CPU time",
            Self::Kernel => "time in the kernel",
            Self::Name => "name",
        }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::Waits => Self::Time,
            Self::Time => Self::Kernel,
            Self::Kernel => Self::Name,
            Self::Name => Self::Waits,
        }
    }
}

//! `gleaner measure --dry-run`: what would be measured, how long that takes, and how much memory it
//! may use.

use super::MeasureArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::figures::table::{self, row};
use crate::live;
use experiments::Request;
use std::fmt::Write;

pub(super) fn run(args: &MeasureArgs, console: &Console) -> anyhow::Result<Exit> {
    if let Some(cpu) = args.cpu {
        crate::cpu::check(cpu)?;
    }
    let host = live::host();
    let (request, _claim) = super::request(args, &host, console)?;
    if console.json() {
        console.value(&as_json(&request, args.repeat))?;
    } else {
        console.text(&as_text(&request, args, console.width()))?;
    }
    Ok(Exit::Done)
}

fn seconds(request: &Request, runs: u32) -> f64 {
    f64::from(runs) * request.experiments.iter().map(|e| e.seconds_at(request.effort)).sum::<f64>()
}

fn as_json(request: &Request, runs: u32) -> serde_json::Value {
    let experiments = request.experiments.iter();
    serde_json::json!({
        "cpu": request.cpu,
        "runs": runs,
        "seconds": seconds(request, runs),
        "memory_bytes": request.max_memory.0,
        "experiments": experiments
            .map(|e| serde_json::json!({ "name": e.name, "seconds": e.seconds_at(request.effort) }))
            .collect::<Vec<_>>(),
    })
}

fn as_text(request: &Request, args: &MeasureArgs, width: usize) -> String {
    let mut rows = vec![row(["experiment", "time", "what it finds"])];
    for entry in &request.experiments {
        rows.push(row([entry.name, &time(entry.seconds_at(request.effort)), entry.about]));
    }
    let mut text = table::draw(&rows, width);
    let runs = if args.repeat > 1 { format!("{} runs, ", args.repeat) } else { String::new() };
    let half = if args.max_memory.is_none() { ": half of what is free; --max-memory lowers it" } else { "" };
    // Writing to a `String` does not fail.
    let _ = writeln!(
        text,
        "\n{runs}about {} in all on CPU {}, longer where other programs use it; areas of at most {}{half}\nnothing was measured",
        time(seconds(request, args.repeat)),
        request.cpu,
        request.max_memory
    );
    text
}

fn time(seconds: f64) -> String {
    if seconds < 99.5 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_do() {
        assert_eq!([time(7.5), time(99.0), time(300.0)], ["8 s", "99 s", "5 min"]);
    }
}

//! `runs`: a row for each harvest.

use super::columns::{float, int, text};
use super::loads::{command, interval};
use super::{Row, Source, Table};
use records::run::{Ended, Process, Run};

pub(super) const TABLE: Table = Table {
    name: "runs",
    about: "A row for each harvest: what it cost the primary, and what it gave the scavengers.",
    own: &[
        text("command", "the primary with its arguments"),
        text("ended", "how it ended: `exited 0`, `killed 9` …"),
        int("scavengers", "programs that ran in its stalls"),
        text("scavenger_commands", "their commands, each once, with semicolons between them"),
        float("wall_seconds", "from the primary's start to its end"),
        float("slowdown", "of the primary: 0.05 is 5%"),
        float("slowdown_lo", "lower end of its 95% interval"),
        float("slowdown_hi", "upper end"),
        float("absence_p50_ns", "median time from a yield to the primary's going on"),
        float("absence_p99_ns", "99th percentile of it"),
        float("absence_max_ns", "the longest one that was timed"),
        float("work", "of all programs together: that of one with a processor alone is 1"),
        float("work_lo", "lower end of its 95% interval"),
        float("work_hi", "upper end"),
        float("guest_yields", "how often guests yielded"),
        int("refusals", "things that were asked for and not done"),
    ],
    rows,
};

fn rows(source: &Source) -> Vec<Row> {
    let Some(run) = source.body::<Run>() else { return Vec::new() };
    let [slowdown, slowdown_lo, slowdown_hi] = interval(&run.slowdown.share);
    let [work, work_lo, work_hi] = interval(&run.work);
    let mut commands: Vec<String> = Vec::new();
    for scavenger in &run.scavengers {
        let command = scavenger.process.command.join(" ");
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    vec![vec![
        command(&run.primary.command),
        ended(&run.primary).into(),
        run.scavengers.len().into(),
        commands.join("; ").into(),
        run.wall.value().into(),
        slowdown,
        slowdown_lo,
        slowdown_hi,
        run.absences.p50.value().into(),
        run.absences.p99.value().into(),
        run.absences.max.value().into(),
        work,
        work_lo,
        work_hi,
        run.yields.guests.value().into(),
        run.refusals.len().into(),
    ]]
}

fn ended(process: &Process) -> String {
    match &process.ended {
        Ended::Exited { code } => format!("exited {code}"),
        Ended::Killed { signal, .. } => format!("killed {signal}"),
        Ended::WithThePrimary => "with the primary".to_owned(),
        Ended::NotStarted { .. } => "not started".to_owned(),
        Ended::Unknown { .. } => "unknown".to_owned(),
    }
}

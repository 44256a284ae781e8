//! Where each program spent the run: sums, for the record does not hold when.

use crate::figure::rows::{Piece, Row, rows};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, cut, escape, figures, name, quantity};
use records::run::{Ended, Process, Run, Scavenger, SiblingThread};
use units::{Estimate, Quantity};

/// Threads and copies that are drawn; the tables have all.
const MOST_ROWS: usize = 24;

// Classes of the figure, in the order of `LEGEND`.
const ALONE: usize = 0;
const BESIDE: usize = 1;
const ABOARD: usize = 2;
const RUNS: usize = 3;
const WAITS: usize = 4;
const AT_HOME: usize = 5;
const NOBODY: usize = 6;

const LEGEND: [&str; 7] = [
    "the primary without guests",
    "the primary with guests aboard",
    "a guest aboard the primary, or aboard another thread",
    "at home, on a CPU",
    "waiting for a CPU at home; threads: to go aboard or return",
    "at home otherwise: asleep, or not known",
    "of the primary: asleep or not watched",
];

fn ended(process: &Process) -> String {
    match &process.ended {
        Ended::Exited { code } => format!("exited with {code}"),
        Ended::Killed { signal, .. } => format!("killed by signal {signal}"),
        Ended::WithThePrimary => "ended with the primary".to_owned(),
        Ended::NotStarted { why } => format!("not started: {}", escape(why)),
        Ended::Unknown { why } => format!("not known: {}", escape(why)),
    }
}

pub(super) fn section(run: &Run, out: &mut Out) {
    out.section("ran", "Programs, and where they ran");
    let table = programs(run);
    siblings(run, out);
    let drawn = drawn(run);
    let nothing_but_primary = drawn.iter().all(|row| row.pieces.iter().all(|piece| piece.class == NOBODY));
    if nothing_but_primary {
        out.missing("Where programs spent their time is not resolved.");
        out.table(&table);
        leaves(run, out);
        return;
    }
    out.say(
        "Sums over the run: when each of them was there is not in the record. A guest aboard has the CPU only \
         while the primary waits for memory.",
    );
    let title = "Where each program spent its time".to_owned();
    let whole = seconds(&run.wall).map_or(0.0, |e| e.value);
    let used = |class: &usize| drawn.iter().any(|row| row.pieces.iter().any(|piece| piece.class == *class));
    let known: Vec<usize> = (0..LEGEND.len()).filter(used).collect();
    let legend: Vec<&str> = known.iter().map(|class| LEGEND[*class]).collect();
    let drawn: Vec<Row> = drawn.into_iter().map(|row| renumbered(row, &known)).collect();
    let svg = rows(&title, "s", whole, &drawn, &legend);
    let differs = "a primary that seldom waits takes few guests aboard; guests that enter the kernel often are at \
                   home; idle CPUs let them run there.";
    out.figure(Figure { id: "ran", title, svg, table, differs });
    leaves(run, out);
}

/// Classes that are used, from the first on: so that letters have no gaps.
fn renumbered(row: Row, known: &[usize]) -> Row {
    let place = |class: usize| known.iter().position(|other| *other == class).unwrap_or(0);
    let pieces = row.pieces.into_iter().map(|piece| Piece { class: place(piece.class), ..piece }).collect();
    Row { pieces, ..row }
}

fn programs(run: &Run) -> Table {
    let command = |process: &Process| name(&cut(&process.command.join(" "), 200));
    let head = [
        "program",
        "role",
        "ended",
        "aboard",
        "at home",
        "running",
        "waiting",
        "lent by the primary",
        "turns aboard",
        "progress",
        "trips home",
    ];
    let mut table = Table::with_head("Programs", &head);
    let none = || Cell::text("");
    let role = if run.together { "carrier" } else { "primary" };
    let mut first =
        vec![Cell::html(command(&run.primary)), Cell::text(role), Cell::html(ended(&run.primary))];
    first.resize_with(head.len(), none);
    table.row(first);
    for scavenger in &run.scavengers {
        let trips = scavenger.trips_home.iter().map(|t| format!("{} × {}", t.count, escape(&t.because)));
        let times = &scavenger.times;
        table.row(vec![
            Cell::html(command(&scavenger.process)),
            Cell::text(&format!("scavenger {}", scavenger.copy)),
            Cell::html(ended(&scavenger.process)),
            Cell::quantity(&times.aboard),
            Cell::quantity(&times.at_home),
            Cell::quantity(&times.running),
            Cell::quantity(&times.waiting),
            Cell::quantity(&times.lent),
            Cell::quantity(&scavenger.turns),
            Cell::quantity(&scavenger.progress),
            Cell::html(trips.collect::<Vec<_>>().join("; ")),
        ]);
    }
    table
}

fn siblings(run: &Run, out: &mut Out) {
    let Some(siblings) = &run.siblings else { return };
    out.say(&format!(
        "{} threads were each other's guests: they went aboard {} times.",
        quantity(&siblings.threads),
        quantity(&siblings.boardings)
    ));
    let mut table = Table::with_head("Threads", &["thread", "boardings", "hosted", "aboard", "waiting"]);
    for thread in &siblings.each {
        table.row(vec![
            Cell::count(u64::from(thread.tid)),
            Cell::quantity(&thread.boardings),
            Cell::quantity(&thread.hosted),
            Cell::quantity(&thread.aboard),
            Cell::quantity(&thread.waiting),
        ]);
    }
    out.table(&table);
}

/// What guests went home for.
fn leaves(run: &Run, out: &mut Out) {
    let head = ["times, at most", "program", "function", "source", "instruction"];
    let mut table = Table::with_head("Where scavengers left their twins, and went home", &head);
    for scavenger in &run.scavengers {
        let program = scavenger.process.command.first().map_or("?", |c| base(c));
        for leave in &scavenger.leaves {
            let place = &leave.place;
            let source = place.source.as_ref().map_or_else(
                || format!("{}+{:#x}", base(&leave.file), place.address),
                |s| format!("{}:{}", base(&s.file), s.line),
            );
            table.row(vec![
                Cell::count(leave.count),
                Cell::html(name(&format!("{program} {}", scavenger.copy))),
                Cell::html(name(place.function.as_deref().unwrap_or("?"))),
                Cell::html(name(&source)),
                Cell::html(format!("<code>{}</code>", escape(&place.instruction))),
            ]);
        }
    }
    out.table(&table);
}

fn drawn(run: &Run) -> Vec<Row> {
    let wall = seconds(&run.wall);
    let mut all = Vec::new();
    if !run.together {
        all.extend(primary(run, wall));
    }
    all.extend(run.scavengers.iter().filter_map(scavenger));
    all.extend(run.siblings.iter().flat_map(|siblings| &siblings.each).filter_map(thread));
    all.truncate(MOST_ROWS);
    all
}

fn piece(class: usize, what: &str, length: Estimate) -> Piece {
    Piece { class, length, says: format!("{what}: {} s", figures(length)) }
}

/// What a part of another time leaves of it.
fn rest(of: Estimate, part: Estimate) -> Option<Estimate> {
    (of.value > part.value).then(|| of.minus(part))
}

/// Its threads may be watched for longer together than the run takes.
fn primary(run: &Run, wall: Option<Estimate>) -> Option<Row> {
    let watched = seconds(&run.slowdown.watched)?;
    let beside = seconds(&run.slowdown.with_guests).unwrap_or(Estimate::exact(0.0));
    let mut pieces: Vec<Piece> =
        rest(watched, beside).map(|length| piece(ALONE, LEGEND[ALONE], length)).into_iter().collect();
    pieces.push(piece(BESIDE, LEGEND[BESIDE], beside));
    let asleep = wall.and_then(|wall| rest(wall, watched));
    pieces.extend(asleep.map(|length| piece(NOBODY, LEGEND[NOBODY], length)));
    let program = run.primary.command.first().map_or("?", |c| base(c));
    Some(Row { name: format!("{program}, primary"), pieces })
}

fn scavenger(scavenger: &Scavenger) -> Option<Row> {
    let times = &scavenger.times;
    let aboard = seconds(&times.aboard);
    let home = seconds(&times.at_home);
    if aboard.is_none() && home.is_none() {
        return None;
    }
    let mut pieces: Vec<Piece> =
        aboard.map(|length| piece(ABOARD, LEGEND[ABOARD], length)).into_iter().collect();
    if let Some(home) = home {
        // Both are of its thread's whole life; no more of them than there is of the time at home.
        let mut left = home;
        for (class, what) in [(RUNS, &times.running), (WAITS, &times.waiting)] {
            let Some(length) = seconds(what) else { continue };
            let length = if length.value > left.value { left } else { length };
            pieces.push(piece(class, LEGEND[class], length));
            left = rest(left, length).unwrap_or(Estimate::exact(0.0));
        }
        pieces.push(piece(AT_HOME, LEGEND[AT_HOME], left));
    }
    let program = scavenger.process.command.first().map_or("?", |c| base(c));
    Some(Row { name: format!("{program} {}", scavenger.copy), pieces })
}

fn thread(thread: &SiblingThread) -> Option<Row> {
    let (aboard, waiting) = (seconds(&thread.aboard)?, seconds(&thread.waiting)?);
    let pieces =
        vec![piece(ABOARD, "aboard other threads", aboard), piece(WAITS, "waiting to go aboard", waiting)];
    Some(Row { name: format!("thread {}", thread.tid), pieces })
}

/// A time in seconds, whatever its unit.
pub(super) fn seconds(q: &Quantity) -> Option<Estimate> {
    let Quantity::Resolved { unit, .. } = q else { return None };
    let factor = match unit {
        units::Unit::Nanos => 1e-9,
        units::Unit::Micros => 1e-6,
        units::Unit::Seconds => 1.0,
        _ => return None,
    };
    q.estimate().map(|e| e.scaled(factor))
}

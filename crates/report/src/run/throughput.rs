//! Throughput against latency: what the programs of a harvest did together, by what the primary
//! paid for it; a point for each harvest.

use crate::figure::scatter::{Dot, Scatter, letter};
use crate::parts::{Cell, Figure, Table};
use crate::text::{base, cut, escape, figures, number, percent};
use records::run::Run;
use units::{Estimate, Quantity};

/// Lines of bounds that are drawn.
const MOST_BOUNDS: usize = 6;

/// The figure of these harvests, and what is to be said of each that has no point in it.
pub(crate) fn figure(runs: &[(String, Run)]) -> (Option<Figure>, Vec<String>) {
    let mut without = Vec::new();
    let mut drawn: Vec<Drawn<'_>> = Vec::new();
    for (record, run) in runs {
        match (run.slowdown.share.estimate(), run.work.estimate()) {
            (Some(slowdown), Some(work)) => drawn.push(Drawn { record, run, slowdown, work }),
            (slowdown, _) => {
                let (what, missing) = if slowdown.is_none() {
                    ("the primary's slowdown", &run.slowdown.share)
                } else {
                    ("the work of all", &run.work)
                };
                without.push(format!("{} has no point: {what}: {}", escape(base(record)), why(missing)));
            }
        }
    }
    if drawn.is_empty() {
        return (None, without);
    }
    let groups = groups(&drawn);
    let place = |drawn: &Drawn<'_>| groups.iter().position(|group| *group == drawn.pair()).unwrap_or(0);
    // Along each line from the tightest bound to the loosest.
    drawn.sort_by(|a, b| {
        let bound = |d: &Drawn<'_>| d.run.bounds.max_slowdown.value().unwrap_or(f64::INFINITY);
        place(a)
            .cmp(&place(b))
            .then(bound(a).total_cmp(&bound(b)))
            .then(a.slowdown.value.total_cmp(&b.slowdown.value))
    });
    let one = drawn.len() == 1;
    let dots = drawn.iter().map(|drawn| Dot {
        name: drawn.name(one),
        x: drawn.slowdown.scaled(100.0),
        y: drawn.work,
        class: place(drawn),
        says: format!(
            "{}: work {}, slowdown {}",
            drawn.name(one),
            figures(drawn.work),
            percent(drawn.slowdown)
        ),
    });
    let title = title(&drawn);
    let scatter = Scatter {
        title: title.clone(),
        x: "slowdown of the primary (%)".to_owned(),
        y: "work of all together".to_owned(),
        dots: dots.collect(),
        at_x: bounds(&drawn),
        at_y: vec![(1.0, "one program alone on a CPU, or several in turn".to_owned())],
    };
    let differs = "a primary that seldom waits for memory leaves little to others; scavengers that have other CPUs at \
                   home do some of the work there; tighter bounds buy latency for work.";
    let figure = Figure { id: "throughput", title, svg: scatter.svg(), table: table(&drawn), differs };
    (Some(figure), without)
}

struct Drawn<'a> {
    record: &'a str,
    run: &'a Run,
    slowdown: Estimate,
    work: Estimate,
}

impl Drawn<'_> {
    /// Harvests of the same primary and scavengers are points of one line.
    fn pair(&self) -> (String, Vec<String>) {
        let mut guests: Vec<String> =
            self.run.scavengers.iter().map(|it| it.process.command.join(" ")).collect();
        guests.sort();
        (self.run.primary.command.join(" "), guests)
    }

    fn name(&self, one: bool) -> String {
        let run = self.run;
        let program = |command: &[String]| command.first().map_or("?", |c| base(c)).to_owned();
        let primary = program(&run.primary.command);
        let mut guests: Vec<String> = run.scavengers.iter().map(|it| program(&it.process.command)).collect();
        guests.dedup();
        let beside = match (run.scavengers.len(), &guests[..]) {
            (0, _) => "alone".to_owned(),
            (1, [guest]) => format!("beside {guest}"),
            (n, [guest]) => format!("beside {n} × {guest}"),
            (n, _) => format!("beside {n} programs"),
        };
        let allowed = run
            .bounds
            .max_slowdown
            .value()
            .map_or_else(String::new, |share| format!(", {}% allowed", number(100.0 * share)));
        let record = if one { String::new() } else { format!("{}: ", base(self.record)) };
        format!("{record}{primary} {beside}{allowed}")
    }
}

fn groups(drawn: &[Drawn<'_>]) -> Vec<(String, Vec<String>)> {
    let mut groups = Vec::new();
    for drawn in drawn {
        let pair = drawn.pair();
        if !groups.contains(&pair) {
            groups.push(pair);
        }
    }
    groups
}

fn title(drawn: &[Drawn<'_>]) -> String {
    let most = drawn.iter().max_by(|a, b| a.work.value.total_cmp(&b.work.value));
    match most {
        Some(most) if most.work.lo > 1.0 && most.work.value.is_finite() => format!(
            "{} times the work of one program on a CPU, for a slowdown of {}%",
            number((100.0 * most.work.value).round() / 100.0),
            number((1000.0 * most.slowdown.value).round() / 10.0),
        ),
        _ => "What all programs did together, by what the primary paid for it".to_owned(),
    }
}

/// The bounds that were asked for, each once.
fn bounds(drawn: &[Drawn<'_>]) -> Vec<(f64, String)> {
    let asked = drawn.iter().filter_map(|drawn| drawn.run.bounds.max_slowdown.value());
    let mut all: Vec<f64> = asked.map(|share| 100.0 * share).filter(|at| at.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all.truncate(MOST_BOUNDS);
    all.into_iter().map(|at| (at, format!("allowed: {}%", number(at)))).collect()
}

fn table(drawn: &[Drawn<'_>]) -> Table {
    let head = [
        "point",
        "record",
        "primary",
        "scavengers",
        "slowdown allowed",
        "slowdown",
        "99% of absences are shorter than",
        "longest absence allowed",
        "work of all",
    ];
    let mut table = Table::with_head("Work and slowdown", &head);
    for (n, drawn) in drawn.iter().enumerate() {
        let run = drawn.run;
        let program = run.primary.command.join(" ");
        table.row(vec![
            Cell::text(&letter(n).to_string()),
            Cell::text(base(drawn.record)),
            Cell::html(crate::text::name(&cut(&program, 80))),
            Cell::count(run.scavengers.len() as u64),
            Cell::share(&run.bounds.max_slowdown),
            Cell::share(&run.slowdown.share),
            Cell::quantity(&run.absences.p99),
            Cell::quantity(&run.bounds.max_absence),
            Cell::quantity(&run.work),
        ]);
    }
    table.note.push_str(
        "Work is the primary's, as a share of what it does alone, and each scavenger's pace; 1 is what one \
                  program does that has a CPU to itself.",
    );
    table
}

fn why(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Unresolved { unresolved } => escape(unresolved),
        Quantity::Resolved { .. } => String::new(),
    }
}

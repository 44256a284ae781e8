//! Latency over size, and each plateau in a sentence.

use super::{plot, refused_pages};
use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Out, Table};
use crate::text::{escape, number, quantity, size};
use records::machine::{Access, LatencyCurves, Level, Machine, Pattern, SingleLoads};

pub(super) fn figures(machine: &Machine, curves: &LatencyCurves, out: &mut Out) {
    plateaus(&machine.levels, out);
    let levels = machine.levels.iter();
    let marks = levels
        .filter_map(|l| Some(Mark::at(l.size_claimed.value()?, format!("{} claimed", l.name))))
        .collect();
    let (first, last) = (machine.levels.first(), machine.levels.last());
    let ns = |level: Option<&Level>| level.and_then(|l| l.latency.ns.value());
    let title = match (ns(first), ns(last)) {
        (Some(near), Some(far)) if near > 0.0 => format!(
            "Each step is the end of a cache: a random load costs {} times as much from {} as from {}",
            number((far / near).round()),
            last.map_or("the last", |l| if l.name == "DRAM" { "memory" } else { &l.name }),
            first.map_or("the first", |l| &l.name)
        ),
        _ => "Each step is the end of a cache".to_owned(),
    };
    let series = curves.curves.iter().map(|curve| {
        let pattern = match curve.pattern {
            Pattern::Random => "random",
            Pattern::Windowed => "random in windows",
            Pattern::Forward => "forward",
            Pattern::Backward => "backward",
            Pattern::Stride => "in strides",
        };
        let access = if curve.access == Access::Read { "" } else { ", written too" };
        let points = curve.points.iter().filter_map(|p| Some((p.size.0 as f64, p.latency.ns.estimate()?)));
        Series { name: format!("{pattern}{access}, {} pages", curve.pages.asked), points: points.collect() }
    });
    let figure = Plot {
        title,
        x: ("memory that is read".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("time of a load (ns)".to_owned(), Scale::Log),
        series: series.collect(),
        marks,
    };
    let differs = "caches that other guests or CPUs fill end earlier than claimed; small pages add page walks, \
                   which begin where the TLB no longer reaches; prefetchers flatten all but random orders.";
    plot(out, "latency", figure, differs);
    single(&curves.single, out);
    refused_pages(&curves.pages_refused, out);
}

/// Most loads, and the slowest ones: what the tail of a request is made of.
fn single(levels: &[SingleLoads], out: &mut Out) {
    let head = ["level", "area", "half below", "99% below", "99.9% below", "loads timed"];
    let mut table = Table::with_head("Single loads, each timed by itself", &head);
    for level in levels {
        table.row(vec![
            Cell::text(&level.level),
            Cell::sorted(size(level.area.0 as f64), level.area.0 as f64),
            Cell::quantity(&level.p50.ns),
            Cell::quantity(&level.p99.ns),
            Cell::quantity(&level.p999.ns),
            Cell::count(level.shots),
        ]);
    }
    if let Some(level) = levels.first() {
        table.note = format!(
            "Less what reading the clock takes, {}; loads that an interrupt met count.",
            level.clock.ns.brief()
        );
    }
    out.table(&table);
}

fn plateaus(levels: &[Level], out: &mut Out) {
    let mut sentences = Vec::new();
    let mut before: Option<&Level> = None;
    for level in levels {
        let name = escape(&level.name);
        let (Some(ns), Some(cycles)) = (level.latency.ns.value(), level.latency.cycles.value()) else {
            sentences.push(format!("<strong>{name}</strong>: {}.", quantity(&level.latency.ns)));
            continue;
        };
        let reach = match (level.size.value(), level.size_claimed.value()) {
            (Some(_), Some(claimed)) => {
                let held =
                    level.size.estimate().is_some_and(|e| (e.lo * 0.9..=e.hi * 1.1).contains(&claimed));
                let judged = if held { "as claimed" } else { "where the host claims" };
                let claimed = if held { String::new() } else { format!(" {}", size(claimed)) };
                format!("serves up to {} ({judged}{claimed})", quantity(&level.size))
            }
            (Some(_), None) => format!("serves up to {}; the host claims nothing", quantity(&level.size)),
            (None, _) if level.name == "DRAM" => "serves the rest".to_owned(),
            (None, _) => format!("has an end that is {}", quantity(&level.size)),
        };
        let against = before.and_then(|b| Some((b, b.latency.ns.value()?)));
        let against = against.filter(|(_, near)| *near > 0.0).map_or_else(String::new, |(b, near)| {
            format!(", {} times as long as {}", number((ns / near * 10.0).round() / 10.0), escape(&b.name))
        });
        let waste = if cycles >= 100.0 {
            let lost = (cycles * 4.0 / 100.0).round() * 100.0;
            format!(
                " In that time a core that issues four instructions a cycle loses about {}.",
                number(lost)
            )
        } else {
            String::new()
        };
        let note = level.note.as_deref().map_or_else(String::new, |n| format!(" Note: {}.", escape(n)));
        sentences.push(format!(
            "<strong>{name}</strong> {reach}. A load takes {}, {}{against}.{waste}{note}",
            quantity(&level.latency.ns),
            quantity(&level.latency.cycles),
        ));
        before = Some(level);
    }
    out.list(&sentences);
    let mut table = Table::with_head("Levels", &["level", "size", "size claimed", "time", "cycles"]);
    for level in levels {
        table.row(vec![
            Cell::text(&level.name),
            Cell::quantity(&level.size),
            Cell::quantity(&level.size_claimed),
            Cell::quantity(&level.latency.ns),
            Cell::quantity(&level.latency.cycles),
        ]);
    }
    if levels.is_empty() {
        out.missing("No levels could be told apart.");
    }
    out.table(&table);
}

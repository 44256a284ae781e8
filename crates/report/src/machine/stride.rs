//! Strides over sizes, and what patterns reveal of prefetchers.

use super::plot;
use crate::figure::axis::{Numbers, Scale};
use crate::figure::heat::{Heat, heat};
use crate::figure::plot::{Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{escape, figures as in_figures, quantity, size};
use records::machine::{Direction, Prefetching, Probe, Stride};
use units::Bytes;

pub(super) fn strides(stride: &Stride, out: &mut Out) {
    out.say(&format!(
        "Words are loaded together up to a distance of {}: that is a cache line; the host says {}.",
        quantity(&stride.line),
        quantity(&stride.line_claimed)
    ));
    for direction in [Direction::Forward, Direction::Backward] {
        map(stride, direction, out);
    }
    let mut table = Table::with_head(
        "How far strides may reach for prefetchers to follow",
        &["size", "forward", "backward", "best is faster than random"],
    );
    for followed in &stride.followed {
        table.row(vec![
            Cell::sorted(size(followed.size.0 as f64), followed.size.0 as f64),
            Cell::quantity(&followed.forward),
            Cell::quantity(&followed.backward),
            Cell::quantity(&followed.gain),
        ]);
    }
    out.table(&table);
    let figure = Plot {
        title: "Two words at a random place: the step is where they are no longer loaded together".to_owned(),
        x: ("their distance".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("mean time of the two loads (ns)".to_owned(), Scale::Linear),
        series: vec![Series {
            name: "pairs".to_owned(),
            points: stride
                .pairs
                .iter()
                .filter_map(|p| Some((p.distance.0 as f64, p.latency.ns.estimate()?)))
                .collect(),
        }],
        marks: Vec::new(),
    };
    let differs =
        "some processors load the neighbouring line, too, which puts a second step at twice the line.";
    plot(out, "pairs", figure, differs);
}

fn map(stride: &Stride, direction: Direction, out: &mut Out) {
    let points: Vec<_> = stride.points.iter().filter(|p| p.direction == direction).collect();
    let mut sizes: Vec<Bytes> = points.iter().map(|p| p.size).collect();
    let mut strides: Vec<Bytes> = points.iter().map(|p| p.stride).collect();
    for all in [&mut sizes, &mut strides] {
        all.sort_unstable();
        all.dedup();
    }
    let word = direction.word();
    let mut table = Table::new(&format!("Strides, {word}"));
    table.head = std::iter::once("size".to_owned()).chain(strides.iter().map(|s| size(s.0 as f64))).collect();
    table.note.push_str("Time of a load in ns, each with its 95% interval; across, the stride.");
    let mut cells = Vec::new();
    for large in &sizes {
        let mut row = vec![Cell::sorted(size(large.0 as f64), large.0 as f64)];
        for far in &strides {
            let found = points.iter().find(|p| p.size == *large && p.stride == *far);
            let estimate = found.and_then(|p| p.latency.ns.estimate());
            row.push(estimate.map_or_else(|| Cell::text(""), |e| Cell::plain(in_figures(e))));
            cells.push(estimate);
        }
        table.row(row);
    }
    if cells.iter().all(Option::is_none) {
        out.missing(&format!("Strides, {word}: no point of it could be resolved."));
        return;
    }
    let title = format!("Strides {word}: dark is fast; prefetchers give up where it turns bright");
    let names = |all: &[Bytes]| all.iter().map(|s| size(s.0 as f64)).collect();
    let svg = heat(&Heat {
        title: title.clone(),
        across: ("stride".to_owned(), names(&strides)),
        down: ("memory that is accessed".to_owned(), names(&sizes)),
        of: "ns of a load".to_owned(),
        logarithmic: true,
        cells,
    });
    let id = if direction == Direction::Forward { "stride-forward" } else { "stride-backward" };
    let differs = "prefetchers stop at pages, so larger pages let them follow longer strides; a hypervisor or firmware \
                   may switch some of them off.";
    out.figure(Figure { id, title, svg, table, differs });
}

pub(super) fn prefetchers(prefetching: &Prefetching, out: &mut Out) {
    let control = &prefetching.control;
    let begin = if control.switched { "They were switched" } else { "They could not be switched" };
    let help = control.would_help.as_deref();
    let help = help.map_or_else(String::new, |h| format!(" What would help: {}.", escape(h)));
    out.say(&format!("{begin}: {}.{help}", escape(&control.detail)));
    for revealed in &prefetching.revealed {
        let remarks: Vec<_> = revealed.remarks.iter().map(|r| escape(r)).collect();
        out.say(&format!("In {}:", size(revealed.size.0 as f64)));
        out.list(&remarks);
    }
    let mut table = Table::with_head(
        "What patterns reveal",
        &[
            "size",
            "lines ahead, forward",
            "backward",
            "learns after",
            "longest stride",
            "streams",
            "page boundary",
        ],
    );
    for revealed in &prefetching.revealed {
        let figures = [
            &revealed.ahead_forward,
            &revealed.ahead_backward,
            &revealed.learns_after,
            &revealed.longest_stride,
            &revealed.streams,
            &revealed.page_crossing,
        ];
        let first = Cell::sorted(size(revealed.size.0 as f64), revealed.size.0 as f64);
        table.row(std::iter::once(first).chain(figures.map(Cell::quantity)).collect());
    }
    out.table(&table);
    let Some(largest) = prefetching.revealed.iter().map(|r| r.size).max() else { return };
    let series = prefetching.states.iter().map(|state| {
        let points = state.probes.iter().filter(|p| p.size == largest).filter_map(|p| match p.probe {
            Probe::Run { lines } => Some((lines as f64, p.latency.ns.estimate()?)),
            _ => None,
        });
        Series { name: state.name.clone(), points: points.collect() }
    });
    let figure = Plot {
        title: format!(
            "Runs of neighbouring lines in {}: the longer, the more come early",
            size(largest.0 as f64)
        ),
        x: ("lines in a run".to_owned(), Scale::Log, Numbers::Whole),
        y: ("time of a load (ns)".to_owned(), Scale::Log),
        series: series.collect(),
        marks: Vec::new(),
    };
    let differs = "each maker's prefetchers learn after another number of lines.";
    plot(out, "prefetch-runs", figure, differs);
}

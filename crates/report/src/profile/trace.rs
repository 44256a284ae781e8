//! All accesses through a model of the caches: what memory moves over time, how much of the run is
//! near the most that it can, and which instructions it serves.

use crate::figure::axis::{Numbers, Scale};
use crate::figure::bars::{Bar, bars};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, quantity, share};
use records::profile::{BandwidthSlice, Profile, Trace, TracedInstruction};
use units::{Estimate, Quantity};

const GB: f64 = 1e-9;
/// A time that is selected has all of its slices; traces have a hundred.
const MOST_SLICES: usize = 200;
/// Bars of the histogram.
const CLASSES: usize = 10;

pub(crate) fn sections(profile: &Profile, out: &mut Out) {
    let Some(trace) = &profile.trace else { return };
    out.section("trace", "All accesses, through a model of the caches");
    summary(trace, out);
    over_time(&profile.bandwidth, out);
    histogram(&profile.bandwidth, out);
    instructions(trace, out);
}

fn summary(trace: &Trace, out: &mut Out) {
    let model = &trace.model;
    let levels = &trace.by_level;
    let victim = if model.l3_is_victim { ", which holds what L2 replaces" } else { "" };
    out.say(&format!(
        "A second run, {} times as long, told {} accesses of code that takes {} of the CPU time outside the kernel. They went \
         through a model of L1 {}, L2 {} and L3 {}{victim}, with pages of {} ({}). L1 serves {}, L2 {}, L3 {}, \
         memory {}; {} go beyond L2 and are foreseen by a prefetcher; {} take a walk of the page tables. \
         Memory reads {} and writes {}.",
        quantity(&trace.slowdown),
        trace.accesses,
        share(&trace.covered),
        model.l1,
        model.l2,
        model.l3,
        model.page,
        escape(&model.because),
        share(&levels.l1),
        share(&levels.l2),
        share(&levels.l3),
        share(&levels.dram),
        share(&levels.expected),
        share(&levels.walks),
        quantity(&trace.read),
        quantity(&trace.written),
    ));
    for module in &trace.left_out {
        out.missing(&format!(
            "Not traced: {}, {} of the CPU time: {}.",
            name(base(&module.module)),
            share(&module.time),
            escape(&module.why)
        ));
    }
}

fn over_time(slices: &[BandwidthSlice], out: &mut Out) {
    let middle = |slice: &BandwidthSlice| Some(f64::midpoint(slice.from.value()?, slice.to.value()?));
    let series = |name: &str, of: fn(&BandwidthSlice) -> &Quantity| Series {
        name: name.to_owned(),
        points: slices
            .iter()
            .filter_map(|slice| Some((middle(slice)?, of(slice).estimate()?.scaled(GB))))
            .collect(),
    };
    let plot = Plot {
        title: "What memory reads and writes over time".to_owned(),
        x: ("time of the run (s)".to_owned(), Scale::Linear, Numbers::Plain),
        y: ("GB/s".to_owned(), Scale::Linear),
        series: vec![series("read", |slice| &slice.read), series("write", |slice| &slice.write)],
        marks: changes(slices),
    };
    let plot = plot.prepared_up_to(MOST_SLICES);
    if plot.is_empty() {
        out.missing("What memory moves over time is not known: the run had too few accesses.");
        return;
    }
    let mut table = plot.table();
    let shares = slices.iter().any(|slice| slice.of_maximum.value().is_some());
    table.head.extend(shares.then(|| "of the maximum".to_owned()));
    table.head.push("mostly for".to_owned());
    for (row, x) in table.rows.iter_mut().zip(plot.xs()) {
        let slice = slices.iter().find(|slice| middle(slice) == Some(x));
        let function = slice.and_then(|slice| slice.function.as_deref());
        if shares {
            row.push(slice.map_or_else(|| Cell::text(""), |slice| Cell::share(&slice.of_maximum)));
        }
        row.push(Cell::html(function.map_or_else(String::new, name)));
    }
    let differs = "another last level keeps more or less of the data; the times are this machine's.";
    let (title, svg) = (plot.title.clone(), plot.brushed_svg());
    out.figure(Figure { id: "memory-over-time", title, svg, table, differs });
}

/// Where another function begins to be what memory works for, the longest stretches first.
fn changes(slices: &[BandwidthSlice]) -> Vec<Mark> {
    const MOST: usize = 6;
    let mut stretches: Vec<(usize, &str, f64)> = Vec::new();
    for slice in slices {
        let Some((function, from)) = slice.function.as_deref().zip(slice.from.value()) else { continue };
        match stretches.last_mut() {
            Some((length, last, _)) if *last == function => *length += 1,
            _ => stretches.push((1, function, from)),
        }
    }
    stretches.sort_by_key(|&(length, ..)| std::cmp::Reverse(length));
    stretches.truncate(MOST);
    stretches.into_iter().map(|(_, name, x)| Mark::at(x, name)).collect()
}

/// How much of the run memory spends at which part of its maximum.
fn histogram(slices: &[BandwidthSlice], out: &mut Out) {
    let mut counts = [0_usize; CLASSES];
    let shares: Vec<f64> = slices.iter().filter_map(|slice| slice.of_maximum.value()).collect();
    if shares.is_empty() {
        if let Some(Quantity::Unresolved { unresolved }) = slices.first().map(|slice| &slice.of_maximum) {
            out.missing(&format!("How near that is to the maximum: {}.", escape(unresolved)));
        }
        return;
    }
    for share in &shares {
        counts[((share * CLASSES as f64) as usize).min(CLASSES - 1)] += 1;
    }
    let mut table = Table::with_head("Time by bandwidth", &["of the maximum", "of the time"]);
    let mut drawn = Vec::new();
    for (class, &count) in counts.iter().enumerate() {
        let part = 100.0 * count as f64 / shares.len() as f64;
        let width = 100 / CLASSES;
        let last = class + 1 == CLASSES;
        let range = if last {
            format!("{}% and more", class * width)
        } else {
            format!("{} to {}%", class * width, (class + 1) * width)
        };
        table.row(vec![Cell::text(&range), Cell::sorted(format!("{part:.0}%"), part)]);
        let shown = format!("{part:.0}%");
        drawn.push(Bar { name: range, value: Estimate::exact(part), shown, class: usize::from(class < 7) });
    }
    let title = "How much of the time memory moves which part of its maximum".to_owned();
    let svg = bars(&title, "% of the time", &drawn);
    let differs = "the maximum is what this machine's CPUs drew from memory, by 'gleaner measure'.";
    out.figure(Figure { id: "memory-histogram", title, svg, table, differs });
}

fn instructions(trace: &Trace, out: &mut Out) {
    let mut table = Table::with_head(
        "Instructions, most lines from memory first",
        &[
            "lines from memory",
            "accesses",
            "L1",
            "L2",
            "L3",
            "DRAM",
            "foreseen",
            "page walks",
            "source",
            "function",
            "instruction",
        ],
    );
    for instruction in &trace.instructions {
        let levels = &instruction.by_level;
        table.row(vec![
            Cell::count(instruction.lines_from_memory),
            Cell::count(instruction.accesses),
            Cell::share(&levels.l1),
            Cell::share(&levels.l2),
            Cell::share(&levels.l3),
            Cell::share(&levels.dram),
            Cell::share(&levels.expected),
            Cell::share(&levels.walks),
            Cell::html(name(&place(instruction))),
            Cell::html(name(instruction.function.as_deref().unwrap_or("?"))),
            Cell::html(format!("<code>{}</code>", escape(&instruction.instruction))),
        ]);
    }
    out.table(&table);
}

fn place(instruction: &TracedInstruction) -> String {
    match (&instruction.file, instruction.line) {
        (Some(file), Some(line)) => format!("{}:{line}", base(file)),
        _ => format!("{}+{:#x}", base(&instruction.module), instruction.address),
    }
}

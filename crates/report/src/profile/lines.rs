//! Cache lines that threads share, as maps: which thread uses which bytes.

use crate::figure::bytes::{ByteMap, Span, byte_map};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, name, percent, share};
use records::profile::{LinePart, Profile, SharedLine, Sharing};
use std::collections::BTreeSet;
use units::Quantity;

/// Lines that are drawn, most stall first; the table has all.
const DRAWN: usize = 6;
const LINE_BYTES: u32 = 64;
/// The column in front of which a thread's process stands, where several share lines.
const THREAD_COLUMN: usize = 4;

pub(super) fn lines(profile: &Profile, out: &mut Out) {
    if profile.lines.is_empty() {
        return;
    }
    out.section("lines", "Cache lines that threads share");
    let by_latency = profile.sampling.backend.samples_accesses();
    let weight = if by_latency { "share of latency" } else { "stall" };
    // Threads of one process need no such column.
    let by_process = profile.lines.iter().any(|line| line.processes.len() > 1);
    let mut head =
        vec!["data", "sharing", "line", "bytes", "thread", "writes", "reads", weight, "function", "source"];
    if by_process {
        head.insert(THREAD_COLUMN, "process");
    }
    let mut table = Table::with_head("Accesses to shared lines, by line, offset and thread", &head);
    for line in &profile.lines {
        for part in &line.parts {
            let mut row = row(line, part);
            if by_process {
                row.insert(THREAD_COLUMN, Cell::plain(process(line, part).to_string()));
            }
            table.row(row);
        }
    }
    let maps: Vec<ByteMap> = profile.lines.iter().take(DRAWN).map(map).collect();
    let worst = &profile.lines[0];
    let data = worst.object.as_deref().unwrap_or("data without a name");
    let title = match worst.sharing {
        Sharing::False => format!("Threads use different bytes of one line: {data}"),
        Sharing::True => format!("Threads use the same bytes: {data}"),
        Sharing::Latent => format!("Threads use lines side by side: {data}"),
    };
    let svg = byte_map(&title, &maps);
    out.say(
        "A row is a thread, a column a byte of the line. Where one column has several rows, threads use the same bytes; \
         where the rows of a line stand apart, padding parts them.",
    );
    let differs = "where data lies within its line hangs on the allocator and on the compiler.";
    out.figure(Figure { id: "lines", title, svg, table, differs });
}

/// Stall where there is time, latency where the hardware sampled loads.
fn weight<'q>(stall: &'q Quantity, latency_share: &'q Quantity) -> &'q Quantity {
    if stall.value().is_some() { stall } else { latency_share }
}

/// The process of a part's thread.
fn process(line: &SharedLine, part: &LinePart) -> u32 {
    part.process.unwrap_or(line.process)
}

fn row(line: &SharedLine, part: &LinePart) -> Vec<Cell> {
    let source = match (&part.file, part.line) {
        (Some(file), Some(line)) => name(&format!("{}:{line}", base(file))),
        _ => String::new(),
    };
    let last = part.offset + part.bytes.max(1) - 1;
    vec![
        Cell::html(part.object.as_ref().or(line.object.as_ref()).map_or_else(String::new, |data| name(data))),
        Cell::text(part.sharing.map_or("", Sharing::word)),
        Cell::text(&format!("{:#x}", line.address)),
        Cell::plain(format!("{}–{last}", part.offset)),
        Cell::count(u64::from(part.thread)),
        Cell::count(part.writes),
        Cell::count(part.reads),
        Cell::share(weight(&part.stall, &part.latency_share)),
        Cell::html(part.function.as_deref().map_or_else(String::new, name)),
        Cell::html(source),
    ]
}

fn map(line: &SharedLine) -> ByteMap {
    let thread = |part: &LinePart| (process(line, part), part.thread);
    let threads: BTreeSet<(u32, u32)> = line.parts.iter().map(thread).collect();
    let threads: Vec<(u32, u32)> = threads.into_iter().collect();
    let called = |(process, thread): (u32, u32)| {
        if line.processes.len() > 1 {
            format!("process {process}, thread {thread}")
        } else {
            format!("thread {thread}")
        }
    };
    let reach = line.parts.iter().map(|part| part.offset + part.bytes).max().unwrap_or(0);
    let shares = line.parts.iter().filter_map(|part| weight(&part.stall, &part.latency_share).value());
    let most = shares.fold(0.0, f64::max);
    let of = if line.stall.value().is_some() { "CPU time" } else { "latency of all sampled loads" };
    let span = |part: &LinePart| Span {
        row: threads.iter().position(|of| *of == thread(part)).unwrap_or(0),
        from: part.offset,
        bytes: part.bytes.max(1),
        weight: weight(&part.stall, &part.latency_share)
            .value()
            .map_or(0.0, |share| if most > 0.0 { share / most } else { 0.0 }),
        is_written: part.writes > 0,
        says: format!(
            "{} {} bytes {} to {}: {} of the {of}{}",
            called(thread(part)),
            if part.writes > 0 { "writes" } else { "reads" },
            part.offset,
            part.offset + part.bytes.max(1) - 1,
            weight(&part.stall, &part.latency_share)
                .estimate()
                .map_or_else(|| "an unknown part".to_owned(), percent),
            part.function.as_ref().map_or(String::new(), |function| format!(", in {function}")),
        ),
    };
    ByteMap {
        title: format!(
            "{} of the {of}, {} sharing: {}",
            share(weight(&line.stall, &line.latency_share)),
            line.sharing.word(),
            line.object.as_deref().unwrap_or("data without a name"),
        ),
        rows: threads.iter().map(|&thread| called(thread)).collect(),
        bytes: reach.max(1).next_multiple_of(LINE_BYTES),
        spans: line.parts.iter().map(span).collect(),
    }
}

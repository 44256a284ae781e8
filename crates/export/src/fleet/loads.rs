//! `loads`: a row for each load that a profiled program waited for.

use super::columns::{float, int, text};
use super::{Cell, Row, Source, Table};
use records::profile::Profile;
use units::Quantity;

pub(super) const TABLE: Table = Table {
    name: "loads",
    about: "A row for each load that a profiled program waited for.",
    own: &[
        text("command", "the profiled program with its arguments; null where the profiler attached"),
        text("module", "file of the program or library"),
        text("build_id", "the module's GNU build id"),
        int("address", "in the ELF file, as `objdump` shows it"),
        text("function", "the function it stands in"),
        text("file", "source file"),
        int("line", "source line"),
        text("instruction", "the load"),
        float("stall", "share of the CPU time in which the core waited for it"),
        float("stall_lo", "lower end of its 95% interval"),
        float("stall_hi", "upper end"),
        float("latency_ns", "how long it takes; null where that is in cycles or not known"),
        float("latency_ns_lo", "lower end of its 95% interval"),
        float("latency_ns_hi", "upper end"),
        text("level", "what served it most often: `L1`, `L2`, `L3`, `DRAM`, `remote` …"),
        text("pattern", "`chain`, `parallel`, `stream` or `unresolved`"),
        float("footprint_bytes", "memory that its addresses are spread over"),
        float("harvestable", "share of the CPU time left for other work if the program yielded there"),
        text("object", "the data that it reads most"),
        int("samples", "samples of it"),
        int("threads", "threads that waited for it"),
    ],
    rows,
};

fn rows(source: &Source) -> Vec<Row> {
    let Some(profile) = source.body::<Profile>() else { return Vec::new() };
    let command = command(&profile.program.command);
    let row = |load: &records::profile::StallingLoad| {
        let [stall, stall_lo, stall_hi] = interval(&load.stall);
        let [latency, latency_lo, latency_hi] = nanoseconds(&load.latency);
        vec![
            command.clone(),
            load.module.as_str().into(),
            load.build_id.as_deref().into(),
            load.address.into(),
            load.function.as_deref().into(),
            load.file.as_deref().into(),
            load.line.into(),
            load.instruction.as_str().into(),
            stall,
            stall_lo,
            stall_hi,
            latency,
            latency_lo,
            latency_hi,
            load.level.word().into(),
            load.pattern.word().into(),
            load.footprint.value().into(),
            load.harvestable.value().into(),
            load.object.as_deref().into(),
            load.samples.into(),
            load.threads.into(),
        ]
    };
    profile.loads.iter().map(row).collect()
}

/// A command line in one text; null where there is none.
pub(super) fn command(words: &[String]) -> Cell {
    (!words.is_empty()).then(|| words.join(" ")).into()
}

/// Value, lower and upper end.
pub(super) fn interval(quantity: &Quantity) -> [Cell; 3] {
    match quantity.estimate() {
        Some(e) => [e.value.into(), e.lo.into(), e.hi.into()],
        None => [Cell::Null, Cell::Null, Cell::Null],
    }
}

fn nanoseconds(quantity: &Quantity) -> [Cell; 3] {
    match quantity {
        Quantity::Resolved { unit: units::Unit::Nanos, .. } => interval(quantity),
        _ => [Cell::Null, Cell::Null, Cell::Null],
    }
}

//! `objects`: a row for each piece of data that a profiled program waited for.

use super::columns::{float, int, text};
use super::loads::{command, interval};
use super::{Row, Source, Table};
use records::profile::{MemoryObject, Profile};

pub(super) const TABLE: Table = Table {
    name: "objects",
    about: "A row for each variable, allocation site or area of memory that a profiled program waited for.",
    own: &[
        text("command", "the profiled program with its arguments; null where the profiler attached"),
        text("name", "the variable and its module, where it is allocated, or the kind of the area"),
        text("function", "the function that allocates it"),
        text("file", "source file of that"),
        int("line", "source line of that"),
        float("stall", "share of the CPU time in which the core waited for it"),
        float("stall_lo", "lower end of its 95% interval"),
        float("stall_hi", "upper end"),
        float("bytes", "its size; of allocations, the median"),
        int("count", "how many such objects there are; of allocations, the most that lived at once"),
        int("threads", "threads that waited for it"),
    ],
    rows,
};

fn rows(source: &Source) -> Vec<Row> {
    let Some(profile) = source.body::<Profile>() else { return Vec::new() };
    let command = command(&profile.program.command);
    let row = |object: &MemoryObject| {
        let [stall, stall_lo, stall_hi] = interval(&object.stall);
        let site = object.site.as_ref();
        vec![
            command.clone(),
            object.name.as_str().into(),
            site.and_then(|site| site.function.as_deref()).into(),
            site.and_then(|site| site.file.as_deref()).into(),
            site.and_then(|site| site.line).into(),
            stall,
            stall_lo,
            stall_hi,
            object.bytes.value().into(),
            object.count.into(),
            object.threads.into(),
        ]
    };
    profile.objects.iter().map(row).collect()
}

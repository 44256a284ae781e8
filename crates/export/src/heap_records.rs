//! `HeapProfileRecords` of LLVM's `MemProf`: by function, the allocations that it makes, and the
//! calls in it that lead to others. LLVM hashes the names of functions itself.
//!
//! A call is named by its function, the lines from the function's first one on, and the column, as
//! debug information has them. An allocation stands with the function that makes it, and with those
//! that this one was inlined into; each further call with each function of its place.
//!
//! Of an allocation LLVM asks four figures. How often it was accessed is not known without
//! instrumentation: `TotalLifetimeAccessDensity` is a lower bound, the accesses that the core
//! waited for, each by the latency of its load. Where no load tells that, the allocation is left
//! out: with a density of zero LLVM would take for cold what only lives long.

use records::profile::{AllocationContext, MemoryObject, Profile, SourceCall};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What is said of one function.
#[derive(Default)]
struct OfFunction {
    allocations: Vec<String>,
    /// The calls at one place, inlined ones first.
    calls: BTreeSet<Vec<SourceCall>>,
}

#[derive(Default)]
pub(crate) struct HeapRecords {
    functions: BTreeMap<String, OfFunction>,
    left_out: usize,
}

impl HeapRecords {
    pub(crate) fn of(profile: &Profile) -> Self {
        let mut all = Self::default();
        for object in &profile.objects {
            let accesses = accesses(profile, object);
            for context in object.site.iter().flat_map(|site| &site.contexts) {
                let places = places(&context.calls);
                let waited = context.stall.value().zip(object.stall.value().filter(|all| *all > 0.0));
                let part = waited.map(|(part, all)| part / all);
                match accesses.zip(part).and_then(|(all, part)| figures(context, all * part)) {
                    Some(figures) if !places.is_empty() => all.add(&places, &figures),
                    _ => all.left_out += 1,
                }
            }
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    fn add(&mut self, places: &[&[SourceCall]], figures: &str) {
        let mut text = "      - Callstack:\n".to_owned();
        for call in places.iter().copied().flatten() {
            let _ = writeln!(text, "          - {}", frame(call));
        }
        text += figures;
        for (number, place) in places.iter().enumerate() {
            for (depth, call) in place.iter().enumerate() {
                let function = self.functions.entry(call.function.clone()).or_default();
                if number == 0 {
                    function.allocations.push(text.clone());
                }
                if (number, depth) != (0, 0) {
                    function.calls.insert(place.to_vec());
                }
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "# left out: {} paths to allocations that no load's latency is known of",
                self.left_out
            );
        }
        if self.is_empty() {
            return text;
        }
        text += "# TotalLifetimeAccessDensity: at least; of accesses that the core waited for\n";
        text += "HeapProfileRecords:\n";
        for (name, function) in &self.functions {
            let _ = writeln!(text, "  - GUID:            {name}");
            text += if function.allocations.is_empty() {
                "    AllocSites:      []\n"
            } else {
                "    AllocSites:\n"
            };
            text.extend(function.allocations.iter().map(String::as_str));
            text += if function.calls.is_empty() { "    CallSites:       []\n" } else { "    CallSites:\n" };
            for place in &function.calls {
                text += "      - Frames:\n";
                for call in place {
                    let _ = writeln!(text, "          - {}", frame(call));
                }
            }
        }
        text
    }
}

fn frame(call: &SourceCall) -> String {
    let SourceCall { function, line_offset, column, is_inlined } = call;
    // LLVM keeps 16 bits of a line's offset.
    let offset = line_offset & 0xffff;
    format!("{{ Function: {function}, LineOffset: {offset}, Column: {column}, IsInlineFrame: {is_inlined} }}")
}

/// The calls by the place that they are at: inlined ones and the function that has the code. Places
/// with a name that YAML would have to quote are left out.
fn places(calls: &[SourceCall]) -> Vec<&[SourceCall]> {
    let places = calls.split_inclusive(|call| !call.is_inlined);
    places.filter(|place| place.iter().all(|call| is_linkage_name(&call.function))).collect()
}

/// How often an object was accessed at least, by the latencies of its loads; none where none is
/// known.
fn accesses(profile: &Profile, object: &MemoryObject) -> Option<f64> {
    let cpu_ns = profile.summary.cpu_time.value()? * 1e9;
    let its = profile.loads.iter().filter(|load| load.object.as_ref() == Some(&object.name));
    let known = its.filter_map(|load| {
        let (stall, latency) = (load.stall.value()?, load.latency.value().filter(|ns| *ns > 0.0)?);
        Some((stall, stall * cpu_ns / latency))
    });
    let (stall, accesses) = known.fold((0.0, 0.0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
    (stall > 0.0).then(|| accesses * object.stall.value().unwrap_or(stall) / stall)
}

/// The four figures that LLVM keeps: of all allocations together, times in ms; the density is in
/// hundredths of an access of each byte a second.
fn figures(context: &AllocationContext, accesses: f64) -> Option<String> {
    const LEAST_LIFETIME_S: f64 = 1e-3;
    let count = context.allocations.value()?.max(1.0);
    let bytes = context.bytes.value()?;
    let lifetime_s = context.lifetime.value()?;
    let density = accesses / bytes.max(1.0) / lifetime_s.max(LEAST_LIFETIME_S) * count * 100.0;
    let mut text = "        MemInfoBlock:\n".to_owned();
    for (name, figure) in [
        ("AllocCount:      ", count),
        ("TotalSize:       ", bytes),
        ("TotalLifetime:   ", count * lifetime_s * 1e3),
        ("TotalLifetimeAccessDensity: ", density),
    ] {
        let _ = writeln!(text, "          {name}{}", figure.round() as u64);
    }
    Some(text)
}

/// As C has names, `.` for what compilers add to them (`table.0`). Nothing of that is quoted in
/// YAML, but for what is a number there.
pub(crate) fn is_linkage_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

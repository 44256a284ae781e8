//! Lines of scripts: which of them wait, and on what.

use super::LEAST_SHARE;
use super::run::MOST_LISTED;
use crate::code::calls::{Calls, InScript};
use crate::samples::tally::Tally;
use crate::share::measured_share;
use records::profile::{Finding, FindingKind, ScriptLine};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use units::{Estimate, Quantity, Svma, Unit};

/// What functions of interpreters read, by words in their names.
const DATA: [(&str, &str); 25] = [
    ("set_lookkey", "the table of a set"),
    ("set_add_entry", "the table of a set"),
    ("PySet_", "the table of a set"),
    ("keys_lookup", "the table of a dict"),
    ("dict_lookup", "the table of a dict"),
    ("_Py_dict_lookup", "the table of a dict"),
    ("lookdict", "the table of a dict"),
    ("insertdict", "the table of a dict"),
    ("find_empty_slot", "the table of a dict"),
    ("PyDict_GetItem", "the table of a dict"),
    ("dict_subscript", "the table of a dict"),
    ("st_lookup", "the table of a hash"),
    ("st_insert", "the table of a hash"),
    ("st_update", "the table of a hash"),
    ("rb_hash_", "the table of a hash"),
    ("rb_gc_", "all objects, for the garbage collector"),
    ("object_compare", "objects that are compared"),
    ("float_compare", "objects that are compared"),
    ("long_compare", "objects that are compared"),
    ("RichCompare", "objects that are compared"),
    ("unicode_", "texts"),
    ("fastsearch", "texts"),
    ("gc_collect", "all objects, for the garbage collector"),
    ("subtract_refs", "all objects, for the garbage collector"),
    ("visit_", "all objects, for the garbage collector"),
];
const OBJECTS: &str = "objects";

/// What was sampled in one line.
#[derive(Default)]
struct Line {
    samples: u64,
    stalled: u64,
    /// Those that wait for what is beyond L2.
    far: u64,
    /// The samples that wait, by function, and by what that reads.
    waits_in: BTreeMap<String, u64>,
    reads: BTreeMap<&'static str, u64>,
}

impl Line {
    fn count(&mut self, sampled: &InScript, is_far: bool) {
        self.stalled += sampled.samples;
        self.far += if is_far { sampled.samples } else { 0 };
        let function = sampled.runs.clone().unwrap_or_else(|| "?".to_owned());
        *self.waits_in.entry(function).or_default() += sampled.samples;
        *self.reads.entry(data(sampled.named.as_deref().unwrap_or_default())).or_default() += sampled.samples;
    }
}

/// The lines that were sampled, those that wait most first, and what to do about the first of them;
/// the core did not wait for the memory of the loads that computed, and waited for others than
/// those that are far as programs that only compute do, too.
pub(crate) fn lines(
    tally: &Tally,
    calls: &Calls,
    computed: &HashSet<(u32, Svma)>,
    far: &HashSet<(u32, Svma)>,
) -> (Vec<ScriptLine>, Option<Finding>) {
    let all = tally.stacks.samples;
    let mut by_line: BTreeMap<u32, Line> = BTreeMap::new();
    for sampled in &calls.in_scripts {
        let line = by_line.entry(sampled.line).or_default();
        line.samples += sampled.samples;
        if let Some(load) = sampled.load.filter(|load| !computed.contains(load)) {
            line.count(sampled, far.contains(&load));
        }
    }
    let mut by_line: Vec<(u32, Line)> = by_line.into_iter().collect();
    by_line.sort_by_key(|(number, line)| (std::cmp::Reverse((line.stalled, line.samples)), *number));
    by_line.truncate(MOST_LISTED);
    let far = by_line.first().map_or(0, |(_, line)| line.far);
    let record = |(number, line): (u32, Line)| {
        let script = &tally.stacks.scripts[number as usize];
        ScriptLine {
            language: script.language.to_owned(),
            file: script.file.clone(),
            function: script.function.clone(),
            line: script.line,
            time: measured_share(line.samples, all),
            stall: measured_share(line.stalled, all),
            data: most(line.reads).map(str::to_owned),
            waits_in: most(line.waits_in),
            samples: line.samples,
        }
    };
    let lines: Vec<ScriptLine> = by_line.into_iter().map(record).collect();
    let found = lines.first().and_then(|first| finding(first, &measured_share(far, all)));
    (lines, found)
}

fn most<T>(samples: BTreeMap<T, u64>) -> Option<T> {
    samples.into_iter().max_by_key(|(_, samples)| *samples).map(|(most, _)| most)
}

/// What a function reads; an interpreter's loop itself, and all others, read objects.
fn data(function: &str) -> &'static str {
    DATA.iter().find(|(word, _)| function.contains(word)).map_or(OBJECTS, |(_, data)| data)
}

/// What to do about a line, which waits this share of the CPU time for what is far.
fn finding(line: &ScriptLine, far: &Quantity) -> Option<Finding> {
    let stall = far.estimate().filter(|far| far.value >= LEAST_SHARE)?;
    let file =
        Path::new(&line.file).file_name().map_or(line.file.clone().into(), |name| name.to_string_lossy());
    Some(Finding {
        kind: FindingKind::Pad,
        object: line.data.clone(),
        function: Some(line.function.clone()),
        file: Some(line.file.clone()),
        line: Some(line.line),
        says: format!(
            "line {} of {file} waits {:.0}% of the CPU time for {}: go through them in the order in which they were \
             made, keep fewer, or keep them together (an array of numbers in place of objects)",
            line.line,
            100.0 * stall.value,
            line.data.as_deref().unwrap_or(OBJECTS)
        ),
        gain: Quantity::modelled(Estimate { lo: 0.0, ..stall }, Unit::Ratio),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_tell_what_they_read() {
        for (function, what) in [
            ("unicodekeys_lookup_generic", "the table of a dict"),
            ("_Py_dict_lookup", "the table of a dict"),
            ("set_lookkey", "the table of a set"),
            ("PySet_Contains", "the table of a set"),
            ("unsafe_float_compare", "objects that are compared"),
            ("rb_st_lookup", "the table of a hash"),
            ("_PyEval_EvalFrameDefault", "objects"),
        ] {
            assert_eq!(data(function), what, "{function}");
        }
    }

    #[test]
    fn a_line_that_waits_is_a_finding() {
        let share = |value: f64| Quantity::measured(Estimate::exact(value), Unit::Ratio);
        let line = |stall: f64| ScriptLine {
            language: "Python".to_owned(),
            file: "/srv/join.py".to_owned(),
            function: "join".to_owned(),
            line: 12,
            time: share(0.8),
            stall: share(stall),
            waits_in: Some("_Py_dict_lookup".to_owned()),
            data: Some("the table of a dict".to_owned()),
            samples: 100,
        };
        let found = finding(&line(0.7), &share(0.63)).expect("it waits");
        assert!(
            found.says.starts_with("line 12 of join.py waits 63% of the CPU time for the table of a dict")
        );
        assert_eq!(finding(&line(0.63), &share(0.05)), None, "caches near the core serve it");
    }
}

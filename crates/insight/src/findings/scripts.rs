//! Lines of scripts: which of them wait, and on what.

use super::LEAST_SHARE;
use super::run::MOST_LISTED;
use crate::code::calls::Calls;
use crate::samples::tally::Tally;
use crate::share::measured_share;
use records::profile::{Finding, FindingKind, ScriptLine};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use units::{Estimate, Quantity, Svma, Unit};

/// What functions of interpreters read, by words in their names.
const DATA: [(&str, &str); 24] = [
    ("set_lookkey", "the table of a set"),
    ("set_add_entry", "the table of a set"),
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
    /// The samples that wait, by function.
    waits_in: BTreeMap<String, u64>,
}

/// The lines that were sampled, those that wait most first; the core did not wait for the memory of
/// the loads that computed.
pub(crate) fn lines(tally: &Tally, calls: &Calls, computed: &HashSet<(u32, Svma)>) -> Vec<ScriptLine> {
    let all = tally.stacks.samples;
    let mut by_line: BTreeMap<u32, Line> = BTreeMap::new();
    for sampled in &calls.in_scripts {
        let line = by_line.entry(sampled.line).or_default();
        line.samples += sampled.samples;
        if sampled.load.is_some_and(|load| !computed.contains(&load)) {
            line.stalled += sampled.samples;
            let function = sampled.runs.clone().unwrap_or_else(|| "?".to_owned());
            *line.waits_in.entry(function).or_default() += sampled.samples;
        }
    }
    let mut by_line: Vec<(u32, Line)> = by_line.into_iter().collect();
    by_line.sort_by_key(|(number, line)| (std::cmp::Reverse((line.stalled, line.samples)), *number));
    by_line.truncate(MOST_LISTED);
    let record = |(number, line): (u32, Line)| {
        let script = &tally.stacks.scripts[number as usize];
        let most = line.waits_in.into_iter().max_by_key(|(_, samples)| *samples).map(|(name, _)| name);
        ScriptLine {
            language: script.language.to_owned(),
            file: script.file.clone(),
            function: script.function.clone(),
            line: script.line,
            time: measured_share(line.samples, all),
            stall: measured_share(line.stalled, all),
            data: most.as_deref().map(|name| data(name).to_owned()),
            waits_in: most,
            samples: line.samples,
        }
    };
    by_line.into_iter().map(record).collect()
}

/// What a function reads; an interpreter's loop itself, and all others, read objects.
fn data(function: &str) -> &'static str {
    DATA.iter().find(|(word, _)| function.contains(word)).map_or(OBJECTS, |(_, data)| data)
}

/// The line that waits most.
pub(crate) fn finding(lines: &[ScriptLine]) -> Option<Finding> {
    let line = lines.first()?;
    let stall = line.stall.estimate().filter(|stall| stall.value >= LEAST_SHARE)?;
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
        let found = finding(&[line(0.63)]).expect("it waits");
        assert!(
            found.says.starts_with("line 12 of join.py waits 63% of the CPU time for the table of a dict")
        );
        assert_eq!(finding(&[line(0.05)]), None);
        assert_eq!(finding(&[]), None);
    }
}

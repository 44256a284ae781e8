//! JSON for the Firefox Profiler: its "processed profile", version 48, which every later one reads.
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md>
//!
//! The format is one of samples in time, which the record does not keep: each node of the tree is
//! one sample with its time as weight, one after the other. What waited for loads is a second
//! "thread".

use crate::Weight;
use crate::clean::clean;
use crate::stacks::{Stacks, command, file_name, name};
use records::Document;
use records::profile::Profile;
use serde_json::{Value, json};
use std::collections::HashMap;

const VERSION: u32 = 48;
/// As of the same time, for what Firefox itself would write.
const GECKO_VERSION: u32 = 29;

/// `resourceTypes.library` there.
const LIBRARY: u32 = 1;

pub(crate) fn text(document: &Document<Profile>, stacks: &Stacks<'_>, weight: Weight) -> String {
    let profile = &document.body;
    let program = command(profile);
    let mut modules: Vec<&str> = Vec::new();
    for module in stacks.frames().iter().filter_map(|frame| frame.module.as_deref()) {
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    let shown: Vec<Weight> =
        [Weight::Time, Weight::Stall].into_iter().filter(|weight| stacks.total(*weight) > 0).collect();
    let first = shown.iter().position(|shown| *shown == weight).unwrap_or(0);
    let elapsed_ms = profile.summary.elapsed.value().unwrap_or(0.0) * 1e3;
    let written: Option<jiff::Timestamp> = document.header.created.parse().ok();
    let began_ms = written.map_or(0.0, |time| time.as_second() as f64 * 1e3 - elapsed_ms);
    let all: Vec<usize> = (0..shown.len()).collect();
    let file = json!({
        "meta": {
            "interval": stacks.ns_a_sample() / 1e6,
            "startTime": began_ms,
            "processType": 0,
            "product": program,
            "importedFrom": format!("gleaner {}", clean(&document.header.gleaner)),
            "stackwalk": 1,
            "debug": false,
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "keepProfileThreadOrder": true,
            "initialVisibleThreads": all,
            "initialSelectedThreads": [first],
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
            "markerSchema": [],
            "extensions": { "baseURL": [], "id": [], "name": [], "length": 0 },
        },
        "libs": modules.iter().map(|module| library(profile, module)).collect::<Vec<_>>(),
        "pages": [],
        "counters": [],
        "threads": shown
            .iter()
            .enumerate()
            .map(|(index, &weight)| thread(&program, index, stacks, &modules, weight))
            .collect::<Vec<_>>(),
    });
    format!("{file}\n")
}

fn library(profile: &Profile, module: &str) -> Value {
    let load = profile.loads.iter().find(|load| load.module == module);
    let name = clean(file_name(module));
    let path = clean(module);
    json!({
        "arch": "x86_64",
        "name": name,
        "path": path,
        "debugName": name,
        "debugPath": path,
        // One with all digits is of a build that nobody knows.
        "breakpadId": "0".repeat(33),
        "codeId": load.and_then(|load| load.build_id.as_deref()).map(clean),
    })
}

/// Texts of a thread, by number.
#[derive(Default)]
struct Texts {
    in_order: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.in_order.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.in_order.len() - 1);
        self.in_order.len() - 1
    }
}

/// A table of that format: columns, and how long they are.
struct Columns {
    names: &'static [&'static str],
    columns: Vec<Vec<Value>>,
}

impl Columns {
    fn new(names: &'static [&'static str]) -> Self {
        Self { names, columns: vec![Vec::new(); names.len()] }
    }

    fn row<const N: usize>(&mut self, cells: [Value; N]) {
        debug_assert_eq!(N, self.names.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
    }

    fn table(self) -> Value {
        let length = self.columns.first().map_or(0, Vec::len);
        let columns = self.names.iter().zip(self.columns);
        let mut table: serde_json::Map<String, Value> =
            columns.map(|(name, column)| ((*name).to_owned(), Value::Array(column))).collect();
        table.insert("length".to_owned(), length.into());
        Value::Object(table)
    }
}

const FRAMES: &[&str] = &[
    "address",
    "inlineDepth",
    "category",
    "subcategory",
    "func",
    "nativeSymbol",
    "innerWindowID",
    "implementation",
    "line",
    "column",
];
const FUNCTIONS: &[&str] =
    &["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"];

fn thread(program: &str, index: usize, stacks: &Stacks<'_>, modules: &[&str], weight: Weight) -> Value {
    let mut texts = Texts::default();
    let mut resources = Columns::new(&["lib", "name", "host", "type"]);
    for (lib, module) in modules.iter().enumerate() {
        let name = texts.number(&clean(file_name(module)));
        resources.row([lib.into(), name.into(), Value::Null, LIBRARY.into()]);
    }
    let mut functions = Columns::new(FUNCTIONS);
    let mut function_numbers = HashMap::new();
    let mut frames = Columns::new(FRAMES);
    for frame in stacks.frames() {
        let key = (frame.function.as_deref(), frame.module.as_deref(), frame.file.as_deref());
        let next = function_numbers.len();
        let function = *function_numbers.entry(key).or_insert(next);
        if function == next {
            let name = texts.number(&name(frame));
            let of = modules.iter().position(|&module| Some(module) == frame.module.as_deref());
            let resource = of.map_or_else(|| json!(-1), |index| json!(index));
            let file = frame.file.as_ref().map(|file| texts.number(&clean(file)));
            let no = || Value::Bool(false);
            functions.row([name.into(), no(), no(), resource, json!(file), Value::Null, Value::Null]);
        }
        frames.row([
            frame.address.map_or_else(|| json!(-1), Value::from),
            u32::from(frame.is_inlined).into(),
            0.into(),
            0.into(),
            function.into(),
            Value::Null,
            Value::Null,
            Value::Null,
            json!(frame.line),
            Value::Null,
        ]);
    }
    let mut tree = Columns::new(&["frame", "prefix", "category", "subcategory"]);
    for node in stacks.nodes() {
        tree.row([node.frame.into(), json!(node.caller), 0.into(), 0.into()]);
    }
    let mut samples = Columns::new(&["stack", "time", "weight"]);
    let mut at_ms = 0.0;
    for (node, count) in stacks.sampled(weight) {
        let ms = count as f64 * stacks.ns_a_sample() / 1e6;
        samples.row([node.into(), at_ms.into(), ms.into()]);
        at_ms += ms;
    }
    let mut samples = samples.table();
    samples["weightType"] = json!("tracing-ms");
    json!({
        "processType": "default",
        "processName": program,
        "processStartupTime": 0.0,
        "processShutdownTime": null,
        "registerTime": 0.0,
        "unregisterTime": null,
        "pausedRanges": [],
        "name": weight.title(),
        "isMainThread": index == 0,
        "pid": "0",
        "tid": index,
        "samples": samples,
        "markers": Columns::new(&["data", "name", "startTime", "endTime", "phase", "category"]).table(),
        "stackTable": tree.table(),
        "frameTable": frames.table(),
        "funcTable": functions.table(),
        "resourceTable": resources.table(),
        "nativeSymbols": Columns::new(&["libIndex", "address", "name", "functionSize"]).table(),
        "stringArray": texts.in_order,
    })
}

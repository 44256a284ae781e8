//! Each format as it was last agreed on: `make regenerate` writes these files.

use crate::fixture::{CALL_CHAIN, NO_STACKS, record, with_contexts};
use crate::raw;
use gleaner_export::{ExportError, Format, Weight, has_stacks, pprof_uncompressed, profile};
use serde_json::Value;

fn text(name: &str, format: Format, weight: Weight) -> String {
    let bytes = profile(&record(name), format, weight).expect("an export");
    String::from_utf8(bytes).expect("text")
}

fn golden(name: &str, text: &str) {
    testkit::golden(&format!("crates/export/tests/golden/{name}"), text);
}

/// A line for each list of the JSON, so that a change shows where it is.
fn lines(json: &str) -> String {
    serde_json::from_str::<Value>(json).expect("JSON");
    json.replace("],\"", "],\n\"").replace("},\"", "},\n\"").replace("},{", "},\n{").replace(":{\"", ":{\n\"")
}

#[test]
fn formats_of_text_are_what_they_were() {
    golden("call-chain.folded", &text(CALL_CHAIN, Format::Folded, Weight::Time));
    golden("call-chain.stall.folded", &text(CALL_CHAIN, Format::Folded, Weight::Stall));
    golden("call-chain.callgrind", &text(CALL_CHAIN, Format::Callgrind, Weight::Time));
    golden("call-chain.memprof.yaml", &text(CALL_CHAIN, Format::Memprof, Weight::Time));
    golden("call-chain.loads.csv", &text(CALL_CHAIN, Format::CsvLoads, Weight::Time));
    golden("call-chain.functions.csv", &text(CALL_CHAIN, Format::CsvFunctions, Weight::Time));
    golden("call-chain.objects.csv", &text(CALL_CHAIN, Format::CsvObjects, Weight::Time));
    golden("no-stacks.folded", &text(NO_STACKS, Format::Folded, Weight::Time));
}

#[test]
fn formats_of_json_are_what_they_were() {
    golden("call-chain.speedscope", &lines(&text(CALL_CHAIN, Format::Speedscope, Weight::Time)));
    golden("call-chain.firefox", &lines(&text(CALL_CHAIN, Format::Firefox, Weight::Time)));
}

#[test]
fn pprof_is_what_it_was() {
    let bytes = pprof_uncompressed(&record(CALL_CHAIN), Weight::Time).expect("an export");
    golden("call-chain.pprof", &raw::decode(&bytes));
    let gzipped = profile(&record(CALL_CHAIN), Format::Pprof, Weight::Time).expect("an export");
    assert_eq!(gzipped[..2], [0x1f, 0x8b]);
}

/// Without stacks, the functions are the callees of the program, and all samples are there.
#[test]
fn records_without_stacks_are_flat_and_whole() {
    let document = record(NO_STACKS);
    assert!(!has_stacks(&document.body) && has_stacks(&record(CALL_CHAIN).body));
    let folded = text(NO_STACKS, Format::Folded, Weight::Time);
    let counts = folded.lines().map(|line| line.rsplit(' ').next().expect("a count").parse::<u64>());
    let sum: u64 = counts.map(|count| count.expect("a number")).sum();
    assert_eq!(sum, document.body.sampling.samples);
}

#[test]
fn what_shows_one_weight_first_says_so() {
    let first = |weight| {
        let speedscope: Value =
            serde_json::from_str(&text(CALL_CHAIN, Format::Speedscope, weight)).expect("JSON");
        let firefox: Value = serde_json::from_str(&text(CALL_CHAIN, Format::Firefox, weight)).expect("JSON");
        let callgrind = text(CALL_CHAIN, Format::Callgrind, weight);
        let events = callgrind.lines().find(|line| line.starts_with("events:")).expect("events").to_owned();
        (
            speedscope["activeProfileIndex"].as_u64(),
            firefox["meta"]["initialSelectedThreads"][0].as_u64(),
            events,
        )
    };
    assert_eq!(first(Weight::Time), (Some(0), Some(0), "events: Time Stall".to_owned()));
    assert_eq!(first(Weight::Stall), (Some(1), Some(1), "events: Stall Time".to_owned()));
}

#[test]
fn damaged_and_empty_records_are_refused() {
    let mut document = record(CALL_CHAIN);
    document.body.calls.nodes[7].caller = Some(7);
    for format in [Format::Pprof, Format::Folded, Format::Speedscope, Format::Firefox, Format::Callgrind] {
        assert_eq!(profile(&document, format, Weight::Time), Err(ExportError::Damaged(7)));
    }
    document.body.calls.nodes[7].caller = None;
    document.body.calls.nodes[7].frame = 1000;
    assert_eq!(profile(&document, Format::Folded, Weight::Time), Err(ExportError::Damaged(7)));

    let mut document = record(NO_STACKS);
    document.body.objects.retain(|object| object.name.starts_with("anonymous"));
    assert_eq!(profile(&document, Format::Memprof, Weight::Time), Err(ExportError::NoVariables));
    document.body.functions.clear();
    assert_eq!(profile(&document, Format::Folded, Weight::Stall), Err(ExportError::NoStall));
    document.body.sampling.samples = 0;
    assert_eq!(profile(&document, Format::Folded, Weight::Time), Err(ExportError::NoSamples));
}

/// Names come from files of all kinds.
#[test]
fn no_name_breaks_a_format_of_lines() {
    let mut document = record(CALL_CHAIN);
    for frame in &mut document.body.calls.frames {
        frame.function = Some("a;b\nfn=(9) x\x1b[31m\"".to_owned());
        frame.module = frame.module.as_ref().map(|module| format!("{module}\ncalls=77 1"));
    }
    let text = |format| String::from_utf8(profile(&document, format, Weight::Time).unwrap()).unwrap();
    for line in text(Format::Folded).lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a stack and a count");
        assert!(stack.split(';').all(|name| name == "a:b\\x0afn=(9) x\\x1b[31m\""), "{stack}");
        assert!(count.parse::<u64>().is_ok());
    }
    let callgrind = text(Format::Callgrind);
    assert!(callgrind.lines().all(|line| !line.starts_with("fn=(9)") && !line.starts_with("calls=77")));
    for format in [Format::Speedscope, Format::Firefox] {
        serde_json::from_str::<Value>(&text(format)).expect("JSON");
    }
}

/// An allocation stands with the function that makes it and with those that this one is inlined
/// into; the other calls with the functions that they are in.
#[test]
fn memprof_has_allocations_by_their_calls() {
    let text =
        |document| String::from_utf8(profile(&document, Format::Memprof, Weight::Time).unwrap()).unwrap();
    let written = text(with_contexts());
    for (function, allocations, calls) in [("make", 1, 0), ("_ZN4shop5tableEl", 1, 1), ("main", 0, 1)] {
        let of =
            written.split("  - GUID:            ").find(|part| part.starts_with(&format!("{function}\n")));
        let of = of.unwrap_or_else(|| panic!("{function}: {written}"));
        let of = of.split("DataAccessProfiles").next().unwrap();
        assert_eq!(of.matches("- Callstack:").count(), allocations, "{written}");
        assert_eq!(of.matches("- Frames:").count(), calls, "{written}");
    }
    assert!(
        written.contains("{ Function: make, LineOffset: 2, Column: 12, IsInlineFrame: true }"),
        "{written}"
    );
    let figures =
        "          AllocCount:      3\n          TotalSize:       3072\n          TotalLifetime:   6000\n";
    assert!(written.contains(figures), "{written}");

    let mut unknown = with_contexts();
    for load in &mut unknown.body.loads {
        load.object = None;
    }
    let written = text(unknown);
    assert!(!written.contains("HeapProfileRecords") && written.contains("# left out: 1 paths"), "{written}");
}

/// Names that are not linkage names cannot be found by LLVM.
#[test]
fn memprof_leaves_out_what_llvm_would_not_find() {
    let mut document = record(CALL_CHAIN);
    let objects = &mut document.body.objects;
    objects[0].name = "shop::counts (stock)".to_owned();
    objects[2].name = "nodes (libother.so.1)".to_owned();
    objects[2].stall = objects[1].stall.clone();
    let text = String::from_utf8(profile(&document, Format::Memprof, Weight::Time).unwrap()).unwrap();
    assert!(text.contains("# left out: 1 variables"), "{text}");
    assert!(text.contains("    - Symbol:          nodes\n      AccessCount:     1740\n"), "{text}");
    assert!(!text.contains("shop"), "{text}");
}

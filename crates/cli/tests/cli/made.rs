//! `gleaner profile` of Java and Node.js, whose code is made while it runs: the lines of the
//! programs in `programs/scripts` that wait are marked in them, and what waits is put down to
//! those.

use records::profile::{Profile, StallingLoad};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testkit::{Place, text};

pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/scripts").join(name)
}

/// The lines of a program that are marked.
pub(crate) fn marked(name: &str) -> Vec<u32> {
    let source = std::fs::read_to_string(program(name)).expect("a program of ours");
    let marks = source
        .lines()
        .enumerate()
        .filter(|(_, line)| line.ends_with("# waits") || line.ends_with("// waits"));
    marks.map(|(index, _)| index as u32 + 1).collect()
}

/// Whether there is such a command.
pub(crate) fn is_there(words: &[&str]) -> bool {
    let found = Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no {}", words[0]);
    }
    found
}

/// A profile of a command in a folder of its own; `None` where nothing may be sampled.
pub(crate) fn profiled(place: &Place, options: &[&str], command: &[&str]) -> Option<(Output, Profile)> {
    let mut gleaner = place.command(env!("CARGO_BIN_EXE_gleaner"));
    gleaner
        .args(["profile", "--frequency", "2000", "-o", "profile.json"])
        .args(options)
        .arg("--")
        .args(command);
    let output = gleaner.output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("skipped: {}", text(&output.stderr));
        return None;
    }
    let read = records::read::<Profile>(&place.at("profile.json"));
    let profile = read.unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr))).body;
    Some((output, profile))
}

/// A Java program, compiled in a folder of its own.
fn java(class: &str) -> Option<Place> {
    if !is_there(&["javac", "-version"]) || !is_there(&["java", "-version"]) {
        return None;
    }
    let place = Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner"));
    let source = program(&format!("{class}.java"));
    let compiled = place.command("javac").arg("-d").arg(place.folder()).arg(source).status().unwrap();
    assert!(compiled.success());
    Some(place)
}

fn node() -> Option<Place> {
    is_there(&["node", "--version"]).then(|| Place::uncompiled("", env!("CARGO_BIN_EXE_gleaner")))
}

/// What waits is in the lines that are marked: most of it, and the line that waits most.
fn waits_where_marked(name: &str, output: &Output, profile: &Profile) {
    let told = text(&output.stderr);
    let mut by_line: BTreeMap<u32, u64> = BTreeMap::new();
    let is_of_it = |load: &&StallingLoad| load.file.as_deref().is_some_and(|file| file.ends_with(name));
    for load in profile.loads.iter().filter(is_of_it) {
        *by_line.entry(load.line.unwrap_or(0)).or_default() += load.samples;
    }
    let marked = marked(name);
    let all: u64 = by_line.values().sum();
    let there: u64 = marked.iter().filter_map(|line| by_line.get(line)).sum();
    let most = by_line.iter().max_by_key(|(_, samples)| **samples).map(|(line, _)| *line);
    assert!(most.is_some_and(|line| marked.contains(&line)), "{name}: {by_line:?}\n{told}");
    assert!(there * 3 >= all * 2, "{name}: {by_line:?}\n{told}");
    let waits = profile.summary.memory_bound.value().unwrap_or(0.0);
    let lost = profile.summary.not_attributed.value().unwrap_or(1.0);
    // Collecting garbage beside it is not of the program's lines, and more where the CPUs are busy.
    assert!(lost < 0.15 && lost * 2.0 < waits, "{name}: {told}");
}

#[test]
fn the_lines_of_java_that_wait_are_named() {
    let mut stalls = Vec::new();
    for class in ["Walk", "Gather", "Chase", "Sorted"] {
        let Some(place) = java(class) else { return };
        let Some((output, profile)) = profiled(&place, &[], &["java", class]) else { return };
        waits_where_marked(&format!("{class}.java"), &output, &profile);
        let in_heap = profile.objects.iter().find(|object| object.name == "Java heap");
        let stall = in_heap.and_then(|heap| heap.stall.value()).unwrap_or(0.0);
        stalls.push(stall / profile.summary.memory_bound.value().unwrap_or(1.0));
        assert!(text(&output.stderr).contains("started with -XX:+PreserveFramePointer"), "{class}");
    }
    // A load that replaces what its address was made of tells no data.
    assert!(stalls.iter().any(|stall| *stall > 0.5), "{stalls:?}");
}

#[test]
fn an_inlined_method_of_java_names_its_load() {
    let Some(place) = java("Walk") else { return };
    let Some((output, profile)) = profiled(&place, &[], &["java", "Walk"]) else { return };
    let told = text(&output.stderr);
    let named = |load: &StallingLoad, method: &str| {
        load.function.iter().chain(&load.inlined).any(|name| name == method)
    };
    let load = profile.loads.iter().find(|load| named(load, "Walk.walk"));
    let load = load.unwrap_or_else(|| panic!("{told}"));
    assert!(load.instruction.starts_with("mov") && load.instruction.contains('['), "{load:?}");
    assert!(load.stall.value().unwrap_or(0.0) > 0.05, "{told}");
    // Compiled methods keep frame pointers.
    assert!(load.callers.iter().any(|name| name == "JavaMain"), "{load:?}");
}

#[test]
fn the_lines_of_node_that_wait_are_named() {
    let Some(place) = node() else { return };
    for name in ["walk.js", "gather.js", "chase.js", "sums.js"] {
        let path = program(name);
        let Some((output, profile)) = profiled(&place, &[], &["node", path.to_str().unwrap()]) else {
            return;
        };
        waits_where_marked(name, &output, &profile);
        if name == "chase.js" {
            let data = profile.loads[0].object.as_deref();
            assert_eq!(data, Some("V8 heap"), "{}", text(&output.stderr));
        }
    }
    // V8 wrote its files elsewhere.
    let left = std::fs::read_dir(place.folder()).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["cache", "p.c", "profile.json"]);
}

#[test]
fn runtimes_are_left_alone_where_that_is_asked_for() {
    const SCRIPT: &str = "console.log(process.execArgv.length, process.argv.length)";
    let Some(place) = node() else { return };
    let command = ["node", "-e", SCRIPT, "word"];
    let Some((output, profile)) = profiled(&place, &["--no-code-names"], &command) else { return };
    assert_eq!((text(&output.stdout).trim(), &profile.program.asked[..]), ("2 2", &[][..]));
    // Who asks for a map gets it.
    let command = ["node", "--perf-basic-prof", "--no-logfile-per-isolate", "--logfile=+", "-e", "1"];
    let Some((_, profile)) = profiled(&place, &[], &command) else { return };
    assert_eq!(profile.program.asked, [""; 0]);
    let Some((output, profile)) = profiled(&place, &[], &["node", "-e", SCRIPT, "word"]) else { return };
    assert!(text(&output.stdout).trim().ends_with(" 2"), "its own arguments are its own");
    assert!(!profile.program.asked.is_empty());
    assert_eq!(profile.program.command[1], "-e");
}

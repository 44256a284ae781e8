//! Other tools open what is written, and show the inclusive times that the record says.
//!
//! A reader that is not here is named, and its test ends; `scripts/test.sh` installs them all.
//! Those of npm lie below `target/readers`, or where `GLEANER_READERS` says.

use crate::fixture::{CALL_CHAIN, compare, inclusive, record, with_contexts};
use gleaner_export::{Format, Weight, profile};
use records::Document;
use records::profile::Profile;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::TimeLimit;

/// A folder with the record in one format, as `file`.
struct Written {
    /// Ends before the folder goes.
    _limit: TimeLimit,
    folder: tempfile::TempDir,
    profile: Profile,
}

impl Written {
    fn new(format: Format) -> Self {
        Self::of(record(CALL_CHAIN), format)
    }

    fn of(document: Document<Profile>, format: Format) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = TimeLimit::new(folder.path());
        let bytes = profile(&document, format, Weight::Time).expect("an export");
        std::fs::write(folder.path().join("file"), bytes).expect("a file in a new folder");
        Self { _limit: limit, folder, profile: document.body }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a reader writes to its standard output, in the folder.
    #[track_caller]
    fn read_by(&self, program: impl AsRef<Path>, arguments: &[&str]) -> String {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env("LC_ALL", "C");
        let mut output = command.output().unwrap_or_else(|why| panic!("{}: {why}", program.display()));
        // On a busy machine profiler-cli's daemon takes longer than it is waited for.
        for _ in 0..TRIES {
            if output.status.success() || !String::from_utf8_lossy(&output.stderr).contains(NOT_READY) {
                break;
            }
            std::thread::sleep(Duration::from_secs(2));
            output = command.output().expect("it started before");
        }
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?}: {told}", program.display());
        String::from_utf8(output.stdout).expect("text")
    }
}

const NOT_READY: &str = "did not become ready";
const TRIES: usize = 5;

/// The first of these programs that starts. What it says to this argument, and how it ends (an old
/// callgrind_annotate fails after it told its version), tells nothing.
fn reader(programs: &[&str], argument: &str) -> Option<PathBuf> {
    let runs = |program: &&&str| Command::new(program).arg(argument).output().is_ok();
    programs.iter().find(runs).map(PathBuf::from)
}

fn skipped(reader: &str, package: &str) {
    eprintln!("skipped: {reader} is not here ({package})");
}

/// A file of a package of npm.
fn of_npm(path: &str) -> Option<PathBuf> {
    testkit::of_readers(&format!("node_modules/{path}"))
}

fn number(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

#[test]
fn pprof() {
    let Some(go) = reader(&["go"], "version") else {
        return skipped("go tool pprof", "apt install golang-go");
    };
    let written = Written::new(Format::Pprof);
    for (index, stall) in [("cpu", false), ("stall", true)] {
        let index = format!("-sample_index={index}");
        let whole = ["-top", "-cum", "-nodefraction=0", "-nodecount=1000", "-unit=ns", &index, "file"];
        let text = written.read_by(&go, &[&["tool", "pprof"][..], &whole].concat());
        // "      flat  flat%   sum%        cum   cum%  name (inline)"
        let rows = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
        let row = |line: &str| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            (cells[5].to_owned(), number(cells[3].trim_end_matches("ns")))
        };
        compare("pprof", &rows.map(row).collect(), &written.profile, stall);
    }
    // Mappings, lines and inlined functions are where pprof looks for them.
    let text = written.read_by(&go, &["tool", "pprof", "-raw", "file"]);
    let build_id = written.profile.loads[0].build_id.as_deref().expect("a build id");
    assert!(text.contains(&format!("/stock {build_id} [FN][FL][LN][IN]")), "{text}");
    let inlined = text.lines().skip_while(|line| !line.contains(" mix /")).take(2).collect::<Vec<_>>();
    // A line of the same location has no number and no mapping.
    assert!(inlined[1].contains("stock.c:") && !inlined[1].contains(" M="), "{inlined:?}");
}

#[test]
fn callgrind_annotate() {
    let Some(program) = reader(&["callgrind_annotate"], "--version") else {
        return skipped("callgrind_annotate", "apt install valgrind");
    };
    let mut circle = record(CALL_CHAIN);
    // Now main calls serve, and serve calls main.
    let frames = &mut circle.body.calls.frames;
    for frame in frames.iter_mut().filter(|frame| frame.function.as_deref() == Some("compute")) {
        frame.function = Some("main".to_owned());
    }
    for document in [record(CALL_CHAIN), circle] {
        let written = Written::of(document, Format::Callgrind);
        let shown = |inclusive: &str| {
            let text = written.read_by(&program, &[inclusive, "--auto=no", "--threshold=100", "file"]);
            // "484,028,453 (50.00%) 439,659,178 (66.46%)  stock.c:total [module]"
            let rows = text.lines().skip_while(|line| !line.contains("file:function")).skip(2);
            let (mut time, mut stall) = (BTreeMap::new(), BTreeMap::new());
            for row in rows.filter(|row| row.contains(" [")) {
                let (figures, name) = row.rsplit_once("  ").expect("figures and a name");
                let name = name.split_once(':').expect("file:function").1;
                let name = name.rsplit_once(" [").expect("a module").0;
                // Beside each figure that is not 0 stands its share: `(50.00%)` or `( 5.00%)`.
                let is_share = |word: &&str| word.contains(['(', ')', '%']);
                let figures = figures.split_whitespace().filter(|word| !is_share(word));
                // `.` where there is no figure.
                let figures: Vec<f64> =
                    figures.map(|word| if word == "." { 0.0 } else { number(word) }).collect();
                time.insert(name.to_owned(), figures[0]);
                stall.insert(name.to_owned(), figures[1]);
            }
            (time, stall)
        };
        let (own, _) = shown("--inclusive=no");
        let all: f64 = own.values().sum();
        let cpu_time = written.profile.summary.cpu_time.value().expect("a figure") * 1e9;
        assert!((all - cpu_time).abs() < 100.0, "own times are {all} in all, not {cpu_time}");
        let (time, stall) = shown("--inclusive=yes");
        compare("callgrind_annotate", &time, &written.profile, false);
        compare("callgrind_annotate", &stall, &written.profile, true);
    }
}

/// Sums over what a sampled profile of speedscope holds.
fn of_speedscope(file: &Value, index: usize) -> BTreeMap<String, f64> {
    let profile = &file["profiles"][index];
    let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
    assert_eq!(samples.len(), weights.len());
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (stack, weight) in samples.iter().zip(weights) {
        let frame = |index: &Value| &file["shared"]["frames"][index.as_u64().unwrap() as usize];
        let mut names: Vec<&str> =
            stack.as_array().unwrap().iter().map(|index| frame(index)["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *sums.entry(name.to_owned()).or_default() += weight.as_f64().unwrap();
        }
    }
    sums
}

#[test]
fn speedscope() {
    let written = Written::new(Format::Speedscope);
    let text = std::fs::read_to_string(written.at("file")).expect("text");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let own = include_str!("speedscope.schema.json").to_owned();
    let theirs = of_npm("speedscope/dist/release/file-format-schema.json");
    if theirs.is_none() {
        skipped("the schema that comes with speedscope", "npm install --prefix target/readers speedscope");
    }
    let theirs = theirs.map(|path| std::fs::read_to_string(path).expect("a schema"));
    if let Some(python) = testkit::python_reader() {
        let mut wrong = file.clone();
        wrong["profiles"][0]["unit"] = "hours".into();
        for schema in [Some(own), theirs].into_iter().flatten() {
            let faults = testkit::schema_faults(&python, &schema, &text);
            assert!(faults.is_empty(), "{faults:#?}");
            let faults = testkit::schema_faults(&python, &schema, &wrong.to_string());
            assert!(!faults.is_empty(), "the schema looks at nothing");
        }
    }
    compare("speedscope", &of_speedscope(&file, 0), &written.profile, false);
    compare("speedscope", &of_speedscope(&file, 1), &written.profile, true);
}

/// Ends the daemon of profiler-cli, however the test ends.
struct Daemon<'w>(&'w Written, PathBuf);

impl Daemon<'_> {
    fn ask(&self, arguments: &[&str]) -> String {
        let script = self.1.display().to_string();
        let home = format!("HOME={}", self.0.folder.path().display());
        self.0.read_by("env", &[&[home.as_str(), "node", &script], arguments].concat())
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ask(&["stop", "--all"]);
            return;
        }
        let mut stop = Command::new("node");
        stop.arg(&self.1).args(["stop", "--all"]).env("HOME", self.0.folder.path());
        let _ = stop.output();
    }
}

#[test]
fn firefox_profiler() {
    let script = of_npm("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
    // It needs a node of its time.
    let runs = |script: &PathBuf| {
        Command::new("node").arg(script).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let Some(script) = script.filter(runs) else {
        let how = "npm install --prefix target/readers @firefox-devtools/profiler-cli";
        return skipped("profiler-cli of the Firefox Profiler", how);
    };
    let written = Written::new(Format::Firefox);
    let daemon = Daemon(&written, script);
    daemon.ask(&["load", "file"]);
    for (thread, stall) in [("t-0", false), ("t-1", true)] {
        let text = daemon.ask(&["thread", "functions", "--thread", thread, "--limit", "0", "--json"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let functions = answer["functions"].as_array().expect("functions");
        let shown = functions.iter().map(|function| {
            let name = function["name"].as_str().expect("a name").to_owned();
            (name, function["totalSamples"].as_f64().expect("a figure") * 1e6)
        });
        compare("profiler-cli", &shown.collect(), &written.profile, stall);
    }
}

#[test]
fn llvm_profdata() {
    let ours = ["/usr/lib/llvm-22/bin/llvm-profdata", "llvm-profdata-22", "llvm-profdata-21"];
    let Some(program) = reader(&ours, "--version") else {
        return skipped("llvm-profdata of LLVM 21 or later", "apt install llvm-22");
    };
    let written = Written::of(with_contexts(), Format::Memprof);
    written.read_by(&program, &["merge", "--memprof-version=4", "file", "-o", "merged"]);
    let text = written.read_by(&program, &["show", "--memory", "merged"]);
    // It shows what it was given, in the same form, and its summary.
    let given = std::fs::read_to_string(written.at("file")).expect("text");
    let records = |text: &str| {
        let records = text.lines().skip_while(|line| *line != "DataAccessProfiles:");
        records.map(str::trim_end).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(records(&text), records(&given));
    assert!(text.contains("hot symbols and string literals: 3"), "{text}");
    // LLVM's own hash of `main`.
    assert!(text.to_lowercase().contains("guid:            0xdb956436e78dd5fa"), "{text}");
    let figures = |text: &str| {
        let is_figure =
            |line: &&str| ["AllocCount", "Total", "LineOffset"].iter().any(|of| line.contains(of));
        let after_name =
            |line: &str| line.split_once("LineOffset").map_or(line, |(_, rest)| rest).trim().to_owned();
        let mut all: Vec<String> = text.lines().filter(is_figure).map(after_name).collect();
        all.retain(|line| !line.starts_with('#'));
        all.sort();
        all
    };
    assert_eq!(figures(&text), figures(&given));
}

/// flamegraph.pl's own rule: the last blank parts the stack from its count.
#[test]
fn folded_stacks_by_their_rule() {
    let written = Written::new(Format::Folded);
    let text = std::fs::read_to_string(written.at("file")).expect("text");
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a stack and a count");
        let mut names: Vec<&str> = stack.split(';').collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *sums.entry(name.to_owned()).or_default() += count.parse::<u64>().expect("a count");
        }
    }
    let said: BTreeMap<String, u64> =
        inclusive(&written.profile).into_iter().map(|(name, (samples, _))| (name, samples)).collect();
    assert_eq!(sums, said);
}

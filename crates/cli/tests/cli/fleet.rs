//! Records of many hosts: tables that databases read as they are, gauges, hwloc's attributes, and
//! the pages of `docs/fleet.md`, whose SQL, manifest and prolog are what is run here.
//!
//! A reader that is not here is named, and its test ends; `scripts/test.sh` installs them.

mod hosts;
pub(crate) mod readers;

use hosts::{Fleet, probe_record};
use readers::{documented_sql, python};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testkit::text;

fn fixture(name: &str) -> String {
    let path = testkit::root().join("crates/records/fixtures").join(name);
    path.to_str().expect("a path that is text").to_owned()
}

/// A machine record of nothing, a profile, a run, a plan, a reproduction.
const RECORDS: [&str; 5] = [
    "machine.v1.interrupted.json",
    "profile.v1.call-chain.json",
    "run.v1.one-scavenger.json",
    "plan.v1.assumed-prices.json",
    "reproduction.v1.three-claims.json",
];

/// Those, and a probe's, which is put there.
fn records(directory: &Path) -> Vec<String> {
    let probe = directory.join("probe.json");
    std::fs::write(&probe, probe_record().to_string()).expect("a record");
    let mut records: Vec<String> = RECORDS.map(fixture).into();
    records.insert(1, "probe.json".to_owned());
    records
}

fn gleaner(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).output().expect("it runs")
}

fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stderr))
}

fn rows(lines: &[u8]) -> Vec<Value> {
    text(lines).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn strings<'a>(strings: &'a [String], before: &[&'a str]) -> Vec<&'a str> {
    before.iter().copied().chain(strings.iter().map(String::as_str)).collect()
}

#[test]
fn any_records_become_rows() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(directory.path());
    let output = gleaner(directory.path(), &strings(&records, &["export", "--format", "jsonl"]));
    assert_eq!(told(&output), (Some(0), String::new()));
    let rows = rows(&output.stdout);
    let count = |table: &str| rows.iter().filter(|row| row["table"] == table).count();
    assert_eq!((count("machines"), count("runs")), (2, 1));
    assert!(count("loads") > 1 && count("objects") > 1 && count("results") > 50, "{}", rows.len());
    let probed = rows.iter().find(|row| row["metric"] == "memory_latency.ns").expect("a figure of the probe");
    assert!(probed["lo"].as_f64() <= probed["value"].as_f64(), "{probed}");
    assert_eq!((&probed["unit"], &probed["experiment"]), (&"ns".into(), &"probe".into()));
    assert!(probed["host"].is_string() && probed["parameters"].is_object(), "{probed}");
    // What tells figures of one record apart is whole.
    let mut seen = BTreeSet::new();
    for row in rows.iter().filter(|row| row["table"] == "results" && row["kind"] == "machine") {
        let name = ["record", "experiment", "metric", "parameters"].map(|name| row[name].to_string());
        assert!(seen.insert(name), "twice: {row}");
    }
}

#[test]
fn what_is_no_record_is_named_and_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let below = here.join("records/site-b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(here.join("records/a.json"), probe_record().to_string()).unwrap();
    std::fs::copy(here.join("records/a.json"), below.join("again.json")).unwrap();
    std::fs::copy(fixture(RECORDS[2]), below.join("run.json")).unwrap();
    let whole = std::fs::read(fixture(RECORDS[1])).unwrap();
    std::fs::write(below.join("cut.json"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(below.join("notes.txt"), "no record, and not looked at").unwrap();
    let output = gleaner(here, &["export", "--format", "jsonl", "records", "absent.json"]);
    let (code, said) = told(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(code, Some(1), "{said}");
    assert!(lines[0].starts_with("gleaner: records/site-b/cut.json: cut short: "), "{said}");
    assert_eq!(lines[1], "gleaner: absent.json: cannot be read: No such file or directory");
    assert_eq!(lines[2], "2 records written, 2 left out");
    assert_eq!(lines[3], "1 record named twice: the first of each counts");
    assert_eq!(rows(&output.stdout).iter().filter(|row| row["table"] == "machines").count(), 1);
    let nothing = gleaner(here, &["export", "--format", "jsonl", "absent.json"]);
    assert_eq!(nothing.status.code(), Some(1));
}

/// `prometheus_client` parses what is printed, with the record's own figures in it.
#[test]
fn headlines_are_gauges() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(directory.path());
    let output = gleaner(directory.path(), &strings(&records, &["export", "--format", "prometheus"]));
    assert_eq!(told(&output), (Some(0), String::new()));
    let Some(python) = python() else { return };
    let script = "import sys, json\nfrom prometheus_client.parser import text_string_to_metric_families as parse\n\
        print(json.dumps([[s.name, s.labels, s.value] for f in parse(sys.stdin.read()) for s in f.samples]))";
    let parsed = readers::with_input(&python, &["-c", script], &output.stdout, directory.path());
    let samples: Vec<(String, Value, f64)> = serde_json::from_str(&parsed).expect("samples");
    let value = |name: &str| samples.iter().find(|(known, _, _)| known == name).map(|(_, _, value)| *value);
    let record = probe_record();
    let ns = record["experiments"]["probe"]["result"]["memory_latency"]["ns"]["value"].as_f64().unwrap();
    let seconds = value("gleaner_probe_memory_latency_seconds").expect("the latency");
    assert!((seconds / (ns * 1e-9) - 1.0).abs() < 1e-9, "{seconds} {ns}");
    assert!(value("gleaner_probe_memory_latency_seconds_low").expect("its lower end") <= seconds);
    assert!(value("gleaner_harvest_wall_seconds").is_some(), "{parsed}");
}

/// A series has one value: which records have none is told, and why.
#[test]
fn records_that_gauges_leave_out_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = probe_record();
    for day in 1..=3 {
        record["created"] = format!("2026-01-0{day}T00:00:00Z").into();
        std::fs::write(directory.path().join(format!("{day}.json")), record.to_string()).unwrap();
    }
    let arguments = ["export", "--format", "prometheus", "2.json", "3.json", "1.json"];
    let output = gleaner(directory.path(), &arguments);
    let (code, said) = told(&output);
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.starts_with("2 records are not written, since 3.json is a later one"), "{said}");
    assert!(said.contains("one value: 2.json, 1.json"), "{said}");
    let series = text(&output.stdout);
    let lines = series.lines().filter(|line| line.starts_with("gleaner_record_time_seconds{"));
    assert_eq!(lines.count(), 1, "{series}");
}

/// `make test` turns the feature on; a plain `cargo test` runs this one.
#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_it() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let records = records(here);
    let (code, said) = told(&gleaner(here, &strings(&records, &["export", "--parquet", "tables"])));
    assert_eq!((code, said.lines().count()), (Some(3), 1), "{said}");
    assert!(said.contains("--features parquet") && said.contains("--format jsonl"), "{said}");
    assert!(!here.join("tables").exists());
}

#[cfg(feature = "parquet")]
#[test]
fn tables_take_each_record_once() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let records = records(here);
    let export = strings(&records, &["export", "--parquet", "tables"]);
    let (code, said) = told(&gleaner(here, &export));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("new rows in tables: loads "), "{said}");
    let files = || {
        let list = Command::new("find").args(["tables", "-name", "*.parquet"]).current_dir(here).output();
        let mut files: Vec<String> = text(&list.unwrap().stdout).lines().map(str::to_owned).collect();
        files.sort();
        files
    };
    let first = files();
    assert!(first.iter().any(|file| file.starts_with("tables/machines/date=2026-")), "{first:?}");
    let again = told(&gleaner(here, &export));
    assert_eq!(again, (Some(0), "new rows in tables: none; 6 records were there already\n".to_owned()));
    assert_eq!(files(), first);
    // A file that is none of ours is not written past.
    let broken = here.join(&first[0]);
    std::fs::write(&broken, "PAR1 no table").unwrap();
    let (code, said) = told(&gleaner(here, &export));
    assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(&first[0]) && said.contains("remove the file"), "{said}");
}

/// Every type of column arrives as it left: the rows that DuckDB reads are those of `jsonl`.
#[cfg(feature = "parquet")]
#[test]
fn duckdb_reads_the_same_rows() {
    let Some(python) = python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let records = records(here);
    assert_eq!(told(&gleaner(here, &strings(&records, &["export", "-q", "--parquet", "tables"]))).0, Some(0));
    let lines = gleaner(here, &strings(&records, &["export", "--format", "jsonl"])).stdout;
    let mut expected: Vec<String> = rows(&lines).into_iter().map(|row| readers::comparable(&row)).collect();
    let mut read = Vec::new();
    for table in ["machines", "results", "loads", "objects", "runs"] {
        let sql = format!(
            "SELECT '{table}' AS \"table\", * EXCLUDE (date) FROM read_parquet('tables/{table}/*/*.parquet')"
        );
        read.extend(readers::duckdb(&python, here, &[&sql]).iter().map(readers::comparable));
    }
    expected.sort();
    read.sort();
    assert_eq!(read.len(), expected.len());
    for (read, expected) in read.iter().zip(&expected) {
        assert_eq!(read, expected);
    }
}

/// 1200 made-up hosts with planted faults: the queries of the page find all of these, and name
/// fewer than one of a hundred others.
#[cfg(feature = "parquet")]
#[test]
fn the_page_finds_planted_faults() {
    let Some(python) = python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _limit = testkit::TimeLimit::new(here);
    let fleet = Fleet::written_to(&here.join("records"));
    let exported = told(&gleaner(here, &["export", "-q", "--parquet", "tables", "records"]));
    assert_eq!(exported, (Some(0), String::new()));
    let [views, figures, claims, limits] = documented_sql();
    let by_figures = readers::duckdb(&python, here, &[&views, &figures]);
    let by_claims = readers::duckdb(&python, here, &[&views, &claims]);
    let named = |rows: &[Value], what: &str| -> BTreeSet<(String, String)> {
        let pair = |row: &Value| {
            let word = |name: &str| row[name].as_str().expect("a text").to_owned();
            (word("host"), word(what))
        };
        rows.iter().map(pair).collect()
    };
    let found: BTreeSet<_> =
        named(&by_figures, "metric").into_iter().chain(named(&by_claims, "claim")).collect();
    for planted in fleet.planted() {
        // By one of the figures that the fault moves; others may stay within their intervals.
        let named = |sign: &&str| found.contains(&(planted.host.clone(), (*sign).to_owned()));
        assert!(planted.fault.signs().iter().any(named), "{planted:?} among {found:?}");
    }
    let faulty: BTreeSet<&str> = fleet.planted().iter().map(|planted| planted.host.as_str()).collect();
    let hosts: BTreeSet<&str> = found.iter().map(|(host, _)| host.as_str()).collect();
    let wrong: Vec<&&str> = hosts.difference(&faulty).collect();
    let sound = fleet.hosts() - faulty.len();
    eprintln!("{} hosts, {} faults, {} named without one", fleet.hosts(), faulty.len(), wrong.len());
    assert!(wrong.len() * 100 <= sound, "{wrong:?} of {sound}");
    // The limits of the page are limits: a file that `--expect` takes.
    let limits = readers::duckdb(&python, here, &[&views, &limits]);
    let lines: Vec<&str> = limits.iter().map(|row| row["limits"].as_str().expect("a line")).collect();
    let parsed = compare::limits::limits(&lines.join("\n")).expect("limits");
    assert_eq!(parsed.len(), 5, "{lines:?}");
}

/// Spark and ClickHouse, which take minutes to install: `make test-long`.
#[cfg(feature = "parquet")]
#[test]
#[ignore = "make test-long installs Spark and ClickHouse"]
fn other_databases_read_the_tables() {
    let python = python().expect("Python with pyspark and chdb, by scripts/test-long.sh");
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let records = records(here);
    assert_eq!(told(&gleaner(here, &strings(&records, &["export", "-q", "--parquet", "tables"]))).0, Some(0));
    let counts = readers::duckdb(
        &python,
        here,
        &[
            "SELECT count(*) AS n, count(value) AS v, sum(value) AS s FROM read_parquet('tables/results/*/*.parquet')",
        ],
    );
    let expected = ["n", "v", "s"].map(|name| counts[0][name].as_f64().expect("a number"));
    for script in [readers::SPARK, readers::CLICKHOUSE] {
        let printed = readers::with_input(&python, &["-c", script], b"", here);
        let last = printed.lines().last().expect("a line");
        let read: Vec<f64> = serde_json::from_str(last).unwrap_or_else(|_| panic!("{printed}"));
        assert_eq!(read.len(), 3);
        for (read, expected) in read.iter().zip(expected) {
            assert!((read - expected).abs() <= expected.abs() * 1e-9, "{read} {expected}");
        }
    }
}

#[test]
fn kubernetes_takes_the_manifest() {
    let Some(python) = python() else { return };
    let manifest = testkit::root().join("docs/fleet/daemonset.yaml");
    let manifest = manifest.to_str().expect("a path that is text");
    let validate = python.with_file_name("kubernetes-validate");
    let run = |file: &str| Command::new(&validate).args(["--strict", file]).output().expect("it runs");
    let output = run(manifest);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    // It does see mistakes.
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("wrong.yaml");
    let text = std::fs::read_to_string(manifest).unwrap();
    std::fs::write(&wrong, text.replace("hostPath:", "hostpath:")).unwrap();
    assert!(!run(wrong.to_str().unwrap()).status.success());
    // The options in it are options of this gleaner.
    let command = text.lines().find(|line| line.contains("gleaner probe")).expect("the command").trim();
    let help = gleaner(directory.path(), &["probe", "--help"]);
    let help = testkit::text(&help.stdout);
    for option in command.split_whitespace().filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option}");
    }
}

/// hwloc reads the topology, and tells the latency that was measured.
#[test]
fn hwloc_reads_memory_attributes() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("probe.json"), probe_record().to_string()).unwrap();
    let output = gleaner(here, &["export", "--format", "hwloc", "-o", "machine.xml", "probe.json"]);
    let remark = "next: lstopo --input machine.xml, or HWLOC_XMLFILE=machine.xml for programs\n";
    assert_eq!(told(&output), (Some(0), remark.to_owned()));
    let refused = gleaner(here, &["export", "--format", "hwloc", &fixture(RECORDS[0])]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    if Command::new("lstopo-no-graphics").arg("--version").output().is_err() {
        eprintln!("skipped: hwloc is not here (Debian: apt install hwloc-nox)");
        return;
    }
    let mut command = Command::new("lstopo-no-graphics");
    command.args(["--input", "machine.xml", "--memattrs"]).current_dir(here);
    let read = command.output().unwrap();
    let (said, complaints) = (text(&read.stdout), text(&read.stderr));
    assert!(read.status.success() && complaints.is_empty(), "{complaints}");
    let machine = probe_record();
    let ns = machine["experiments"]["probe"]["result"]["memory_latency"]["ns"]["value"].as_f64().unwrap();
    let latency = said.lines().skip_while(|line| !line.contains("name `Latency'")).nth(1);
    assert!(latency.is_some_and(|line| line.contains(&format!("= {}", ns.round()))), "{said}");
}

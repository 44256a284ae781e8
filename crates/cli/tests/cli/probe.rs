//! `gleaner probe`: its record, its exit codes for checks before a job, and the prolog that uses
//! them. What its tables are good for is tested by `fleet`.

use records::machine::Machine;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{TimeLimit, text, wait_until};

/// As short as it may be, in little memory: figures do not matter here.
const QUICKLY: [&str; 5] = ["probe", "--budget", "3s", "--max-memory", "64M"];

fn gleaner(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

fn probe(directory: &Path, more: &[&str]) -> Output {
    gleaner(directory, &[&QUICKLY, more].concat()).output().expect("it runs")
}

#[test]
fn a_record_has_the_host_s_name_and_figures() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _limit = TimeLimit::new(here);
    let output = probe(here, &["--name", "rack/7", "-o", "."]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let file = said.lines().find_map(|line| line.strip_prefix("wrote ./")).expect("the file's name");
    assert!(file.starts_with("rack_7-2") && file.ends_with("Z.json"), "{file}");
    let record = records::read::<Machine>(&here.join(file)).expect("a record").body;
    assert_eq!(record.run.host_name.as_deref(), Some("rack/7"));
    let outcome = record.experiments.probe.expect("a probe");
    let probe = outcome.result.expect("a result");
    let resolved =
        |name: &str| probe.figures().iter().any(|(known, q)| *known == name && q.value().is_some());
    for name in ["memory_latency", "bandwidth_one", "prefetch_gain", "huge_pages", "void_share", "core_clock"]
    {
        assert!(resolved(name), "{name}: {probe:?}");
    }
    // Other verbs take it as the machine record it is.
    let shown =
        gleaner(here, &["show", file, ".experiments.probe.result.memory_latency.ns"]).output().unwrap();
    assert!(text(&shown.stdout).contains("ns"), "{}", text(&shown.stderr));
    // Shared reports do not name the host.
    let page = gleaner(here, &["report", "--share", "-q", "-o", "-", file]).output().unwrap();
    let page = text(&page.stdout);
    assert!(page.contains("Fleet probe") && !page.contains("rack/7"));
}

#[test]
fn limits_decide_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _limit = TimeLimit::new(here);
    let cases = [
        ("memory_latency <= 100000 ns\nbandwidth_one >= 1 MB/s", 0, ""),
        // With a figure that a host may lack; what is broken besides outweighs it.
        (
            "memory_latency <= 0.1 ns\nnode_balance >= 2",
            4,
            "limit broken: memory_latency <= 0.1 ns; measured: ",
        ),
        ("memory_latency = 5", 2, "limits: line 1: 'memory_latency = 5' is not FIGURE <= VALUE"),
        ("# none", 2, "limits: there is no limit in it"),
    ];
    for (limits, code, line) in cases {
        std::fs::write(here.join("limits"), limits).unwrap();
        let output = probe(here, &["-q", "--expect", "limits"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{limits}: {said}");
        assert!(said.contains(line), "{limits}: {said}");
    }
}

/// The prolog of the page fails for a broken limit, and for nothing else.
#[test]
fn the_prolog_drains_slow_nodes_alone() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _limit = TimeLimit::new(here);
    let prolog = |limits: &str| {
        std::fs::write(here.join("limits"), limits).unwrap();
        let mut command = Command::new("sh");
        command.arg(testkit::root().join("docs/fleet/slurm-prolog.sh")).current_dir(here);
        command.env("LIMITS", "limits").env("RECORDS", "records").env("SLURMD_NODENAME", "node17");
        command.env("GLEANER", env!("CARGO_BIN_EXE_gleaner")).stdin(Stdio::null());
        command.output().expect("sh")
    };
    assert_eq!(prolog("memory_latency <= 0.1 ns").status.code(), Some(1));
    assert_eq!(prolog("memory_latency <= 1e9 ns").status.code(), Some(0));
    assert_eq!(prolog("no limit at all").status.code(), Some(0));
    let records: Vec<_> = std::fs::read_dir(here.join("records")).unwrap().collect();
    assert_eq!(records.len(), 2, "{records:?}");
}

#[test]
fn a_stop_ends_the_wait_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _limit = TimeLimit::new(here);
    let arguments = [&QUICKLY[..], &["--jitter", "1000min", "-o", "probe.json"]].concat();
    let mut child = gleaner(here, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(testkit::kill("INT", &child.id().to_string()));
    wait_until("the probe ends by SIGINT", Duration::from_secs(60), || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("stopped before anything was measured"));
    assert!(!here.join("probe.json").exists());
}

#[test]
fn budgets_have_bounds() {
    let directory = tempfile::tempdir().unwrap();
    for budget in ["1s", "11min", "0", "soon"] {
        let output = gleaner(directory.path(), &["probe", "--budget", budget]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{budget}: {}", text(&output.stderr));
    }
}

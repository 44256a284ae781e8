//! What remains of a short measurement when something goes wrong at its end or is tight from its
//! start: nothing is lost that could be kept. No speed is looked at here, only what is written
//! where.
//!
//! To add a case: a test that measures the clock, which takes a second, or asks for more than there
//! is.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::said;

fn gleaner(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gleaner"));
    // Not the record of the user who runs the tests.
    command.args(args).stdin(Stdio::null()).env("XDG_CACHE_HOME", "/proc/no/such/place");
    command
}

#[test]
fn tables_are_written_though_the_reader_of_the_text_has_left() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["measure", "clock", "--quick", "-q", "--csv", dir.path().to_str().unwrap()];
    let mut child = gleaner(&args).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let table = std::fs::read_to_string(dir.path().join("clock.csv")).expect("a table");
    assert!(table.lines().count() > 1, "{table}");
}

#[test]
fn where_no_file_can_be_kept_the_text_is() {
    let args = ["measure", "clock", "--quick", "-q", "-o", "/dev/full"];
    let output = gleaner(&args).env("TMPDIR", "/no/such/place").output().unwrap();
    let (code, text, errors) = said(&output);
    assert_eq!(
        (code, errors.as_str()),
        (Some(3), "gleaner: cannot write /dev/full: No space left on device\n")
    );
    assert!(text.contains("\nClock\n") && text.contains("\nGrade: "), "{text}");
}

#[test]
fn areas_fit_into_the_addresses_that_the_shell_leaves() {
    let measure = |kib: u32| {
        let line = format!(
            "ulimit -v {kib}; exec {} measure latency --quick -q --json",
            env!("CARGO_BIN_EXE_gleaner")
        );
        said(&Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().expect("a shell"))
    };
    let (code, record, errors) = measure(220_000);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{record}");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let area = record["run"]["memory"]["largest_area"].as_u64().expect("a size");
    assert!((1 << 20..=64 << 20).contains(&area), "{area}");
    let (code, _, errors) = measure(140_000);
    assert_eq!(code, Some(3));
    assert!(errors.contains("ulimit -v") && errors.lines().count() == 1, "{errors}");
}

#[test]
fn each_stride_that_is_asked_for_is_a_curve() {
    let strides = ["--stride", "64,128", "--size", "64K", "--format", "lat_mem_rd"];
    let output = gleaner(&["measure", "stride", "--quick", "-q"]).args(strides).output().unwrap();
    let (code, text, errors) = said(&output);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let curves: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(curves.len(), 2, "{text}");
    for (curve, head) in curves.iter().zip(["\"stride=64", "\"stride=128"]) {
        let mut lines = curve.lines();
        assert_eq!(lines.next(), Some(head));
        // A size without a figure stands behind a mark.
        let sizes = lines.map(|line| line.trim_start_matches("# ").split(' ').next().unwrap());
        let sizes: Vec<&str> = sizes.collect();
        assert_eq!((sizes.len(), sizes[0], sizes[12]), (13, "0.00049", "0.06250"), "{curve}");
    }
}

/// A line of the shell, in which `$G` is this program.
fn shell(line: &str) -> (Option<i32>, String, String) {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .env("XDG_CACHE_HOME", "/proc/no/such/place")
        .env("G", env!("CARGO_BIN_EXE_gleaner"))
        .stdin(Stdio::null());
    said(&shell.output().expect("a shell"))
}

#[test]
fn a_record_that_standard_output_does_not_take_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    for json in ["", "--json"] {
        let line = format!("TMPDIR={} $G measure clock --quick -q {json} >/dev/full", dir.path().display());
        let (code, _, errors) = shell(&line);
        assert_eq!(code, Some(3), "{errors}");
        let begin =
            "gleaner: cannot write to standard output: No space left on device; the record is kept in ";
        let kept = errors.trim_end().strip_prefix(begin).unwrap_or_else(|| panic!("{errors}"));
        assert_eq!(shell(&format!("$G show {kept} .kind")).1, "machine\n");
    }
}

#[test]
fn beyond_the_limit_on_file_sizes_no_half_of_a_record_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().display();
    let line =
        format!("ulimit -f 8; TMPDIR=/no/such $G measure clock --quick -q -o {directory}/machine.json");
    let (code, text, errors) = shell(&line);
    let told = format!("gleaner: cannot write {directory}/machine.json: File too large\n");
    assert_eq!((code, errors), (Some(3), told));
    assert!(text.contains("\nClock\n"), "{text}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_pipe_without_a_reader_is_told_and_left_on_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = ["measure", "clock", "--quick", "-q", "-o", pipe.to_str().unwrap()];
    let run = || {
        gleaner(&args).env("TMPDIR", dir.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let waiting = |child: &mut std::process::Child| {
        let mut line = String::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        let told = format!("gleaner: no program reads the pipe {}; waiting for one\n", pipe.display());
        assert_eq!(line, told);
        errors
    };
    let mut child = run();
    let mut errors = waiting(&mut child);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let begin = format!(
        "gleaner: cannot write {}: no program reads this pipe; the record is kept in ",
        pipe.display()
    );
    assert!(line.starts_with(&begin), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    // A reader opens the pipe late.
    let mut child = run();
    let _errors = waiting(&mut child);
    let record = std::fs::read_to_string(&pipe).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    serde_json::from_str::<serde_json::Value>(&record).expect("JSON");
}

/// As in a container: a filter for one system call, by its number.
#[test]
fn what_a_place_forbids() {
    let dir = tempfile::tempdir().unwrap();
    let deny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/programs/deny.c");
    let denying = dir.path().join("deny");
    assert!(Command::new("cc").arg("-w").arg("-o").arg(&denying).arg(deny).status().unwrap().success());
    let denied = |call: &str, words: &str| shell(&format!("{} {call} $G {words}", denying.display()));
    let measured = |call| {
        let (code, _, errors) = denied(call, &format!("measure yield --quick -q --cpu {}", last_cpu()));
        assert_eq!(code, Some(3), "{call}: {errors}");
        errors
    };
    let help = "Operation not permitted; a container or sandbox that allows it\n";
    assert_eq!(measured("203"), format!("gleaner: measure: pinning to CPU [{}]: {help}", last_cpu()));
    assert_eq!(measured("204"), format!("gleaner: measure: reading the CPU affinity: {help}"));
    // No threads (clone3).
    assert_eq!(measured("435"), format!("gleaner: yield: starting a thread: {help}"));
    let (code, text, errors) = denied("435", "doctor");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    if last_cpu() > 0 {
        assert!(text.contains("starting a thread: Operation not permitted"), "{text}");
    }
}

fn last_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.rsplit([',', '-']).next().unwrap().parse().unwrap()
}
